// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/core/text.h>
#include <flopmeter/core/utilization.h>

#include <algorithm>

namespace flopmeter {
namespace {

Error wrong(std::string_view parameter, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string{parameter}};
}

Result<void> check_batch(const Model& model, const Batch& batch) {
  constexpr std::int64_t longest = std::int64_t{1} << 31U;
  constexpr WideInt most_tokens = WideInt{1} << 44U;
  if (batch.sequences.empty()) return wrong("seq_len", "is missing: the batch has no sequences");
  for (const SequenceGroup& run : batch.sequences) {
    if (run.length < 1 || run.length > longest) {
      return wrong("seq_len", "must be between 1 and 2^31, not " + std::to_string(run.length));
    }
    if (run.count < 1) return wrong("batch", "must be positive, not " + std::to_string(run.count));
  }
  if (batch.tokens() > most_tokens)
    return wrong("batch", "exceeds 2^44 tokens per step, with this sequence length");
  for (const ImageGrid& image : batch.images) {
    if (model.vision.kind == VisionPlan::Kind::none) {
      return wrong("image_grid_thw", "does not apply: " + model.name + " has no vision tower");
    }
    const std::int64_t merge = model.vision.merge;
    if (image.t < 1 || image.h < 1 || image.w < 1 || image.t > (1 << 20) || image.h > (1 << 16) ||
        image.w > (1 << 16)) {
      return wrong("image_grid_thw", "needs t, h, and w between 1 and 65536 patches");
    }
    if (image.h % merge != 0 || image.w % merge != 0) {
      return wrong("image_grid_thw",
                   "has an image of " + std::to_string(image.h) + " x " + std::to_string(image.w) +
                       " patches, which is not a multiple of the model's merge size " +
                       std::to_string(merge));
    }
  }
  if (!model.vision.cropped && visual_tokens(model, batch) > batch.tokens()) {
    return wrong("seq_len",
                 "must include the visual tokens: the images need " +
                     to_string(visual_tokens(model, batch)) + ", the batch has " +
                     to_string(batch.tokens()) + " tokens");
  }
  return {};
}

/// Parameters times tokens, for an unknown architecture.
Counted count_bare(const Model& model, const Batch& batch, const Training& training) {
  const int halves = model.facts.multimodal ? 5 : 4;
  Counted counted;
  PartFlops& part = counted.parts[Component::parameters];
  part.forward = {*model.bare_parameters * batch.tokens() * halves / 2};
  if (!training.forward_only) part.backward = 2 * part.forward;
  return counted;
}

void fill_rates(Estimate& e, const EstimateRequest& request) {
  Rates& rates = e.rates;
  rates.step_seconds = request.step_seconds;
  const auto tokens = static_cast<double>(e.tokens);
  if (request.tokens_per_second) rates.step_seconds = Seconds{tokens / *request.tokens_per_second};
  if (rates.step_seconds) {
    rates.tokens_per_second = tokens / rates.step_seconds->value;
    rates.tflops_per_device =
        (e.model_flops / *rates.step_seconds).value / static_cast<double>(e.devices) / 1e12;
  }
  if (!request.peaks) return;
  const Utilization builder{*request.peaks};
  std::array<WideInt, dtype_count> model{};
  std::array<WideInt, dtype_count> hardware{};
  model[static_cast<std::size_t>(e.dtype)] = e.model_flops.value;
  hardware[static_cast<std::size_t>(e.dtype)] = e.hardware_flops.value;
  if (const auto ideal = builder.ideal_time(model)) {
    rates.ideal_step_seconds = Seconds{ideal->value / static_cast<double>(e.devices)};
  }
  if (!rates.step_seconds) return;
  rates.mfu = builder.utilization(model, *rates.step_seconds, static_cast<int>(e.devices));
  rates.hfu = builder.utilization(hardware, *rates.step_seconds, static_cast<int>(e.devices));
  if (rates.mfu && *rates.mfu > 1) {
    e.notes.emplace_back(
        "MFU above 100 %: check the step time, the peak, and the number of devices");
  }
}

/// Time of the whole training, from the time of a step.
void fill_plan(Estimate& e, const EstimateRequest& request) {
  if (!request.train_tokens) return;
  TrainingPlan& plan = e.plan.emplace();
  const double steps = *request.train_tokens / static_cast<double>(e.tokens);
  plan.tokens = *request.train_tokens;
  plan.model_flops = steps * static_cast<double>(e.model_flops.value);
  if (e.rates.ideal_step_seconds) plan.ideal = Seconds{steps * e.rates.ideal_step_seconds->value};
  if (e.rates.step_seconds) {
    plan.mfu = e.rates.mfu;
    plan.seconds = Seconds{steps * e.rates.step_seconds->value};
  } else if (request.planned_mfu && plan.ideal) {
    plan.mfu = request.planned_mfu;
    plan.seconds = Seconds{plan.ideal->value / *request.planned_mfu};
  }
  if (plan.seconds)
    plan.device_seconds = Seconds{plan.seconds->value * static_cast<double>(e.devices)};
}

/// The training options must apply to the model.
Result<void> check_training(const Model& model,
                            const Training& training,
                            const ParameterCounts& parameters) {
  if (training.forward_only && training.recompute != Recompute::none) {
    return wrong("recompute", "cannot be combined with forward_only");
  }
  const bool predicts = std::any_of(
      model.runs.begin(), model.runs.end(), [](const LayerRun& run) { return run.mtp; });
  if (training.mtp == Training::Mtp::on && !predicts)
    return wrong("mtp", "does not apply: " + model.name + " has no multi-token prediction layers");
  const Trainable& trainable = training.trainable;
  const bool nothing_adapted = trainable.kind == Trainable::Kind::lora && parameters.trainable == 0;
  const bool nothing_frozen = trainable.kind == Trainable::Kind::freeze &&
                              parameters.trainable == parameters.total && !model.bare_parameters;
  if (nothing_adapted || nothing_frozen) {
    return wrong("trainable",
                 "matches no parameter of " + model.name + ": '" + printable(trainable.pattern) +
                     "'; a pattern matches whole names, such as *q_proj*");
  }
  return {};
}

}  // namespace

