// SPDX-License-Identifier: Apache-2.0
#include "csv.h"

#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/catalog/devices.h>
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/published.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <map>

namespace flopmeter {

std::string_view published_results_csv();  // embedded by the build

namespace {

constexpr double similar_size = 2;     // factor between two models of a similar size
constexpr double similar_peak = 0.01;  // relative difference between two devices of equal peak

Error at_line(std::size_t line, const std::string& what) {
  return {ErrorCode::parse_error, "published results, line " + std::to_string(line) + ": " + what};
}

/// Stores one cell; false if the column is not known or the cell is not what the column holds.
bool store(PublishedResult& row, std::string_view column, const std::string& cell) {
  const auto text = [&](std::string& to) {
    to = cell;
    return true;
  };
  const auto number = [&](std::optional<double>& to, double scale) {
    if (cell.empty()) return true;
    const auto value = parse_double(cell);
    if (!value || !(*value > 0)) return false;
    to = *value * scale;
    return true;
  };
  const auto integer = [&](auto& to) {
    if (cell.empty()) return true;
    const auto value = parse_int(cell);
    if (!value || *value <= 0) return false;
    to = *value;
    return true;
  };
  if (column == "id") return text(row.id);
  if (column == "model") return text(row.model);
  if (column == "variant") return text(row.variant);
  if (column == "layers") return integer(row.layers);
  if (column == "hidden") return integer(row.hidden);
  if (column == "heads") return integer(row.heads);
  if (column == "vocab") return integer(row.vocab);
  if (column == "parameters") return integer(row.parameters);
  if (column == "seq_len") return integer(row.seq_len);
  if (column == "device") return text(row.device);
  if (column == "devices") return integer(row.devices);
  if (column == "dtype") {
    const auto dtype = parse_dtype(cell);
    if (dtype) row.dtype = *dtype;
    return dtype.has_value();
  }
  if (column == "training") return text(row.training);
  if (column == "recompute") return text(row.recompute);
  if (column == "convention")
    return (cell.empty() || find_convention(cell) != nullptr) && text(row.convention);
  if (column == "hardware_flops") {
    row.hardware_flops = cell == "yes";
    return cell.empty() || cell == "yes";
  }
  if (column == "tokens_per_second_per_device") return number(row.tokens_per_second_per_device, 1);
  if (column == "tflops_per_device") return number(row.tflops_per_device, 1);
  if (column == "mfu_percent") return number(row.mfu, 0.01);
  if (column == "hfu_percent") return number(row.hfu, 0.01);
  if (column == "check") return text(row.check);
  if (column == "note") return text(row.note);
  if (column == "source") return text(row.source) && !cell.empty();
  return column == "url" && text(row.url);
}

EstimateRequest request_of(const PublishedResult& result, std::string_view convention) {
  EstimateRequest request;
  request.batch = Batch::uniform(1, result.seq_len.value_or(0));
  request.convention = convention;
  request.training.recompute = result.recompute == "full" ? Recompute::full : Recompute::none;
  if (result.variant.find("w/o MTP") != std::string::npos)
    request.training.mtp = Training::Mtp::off;
  request.dtype = result.dtype;
  return request;
}

/// Throughput of one device; derived from the TFLOP/s of the source if it gives no throughput.
std::optional<double> tokens_per_second(const PublishedResult& result, const Model& model) {
  if (result.tokens_per_second_per_device) return result.tokens_per_second_per_device;
  if (!result.tflops_per_device || result.convention.empty()) return std::nullopt;
  auto counted = estimate(model, request_of(result, result.convention));
  if (!counted) return std::nullopt;
  const Flops flops = result.hardware_flops ? counted->hardware_flops : counted->model_flops;
  return *result.tflops_per_device * 1e12 * static_cast<double>(counted->tokens) /
         static_cast<double>(flops.value);
}

std::optional<PeakTable> peaks_of_device(const std::string& name) {
  const auto device = find_device(name);
  return device ? std::optional{peaks_of(**device)} : std::nullopt;
}

/// MFU in our convention; empty if model, length, throughput, or peak are not known.
std::optional<double> recounted_mfu(const PublishedResult& result, const Model& model) {
  if (!result.seq_len || result.training != "full") return std::nullopt;
  auto peaks = peaks_of_device(result.device);
  const auto rate = tokens_per_second(result, model);
  if (!peaks || !rate) return std::nullopt;
  EstimateRequest request = request_of(result, "model-v1");
  request.peaks = std::move(peaks);
  request.tokens_per_second = rate;
  auto counted = estimate(model, request);
  return counted ? counted->rates.mfu : std::nullopt;
}

/// MFU as in the source: printed, or its model TFLOP/s divided by the peak.
std::optional<double> reported_mfu(const PublishedResult& result) {
  if (result.check == "excluded" || result.training == "forward") return std::nullopt;
  if (result.mfu) return result.mfu;
  if (!result.tflops_per_device || result.hardware_flops) return std::nullopt;
  const auto peaks = peaks_of_device(result.device);
  if (!peaks || !peaks->peak(result.dtype)) return std::nullopt;
  return *result.tflops_per_device * 1e12 / peaks->peak(result.dtype)->value;
}

/// A query with the peak of its device.
struct Wanted {
  const PublishedQuery& query;
  std::optional<PeakTable> peaks = peaks_of_device(query.device);

