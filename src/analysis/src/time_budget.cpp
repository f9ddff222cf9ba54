// SPDX-License-Identifier: Apache-2.0
//
// The time of the steps is divided into pools by phase (or by what the device did).  Within a pool
// each cause claims what the evidence assigns to it.  If claims exceed the pool, all of them shrink
// by the same factor, so that their order does not matter; what remains belongs to the pool's own
// cause.
#include <flopmeter/analysis/evidence.h>
#include <flopmeter/analysis/rule.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace flopmeter {
namespace {

/// Least time that launching a kernel on a device takes of the host.
constexpr double launch_seconds = 5e-6;
/// Samples of a waiting process from which on they show what it waits for.
constexpr std::int64_t enough_wait_samples = 5;
/// Idle or unsupported time of a profile below this part of it is not worth a remark.
constexpr double notable_part = 0.02;

double sane(double seconds) {
  return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0;
}

/// Seconds of the steps in each phase; together at most the steps' time.
std::array<double, phase_count> phase_times(const StepTotals& totals) {
  std::array<double, phase_count> times{};
  for (std::size_t i = 0; i < phase_count; ++i) times[i] = sane(totals.phases[i].value_or(0));
  double& other = times[static_cast<std::size_t>(Phase::other)];
  other = 0;
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  if (sum > totals.seconds) {
    for (double& time : times) time *= totals.seconds / sum;
  } else {
    other = totals.seconds - sum;
  }
  return times;
}

class BudgetBuilder {
 public:
  BudgetBuilder(const Evidence& evidence, const OpTimes& ops)
      : evidence_(evidence), ops_(ops), totals_(summarize(evidence)) {}

  TimeBudget build() {
    const double total = sane(totals_.seconds);
    budget_.total = std::llround(std::min(total, 9e9) * 1e9);
    const auto mfu = totals_.mfu();
    known_ = mfu.has_value();
    if (budget_.total == 0 || (mfu && *mfu > 1)) return std::move(budget_);
    useful_ = mfu ? std::max(*mfu, 0.0) * total : 0;
    if (evidence_.device) {
      split_device(*evidence_.device);
    } else if (totals_.device.steps > 0 && totals_.device.seconds > 0) {
      split_marks(totals_.device);
    } else {
      split_phases();
    }
    // A wait of the host shows as idle time of the device.
    if (totals_.device.steps == 0) claim_by_rules();
    round();
    return std::move(budget_);
  }

 private:
  void give(const Cause& cause, double seconds) {
    if (!(seconds > 0)) return;
    const auto at = std::find_if(
        times_.begin(), times_.end(), [&](const CauseTime& each) { return each.cause == cause; });
    if (at == times_.end()) {
      times_.push_back({cause, seconds});
    } else {
      at->seconds += seconds;
    }
  }
  /// Moves at most `seconds` from one cause to another and returns how many.
  double move(const Cause& from, const Cause& to, double seconds) {
    for (CauseTime& each : times_) {
      if (each.cause != from) continue;
      const double moved = std::min(each.seconds, seconds);
      each.seconds -= moved;
      give(to, moved);
      return moved;
    }
    return 0;
  }
  /// Gives claims at most `available` seconds and returns what they leave.
  double settle(double available, const std::vector<CauseTime>& claims) {
    double sum = 0;
    for (const CauseTime& claim : claims) sum += sane(claim.seconds);
    const double factor = sum > available ? std::max(available, 0.0) / sum : 1;
    for (const CauseTime& claim : claims) give(claim.cause, sane(claim.seconds) * factor);
    return std::max(available - sum, 0.0);
  }
  void miss(std::string text) { budget_.missing_signals.push_back(std::move(text)); }
  [[nodiscard]] double per_step(double seconds) const {
    return seconds * static_cast<double>(totals_.steps);
  }

