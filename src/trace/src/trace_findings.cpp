// SPDX-License-Identifier: Apache-2.0
#include "trace_findings.h"

#include "op_call_args.h"
#include "texts.h"

#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace flopmeter {
namespace {

/// A finding below this part of the device's time is not worth a line.
constexpr double notable = 0.01;

std::string time_text(TraceNs time) {
  return duration({static_cast<double>(time) * 1e-9});
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Rules that need a trace.  All other findings have the names of the rules of a run.
constexpr TraceRule layout_transposes_rule{
    "layout_transposes",
    "kernels that transpose between channel layouts take 1 % of the time or more",
    "convert model and inputs to "
    "memory_format=torch.channels_last"};
constexpr TraceRule slow_matmuls_rule{
    "slow_matmuls",
    "matmuls and convolutions run below 30 % of the peak of their dtype",
    "increase the batch or hidden size, and make all sizes "
    "multiples of 64"};
constexpr TraceRule allocator_calls_rule{"allocator_calls",
                                         "the driver's allocator takes 1 % of the time or more",
                                         "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
                                         "lower the batch size, or avoid empty_cache()"};
constexpr auto own_rules =
    std::to_array<TraceRule>({allocator_calls_rule, layout_transposes_rule, slow_matmuls_rule});

/// A loss of time.
struct Loss {
  std::string_view rule;
  std::string_view summary;
  std::string evidence;
  std::string_view recommendation;
  TraceNs time = 0;  ///< that the recommendation can save at most
};

/// How often something happened, and how long it took.
struct Sum {
  std::int64_t count = 0;
  TraceNs time = 0;
  WideInt amount = 0;  ///< bytes or FLOPs

  void add(TraceNs duration, WideInt more = 0) {
    ++count;
    time += duration;
    amount += more;
  }
  [[nodiscard]] std::string text(std::string_view what) const {
    return grouped(count) + " " + std::string{what} + ", " + time_text(time);
  }
};

/// Sums the device events that `chosen` accepts.
template <class Chosen>
Sum sum_events(const TraceEvidence& evidence, const Chosen& chosen) {
  Sum sum;
  for (const std::uint32_t index : evidence.events) {
    if (chosen(evidence.event(index), evidence.work[index]))
      sum.add(evidence.event(index).duration,
              std::max<std::int64_t>(evidence.event(index).bytes, 0));
  }
  return sum;
}

std::optional<Loss> pageable_copies(const TraceEvidence& evidence) {
  const auto pageable =
      by_text(evidence.trace, [](std::string_view name) { return contains(name, "Pageable"); });
  const Sum sum = sum_events(evidence, [&](const DeviceEvent& event, const Work&) {
    return event.kind == DeviceClass::memcpy && pageable[event.name];
  });
  if (evidence.share(sum.time) < notable) return std::nullopt;
  return Loss{
      .rule = "host_to_device",
      .summary = "copies between host and device use pageable memory",
      .evidence = sum.text("pageable copies") + ", " + si(static_cast<double>(sum.amount)) + "B",
      .recommendation = "set pin_memory=True in the DataLoader and copy with non_blocking=True",
      .time = sum.time};
}

std::optional<Loss> tiny_kernels(const TraceEvidence& evidence) {
  constexpr TraceNs tiny = 5000;
  constexpr double most_kernels = 0.5;
  const Sum small = sum_events(evidence, [](const DeviceEvent& event, const Work&) {
    return event.kind == DeviceClass::compute && event.duration < tiny;
  });
  const TraceNs waiting =
      evidence.report.idle.time[static_cast<std::size_t>(IdleCause::launch)] +
      evidence.report.idle.time[static_cast<std::size_t>(IdleCause::launch_in_flight)];
  const auto kernels = static_cast<double>(std::max<std::int64_t>(evidence.report.kernels, 1));
  const double part = static_cast<double>(small.count) / kernels;
  if (part < most_kernels || evidence.share(waiting) < 10 * notable) return std::nullopt;
  return Loss{.rule = "launch_overhead",
              .summary = "most kernels are shorter than the time to launch them",
              .evidence = percent(part) +
                          " of the kernels take less than 5 us; the device "
                          "waits " +
                          time_text(waiting) + " for launches",
              .recommendation =
                  "use torch.compile, CUDA graphs, fused optimizers "
                  "(fused=True), or a larger batch",
              .time = waiting};
}

std::optional<Loss> layout_transposes(const TraceEvidence& evidence) {
  static constexpr auto names =
      std::to_array<std::string_view>({"nchwToNhwc", "nhwcToNchw", "nchw2nhwc", "nhwc2nchw"});
  const auto states_layouts = by_text(evidence.trace, [](std::string_view name) {
    return std::any_of(
        names.begin(), names.end(), [&](std::string_view part) { return contains(name, part); });
  });
  // MIOpen's kernel states none; others of this name serve matmuls.
  const auto transposes = by_text(
      evidence.trace, [](std::string_view name) { return contains(name, "batched_transpose"); });
  const auto convolves =
      by_text(evidence.trace, [](std::string_view name) { return contains(name, "conv"); });
  const Sum sum = sum_events(evidence, [&](const DeviceEvent& event, const Work& work) {
    return states_layouts[event.name] || (transposes[event.name] && convolves[work.name]);
  });
  if (evidence.share(sum.time) < notable) return std::nullopt;
  return Loss{.rule = layout_transposes_rule.name,
              .summary = "convolutions transpose their tensors between layouts",
              .evidence = sum.text("transposing kernels"),
              .recommendation = layout_transposes_rule.recommendation,
              .time = sum.time};
}

std::optional<Loss> unfused_attention(const TraceEvidence& evidence) {
  const auto sum_ops = [&](std::string_view name) {
    const auto wanted =
        by_text(evidence.trace, [&](std::string_view text) { return text.starts_with(name); });
    return sum_events(evidence,
                      [&](const DeviceEvent&, const Work& work) { return wanted[work.name]; });
  };
  const Sum softmax = sum_ops("aten::_softmax");
  const Sum matmuls = sum_ops("aten::bmm");
  if (matmuls.count == 0 || evidence.share(softmax.time) < notable) return std::nullopt;
  return Loss{
      .rule = "poor_implementation",
      .summary = "attention runs as separate matmuls and softmax",
      .evidence = softmax.text("softmax kernels") + "; " + matmuls.text("batched matmul kernels"),
      .recommendation =
          "use torch.nn.functional.scaled_dot_product_attention or "
          "attn_implementation=\"sdpa\"",
      .time = softmax.time};
}

/// Device time and FLOPs of counted operators, by operator, shapes, and dtype.
struct MatmulKey {
  TextId name, dims;
  Dtype dtype;
  auto operator<=>(const MatmulKey&) const = default;
};
std::map<MatmulKey, Sum> sum_matmuls(const TraceEvidence& evidence) {
  std::map<std::uint32_t, TraceNs> times;
  for (const std::uint32_t index : evidence.events) {
    const std::uint32_t counted = evidence.work[index].counted;
    if (counted != no_event) times[counted] += evidence.event(index).duration;
  }
  std::map<MatmulKey, Sum> sums;
  for (const auto& [counted, time] : times) {
    const CountedOp& op = evidence.flops.ops[counted];
    const HostEvent& host = evidence.trace.host_events[op.event];
    sums[{host.name, host.dims, op.dtype}].add(time, op.executed.value);
  }
  return sums;
}

std::optional<Loss> tf32_off(const TraceEvidence& evidence,
                             const std::map<MatmulKey, Sum>& matmuls) {
  if (!evidence.report.peaks) return std::nullopt;
  const auto fp32 = evidence.report.peaks->peak(Dtype::fp32);
  const auto tf32 = evidence.report.peaks->peak(Dtype::tf32);
  Sum sum;
  for (const auto& [key, one] : matmuls) {
    if (key.dtype != Dtype::fp32) continue;
    sum.count += one.count;
    sum.time += one.time;
  }
  if (!fp32 || !tf32 || *tf32 <= *fp32 || evidence.share(sum.time) < notable) return std::nullopt;
  const double faster = *tf32 / *fp32;
  return Loss{
      .rule = "no_mixed_precision",
      .summary = "fp32 matmuls do not use TF32",
      .evidence = sum.text("fp32 matmuls and convolutions") + "; the TF32 peak is " +
                  fixed(faster, 1) + " times the fp32 peak",
      .recommendation = "call torch.set_float32_matmul_precision(\"high\"), or use bf16 autocast",
      .time = static_cast<TraceNs>(static_cast<double>(sum.time) * (1 - 1 / faster))};
}

std::optional<Loss> slow_matmuls(const TraceEvidence& evidence,
                                 const std::map<MatmulKey, Sum>& matmuls) {
  if (!evidence.report.peaks) return std::nullopt;
  constexpr double slow = 0.3;
  constexpr std::size_t most_shapes = 3;
  struct Row {
    const MatmulKey* key;
    const Sum* sum;
    double rate;  ///< part of the peak
    TraceNs lost;
  };
  std::vector<Row> rows;
  TraceNs lost = 0;
  for (const auto& [key, sum] : matmuls) {
    const auto peak = evidence.report.peaks->peak(key.dtype);
    if (!peak || sum.time <= 0) continue;
    const double ideal = static_cast<double>(sum.amount) / peak->value * 1e9;
    const double rate = ideal / static_cast<double>(sum.time);
    if (rate >= slow) continue;
    rows.push_back({&key, &sum, rate, sum.time - static_cast<TraceNs>(ideal)});
    lost += rows.back().lost;
  }
  if (evidence.share(lost) < 2 * notable) return std::nullopt;
  std::stable_sort(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.lost > b.lost; });
  std::string text;
  for (std::size_t i = 0; i < std::min(rows.size(), most_shapes); ++i) {
    const Row& row = rows[i];
    const OpCallArgs args{evidence.trace.text(row.key->dims), {}, {}};
    text += (i > 0 ? "; " : "") + printable(evidence.trace.text(row.key->name)) + " " +
            args.shapes() + " at " + percent(row.rate) + " of the " +
            std::string{to_string(row.key->dtype)} + " peak, " + time_text(row.sum->time);
  }
  return Loss{.rule = slow_matmuls_rule.name,
              .summary = "matmuls run far below the peak",
              .evidence = text,
              .recommendation = slow_matmuls_rule.recommendation,
              .time = lost};
}

/// Calls of the host whose names start with one of `names`.
Sum sum_calls(const Trace& trace, std::span<const std::string_view> names) {
  const auto wanted = by_text(trace, [&](std::string_view text) {
    return std::any_of(
        names.begin(), names.end(), [&](std::string_view name) { return text.starts_with(name); });
  });
  Sum sum;
  for (const HostEvent& event : trace.host_events) {
    if (wanted[event.name]) sum.add(event.duration);
  }
  return sum;
}

std::optional<Loss> synchronizations(const TraceEvidence& evidence) {
  static constexpr auto names = std::to_array<std::string_view>({"cudaStreamSynchronize",
                                                                 "cudaDeviceSynchronize",
                                                                 "cudaEventSynchronize",
                                                                 "hipStreamSynchronize",
                                                                 "hipDeviceSynchronize",
                                                                 "hipEventSynchronize",
                                                                 "aten::_local_scalar_dense"});
  const TraceNs idle =
      evidence.report.idle.time[static_cast<std::size_t>(IdleCause::synchronization)];
  const Sum sum = sum_calls(evidence.trace, names);
  if (sum.count == 0 || evidence.share(idle) < notable) return std::nullopt;
  return Loss{.rule = "synchronization",
              .summary = "the host waits for the device, which then waits for the host",
              .evidence = sum.text("synchronizing calls on the host") +
                          "; the device is idle for " + time_text(idle) + " after them",
              .recommendation =
                  "log the loss every N steps; avoid .item(), .cpu(), and "
                  "print of tensors in the step",
              .time = idle};
}

std::optional<Loss> data_loading(const TraceEvidence& evidence) {
  static constexpr std::string_view loader = "enumerate(DataLoader)#";
  const TraceNs idle = evidence.report.idle.time[static_cast<std::size_t>(IdleCause::data_loading)];
  if (evidence.share(idle) < notable) return std::nullopt;
  const Sum sum = sum_calls(evidence.trace, {&loader, 1});
  const auto& texts = evidence.trace.texts;
  const bool no_workers = std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.starts_with("enumerate(DataLoader)#_SingleProcess");
  });
  return Loss{.rule = "data_loading",
              .summary = "the device waits for the data loader",
              .evidence = sum.text("batches from the DataLoader") +
                          (no_workers ? ", which has num_workers=0" : "") +
                          "; the device is idle for " + time_text(idle) + " meanwhile",
              .recommendation = "raise num_workers of the DataLoader, with persistent_workers=True",
              .time = idle};
}