  [[nodiscard]] bool has_device(const PublishedResult& result) const {
    if (query.device.empty() || result.device == query.device) return true;
    const auto other = peaks_of_device(result.device);
    const Dtype dtype = result.dtype;
    if (!peaks || !other || !peaks->peak(dtype) || !other->peak(dtype)) return false;
    const double ours = peaks->peak(dtype)->value;
    return std::abs(other->peak(dtype)->value - ours) <= similar_peak * ours;
  }
  [[nodiscard]] bool has_size(WideInt parameters) const {
    const auto size = static_cast<double>(parameters);
    const auto own = static_cast<double>(query.active_parameters);
    return size <= similar_size * own && size * similar_size >= own;
  }
};

/// 8.03e9 as "8", 0.124e9 as "0.12", 2e6 as "less than 0.01": billions.
std::string billions(WideInt parameters) {
  const double value = static_cast<double>(parameters) / 1e9;
  if (value < 0.01) return "less than 0.01";
  return fixed(value, value < 1 ? 2 : value < 3 ? 1 : 0);
}

std::string span_text(const std::string& low, const std::string& high) {
  return low == high ? low : low + "–" + high;
}

std::string device_text(const std::string& name) {
  const auto device = find_device(name);
  return device ? (*device)->name : printable(name);
}

std::string comparison_text(const PublishedQuery& query, const PublishedComparison& comparison) {
  const auto& results = comparison.results;
  std::string what{to_string(query.kind)};
  if (query.lora) what += " LoRA";
  if (!query.device.empty()) what += ", " + device_text(query.device);
  if (query.dtype) what += ", " + std::string{to_string(*query.dtype)};
  if (results.empty())
    return "no published result for " + billions(query.active_parameters) + "B " + what;
  const auto [least, most] =
      std::minmax_element(results.begin(), results.end(), [](const auto& a, const auto& b) {
        return a.active_parameters < b.active_parameters;
      });
  return "published for " +
         span_text(billions(least->active_parameters), billions(most->active_parameters)) + "B " +
         what + ": " +
         span_text(fixed(100 * *comparison.low(), 0), fixed(100 * *comparison.high(), 0)) + " %, " +
         std::to_string(results.size()) + (results.size() == 1 ? " result" : " results");
}

}  // namespace

Result<std::vector<PublishedResult>> parse_published_results(std::string_view text) {
  std::vector<PublishedResult> rows;
  CsvFields header;
  std::size_t line = 0;
  while (const auto row = next_csv_line(text, line)) {
    const auto cells = split_csv(*row);
    if (!cells) return at_line(line, "a quote is not closed");
    if (header.empty()) {
      header = *cells;
      continue;
    }
    if (cells->size() != header.size())
      return at_line(line,
                     std::to_string(cells->size()) + " fields where the header has " +
                         std::to_string(header.size()));
    PublishedResult result;
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (!store(result, header[i], (*cells)[i]))
        return at_line(line, header[i] + " '" + printable((*cells)[i]) + "' is not valid");
    }
    rows.push_back(std::move(result));
  }
  return rows;
}