  void split_device(const DeviceTime& device) {
    const double busy = std::min(per_step(sane(device.busy)), totals_.seconds);
    const double compute =
        std::max(busy - std::min(busy, per_step(sane(device.optimizer))), useful_);
    const double optimizer =
        std::clamp(per_step(sane(device.optimizer)), 0.0, std::max(totals_.seconds - compute, 0.0));
    give(causes::optimizer, optimizer);
    std::vector<CauseTime> idle = device.idle;
    for (CauseTime& each : idle) each.seconds = per_step(each.seconds);
    give(causes::unexplained, settle(totals_.seconds - compute - optimizer, idle));
    split_compute(compute, 0);
  }

  /// Device marks bound the idle time and assign it to what the host did meanwhile.  Within the
  /// bounds, an operator profile states how long kernels ran; without one, the upper bound stands
  /// for it: marks see every wait, but not work that ends within one.  Exposed copies run inside
  /// such a wait.
  void split_marks(const StepTotals::Device& device) {
    const double scale = totals_.seconds / device.seconds;  // to steps without known device times
    const double copies = sane(device.exposed_copy) * scale;
    const double communication =
        std::max(sane(device.exposed_communication) * scale, per_step(ops_.communication));
    const double least_idle = sane(device.idle_min) * scale;
    const double most_idle = std::max(sane(device.idle_max) * scale, least_idle);
    const double idle =
        ops_.device_times
            ? std::clamp(totals_.seconds - per_step(ops_.kernels) - copies - communication,
                         least_idle,
                         most_idle)
            : std::max(most_idle - copies, least_idle);
    const double free = std::max(totals_.seconds - useful_, 0.0);
    // A wait for a copy on another stream shows in the profile as time outside operators.
    waits_in_profile_ = std::max(
        per_step(ops_.kernels) + copies + communication + least_idle - totals_.seconds, 0.0);
    const double lost = idle + copies + communication;
    const double fit = lost > free ? free / lost : 1;
    // While the host launches, kernels run: that part is the loosest upper bound, and is what
    // the others leave.  The rest is idle time in blocking copies.
    const double firm =
        (sane(device.idle_data) + sane(device.idle_synchronization) + sane(device.idle_loop)) *
        scale;
    const double part = firm > 0 ? std::min(1.0, idle / firm) * scale * fit : 0;
    const double left = std::max(idle - firm, 0.0);
    const double launching = std::min(sane(device.idle_launch) * scale, left);
    split_data(sane(device.idle_data) * part);
    give(causes::synchronization,
         sane(device.idle_synchronization) * part + (left - launching) * fit);
    give(causes::loop, sane(device.idle_loop) * part);
    give(causes::launch_overhead, launching * fit);
    give(causes::host_to_device, copies * fit);
    split_communication(communication * fit);
    const double busy = totals_.seconds - lost * fit;
    const double in_optimizer =
        ops_.device_times ? per_step(ops_.optimizer) : totals_.phase(Phase::optimizer).value_or(0);
    const double optimizer = std::clamp(in_optimizer, 0.0, std::max(busy - useful_, 0.0));
    give(causes::optimizer, optimizer);
    const double forward = totals_.phase(Phase::forward).value_or(0);
    split_compute(busy - optimizer, std::min(forward, busy - optimizer));
  }

  void split_phases() {
    auto times = phase_times(totals_);
    const auto at = [&](Phase phase) -> double& { return times[static_cast<std::size_t>(phase)]; };
    const bool phased = totals_.phase(Phase::forward) || totals_.phase(Phase::backward);
    const double forward = at(Phase::forward);
    double compute = forward + at(Phase::backward);
    at(Phase::forward) = at(Phase::backward) = 0;
    const double in_other =
        phased ? std::min(at(Phase::other), per_step(ops_.in_other)) : at(Phase::other);
    compute += in_other;
    at(Phase::other) -= in_other;
    if (useful_ > compute) {
      // FLOPs ran outside the phases of computation: the other phases shrink in proportion.
      const double rest = totals_.seconds - compute;
      const double factor = rest > 0 ? std::max(totals_.seconds - useful_, 0.0) / rest : 0;
      for (double& time : times) time *= factor;
      compute = useful_;
    }
    split_data(at(Phase::data));
    split_communication(at(Phase::communication));
    give(causes::optimizer, at(Phase::optimizer));
    give(causes::loop,
         at(Phase::other) + at(Phase::checkpoint) + at(Phase::evaluation) + at(Phase::generation));
    split_compute(compute, std::min(forward, compute));
  }

