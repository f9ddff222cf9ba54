// SPDX-License-Identifier: Apache-2.0
#include "../src/example_window.h"

#include <flopmeter/core/text.h>
#include <flopmeter/diagnosis/rule.h>

namespace flopmeter {
namespace {

constexpr double least_share = 0.03;

std::optional<Finding> find(const Inquiry& inquiry) {
  const std::int64_t lost = inquiry.waterfall.lost(Cause::cpu_bound);
  if (inquiry.share(Cause::cpu_bound) < least_share) return std::nullopt;
  Finding finding = finding_of(inquiry, "cpu_bound", lost, 0.9);
  finding.summary = "the loop waits for the CPU to prepare data: " + inquiry.a_step_text(lost);
  finding.evidence = "while it waited, the process or a loader worker was running in " +
                     std::to_string(inquiry.sums.data_busy_looks) + " of " +
                     std::to_string(inquiry.sums.data_looks) + " looks: CPU work, not I/O";
  const int free = inquiry.evidence.processors.value_or(0) - 1;
  finding.remedy =
      "do the work once, before training: store data tokenized, decoded and augmented as far as it "
      "can be; what must stay goes to loader workers, one for each processor that training leaves "
      "free" +
      (free > 0 ? " (DataLoader(num_workers=" + std::to_string(free) + ") at most)"
                : std::string{});
  return finding;
}

}  // namespace

extern const Rule cpu_bound_plugin;
constinit const Rule cpu_bound_plugin{
    .name = "cpu_bound",
    .help = "the loop waits for data while it or a loader worker computes",
    .find = find,
    .fires =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_looks = 2;
            record.data_busy_looks = 2;
          });
        },
    .quiet =
        [] {
          return example_window([](StepRecord& record) {
            prolong(record, Phase::data, 0.03);
            record.data_looks = 2;
            record.data_busy_looks = 0;
          });
        }};

}  // namespace flopmeter
