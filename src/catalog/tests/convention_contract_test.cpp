// SPDX-License-Identifier: Apache-2.0
//
// Contract of every file in src/catalog/conventions, and the differences between conventions on
// well-known models.
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace flopmeter {
namespace {

Model model_of(std::string_view json) {
  const auto config = Config::parse(json, "test");
  EXPECT_TRUE(config) << config.error().message;
  auto model = build_model(*config);
  EXPECT_TRUE(model) << model.error().message;
  EXPECT_FALSE((*model).bare_parameters) << json;
  return *std::move(model);
}

Estimate count(const Model& model,
               std::string_view convention,
               Batch batch,
               Training training = {}) {
  const auto result = estimate(model,
                               {.batch = std::move(batch),
                                .training = std::move(training),
                                .convention = std::string{convention}});
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

TEST(ConventionContract, has_a_help_text_and_a_source) {
  std::set<std::string_view> names;
  for (const Convention* convention : conventions()) {
    EXPECT_TRUE(names.insert(convention->name).second) << convention->name;
    EXPECT_FALSE(convention->help.empty()) << convention->name;
    EXPECT_LE(convention->help.size(), 110U) << convention->name;
    EXPECT_TRUE(convention->source.starts_with("https://") ||
                convention->source == "docs/concepts/conventions.md")
        << convention->name;
    EXPECT_EQ(find_convention(convention->name), convention);
  }
}

TEST(ConventionContract, reproduces_its_worked_example) {
  const Model model = model_of(convention_example_config);
  for (const Convention* convention : conventions()) {
    const Estimate e = count(model, convention->name, Batch::uniform(1, 4));
    EXPECT_EQ(to_string(e.model_flops.value), std::to_string(convention->example.model_flops))
        << convention->name;
    EXPECT_EQ(e.forward + e.backward, e.model_flops) << convention->name;
    EXPECT_EQ(e.convention, convention->name);
  }
}

TEST(ConventionContract, forward_only_is_the_forward_part) {
  const Model model = model_of(convention_example_config);
  for (const Convention* convention : conventions()) {
    const Estimate both = count(model, convention->name, Batch::uniform(2, 8));
    const Estimate one =
        count(model, convention->name, Batch::uniform(2, 8), {.forward_only = true});
    EXPECT_EQ(one.forward, both.forward) << convention->name;
    EXPECT_EQ(one.backward.value, 0) << convention->name;
    EXPECT_LE(one.hardware_flops, both.hardware_flops) << convention->name;
  }
}

TEST(ConventionContract, flops_of_sequences_are_summed) {
  const Model model = model_of(convention_example_config);
  Batch mixed;
  mixed.sequences = {{.length = 8, .count = 2}, {.length = 4, .count = 3}};
  for (const Convention* convention : conventions()) {
    const Flops eight = count(model, convention->name, Batch::uniform(1, 8)).model_flops;
    const Flops four = count(model, convention->name, Batch::uniform(1, 4)).model_flops;
    EXPECT_EQ(count(model, convention->name, mixed).model_flops, 2 * eight + 3 * four)
        << convention->name;
  }
}

TEST(ConventionContract, parameters_are_enough_if_it_needs_no_operations) {
  Model bare;
  bare.name = "something";
  bare.bare_parameters = 1'000'000;
  for (const Convention* convention : conventions()) {
    ASSERT_EQ(convention->example.bare_flops > 0, !convention->needs_operations)
        << convention->name;
    if (convention->needs_operations) continue;
    const Estimate e = count(bare, convention->name, Batch::uniform(1, 10));
    EXPECT_EQ(to_string(e.model_flops.value), std::to_string(convention->example.bare_flops))
        << convention->name;
    EXPECT_EQ(e.convention, convention->name);
  }
}

TEST(ConventionContract, hardware_flops_include_recomputation) {
  const Model model = model_of(convention_example_config);
  const auto hardware = [&](std::string_view convention, Recompute recompute) {
    return count(model, convention, Batch::uniform(1, 4), {.recompute = recompute})
        .hardware_flops.value;
  };
  // 96 B s l h^2 + 16 B s^2 l h + 6 B s h V, and three quarters of it.
  EXPECT_EQ(hardware("megatron-2021", Recompute::full), 32768);
  EXPECT_EQ(hardware("megatron-2021", Recompute::none), 24576);
  EXPECT_EQ(hardware("korthikanti", Recompute::none), 26112);
  EXPECT_EQ(hardware("korthikanti", Recompute::selective), 26112 + 12 * 16 * 8);
  EXPECT_EQ(hardware("korthikanti", Recompute::full), 32768);
  EXPECT_EQ(hardware("mosaic", Recompute::none), 28224);
  EXPECT_EQ(hardware("mosaic", Recompute::full), 28224 * 4 / 3);
  EXPECT_EQ(hardware("deepspeed", Recompute::full), 21504 * 4 / 3);
}

// Excerpts of the config.json of well-known models.
constexpr std::string_view gpt2 =
    R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257})";
constexpr std::string_view llama_3_8b =
    R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256})";
constexpr std::string_view qwen25_7b =
    R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28,
  "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
  "tie_word_embeddings": false})";
constexpr std::string_view mixtral =
    R"({"model_type": "mixtral", "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
  "num_local_experts": 8, "num_experts_per_tok": 2, "tie_word_embeddings": false})";
constexpr std::string_view deepseek_v3 =
    R"({"model_type": "deepseek_v3", "hidden_size": 7168, "num_hidden_layers": 61,
  "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
  "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "intermediate_size": 18432,
  "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
  "first_k_dense_replace": 3, "moe_layer_freq": 1, "vocab_size": 129280, "num_nextn_predict_layers": 1,
  "tie_word_embeddings": false})";

