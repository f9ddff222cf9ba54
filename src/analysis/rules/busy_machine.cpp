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

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(causes::busy_machine);
  if (context.share(lost) < least_share) return std::nullopt;
  const StepTotals& totals = context.totals;
  const auto per_step = [&](double seconds) {
    return duration({seconds / static_cast<double>(totals.steps)});
  };
  Finding finding =
      finding_of(context, "busy_machine", save(context, causes::busy_machine, lost), 0.9);
  finding.summary = "training waits for a processor: " + context.per_step_text(lost);
  finding.evidence = "per step " + per_step(totals.run_queue_seconds) + " in the run queue, " +
                     per_step(totals.throttled_seconds) + " stopped by the cgroup quota, " +
                     per_step(totals.stolen_seconds) + " stolen by the hypervisor";
  finding.recommendation =
      totals.throttled_seconds > totals.run_queue_seconds
          ? "raise the processor quota of the container"
          : "stop other programs on this machine, or give training its own processors (taskset, "
            "cgroup cpuset), and start no more threads than processors (OMP_NUM_THREADS)";
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
    .help = "the training thread is ready to run while other load has the processors",
    .cause = &causes::busy_machine,
    .find = find,
    .claim = waited,
    .fires = [] { return waiting(0.04); },
    .negative = [] { return waiting(0.001); }};

}  // namespace flopmeter