  void split_data(double waited) {
    const std::int64_t samples = totals_.data_wait_samples;
    double busy = 0;
    if (samples >= enough_wait_samples) {
      busy = static_cast<double>(totals_.data_wait_busy_samples) / static_cast<double>(samples);
      if (busy < 0.15) busy = 0;  // a sample may fall on the moment a batch is handed over
      if (busy > 0.85) busy = 1;
    } else if (waited > totals_.seconds / 50) {
      miss(
          "too few samples of the process while it waited for data: I/O and CPU work are not "
          "separated");
    }
    give(causes::data_loading, settle(waited, {{causes::cpu_bound, waited * busy}}));
  }

  /// A rank waits in a collective for the one that still works.
  void split_communication(double waited) {
    double for_last = 0;
    if (evidence_.ranks.size() > 1) {
      for_last = evidence_.rank ? wait_for_last(evidence_.ranks, *evidence_.rank)
                                : wait_for_last(evidence_.ranks);
    }
    give(causes::communication, settle(waited, {{causes::straggler, per_step(for_last)}}));
  }

  /// A count includes the work on padding; an estimate covers real tokens only.
  [[nodiscard]] bool counts_padding() const {
    return std::any_of(
        evidence_.steps.begin(), evidence_.steps.end(), [](const StepRecord& record) {
          return record.flops_source == FlopsProvenance::counted ||
                 record.flops_source == FlopsProvenance::calibrated;
        });
  }

  void split_compute(double compute, double forward) {
    give(causes::useful, useful_);
    const double real = totals_.token_share();
    const double on_padding = (1 - real) * (counts_padding() ? compute - useful_ : compute);
    std::vector<CauseTime> claims = {{causes::padding, on_padding},
                                     {causes::recompute, recompute_time(compute, forward) * real}};
    if (evidence_.pipeline_stages && *evidence_.pipeline_stages > 1) {
      const double stages = *evidence_.pipeline_stages;
      const double micro = static_cast<double>(totals_.micro_batches) /
                           static_cast<double>(std::max<std::int64_t>(totals_.steps, 1));
      claims.push_back(
          {causes::pipeline_bubble, (compute - on_padding) * (stages - 1) / (micro + stages - 1)});
    }
    const double rest = settle(compute - useful_, claims);
    const double unseen = settle(rest, operator_claims(real));
    if (ops_.device_times && unseen > compute / 4)
      miss(
          "part of the device's work ran without operators, such as a CUDA graph: its kernels are "
          "not separated; `flopmeter run --kineto-step N` records them");
    give(causes::unexplained, unseen);
  }

  /// The profiled steps stand for the others; what those took longer stays unexplained.
  std::vector<CauseTime> operator_claims(double real) {
    if (ops_.profiles == 0) {
      miss(
          "no operator profile: matmuls below peak, memory-bound operators, and launch overhead "
          "are not separated");
      return {};
    }
    if (ops_.kernels_unknown() && totals_.device.steps > 0) {
      miss("no operator profile by device time: kernels are not separated");
      return {};
    }
    if (ops_.kernels_unknown() && !evidence_.device) {
      miss("the work is queued on a device whose times are not known: kernels are not separated");
      return {{causes::host_to_device, per_step(ops_.copies) * real},
              {causes::launch_overhead, per_step(ops_.calls * launch_seconds) * real - useful_}};
    }
    if (ops_.unknown > notable_part * ops_.seen())
      miss("operators without a cost rule took " + duration({ops_.unknown}) + " per step");
    if (ops_.stalls > notable_part * ops_.seen())
      miss("no operator ran for " + duration({ops_.stalls}) +
           " per step of forward and backward: code of the model, or another program");
    const double matmuls = per_step(ops_.compute) * real;
    const double ideal = counts_padding() ? useful_ * real : useful_;
    return {{known_ ? causes::matmul_inefficiency : causes::compute, matmuls - ideal},
            {causes::memory_bound, per_step(ops_.memory) * real},
            {causes::launch_overhead, per_step(ops_.between + ops_.small) * real},
            {causes::host_to_device, ops_.device_times ? 0 : per_step(ops_.copies) * real},
            {causes::unexplained, (per_step(ops_.unknown) - waits_in_profile_) * real}};
  }

