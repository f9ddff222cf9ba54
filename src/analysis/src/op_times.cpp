// SPDX-License-Identifier: Apache-2.0
//
// Operator times of a step from the profiles of a window.
#include <flopmeter/analysis/evidence.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace flopmeter {
namespace {

/// A call shorter than this costs more to launch than to run.
constexpr double small_call_seconds = 15e-6;
/// CPU time to start an operator: dispatch and allocation of the result. Views and operators on a
/// few elements take 1 to 3 us.
constexpr double start_seconds = 2e-6;

bool is_compute(Phase phase) {
  return phase == Phase::forward || phase == Phase::backward || phase == Phase::other;
}

/// Key of equal calls, tiny or not.
using RowKey = std::tuple<std::string, std::string, Phase, bool, bool, std::int64_t>;
RowKey key_of(const OpProfileRow& row) {
  return {row.name, row.shape, row.phase, row.backward, row.recompute, row.elements};
}

/// The smaller of two: time that another program adds does not belong to an operator.
double lower_median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::map<RowKey, double> seconds_a_call(const OpProfile& profile) {
  std::map<RowKey, std::pair<double, double>> sums;
  for (const OpProfileRow& row : profile.rows) {
    auto& [seconds, calls] = sums[key_of(row)];
    seconds += row.self.value;
    calls += static_cast<double>(row.calls);
  }
  std::map<RowKey, double> means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / std::max(sum.second, 1.0);
  return means;
}

/// Seconds of all operators in the middle one of the profiles.
double middle_sum(const std::vector<OpProfile>& profiles) {
  std::vector<double> sums;
  for (const OpProfile& profile : profiles) {
    sums.push_back(0);
    for (const OpProfileRow& row : profile.rows) sums.back() += row.self.value;
  }
  return lower_median(std::move(sums));
}

/// Bytes that an operator moves for each element of its largest argument: two read, one written.
constexpr double bytes_an_element = 12;

/// The same for a memory-bound operator: all time beyond the transfer, if the bandwidth is known.
double starting_of_mover(const OpProfileRow& row, std::optional<double> bytes_per_second) {
  const double least = starting_of(row);
  if (!bytes_per_second || row.elements == 0) return least;
  const double moving = static_cast<double>(row.calls) * static_cast<double>(row.elements) *
                        bytes_an_element / *bytes_per_second;
  return std::max(least, row.self.value - moving);
}

/// Adds one profile's operators.
void add_rows(OpTimes& sum, const OpProfile& profile, std::optional<double> bytes_per_second) {
  for (const OpProfileRow& row : profile.rows) {
    const double self = row.self.value;
    if (row.kind == OpKind::communication) {
      sum.communication += self;
      continue;
    }
    if (profile.device_times && !row.across_devices) {
      sum.kernels += self;
      if (row.phase == Phase::optimizer) sum.optimizer += self;
    }
    if (!is_compute(row.phase)) continue;
    // The time of a device includes no launch.
    const bool small = !profile.device_times && is_small(row);
    if (row.across_devices) {
      sum.copies += self;
      continue;
    }
    if (row.recompute) {
      sum.recompute += self;
      continue;
    }
    sum.calls += static_cast<double>(row.calls);
    if (row.phase == Phase::other) sum.in_other += self;
    switch (row.kind) {
      case OpKind::compute:
        sum.compute += self;
        sum.flops += static_cast<double>(row.flops);
        if (!is_linear(row)) sum.starting_others += starting_of(row);
        break;
      case OpKind::memory:
      case OpKind::tiny:
        (small ? sum.small : sum.memory) += self;
        (small ? sum.starting_small : sum.starting_others) +=
            starting_of_mover(row, bytes_per_second);
        break;
      case OpKind::unknown:
        sum.unknown += self;
        break;
      case OpKind::communication:
        break;
    }
  }
}

/// The time between operators: in the middle one of the profiles, as the operators' own.
void add_idle(OpTimes& sum, const std::vector<OpProfile>& profiles) {
  std::vector<double> between;
  std::vector<double> recompute;
  for (const OpProfile& profile : profiles) {
    between.push_back(0);
    recompute.push_back(0);
    for (const IdleSpan& span : profile.idle) {
      if (!is_compute(span.phase)) continue;
      if (span.recompute) {
        recompute.back() += span.time.value;  // a checkpoint's own code takes long
      } else if (span.stall) {
        sum.stalls += span.time.value / static_cast<double>(profiles.size());
      } else {
        between.back() += span.time.value;
      }
    }
  }
  sum.between = lower_median(std::move(between));
  sum.recompute += lower_median(std::move(recompute));
}

}  // namespace

bool is_linear(const OpProfileRow& row) {
  const auto named = [&](std::string_view part) {
    return row.name.find(part) != std::string::npos;
  };
  return row.kind == OpKind::compute && row.flops > 0 &&
         (named("aten::mm") || named("aten::addmm"));
}

bool is_small(const OpProfileRow& row) {
  return row.kind == OpKind::tiny ||
         row.self.value < small_call_seconds * static_cast<double>(row.calls);
}

double starting_of(const OpProfileRow& row) {
  return std::min(row.self.value, start_seconds * static_cast<double>(row.calls));
}

std::vector<OpProfile> typical(std::vector<OpProfile> profiles) {
  const auto has_device_times = [](const OpProfile& profile) { return profile.device_times; };
  if (std::any_of(profiles.begin(), profiles.end(), has_device_times))
    std::erase_if(profiles, std::not_fn(has_device_times));
  if (profiles.size() < 2) return profiles;
  const double together = middle_sum(profiles);
  std::map<RowKey, std::vector<double>> all;
  for (const OpProfile& profile : profiles) {
    for (const auto& [key, seconds] : seconds_a_call(profile)) all[key].push_back(seconds);
  }
  for (OpProfile& profile : profiles) {
    const auto own = seconds_a_call(profile);
    for (OpProfileRow& row : profile.rows) {
      const double seconds = own.at(key_of(row));
      if (seconds > 0) row.self.value *= lower_median(all.at(key_of(row))) / seconds;
    }
  }
  // A slowdown that hits a different operator in each profile is in no median, but in each step.
  const double sum_of_middles = middle_sum(profiles);
  if (!(sum_of_middles > 0)) return profiles;
  for (OpProfile& profile : profiles) {
    for (OpProfileRow& row : profile.rows) row.self.value *= together / sum_of_middles;
  }
  return profiles;
}

OpTimes op_times(const Evidence& evidence) {
  OpTimes sum;
  if (evidence.profiles.empty()) return sum;
  const std::vector<OpProfile> profiles = typical(evidence.profiles);
  for (const OpProfile& profile : profiles) {
    ++sum.profiles;
    sum.on_device = sum.on_device || profile.on_device;
    sum.device_times = sum.device_times || profile.device_times;
    add_rows(sum, profile, evidence.peaks.memory_bytes_per_second);
  }
  for (double* value : {&sum.recompute,
                        &sum.kernels,
                        &sum.optimizer,
                        &sum.communication,
                        &sum.compute,
                        &sum.memory,
                        &sum.small,
                        &sum.unknown,
                        &sum.in_other,
                        &sum.copies,
                        &sum.calls,
                        &sum.flops,
                        &sum.starting_small,
                        &sum.starting_others})
    *value /= sum.profiles;
  add_idle(sum, profiles);
  return sum;
}

}  // namespace flopmeter