Result<Estimate> estimate(const Model& model, const EstimateRequest& request) {
  const auto named = convention_called(request.convention);
  if (!named) return named.error();
  const Convention* convention = *named;
  if (request.devices < 1 || request.devices > (1 << 24))
    return wrong("devices", "must be between 1 and 2^24");
  if (request.step_seconds && request.tokens_per_second) {
    return wrong("step_time", "cannot be combined with tokens_per_second");
  }
  if (request.step_seconds && !(request.step_seconds->value > 0))
    return wrong("step_time", "must be positive");
  if (request.tokens_per_second && !(*request.tokens_per_second > 0))
    return wrong("tokens_per_second", "must be positive");
  if (const auto ok = check_batch(model, request.batch); !ok) return ok.error();
  const Batch batch = with_default_images(model, request.batch);

  Estimate e;
  e.model = model.name;
  e.family = model.family;
  e.notes = model.notes;
  e.parameters = count_parameters(model, request.training);
  if (const auto ok = check_training(model, request.training, e.parameters); !ok) return ok.error();
  e.sequences = batch.count();
  e.tokens = batch.tokens();
  e.visual_tokens = visual_tokens(model, batch);
  e.causal_pairs = causal_pairs(batch);
  e.dtype = request.dtype;
  e.devices = request.devices;
  e.peaks = request.peaks;

  const bool bare = model.bare_parameters.has_value();
  const bool fall_back = bare && convention->needs_operations;
  const Counted counted = fall_back ? count_bare(model, batch, request.training)
                                    : convention->count(model, batch, request.training);
  e.convention = fall_back ? (model.facts.multimodal ? "params-2.5" : "params-2")
                           : std::string{convention->name};
  e.parts = counted.parts;
  const PartFlops total = counted.parts.total();
  e.forward = total.forward;
  e.backward = total.backward;
  e.model_flops = total.forward + total.backward;
  e.recompute = total.recompute;
  e.hardware_flops = e.model_flops + e.recompute;
  if (counted.hardware) {
    e.hardware_flops = *counted.hardware;
  } else if (!bare) {
    const Counted hardware = find_convention("hw-v1")->count(model, batch, request.training);
    e.hardware_flops = *hardware.hardware;
    e.recompute = hardware.parts.total().recompute;
  }
  if (request.batch.images.empty() && !batch.images.empty()) {
    e.notes.emplace_back("no image sizes: assuming one image of 576 visual tokens per sequence");
  }
  fill_rates(e, request);
  fill_plan(e, request);
  return e;
}

