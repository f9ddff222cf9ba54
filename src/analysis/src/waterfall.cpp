// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/analysis/waterfall.h>

#include <algorithm>
#include <cmath>

namespace flopmeter {
namespace {

struct CauseText {
  std::string_view name, text;
};
constexpr std::array<CauseText, cause_count> causes = {{
    {"no_mixed_precision", "a slower number format than the device has"},
    {"small_matmuls", "matmuls below the device's peak"},
    {"memory_bound", "operators that only move data"},
    {"launch_overhead", "launching operators"},
    {"unexplained", "not explained by any signal"},
    {"pipeline_bubble", "pipeline bubble"},
    {"recompute", "computing activations again"},
    {"padding", "work on padding"},
    {"host_to_device", "copies between host and device"},
    {"optimizer", "optimizer step"},
    {"straggler", "waiting for the slowest rank"},
    {"communication", "communication that nothing hid"},
    {"loop", "the loop's own code and time between steps"},
    {"cpu_bound", "waiting for data that the CPU prepares"},
    {"data_loading", "waiting for data"},
    {"evaluation", "evaluation"},
    {"checkpoint", "saving checkpoints"},
}};

/// What launching a kernel on a device takes of the host, at least.
constexpr double launch_seconds = 5e-6;
/// Looks at a waiting process from which on they say what it waits for.
constexpr std::int64_t enough_looks = 5;

/// Gives time of a fixed amount to causes, so that never more is given than there is.
class Ledger {
 public:
  explicit Ledger(std::int64_t available) : left_(available) {}
  std::int64_t take(double wanted) {
    if (!(wanted > 0) || left_ <= 0) return 0;
    const std::int64_t part = wanted >= static_cast<double>(left_) ? left_ : std::llround(wanted);
    left_ -= part;
    return part;
  }
  [[nodiscard]] std::int64_t left() const { return left_; }

 private:
  std::int64_t left_;
};

class Builder {
 public:
  Builder(const Evidence& evidence, const Sums& sums, const OpTimes& ops)
      : evidence_(evidence), sums_(sums), ops_(ops) {
    for (std::size_t i = 0; i < cause_count; ++i)
      falls_.losses.push_back({.cause = static_cast<Cause>(i)});
  }

  Waterfall build() {
    falls_.total = sums_.total;
    falls_.ideal = sums_.ideal_best;
    at(Cause::optimizer) = sums_.optimizer;
    at(Cause::checkpoint) = sums_.checkpoint;
    at(Cause::evaluation) = sums_.evaluation;
    split_data();
    split_communication();
    split_compute();
    // Exact, whatever was rounded above.
    std::int64_t known = 0;
    for (const Loss& loss : falls_.losses) known += loss.nanoseconds;
    at(Cause::unexplained) += falls_.total - falls_.ideal - known;
    add_points();
    return std::move(falls_);
  }

 private:
  std::int64_t& at(Cause cause) {
    return falls_.losses[static_cast<std::size_t>(cause)].nanoseconds;
  }
  void miss(std::string text) { falls_.missing.push_back(std::move(text)); }
  [[nodiscard]] double per_step(double seconds) const {
    return seconds * 1e9 * static_cast<double>(sums_.steps);
  }

  void split_data() {
    if (sums_.data_wait_samples < enough_looks) {
      at(Cause::data_loading) = sums_.data;
      if (sums_.data > sums_.total / 50)
        miss(
            "too few looks at the process while it waited for data: I/O and CPU are not told "
            "apart");
      return;
    }
    double busy =
        static_cast<double>(sums_.data_wait_busy_samples) / static_cast<double>(sums_.data_wait_samples);
    if (busy < 0.15) busy = 0;  // a look may fall on the moment a batch is handed over
    if (busy > 0.85) busy = 1;
    at(Cause::cpu_bound) = std::llround(static_cast<double>(sums_.data) * busy);
    at(Cause::data_loading) = sums_.data - at(Cause::cpu_bound);
  }

  /// A rank waits in a collective for the one that still works.
  void split_communication() {
    Ledger time{sums_.communication};
    if (evidence_.ranks.size() > 1 && !evidence_.steps.empty()) {
      const double waited = wait_for_last(evidence_.ranks, evidence_.steps.front().rank);
      at(Cause::straggler) = time.take(per_step(waited));
    }
    at(Cause::communication) = time.left();
  }

