// SPDX-License-Identifier: Apache-2.0
//
// flopmeter estimate: FLOPs, parameters, and ideal step time of a model, from its configuration.
#include "../command.h"
#include "../model_argument.h"
#include "../peak_argument.h"

#include <flopmeter/catalog/estimate.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/estimate_text.h>

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
  std::string train_tokens;
  std::optional<double> planned_mfu;
  std::string convention = "model-v1";
  std::string trainable = "all";
  std::string recompute = "none";
  std::string attention = "fused";
  bool forward_only = false;
  bool mtp = false;
  bool no_mtp = false;
  bool json = false;
};

/// Reads "2048,1024,17"; `parameter` is named in errors.
Result<std::vector<std::int64_t>> integers(std::string_view text, std::string_view parameter) {
  std::vector<std::int64_t> list;
  while (true) {
    const auto comma = text.find(',');
    const auto number = parse_int(text.substr(0, comma));
    if (!number) {
      return Error{ErrorCode::invalid_argument,
                   "has '" + printable(text.substr(0, comma)) + "', which is not an integer",
                   std::string{parameter}};
    }
    list.push_back(*number);
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

/// Reads "15T", "300B", "2.5e12".
std::optional<double> tokens_of(std::string_view text) {
  double unit = 1;
  for (const auto& [letter, size] :
       {std::pair{'k', 1e3}, {'M', 1e6}, {'B', 1e9}, {'G', 1e9}, {'T', 1e12}}) {
    if (text.ends_with(letter)) unit = size;
  }
  if (unit > 1) text.remove_suffix(1);
  const auto number = parse_double(text);
  if (!number || !(*number > 0) || *number > 1e30) return std::nullopt;
  return *number * unit;
}

std::string check_tokens(const std::string& text) {
  return tokens_of(text) ? "" : "'" + printable(text) + "' is not a number of tokens, such as 15T";
}

std::string check_ratio(const std::string& text) {
  const auto value = parse_double(text);
  return value && *value > 0 && *value <= 1
             ? ""
             : "'" + printable(text) + "' is not a fraction between 0 and 1, such as 0.4";
}

Result<std::vector<ImageGrid>> image_grids(std::string_view text) {
  std::vector<ImageGrid> images;
  while (!text.empty()) {
    const auto end = text.find(';');
    const auto sizes = integers(text.substr(0, end), "image_grid_thw");
    if (!sizes) return sizes.error();
    if ((*sizes).size() != 3) {
      return Error{ErrorCode::invalid_argument,
                   "must be t,h,w per image, in patches, such as 1,32,32;1,24,36",
                   "image_grid_thw"};
    }
    images.push_back({.t = (*sizes)[0], .h = (*sizes)[1], .w = (*sizes)[2]});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return images;
}

Result<Batch> make_batch(const Options& options) {
  Batch batch;
  if (!options.seq_lens.empty()) {
    const auto lengths = integers(options.seq_lens, "seq_lens");
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
  if (!options.train_tokens.empty()) request.train_tokens = tokens_of(options.train_tokens);
  request.planned_mfu = options.planned_mfu;
  auto result = estimate((*argument).model, request);
  if (!result) return refuse(result.error());
  add_published(*result, (*argument).model, request);
  if (options.json) {
    return print_json([&](JsonWriter& json) { write_json(json, *result); });
  }
  if (options.seq_len == 0 && options.seq_lens.empty()) {
    (*result).notes.push_back("no --seq-len: assuming " + grouped(filled.seq_len) +
                              " tokens per sequence");
  }
  return print(estimate_text(*result));
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("model", o.model, "model name, config.json, its folder, or - for standard input")
      ->required();
  auto* seq_len = app.add_option("--seq-len",
                                 o.seq_len,
                                 "tokens per sequence, including visual tokens (default: "
                                 "maximum of config.json, else 2048)")
                      ->check(check_positive_integer);
  auto* batch = app.add_option("--batch", o.batch, "sequences per step")
                    ->check(check_positive_integer)
                    ->capture_default_str();
  app.add_option("--seq-lens", o.seq_lens, "lengths of packed documents: a,b,c")
      ->check(check_not_empty)
      ->excludes(seq_len)
      ->excludes(batch);
  app.add_option("--image-grid-thw", o.images, "image sizes in patches: t,h,w;t,h,w");
  o.peak.add_options(app);
  auto* step_time = app.add_option("--step-time", o.step_time, "measured step time in seconds")
                        ->check(check_positive_number);
  app.add_option("--tokens-per-second", o.tokens_per_second, "measured throughput of all devices")
      ->check(check_positive_number)
      ->excludes(step_time);
  auto* train_tokens =
      app.add_option(
             "--train-tokens",
             o.train_tokens,
             "tokens of the whole training run, such as 15T: adds its time and device hours")
          ->check(check_tokens);
  app.add_option(
         "--planned-mfu", o.planned_mfu, "MFU to plan with, such as 0.4, if no time is measured")
      ->check(check_ratio)
      ->needs(train_tokens);
  app.add_option(
         "--convention", o.convention, "FLOP-counting convention, see `flopmeter conventions`")
      ->capture_default_str();
  app.add_option("--trainable",
                 o.trainable,
                 "all, lora:RANK[:GLOB], or freeze:GLOB of parameter names; commas separate globs")
      ->capture_default_str();
  auto* recompute =
      app.add_option(
             "--recompute", o.recompute, "activation recomputation: none, selective, or full")
          ->one_of({"none", "selective", "full"})
          ->capture_default_str();
  app.add_option("--attention", o.attention, "attention implementation: fused or eager")
      ->one_of({"fused", "eager"})
      ->capture_default_str();
  app.add_flag("--forward-only", o.forward_only, "no backward pass")->excludes(recompute);
  auto* with_mtp = app.add_flag("--mtp", o.mtp, "include multi-token prediction layers");
  app.add_flag("--no-mtp", o.no_mtp, "exclude multi-token prediction layers")->excludes(with_mtp);
  app.add_flag("--json", o.json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_estimate{
    .name = "estimate",
    .help = "Estimate FLOPs, parameters, ideal step time, and MFU of a model",
    .order = 1,
    .set_up = set_up};

}  // namespace flopmeter
