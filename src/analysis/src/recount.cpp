// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/analysis/recount.h>
#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_estimator.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/step_totals.h>
#include <flopmeter/core/utilization.h>
#include <flopmeter/runstore/record_reader.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <unordered_map>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

/// What the monitor's estimator was made of.
struct Stored {
  Model model;
  Training training;
  Dtype dtype = Dtype::other;
};

Result<Stored> stored_model(const RunDirectory& run) {
  const Error missing{ErrorCode::unsupported,
                      run.path +
                          "/run.json does not hold the model's configuration; give the "
                          "monitor a model whose configuration is known (model=...)"};
  const Json details = Json::parse(run.description.details, nullptr, false);
  if (!details.is_object() || !details.contains("estimate")) return missing;
  const Json& estimate = details["estimate"];
  if (!estimate.is_object()) return missing;
  Stored stored;
  if (const auto config = estimate.find("config");
      config != estimate.end() && config->is_object()) {
    const auto parsed = Config::parse(config->dump(), run.path + "/run.json");
    if (!parsed) return parsed.error();
    auto model = build_model(*parsed);
    if (!model) return model.error();
    stored.model = *std::move(model);
  } else if (const std::string name = text_of(estimate, "model"); !name.empty()) {
    auto model = find_model(name);
    if (!model) return model.error();
    stored.model = *std::move(model);
  } else {
    return missing;
  }
  const std::string trainable = text_of(estimate, "trainable");
  if (trainable.empty()) {
    return Error{ErrorCode::unsupported,
                 run.path +
                     "/run.json does not say which parameters were trained; give the "
                     "monitor trainable=..."};
  }
  auto parsed = Trainable::parse(trainable);
  if (!parsed) return parsed.error();
  stored.training.trainable = *std::move(parsed);
  const std::string recompute = text_of(estimate, "recompute");
  stored.training.recompute = recompute == "full"        ? Recompute::full
                              : recompute == "selective" ? Recompute::selective
                                                         : Recompute::none;
  if (text_of(estimate, "attention") == "eager") stored.training.attention = AttentionKernel::eager;
  if (const auto mtp = estimate.find("mtp"); mtp != estimate.end() && mtp->is_boolean())
    stored.training.mtp = mtp->get<bool>() ? Training::Mtp::on : Training::Mtp::off;
  const auto dtype = parse_dtype(text_of(estimate, "dtype"));
  if (!dtype) return Error{ErrorCode::parse_error, run.path + "/run.json names no dtype"};
  stored.dtype = *dtype;
  return stored;
}

/// Costs batches as records spell them, each once.
class CostModel {
 public:
  explicit CostModel(std::unique_ptr<FlopEstimator> estimator) : estimator_(std::move(estimator)) {}

  /// This rank's part of it.
  std::optional<FlopEstimate> flop_cost(const std::string& text, const StepRecord& record) {
    const auto& whole = flop_cost(text);
    if (!whole) return std::nullopt;
    return share_of(*whole, record.world_size, record.data_parallel, record.rank);
  }

 private:
  const std::optional<FlopEstimate>& flop_cost(const std::string& text) {
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    std::optional<FlopEstimate> flops;
    if (const auto batch = parse_batch(text)) {
      flops = estimator_->estimate({.sequences = batch->sequences,
                                    .padded_length = batch->padded_length,
                                    .images = batch->images});
    }
    return known_.emplace(text, flops).first->second;
  }

  std::unique_ptr<FlopEstimator> estimator_;
  std::unordered_map<std::string, std::optional<FlopEstimate>> known_;
};

RecomputedFigures figures_of(const StepRecord& record) {
  return {record.model_flops, record.hardware_flops, record.mfu, record.hfu};
}

Flops sum(const std::array<std::uint64_t, dtype_count>& flops) {
  WideInt total = 0;
  for (const std::uint64_t part : flops) total += part;
  return {total};
}

/// Figures of train steps together.
RecomputedFigures figures_of(const StepTotals& totals, Flops hardware) {
  if (totals.steps == 0) return {};
  return {Flops{totals.model_flops.amount},
          hardware.value > 0 ? std::optional{hardware} : std::nullopt,
          totals.mfu(),
          totals.hfu()};
}

/// What a line says that a record does not keep.
std::string batch_of(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  return json.is_object() ? text_of(json, "batch") : std::string{};
}

}  // namespace

Result<RecomputedRun> recompute(const RunDirectory& run, const std::string& convention) {
  if (const auto asked = convention_called(convention); !asked) return asked.error();
  auto stored = stored_model(run);
  if (!stored) return stored.error();
  const std::string& from = run.description.convention;
  auto then = make_estimator(stored->model, stored->training, from, stored->dtype);
  if (!then) return then.error();
  auto now = make_estimator(stored->model, stored->training, convention, stored->dtype);
  if (!now) return now.error();
  CostModel as_stored{*std::move(then)};
  CostModel as_asked{*std::move(now)};
  const Utilization builder{run.description.peaks};
  RecomputedRun result{.model = stored->model.name, .from = from, .to = convention};
  StepTotals stored_total;
  StepTotals now_total;
  for (const RankFile& file : run.files) {
    std::ifstream lines{file.path, std::ios::binary};
    for (std::string line; std::getline(lines, line);) {
      auto record = parse_record(line);
      if (!record) continue;
      RecomputedStep step{.step = record->step, .rank = record->rank, .tag = record->tag};
      step.stored = figures_of(*record);
      const StepRecord stored_record = *record;
      const std::string batch = batch_of(line);
      const auto flops = as_asked.flop_cost(batch, *record);
      if (flops) {
        record->model_flops_by_dtype = flops->model;
        record->hardware_flops_by_dtype = flops->hardware;
        record->model_flops = sum(flops->model);
        record->hardware_flops = sum(flops->hardware);
        builder.finish(*record);
        step.now = figures_of(*record);
      } else {
        ++result.without_batch;
      }
      if (const auto own = as_stored.flop_cost(batch, *record); own && step.stored.model_flops) {
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