namespace {

/// An integer if it divides evenly, so that exact counts stay exact.
void write_per_token(JsonWriter& json, const Estimate& e) {
  json.key("per_token");
  if (e.model_flops.value % e.tokens == 0) {
    json.value(e.model_flops.value / e.tokens);
  } else {
    json.value(static_cast<double>(e.model_flops.value) / static_cast<double>(e.tokens));
  }
}

void write_components(JsonWriter& json,
                      std::string_view key,
                      const Estimate& e,
                      Flops (*pick)(const PartFlops&)) {
  json.key(key).begin_object();
  for (std::size_t c = 0; c < component_count; ++c) {
    const Flops flops = pick(e.parts.parts[c]);
    if (flops.value != 0) json.field(to_string(static_cast<Component>(c)), flops);
  }
  json.end_object();
}

void write_device(JsonWriter& json, const Estimate& e) {
  json.key("device");
  if (!e.peaks) {
    json.null();
    return;
  }
  const std::string& device = e.peaks->device;
  json.begin_object()
      .field("name", device.empty() ? std::nullopt : std::optional{device})
      .field("dtype", to_string(e.dtype))
      .field("count", e.devices)
      .field("peak_flops_per_second", e.peaks->peak(e.dtype))
      .field("source", e.peaks->source)
      .end_object();
}

}  // namespace

void write_json(JsonWriter& json, const Estimate& e) {
  json.begin_object().field("schema", "flopmeter.estimate/1");
  json.key("model").begin_object().field("name", e.model).field("family", e.family);
  json.key("parameters")
      .begin_object()
      .field("total", e.parameters.total)
      .field("active", e.parameters.active)
      .field("embedding", e.parameters.embedding)
      .field("trainable", e.parameters.trainable)
      .field("buffers", e.parameters.buffers)
      .end_object()
      .end_object();
  json.key("batch")
      .begin_object()
      .field("sequences", e.sequences)
      .field("tokens", e.tokens)
      .field("visual_tokens", e.visual_tokens)
      .field("causal_pairs", e.causal_pairs)
      .end_object();
  json.field("convention", e.convention);
  json.key("flops").begin_object().field("forward", e.forward).field("backward", e.backward);
  json.field("model", e.model_flops)
      .field("recompute", e.recompute)
      .field("hardware", e.hardware_flops);
  write_per_token(json, e);
  write_components(
      json, "components", e, [](const PartFlops& part) { return part.forward + part.backward; });
  write_components(
      json, "forward_components", e, [](const PartFlops& part) { return part.forward; });
  json.end_object();
  write_device(json, e);
  json.key("rates")
      .begin_object()
      .field("step_seconds", e.rates.step_seconds)
      .field("tokens_per_second", e.rates.tokens_per_second)
      .field("tflops_per_device", e.rates.tflops_per_device)
      .field("mfu", e.rates.mfu)
      .field("hfu", e.rates.hfu)
      .field("ideal_step_seconds", e.rates.ideal_step_seconds)
      .end_object();
  if (e.plan) {
    json.key("plan")
        .begin_object()
        .field("tokens", e.plan->tokens)
        .field("model_flops", e.plan->model_flops)
        .field("mfu", e.plan->mfu)
        .field("ideal_seconds", e.plan->ideal)
        .field("seconds", e.plan->seconds)
        .field("device_hours",
               e.plan->device_seconds ? std::optional{e.plan->device_seconds->value / 3600}
                                      : std::nullopt)
        .end_object();
  }
  json.key("published");
  e.published ? write_json(json, *e.published) : static_cast<void>(json.null());
  json.key("notes").begin_array();
  for (const std::string& note : e.notes) json.value(note);
  json.end_array().end_object();
}

void add_published(Estimate& estimate, const Model& model, const EstimateRequest& request) {
  if (!estimate.peaks || request.training.forward_only || model.bare_parameters) return;
  PublishedQuery query =
      published_query(model, request.training.trainable.kind == Trainable::Kind::lora);
  query.device = estimate.peaks->device;
  query.dtype = request.dtype;
  estimate.published = compare_published(query);
}

}  // namespace flopmeter