struct Known {
  std::string_view name;
  std::string_view config;
  std::int64_t length;
  double gflops_per_token;  // exact causal, training
  /// In percent of that: megatron, 6N, llm.c, torchtitan, verl-2026, verl-2025, FlopCounterMode.
  double percent[7];
};

constexpr std::string_view compared[7] = {
    "megatron", "kaplan-6n", "llm.c", "torchtitan", "verl-2026", "verl-2025", "torch-flopcounter"};
constexpr Known known[] = {
    {"GPT-2 124M", gpt2, 1024, 0.798, {-0.0, -6.4, 0.7, 7.8, 29.0, 36.1, 9.5}},
    {"Llama-3-8B", llama_3_8b, 8192, 51.471, {-0.0, -6.4, 6.1, 12.5, 6.1, 18.6, 16.7}},
    {"Llama-3-8B", llama_3_8b, 131072, 148.108, {-0.0, -67.5, 2.1, 69.6, 2.1, 71.7, 92.8}},
    {"Qwen2.5-7B", qwen25_7b, 4096, 44.889, {-0.0, 1.8, 7.3, 5.5, 7.3, 12.8, 7.3}},
    {"Mixtral-8x7B", mixtral, 4096, 79.714, {-0.0, -3.1, 1.0, 4.0, 1.0, 5.0, 5.4}},
    // Keys are wider than values: FlopCounterMode's backward is 2.6 x forward, verl's old count 1.2
    // x.
    {"DeepSeek-V3", deepseek_v3, 4096, 250.457, {-0.3, -10.0, 2.2, 12.3, 2.2, 19.4, 17.2}},
};

class KnownModel : public testing::TestWithParam<Known> {};

TEST_P(KnownModel, conventions_differ_as_published) {
  const Known& row = GetParam();
  const Model model = model_of(row.config);
  const Batch batch = Batch::uniform(1, row.length);
  const Training training{.mtp = Training::Mtp::off};
  const auto exact =
      static_cast<double>(count(model, "model-v1", batch, training).model_flops.value);
  EXPECT_NEAR(exact / static_cast<double>(row.length) / 1e9, row.gflops_per_token, 0.0005);
  for (std::size_t i = 0; i < std::size(compared); ++i) {
    const auto theirs =
        static_cast<double>(count(model, compared[i], batch, training).model_flops.value);
    EXPECT_NEAR(100 * (theirs / exact - 1), row.percent[i], 0.0501) << compared[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Conventions, KnownModel, testing::ValuesIn(known), [](const auto& suite) {
  std::string name{suite.param.name};
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name + "_" + std::to_string(suite.param.length);
});

/// Training FLOPs of one sequence: matmuls with weights, and the causal half of attention.
struct Vector {
  std::string_view config;
  std::int64_t length;
  std::int64_t linear;
  std::int64_t megatron;  ///< without the router, with the norms of latent attention
  std::int64_t half;
};

TEST(ConventionVectors, integers_of_one_sequence) {
  constexpr Vector vectors[] = {
      {gpt2, 1024, 758'980'804'608, 758'980'804'608, 57'982'058'496},
      {llama_3_8b, 8192, 368'868'971'249'664, 368'868'971'249'664, 52'776'558'133'248},
      {qwen25_7b, 4096, 173'759'344'410'624, 173'759'344'410'624, 10'101'763'080'192},
      {mixtral, 4096, 313'309'274'308'608, 313'283'504'504'832, 13'194'139'533'312},
      {deepseek_v3, 4096, 900'086'095'675'392, 897'473'530'822'656, 125'756'642'426'880},
  };
  for (const Vector& row : vectors) {
    const Model model = model_of(row.config);
    const Training training{.mtp = Training::Mtp::off};
    const auto parts = [&](std::string_view convention) {
      const Estimate e = count(model, convention, Batch::uniform(1, row.length), training);
      const PartFlops& core = e.parts[Component::attention_core];
      const WideInt attention = (core.forward + core.backward).value;
      return std::pair{to_string(e.model_flops.value - attention), to_string(attention)};
    };
    EXPECT_EQ(parts("model-v1").first, std::to_string(row.linear));
    EXPECT_EQ(parts("maxtext-2025"),
              (std::pair{std::to_string(row.linear), std::to_string(row.half)}));
    EXPECT_EQ(parts("maxtext-2024").second, std::to_string(2 * row.half));
    EXPECT_EQ(parts("megatron"),
              (std::pair{std::to_string(row.megatron), std::to_string(row.half)}));
  }
  const Estimate exact = count(model_of(llama_3_8b), "model-v1", Batch::uniform(1, 8192));
  const PartFlops& core = exact.parts[Component::attention_core];
  EXPECT_EQ((core.forward + core.backward).value, 52'783'000'584'192);
}

TEST(FlagPerf, uses_the_size_in_the_name) {
  const auto nominal = [](std::string_view name, std::int64_t parameters) {
    Model bare;
    bare.name = name;
    bare.bare_parameters = parameters;
    return static_cast<std::int64_t>(
               count(bare, "flagperf", Batch::uniform(1, 1)).model_flops.value) /
           6;
  };
  EXPECT_EQ(nominal("llama-2-7b", 6'738'417'664), 7'000'000'000);
  EXPECT_EQ(nominal("Llama-2-70B", 68'976'653'312), 70'000'000'000);
  EXPECT_EQ(nominal("llava-1.5-13b", 13'350'839'296), 13'000'000'000);
  EXPECT_EQ(nominal("Qwen1.5-1.8B", 1'836'828'672), 1'800'000'000);
  EXPECT_EQ(nominal("my model", 6'738'417'664), 7'000'000'000);
  EXPECT_EQ(nominal("small", 124'439'808), 124'439'808);
}

}  // namespace
}  // namespace flopmeter
