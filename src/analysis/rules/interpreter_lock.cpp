// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

constexpr Cause locked{"interpreter_lock", "waiting for Python's interpreter lock"};

double waited(const Evidence& evidence) {
  return host_seconds_per_step(evidence, {&StepTotals::interpreter_lock_seconds});
}

std::optional<Finding> find(const RuleContext& context) {
  const std::int64_t lost = context.budget.nanoseconds(locked);
  if (context.share(lost) < least_share) return std::nullopt;
  Finding finding = finding_of(context, "interpreter_lock", save(context, locked, lost), 0.9);
  finding.summary = "other Python threads of the program hold the interpreter lock: " +
                    context.per_step_text(lost);
  finding.evidence = "in " + percent(context.share(lost)) +
                     " of the samples the training thread waited for the lock";
  finding.recommendation =
      "move the work of other Python threads to processes (multiprocessing, num_workers of the "
      "loader), and let threads that poll sleep; py-spy dump --pid PID lists the threads that run";
  return finding;
}

Evidence window(double seconds) {
  return example_window([=](StepRecord& record) {
    prolong(record, Phase::forward, seconds);
    record.interpreter_lock_seconds = Seconds{seconds};
  });
}

}  // namespace

extern constinit const Rule rule_interpreter_lock{
    .name = "interpreter_lock",
    .help = "the training thread waits for Python's interpreter lock 3 % of the time or more",
    .cause = &locked,
    .find = find,
    .claim = waited,
    .fires = [] { return window(0.04); },
    .negative = [] { return window(0.001); }};

}  // namespace flopmeter
