// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

double waited(const Evidence& evidence) {
  return host_seconds_per_step(evidence,
                               {&StepTotals::run_queue_seconds,
                                &StepTotals::throttled_seconds,
                                &StepTotals::stolen_seconds});
}

/// "per step 24.1 ms in the run queue, 1.9 ms stolen by the hypervisor": what took time.
std::string parts_text(const StepTotals& totals) {
  std::string text;
  const auto add = [&](double seconds, std::string_view where) {
    if (!(seconds > 0)) return;
    text += text.empty() ? "per step " : ", ";
    text += duration({seconds / static_cast<double>(totals.steps)});
    text.append(" ").append(where);
  };
  add(totals.run_queue_seconds, "in the run queue");
  add(totals.throttled_seconds, "stopped by the cgroup quota");
  add(totals.stolen_seconds, "stolen by the hypervisor");
  return text;
}

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::busy_machine);
  if (context.share(lost) < least_share) return std::nullopt;
  const StepTotals& totals = context.totals;
  Finding finding =
      finding_of(context, "busy_machine", save(context, causes::busy_machine, lost), 0.9);
  finding.summary = "training waits for a processor: " + context.per_step_text(lost);
  finding.evidence = parts_text(totals);
  finding.recommendation =
      totals.throttled_seconds > totals.run_queue_seconds
          ? "raise the processor quota of the container"
          : "stop other programs on this machine, or give training its own processors (taskset, "
            "cgroup cpuset), and start no more threads and loader workers than processors "
            "(OMP_NUM_THREADS, num_workers)";
  return finding;
}

Evidence waiting(double seconds) {
  return example_window([=](StepRecord& record) {
    prolong(record, Phase::forward, seconds);
    record.run_queue_seconds = Seconds{seconds};
  });
}

}  // namespace

extern constinit const Rule rule_busy_machine{
    .name = "busy_machine",
    .help = "the training thread is ready to run while other load occupies the processors",
    .cause = &causes::busy_machine,
    .find = find,
    .claim = waited,
    .fires = [] { return waiting(0.04); },
    .negative = [] { return waiting(0.001); }};

}  // namespace flopmeter