  void split_compute() {
    const std::int64_t marked = sums_.forward + sums_.backward;
    Ledger other{sums_.other};
    const std::int64_t compute =
        marked + (sums_.phased ? other.take(per_step(ops_.in_other)) : other.take(1e300));
    at(Cause::loop) = other.left() + sums_.between;
    if (compute <= 0) return;
    // Padding is in all of it, recompute only in backward.
    Ledger time{compute};
    at(Cause::padding) = time.take(static_cast<double>(compute) * (1 - sums_.useful_share));
    const double again = recompute_time(compute);
    at(Cause::recompute) = time.take(again * sums_.useful_share);
    if (time.left() <= falls_.ideal) return;  // more than the peak: unexplained gets what is left
    const std::int64_t useful = time.left();
    Ledger loss{useful - falls_.ideal};
    const double faster = sums_.ideal > 0 ? 1 - static_cast<double>(sums_.ideal_best) /
                                                    static_cast<double>(sums_.ideal)
                                          : 0;
    if (evidence_.pipeline_stages && *evidence_.pipeline_stages > 1) {
      const double stages = *evidence_.pipeline_stages;
      const double micro = static_cast<double>(sums_.micro_batches) /
                           static_cast<double>(std::max<std::int64_t>(sums_.steps, 1));
      at(Cause::pipeline_bubble) =
          loss.take(static_cast<double>(useful) * (stages - 1) / (micro + stages - 1));
    }
    if (ops_.profiles == 0) {
      at(Cause::no_mixed_precision) = loss.take(static_cast<double>(sums_.ideal) * faster);
      miss(
          "no profile of the operators: small matmuls, memory-bound operators and launch overhead "
          "are not told apart");
      return;
    }
    if (ops_.on_device) {
      at(Cause::no_mixed_precision) = loss.take(static_cast<double>(sums_.ideal) * faster);
      at(Cause::host_to_device) = loss.take(per_step(ops_.copies) * sums_.useful_share);
      at(Cause::launch_overhead) =
          loss.take(per_step(ops_.calls * launch_seconds) * sums_.useful_share -
                    static_cast<double>(sums_.ideal));
      miss("the work is queued on a device: the times of its kernels are not seen from the host");
      return;
    }
    split_operators(loss, useful, faster);
  }

  /// The profiled steps stand for the others; what those took beyond them stays unexplained.
  void split_operators(Ledger& loss, std::int64_t useful, double faster) {
    double scale = sums_.useful_share;
    const double busy = per_step(ops_.compute + ops_.memory + ops_.unknown) * scale;
    if (busy > static_cast<double>(useful)) scale *= static_cast<double>(useful) / busy;
    const double compute = per_step(ops_.compute) * scale;
    at(Cause::no_mixed_precision) =
        loss.take(std::max(compute, static_cast<double>(sums_.ideal)) * faster);
    at(Cause::small_matmuls) =
        loss.take(compute - static_cast<double>(at(Cause::no_mixed_precision) + falls_.ideal));
    at(Cause::memory_bound) = loss.take(per_step(ops_.memory) * scale);
    // Operators without a rule are nobody's loss yet: their time stays unexplained.
    const double unknown = per_step(ops_.unknown) * scale;
    at(Cause::launch_overhead) = loss.take(std::min(per_step(ops_.between + ops_.small) * scale,
                                                    static_cast<double>(loss.left()) - unknown));
    if (ops_.unknown > 0.02 * ops_.seen())
      miss("operators of other libraries have no rule: what their time is worth is not known");
    if (ops_.pauses > 0.02 * ops_.seen())
      miss("forward and backward stand still for " + duration({ops_.pauses}) +
           " a step between operators: whether in the model's own code or for another program");
  }

  /// What a profile saw of it.  Else recomputing is forward once more: what was computed again costs
  /// what it cost the first time, and backward is twice forward, so a third of all other work is
  /// forward.
  [[nodiscard]] double recompute_time(std::int64_t compute) const {
    const double rest = sums_.hardware_flops - sums_.recompute_flops;
    if (!(sums_.recompute_flops > 0) || !(rest > 0)) return 0;
    if (ops_.recompute > 0 && !ops_.on_device)
      return static_cast<double>(compute) * ops_.recompute / ops_.seen();
    if (sums_.forward == 0)
      return static_cast<double>(compute) * sums_.recompute_flops / sums_.hardware_flops;
    return std::min(static_cast<double>(sums_.forward) * sums_.recompute_flops / (rest / 3),
                    0.75 * static_cast<double>(sums_.backward));
  }

  void add_points() {
    falls_.mfu = static_cast<double>(falls_.ideal) / static_cast<double>(falls_.total);
    std::int64_t time = falls_.ideal;
    double before = 1;
    for (Loss& loss : falls_.losses) {
      time += loss.nanoseconds;
      const double after =
          static_cast<double>(falls_.ideal) / static_cast<double>(std::max<std::int64_t>(time, 1));
      loss.mfu_points = before - after;
      before = after;
    }
  }

  const Evidence& evidence_;
  const Sums& sums_;
  const OpTimes& ops_;
  Waterfall falls_;
};

}  // namespace

std::string_view to_string(Cause cause) {
  return causes[static_cast<std::size_t>(cause)].name;
}
std::string_view describe(Cause cause) {
  return causes[static_cast<std::size_t>(cause)].text;
}

Result<Waterfall> make_waterfall(const Evidence& evidence, const Sums& sums, const OpTimes& ops) {
  if (sums.steps == 0) return Error{ErrorCode::not_found, "there is no train step to diagnose yet"};
  if (sums.measured == 0 || sums.ideal_best <= 0 || sums.total <= 0) {
    return Error{ErrorCode::not_found,
                 "no step has an MFU: FLOPs or the peak are not known; give the peak with --peak "
                 "TFLOPS or measure it with flopmeter peak"};
  }
  return Builder{evidence, sums, ops}.build();
}

Result<Waterfall> make_waterfall(const Evidence& evidence) {
  const Sums sums = summarize(evidence);
  return make_waterfall(evidence, sums, op_times(evidence));
}

}  // namespace flopmeter
