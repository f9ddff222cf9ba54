// SPDX-License-Identifier: Apache-2.0
//
// Full estimates of a 100-layer mixture-of-experts model on one core. Goal: 20,000 per second.
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <benchmark/benchmark.h>

namespace {

using namespace flopmeter;

constexpr std::string_view config_text = R"({
  "model_type": "qwen3_moe", "hidden_size": 4096, "num_hidden_layers": 100, "num_attention_heads": 64,
  "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 12288, "moe_intermediate_size": 1536,
  "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936})";

void run(benchmark::State& state, const Training& training) {
  const auto model = build_model(*Config::parse(config_text, "benchmark"));
  EstimateRequest request{.batch = Batch::uniform(8, 4096), .training = training};
  for (auto _ : state) benchmark::DoNotOptimize(estimate(*model, request));
  state.SetItemsProcessed(state.iterations());
}

void full_training(benchmark::State& state) {
  run(state, {});
}
void recompute(benchmark::State& state) {
  run(state, {.recompute = Recompute::full});
}
void lora(benchmark::State& state) {
  run(state, {.trainable = *Trainable::parse("lora:16")});
}
void from_config_text(benchmark::State& state) {
  for (auto _ : state) {
    const auto model = build_model(*Config::parse(config_text, "benchmark"));
    benchmark::DoNotOptimize(estimate(*model, {.batch = Batch::uniform(8, 4096)}));
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(full_training);
BENCHMARK(recompute);
BENCHMARK(lora);
BENCHMARK(from_config_text);

}  // namespace
