// SPDX-License-Identifier: Apache-2.0
#include "training_run.h"

#include "gpt.h"
#include "screen.h"
#include "text_batches.h"

#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/text.h>
#include <flopmeter/monitor/monitor.h>
#include <flopmeter/torch/op_counter.h>

#include <ATen/autocast_mode.h>

#include <utility>
#include <vector>

namespace flopmeter::demo {
namespace {

/// bf16 matmuls on the CPU while it is alive.
class Autocast {
 public:
  explicit Autocast(bool on) : on_(on) {
    if (!on_) return;
#if TORCH_VERSION_MAJOR >= 2
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
#else
    at::autocast::set_cpu_enabled(true);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
#endif
  }
  ~Autocast() {
    if (!on_) return;
    at::autocast::clear_cache();
#if TORCH_VERSION_MAJOR >= 2
    at::autocast::set_autocast_enabled(at::kCPU, false);
#else
    at::autocast::set_cpu_enabled(false);
#endif
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  Autocast(Autocast&&) = delete;
  Autocast& operator=(Autocast&&) = delete;

 private:
  bool on_;
};

/// The model for the estimator, so that `flopmeter recount` works on the demo's runs.
ModelSource describe(const GptSizes& sizes, bool bf16) {
  std::string config;
  JsonWriter json{config};
  json.begin_object()
      .field("model_type", "gpt2")
      .field("vocab_size", sizes.vocab)
      .field("n_positions", sizes.length)
      .field("n_embd", sizes.width)
      .field("n_layer", sizes.layers)
      .field("n_head", sizes.heads)
      .field("tie_word_embeddings", false)
      .end_object();
  return {.config = config,
          .family = "gpt2",
          .trainable = "all",
          .recompute = "none",
          .attention = TORCH_VERSION_MAJOR >= 2 ? "fused" : "eager",
          .dtype = bf16 ? Dtype::bf16 : Dtype::fp32};
}

void fill(RunResult& result, const StepTotals& totals) {
  result.mfu = totals.mfu().value_or(0);
  result.tokens_per_second = totals.tokens_per_second().value_or(0);
  result.data_share = totals.phase_share(Phase::data).value_or(0);
}

}  // namespace

Result<RunResult> train(const TrainingRun& run) {
  static TorchFlopCounter source;  // the interceptor lives as long as the process
  Options options;
  options.directory = run.directory;
  options.console = false;
  options.tensorboard = true;
  options.breakdown = true;
  options.model = "demo-gpt";
  Connections connections;
  connections.source = &source;
  connections.peaks = run.peaks;
  const GptSizes sizes;
  connections.model_source = describe(sizes, run.bf16);
  auto monitor = Monitor::start(options, std::move(connections));
  if (!monitor) return monitor.error();
  const auto records = (*monitor).subscribe();

  torch::manual_seed(1);
  Gpt model{sizes};
  torch::optim::AdamW optimizer{model->parameters(), torch::optim::AdamWOptions(1e-3)};
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(run.batch), sizes.length);
  TextBatches batches{run.batch, sizes.length, run.loader_delay};
  LiveLine line;
  StepTotals totals;
  RunResult result;
  const auto start = std::chrono::steady_clock::now();
  double elapsed = 0;
  while (elapsed < run.seconds) {
    (*monitor).begin_phase(Phase::data);
    const TextBatch batch = batches.next();
    (*monitor).end_phase(Phase::data);
    auto step = (*monitor).step({.samples = run.batch, .sequence_lengths = lengths});
    torch::Tensor loss;
    {
      const auto phase = step.phase(Phase::forward);
      const Autocast autocast{run.bf16};
      loss = model->forward(batch.tokens, batch.targets);
    }
    {
      const auto phase = step.phase(Phase::backward);
      loss.backward();
    }
    {
      const auto phase = step.phase(Phase::optimizer);
      optimizer.step();
      optimizer.zero_grad();
    }
    result.last_loss = loss.item<double>();
    ++result.steps;
    step.end({.loss = result.last_loss});
    while (const auto record = records->next(std::chrono::milliseconds{0})) totals.add(*record);
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (totals.steps == 0) continue;
    fill(result, totals);
    line.show(elapsed / run.seconds,
              "MFU " + percent(result.mfu) + "  " +
                  grouped(static_cast<WideInt>(result.tokens_per_second)) + " tokens/s  step " +
                  std::to_string(result.steps) + "  loss " + fixed(result.last_loss, 3));
  }
  line.end();
  (*monitor).finish();
  while (const auto record = records->next(std::chrono::milliseconds{100})) totals.add(*record);
  fill(result, totals);
  return result;
}

}  // namespace flopmeter::demo
