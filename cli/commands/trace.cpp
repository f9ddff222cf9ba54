// SPDX-License-Identifier: Apache-2.0
//
// flopmeter trace: analyzes traces of the PyTorch profiler like a live run.
#include "../command.h"
#include "../model_argument.h"
#include "../peak_argument.h"
#include "../trace_argument.h"
#include "../trace_diagnosis.h"
#include "../trace_page.h"
#include "../trace_text.h"

#include <flopmeter/catalog/estimate.h>
#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/trace/trace_report.h>

#include <algorithm>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string device;
  std::string peak;
  std::string dtype = "bf16";
  std::string model;
  std::int64_t tokens = 0;
  std::int64_t seq_len = 0;
  int rank = -1;
  std::string output;
  bool json = false;
};

/// The model FLOPs of a step with `tokens` tokens: full sequences, and one of what remains.
Result<std::optional<StepFormula>> step_formula(const Options& options, Dtype dtype) {
  if (options.model.empty()) return std::optional<StepFormula>{};
  const auto model = read_model(options.model);
  if (!model) return model.error();
  constexpr std::int64_t usual = 2048;
  const std::int64_t limit =
      options.seq_len > 0 ? options.seq_len : (*model).positions.value_or(usual);
  const std::int64_t seq_len = std::min(limit, options.tokens);
  EstimateRequest request{.batch = Batch::uniform(options.tokens / seq_len, seq_len),
                          .dtype = dtype};
  if (const std::int64_t rest = options.tokens % seq_len; rest > 0)
    request.batch.sequences.push_back({.length = rest});
  const auto result = estimate((*model).model, request);
  if (!result) return result.error();
  return std::optional{StepFormula{.model = (*result).model,
                                   .tokens = options.tokens,
                                   .seq_len = seq_len,
                                   .flops = (*result).model_flops,
                                   .dtype = dtype}};
}

Exit run(const Options& options) {
  // The matmuls of the trace state their dtypes; those of a formula have the one of the option.
  const PeakArgument argument{.device = options.device,
                              .dtype = options.dtype,
                              .peak = options.peak,
                              .any_dtype = options.model.empty()};
  const auto peaks = argument.table();
  if (!peaks) return refuse(peaks.error());
  const auto formula = step_formula(options, *argument.compute_dtype());
  if (!formula) return refuse(formula.error());
  auto report = read_trace_arguments(options.paths, {.peaks = *peaks, .formula = *formula});
  if (!report) {  // the command is right, the file is not
    notify(report.error().text());
    return 1;
  }
  if (options.rank >= 0) {
    std::erase_if(report->ranks, [&](const DeviceReport& one) { return one.rank != options.rank; });
    if (report->ranks.empty()) {
      return refuse({ErrorCode::not_found,
                     "--rank " + std::to_string(options.rank) + ": no trace is of this rank"});
    }
    *report = merge_ranks(std::move(report->ranks));
  }
  const Diagnosis diagnosis = diagnose_trace(*report);
  if (!options.output.empty()) {
    const auto written = replace_file(options.output, trace_page(*report, diagnosis));
    if (!written) return refuse({ErrorCode::io_error, written.error().message});
    if (!options.json) return print(printable(options.output) + ": open it in a browser\n");
  }
  if (!options.json) return print(trace_text(*report, diagnosis));
  return print_json([&](JsonWriter& json) {
    json.begin_object();
    write_json_members(json, *report);
    json.key("budget");
    write_json(json, diagnosis.budget);
    json.key("findings").begin_array();
    for (const Finding& finding : diagnosis.findings) write_json(json, finding);
    json.end_array().end_object();
  });
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("files", o.paths, "traces, or directories that contain them")->required();
  app.add_option("--device", o.device, "the device, if the trace does not name it")
      ->check(check_not_empty);
  app.add_option("--peak", o.peak, "its peak in TFLOP/s, or measured");
  app.add_option("--dtype", o.dtype, "the dtype of --peak and of the matmuls of --model")
      ->capture_default_str();
  auto* model = app.add_option("--model",
                               o.model,
                               "compute MFU by the formula of this model (name or config.json) "
                               "instead of by the shapes of the trace")
                    ->check(check_not_empty);
  auto* tokens = app.add_option("--tokens",
                                o.tokens,
                                "tokens per step and device, for --model; of the whole trace if "
                                "it has no steps")
                     ->check(check_positive_integer)
                     ->needs(model);
  model->needs(tokens);
  app.add_option("--seq-len",
                 o.seq_len,
                 "tokens per sequence, for --model (default: maximum of config.json, else 2048)")
      ->check(check_positive_integer)
      ->needs(model);
  app.add_option("--rank", o.rank, "report this rank only")->check(check_not_negative);
  app.add_option("-o,--output", o.output, "write the page of `flopmeter report` to this file")
      ->check(check_not_empty);
  app.add_flag("--json", o.json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_trace{
    .name = "trace",
    .help = "Analyze traces of the PyTorch profiler: MFU, time budget, findings",
    .order = 9,
    .set_up = set_up};

}  // namespace flopmeter