std::optional<Loss> allocator_calls(const TraceEvidence& evidence) {
  static constexpr auto names =
      std::to_array<std::string_view>({"cudaMalloc", "cudaFree", "hipMalloc", "hipFree"});
  const Sum sum = sum_calls(evidence.trace, names);
  if (sum.count == 0 || evidence.share(sum.time) < notable) return std::nullopt;
  return Loss{.rule = allocator_calls_rule.name,
              .summary = "the step allocates device memory from the driver",
              .evidence = sum.text("calls of the driver's allocator"),
              .recommendation = allocator_calls_rule.recommendation,
              .time = sum.time};
}

std::optional<Loss> exposed_collectives(const TraceEvidence& evidence) {
  const TraceNs exposed =
      evidence.report.split.exposed[static_cast<std::size_t>(DeviceClass::communication)];
  if (evidence.share(exposed) < 2 * notable || evidence.report.collectives.empty())
    return std::nullopt;
  constexpr std::size_t most_sizes = 3;
  std::string text = time_text(exposed) + " without compute; longest:";
  const auto& all = evidence.report.collectives;
  for (std::size_t i = 0; i < std::min(all.size(), most_sizes); ++i) {
    text += (i > 0 ? ", " : " ") + grouped(all[i].count) + " " + printable(all[i].kind) +
            (all[i].bytes ? " of " + si(static_cast<double>(all[i].bytes->value)) + "B" : "") +
            " in " + time_text(all[i].time);
  }
  return Loss{.rule = "communication",
              .summary = "collectives run while the device computes nothing",
              .evidence = text,
              .recommendation =
                  "overlap them with backward (larger DDP buckets, FSDP "
                  "prefetch), or reduce their bytes",
              .time = exposed};
}

}  // namespace

