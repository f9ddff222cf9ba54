// SPDX-License-Identifier: Apache-2.0
//
// flopmeter estimate: FLOPs, parameters and time at peak of a model, from its configuration alone.
#include "../command.h"
#include "../estimate_text.h"
#include "../model_argument.h"
#include "../peak_argument.h"

#include <flopmeter/catalog/estimate.h>
#include <flopmeter/core/text.h>

#include <CLI/CLI.hpp>

#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string model;
  std::int64_t seq_len = 0;
  std::int64_t batch = 1;
  std::string seq_lens;
  std::string images;
  PeakArgument peak;
  std::optional<double> step_time;
  std::optional<double> tokens_per_second;
  std::string convention = "model-v1";
  std::string trainable = "all";
  std::string recompute = "none";
  std::string attention = "fused";
  bool forward_only = false;
  bool mtp = false;
  bool no_mtp = false;
  bool json = false;
};

/// "2048,1024,17" and the like; `what` names it in messages.
Result<std::vector<std::int64_t>> integers(std::string_view text, std::string_view what) {
  std::vector<std::int64_t> list;
  while (true) {
    const auto comma = text.find(',');
    const auto number = parse_int(text.substr(0, comma));
    if (!number) {
      return Error{
          ErrorCode::invalid_argument,
          std::string{what} + ": '" + printable(text.substr(0, comma)) + "' is not an integer"};
    }
    list.push_back(*number);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<ImageGrid>> image_grids(std::string_view text) {
  std::vector<ImageGrid> images;
  while (!text.empty()) {
    const auto end = text.find(';');
    const auto sizes = integers(text.substr(0, end), "--image-grid-thw");
    if (!sizes) return sizes.error();
    if ((*sizes).size() != 3) {
      return Error{ErrorCode::invalid_argument,
                   "--image-grid-thw: expected t,h,w for each image, in patches: 1,32,32;1,24,36"};
    }
    images.push_back({.t = (*sizes)[0], .h = (*sizes)[1], .w = (*sizes)[2]});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return images;
}

Result<Batch> make_batch(const Options& options) {
  Batch batch;
  if (!options.seq_lens.empty()) {
    const auto lengths = integers(options.seq_lens, "--seq-lens");
    if (!lengths) return lengths.error();
    for (const std::int64_t length : *lengths) batch.sequences.push_back({.length = length});
  } else {
    batch = Batch::uniform(options.batch, options.seq_len);
  }
  auto images = image_grids(options.images);
  if (!images) return images.error();
  batch.images = *std::move(images);
  return batch;
}

Training::Mtp mtp(const Options& options) {
  if (options.no_mtp) return Training::Mtp::off;
  return options.mtp ? Training::Mtp::on : Training::Mtp::by_convention;
}

Exit run(const Options& options) {
  const auto argument = read_model(options.model);
  if (!argument) return refuse(argument.error());
  EstimateRequest request;
  Options filled = options;
  if (filled.seq_len == 0) filled.seq_len = (*argument).positions.value_or(2048);
  auto batch = make_batch(filled);
  if (!batch) return refuse(batch.error());
  request.batch = *std::move(batch);
  auto trainable = Trainable::parse(options.trainable);
  if (!trainable) return refuse(trainable.error());
  request.training = {
      .trainable = *std::move(trainable),
      .recompute = options.recompute == "full"        ? Recompute::full
                   : options.recompute == "selective" ? Recompute::selective
                                                      : Recompute::none,
      .attention = options.attention == "eager" ? AttentionKernel::eager : AttentionKernel::fused,
      .forward_only = options.forward_only,
      .mtp = mtp(options)};
  request.convention = options.convention;
  const auto dtype = options.peak.compute_dtype();
  if (!dtype) return refuse(dtype.error());
  request.dtype = *dtype;
  auto peaks = options.peak.table();
  if (!peaks) return refuse(peaks.error());
  request.peaks = *std::move(peaks);
  request.devices = options.peak.devices;
  if (options.step_time) request.step_seconds = Seconds{*options.step_time};
  request.tokens_per_second = options.tokens_per_second;
  auto result = estimate((*argument).model, request);
  if (!result) return refuse(result.error());
  if (options.json) {
    return print_json([&](JsonWriter& json) { write_json(json, *result); });
  }
  if (options.seq_len == 0 && options.seq_lens.empty()) {
    (*result).notes.push_back("no --seq-len given: " + grouped(filled.seq_len) +
                              " tokens a sequence are assumed");
  }
  return print(estimate_text(*result));
}

std::function<Exit()> set_up(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("model",
                 o.model,
                 "a well-known model's name, a config.json, a folder that holds one, or -")
      ->required();
  auto* seq_len = app.add_option("--seq-len",
                                 o.seq_len,
                                 "tokens a sequence, visual ones included (the longest a "
                                 "config.json speaks of, else 2048)")
                      ->check(check_positive_integer);
  auto* batch = app.add_option("--batch", o.batch, "sequences a step")
                    ->check(check_positive_integer)
                    ->capture_default_str();
  app.add_option("--seq-lens", o.seq_lens, "lengths of packed documents: a,b,c")
      ->check(check_not_empty)
      ->excludes(seq_len)
      ->excludes(batch);
  app.add_option("--image-grid-thw", o.images, "images in patches: t,h,w;t,h,w");
  o.peak.add_options(app);
  auto* step_time = app.add_option("--step-time", o.step_time, "seconds a step took")
                        ->check(check_positive_number);
  app.add_option(
         "--tokens-per-second", o.tokens_per_second, "tokens a second, all devices together")
      ->check(check_positive_number)
      ->excludes(step_time);
  app.add_option("--convention", o.convention, "what counts: see 'flopmeter conventions'")
      ->capture_default_str();
  app.add_option(
         "--trainable", o.trainable, "all, lora:RANK[:GLOB] or freeze:GLOB, on parameter names")
      ->capture_default_str();
  app.add_option("--recompute",
                 o.recompute,
                 "activations computed again in backward: none, selective or full")
      ->check(CLI::IsMember({"none", "selective", "full"}))
      ->capture_default_str();
  app.add_option("--attention", o.attention, "how attention is implemented: fused or eager")
      ->check(CLI::IsMember({"fused", "eager"}))
      ->capture_default_str();
  app.add_flag("--forward-only", o.forward_only, "no backward pass");
  auto* with_mtp = app.add_flag("--mtp", o.mtp, "multi-token prediction layers are trained too");
  app.add_flag("--no-mtp", o.no_mtp, "they are not, even where the convention counts them")
      ->excludes(with_mtp);
  app.add_flag("--json", o.json, "as JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_estimate{
    .name = "estimate",
    .help = "FLOPs, parameters, time at peak and MFU of a model",
    .order = 1,
    .set_up = set_up};

}  // namespace flopmeter