  /// From a profile; otherwise recomputation costs as much as forward, and backward is twice
  /// forward, so a third of all other work is forward.
  [[nodiscard]] double recompute_time(double compute, double forward) const {
    const auto again = static_cast<double>(totals_.recompute_flops);
    const auto all = static_cast<double>(totals_.hardware_flops);
    if (!(again > 0) || !(all > again)) return 0;
    if (ops_.recompute > 0 && (!ops_.kernels_unknown() || evidence_.device))
      return compute * ops_.recompute / ops_.seen();
    if (!(forward > 0)) return compute * again / all;
    return std::min(forward * again / ((all - again) / 3), 0.75 * (compute - forward));
  }

  /// A cause that a rule measures takes its time from all others but `useful`, each in proportion.
  void claim_by_rules() {
    std::vector<CauseTime> claims;
    double sum = 0;
    for (const Rule* rule : rules()) {
      if (rule->claim == nullptr) continue;
      double seconds = sane(per_step(rule->claim(evidence_)));
      if (rule->within != nullptr) seconds -= move(*rule->within, *rule->cause, seconds);
      if (seconds > 0) claims.push_back({*rule->cause, seconds});
      sum += seconds;
    }
    const double available = totals_.seconds - useful_;
    if (claims.empty() || !(available > 0)) return;
    const double taken = std::min(sum, available);
    for (CauseTime& each : times_) {
      if (each.cause != causes::useful) each.seconds *= 1 - taken / available;
    }
    for (const CauseTime& claim : claims) give(claim.cause, claim.seconds * taken / sum);
  }

  void round() {
    // `useful` first: rounding must not change it.
    std::stable_partition(times_.begin(), times_.end(), [](const CauseTime& each) {
      return each.cause == causes::useful;
    });
    std::int64_t left = budget_.total;
    for (const CauseTime& each : times_) {
      if (each.cause == causes::unexplained) continue;
      const std::int64_t part = std::min(left, static_cast<std::int64_t>(each.seconds * 1e9 + 0.5));
      if (part > 0) budget_.lines.push_back({each.cause, part});
      left -= part;
    }
    if (left > 0) budget_.lines.push_back({causes::unexplained, left});
    std::stable_sort(budget_.lines.begin(), budget_.lines.end(), [](const auto& a, const auto& b) {
      return a.nanoseconds > b.nanoseconds;
    });
  }

  const Evidence& evidence_;
  const OpTimes& ops_;
  StepTotals totals_;
  TimeBudget budget_;
  std::vector<CauseTime> times_;
  double useful_ = 0;
  double waits_in_profile_ = 0;
  bool known_ = false;
};

}  // namespace

std::int64_t TimeBudget::nanoseconds(const Cause& cause) const {
  const auto at = std::find_if(
      lines.begin(), lines.end(), [&](const BudgetLine& line) { return line.cause == cause; });
  return at == lines.end() ? 0 : at->nanoseconds;
}

TimeBudget make_budget(const Evidence& evidence, const OpTimes& ops) {
  return BudgetBuilder{evidence, ops}.build();
}

TimeBudget make_budget(const Evidence& evidence) {
  return make_budget(evidence, op_times(evidence));
}

}  // namespace flopmeter