std::span<const TraceRule> trace_rules() {
  return own_rules;
}

void add_findings(std::vector<Finding>& findings, std::span<const Finding> of_trace) {
  for (const Finding& finding : of_trace) {
    const auto same = std::find_if(findings.begin(), findings.end(), [&](const Finding& each) {
      return each.rule == finding.rule && (!each.rank || each.rank == finding.rank);
    });
    if (same == findings.end()) {
      findings.push_back(finding);
    } else {
      same->evidence += (same->evidence.empty() ? "" : "; in the trace ") + finding.evidence;
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.share.value_or(0) > b.share.value_or(0);
  });
}

std::vector<Finding> find_in_trace(const TraceEvidence& evidence) {
  const std::map<MatmulKey, Sum> matmuls = sum_matmuls(evidence);
  std::vector<Finding> findings;
  for (const std::optional<Loss>& loss : {pageable_copies(evidence),
                                          tiny_kernels(evidence),
                                          layout_transposes(evidence),
                                          unfused_attention(evidence),
                                          tf32_off(evidence, matmuls),
                                          slow_matmuls(evidence, matmuls),
                                          synchronizations(evidence),
                                          data_loading(evidence),
                                          allocator_calls(evidence),
                                          exposed_collectives(evidence)}) {
    if (!loss) continue;
    Finding finding;
    finding.rule = loss->rule;
    finding.summary = loss->summary;
    finding.evidence = loss->evidence;
    finding.recommendation = loss->recommendation;
    finding.share = evidence.share(loss->time);
    finding.seconds = static_cast<double>(loss->time) * 1e-9;
    findings.push_back(std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return a.seconds > b.seconds;
  });
  return findings;
}

}  // namespace flopmeter