std::span<const PublishedResult> published_results() {
  static const std::vector<PublishedResult> table = [] {
    auto read = parse_published_results(published_results_csv());
    assert(read && "src/catalog/published_results.csv is read by the tests");
    return read ? *std::move(read) : std::vector<PublishedResult>{};
  }();
  return table;
}

Result<Model> published_model(const PublishedResult& result) {
  if (result.layers == 0) return find_model(result.model);
  // Learned positions, biases, and a tied head, as in Megatron and llm-foundry.
  std::string text;
  JsonWriter{text}
      .begin_object()
      .field("model_type", "gpt2")
      .field("n_layer", result.layers)
      .field("n_embd", result.hidden)
      .field("n_head", result.heads)
      .field("vocab_size", result.vocab)
      .field("n_positions", result.seq_len.value_or(2048))
      .end_object();
  const auto config = Config::parse(text, result.model);
  if (!config) return config.error();
  auto model = build_model(*config);
  if (model) model->name = result.model;
  return model;
}

std::string_view to_string(ModelKind kind) {
  static constexpr auto names =
      std::to_array<std::string_view>({"dense", "MoE", "multimodal", "recurrent"});
  return names[static_cast<std::size_t>(kind)];
}

ModelKind kind_of(const Model& model) {
  if (model.facts.multimodal) return ModelKind::multimodal;
  if (model.facts.experts > 0) return ModelKind::moe;
  return model.facts.scan_layers > 0 ? ModelKind::recurrent : ModelKind::dense;
}

ComparableResult recount_published(const PublishedResult& result, const Result<Model>& model) {
  ComparableResult comparable{.result = &result};
  if (model) {
    comparable.kind = kind_of(*model);
    comparable.active_parameters = count_parameters(*model).active;
    comparable.mfu = recounted_mfu(result, *model);
    comparable.recounted = comparable.mfu.has_value();
  } else {
    comparable.active_parameters = result.parameters.value_or(0);
  }
  if (!comparable.mfu && comparable.active_parameters > 0) comparable.mfu = reported_mfu(result);
  return comparable;
}

PublishedQuery published_query(const Model& model, bool lora) {
  return {
      .kind = kind_of(model), .active_parameters = count_parameters(model).active, .lora = lora};
}

std::optional<double> PublishedComparison::low() const {
  return results.empty() ? std::nullopt : results.back().mfu;
}

std::optional<double> PublishedComparison::high() const {
  return results.empty() ? std::nullopt : results.front().mfu;
}

std::vector<std::string_view> PublishedComparison::links() const {
  std::vector<std::string_view> links;
  for (const ComparableResult& each : results) {
    const std::string_view url = each.result->url;
    if (!url.empty() && std::find(links.begin(), links.end(), url) == links.end())
      links.push_back(url);
  }
  return links;
}

PublishedComparison compare_published(const PublishedQuery& query) {
  PublishedComparison comparison;
  const Wanted wanted{query};
  std::map<std::string, Result<Model>> models;  // a search by name reads many configurations
  for (const PublishedResult& result : published_results()) {
    if ((query.dtype && *query.dtype != result.dtype) ||
        query.lora != (result.training == "lora") || !wanted.has_device(result))
      continue;
    const std::string& name = result.layers > 0 ? result.id : result.model;
    auto model = models.find(name);
    if (model == models.end()) model = models.emplace(name, published_model(result)).first;
    const ComparableResult each = recount_published(result, model->second);
    if (each.mfu && each.kind == query.kind && wanted.has_size(each.active_parameters))
      comparison.results.push_back(each);
  }
  std::stable_sort(comparison.results.begin(),
                   comparison.results.end(),
                   [](const auto& a, const auto& b) { return *a.mfu > *b.mfu; });
  comparison.text = comparison_text(query, comparison);
  return comparison;
}

void write_json(JsonWriter& json, const PublishedComparison& comparison) {
  json.begin_object()
      .field("text", comparison.text)
      .field("mfu_low", comparison.low())
      .field("mfu_high", comparison.high())
      .field("results", comparison.results.size());
  json.key("links").begin_array();
  for (const std::string_view link : comparison.links()) json.value(link);
  json.end_array().end_object();
}

}  // namespace flopmeter
