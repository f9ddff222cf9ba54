// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/recount.h>
#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_estimator.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/utilization.h>
#include <flopmeter/runstore/record_stream.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace flopmeter {
namespace {

/// Inputs of the monitor's estimator.
struct Stored {
  Model model;
  Training training;
  Dtype dtype = Dtype::other;
};

Result<Stored> stored_model(const RunDirectory& run) {
  const ModelSource& source = run.metadata.model_source;
  const std::string file = run.path + "/run.json";
  if (!source.known()) {
    return Error{ErrorCode::unsupported,
                 file +
                     " does not hold the model's configuration; give the monitor a model whose "
                     "configuration is known (model=...)"};
  }
  if (source.trainable.empty()) {
    return Error{ErrorCode::unsupported,
                 file +
                     " does not state which parameters were trained; give the monitor "
                     "trainable=..."};
  }
  if (!source.dtype) return Error{ErrorCode::unsupported, file + " does not state the dtype"};
  Stored stored;
  auto model = model_of(source);
  if (!model) return model.error();
  stored.model = *std::move(model);
  auto trainable = Trainable::parse(source.trainable);
  if (!trainable) return trainable.error();
  stored.training.trainable = *std::move(trainable);
  stored.training.recompute = source.recompute == "full"        ? Recompute::full
                              : source.recompute == "selective" ? Recompute::selective
                                                                : Recompute::none;
  if (source.attention == "eager") stored.training.attention = AttentionKernel::eager;
  if (source.mtp) stored.training.mtp = *source.mtp ? Training::Mtp::on : Training::Mtp::off;
  stored.dtype = *source.dtype;
  return stored;
}

/// Costs the batches of records, each shape once.
class CostModel {
 public:
  explicit CostModel(std::unique_ptr<FlopEstimator> estimator) : estimator_(std::move(estimator)) {}

  /// The record's rank's part of the FLOPs of all its steps; empty if the batch is unknown.
  std::optional<FlopEstimate> flop_cost(const StepRecord& record) {
    if (!record.batch.known()) return std::nullopt;
    const auto [entry, is_new] = known_.try_emplace(record.batch.signature());
    if (is_new) entry->second = estimator_->estimate(record.batch.batch());
    if (!entry->second) return std::nullopt;
    FlopEstimate flops =
        share_of(*entry->second, record.world_size, record.data_parallel, record.rank);
    for (std::size_t i = 0; i < dtype_count; ++i) {
      flops.model[i] *= static_cast<std::uint64_t>(record.steps);
      flops.hardware[i] *= static_cast<std::uint64_t>(record.steps);
    }
    return flops;
  }

 private:
  std::unique_ptr<FlopEstimator> estimator_;
  std::unordered_map<std::uint64_t, std::optional<FlopEstimate>> known_;
};

RecomputedFigures figures_of(const StepRecord& record) {
  return {record.model_flops, record.hardware_flops, record.mfu, record.hfu};
}

Flops sum(const std::array<std::uint64_t, dtype_count>& flops) {
  WideInt total = 0;
  for (const std::uint64_t part : flops) total += part;
  return {total};
}

/// Whether the record's hardware FLOPs were counted: no convention changes what was executed.
bool are_hardware_flops_counted(const StepRecord& record, const FlopEstimate& estimated) {
  return record.hardware_flops && record.hardware_flops->value != sum(estimated.hardware).value;
}

/// The peaks that a record was computed with.  run.json has those of one rank; a rank on another
/// device states its own by the ideal time of FLOPs in one dtype.
PeakTable peaks_of(const StepRecord& record, const PeakTable& of_run) {
  StepRecord same = record;
  Utilization{of_run}.finish(same);
  constexpr double rounding = 1e-6;
  if (!record.ideal_seconds || !same.ideal_seconds ||
      std::abs(*same.ideal_seconds / *record.ideal_seconds - 1) < rounding)
    return of_run;
  PeakTable own;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (record.model_flops_by_dtype[i] == 0) continue;
    if (sum(record.model_flops_by_dtype).value != record.model_flops_by_dtype[i]) return {};
    own.set(static_cast<Dtype>(i),
            Flops{record.model_flops_by_dtype[i]} /
                Seconds{record.ideal_seconds->value * record.devices});
  }
  return own;
}

/// Figures of train steps together.
RecomputedFigures figures_of(const StepTotals& totals, Flops hardware) {
  if (totals.steps == 0) return {};
  return {Flops{totals.model_flops.amount},
          hardware.value > 0 ? std::optional{hardware} : std::nullopt,
          totals.mfu(),
          totals.hfu()};
}

}  // namespace

Result<RecomputedRun> recompute(const RunDirectory& run, const std::string& convention) {
  if (const auto asked = convention_called(convention); !asked) return asked.error();
  auto stored = stored_model(run);
  if (!stored) return stored.error();
  const std::string& from = run.metadata.convention;
  auto then = make_estimator(stored->model, stored->training, from, stored->dtype);
  if (!then) return then.error();
  auto now = make_estimator(stored->model, stored->training, convention, stored->dtype);
  if (!now) return now.error();
  CostModel as_stored{*std::move(then)};
  CostModel as_asked{*std::move(now)};
  RecomputedRun result{.model = stored->model.name, .from = from, .to = convention};
  StepTotals stored_total;
  StepTotals now_total;
  for (const RankFile& file : run.files) {
    RecordReader reader{file.path};
    while (auto record = reader.next()) {
      RecomputedStep step{.step = record->step, .rank = record->rank, .tag = record->tag};
      step.stored = figures_of(*record);
      const StepRecord stored_record = *record;
      const auto own = as_stored.flop_cost(*record);
      const auto flops = as_asked.flop_cost(*record);
      if (flops) {
        record->model_flops_by_dtype = flops->model;
        record->model_flops = sum(flops->model);
        if (!own || !are_hardware_flops_counted(stored_record, *own)) {
          record->hardware_flops_by_dtype = flops->hardware;
          record->hardware_flops = sum(flops->hardware);
        }
        Utilization{peaks_of(stored_record, run.metadata.peaks)}.finish(*record);
        step.now = figures_of(*record);
      } else {
        ++result.without_batch;
      }
      if (own && step.stored.model_flops) {
        const auto expected = static_cast<double>(sum(own->model).value);
        const auto found = static_cast<double>(step.stored.model_flops->value);
        if (sum(own->model).value != step.stored.model_flops->value) {
          ++result.differing;
          result.largest_difference =
              std::max(result.largest_difference, std::abs(found / expected - 1));
        }
      }
      if (step.tag == StepTag::train && step.now.model_flops && step.stored.model_flops) {
        stored_total.add(stored_record);
        now_total.add(*record);
      }
      result.steps.push_back(step);
    }
  }
  result.stored = figures_of(stored_total, {stored_total.hardware_flops});
  result.now = figures_of(now_total, {now_total.hardware_flops});
  return result;
}

}  // namespace flopmeter
