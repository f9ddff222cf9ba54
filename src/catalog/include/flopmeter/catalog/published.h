// SPDX-License-Identifier: Apache-2.0
//
// Published training results, with sources: the MFU of similar models on the same hardware.  The
// table is src/catalog/published_results.csv, embedded.
#pragma once

#include <flopmeter/core/dtype.h>
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/result.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

struct Model;

/// One row of the table: the numbers of the source.
struct PublishedResult {
  std::string id;
  std::string model;    ///< name in the catalog, unless the sizes below are set
  std::string variant;  ///< "w/o MTP"
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t vocab = 0;
  std::optional<std::int64_t> parameters;
  std::optional<std::int64_t> seq_len;
  std::string device;
  std::optional<std::int64_t> devices;
  Dtype dtype = Dtype::bf16;
  std::string training;         ///< full, lora, or forward
  std::string recompute;        ///< none, selective, or full; empty: not stated
  std::string convention;       ///< of the source; empty: not documented
  bool hardware_flops = false;  ///< TFLOP/s and HFU count executed FLOPs
  std::optional<double> tokens_per_second_per_device;
  std::optional<double> tflops_per_device;
  std::optional<double> mfu;  ///< as reported, 0 to 1
  std::optional<double> hfu;
  std::string check;  ///< "differs", "excluded", or empty; the note states why
  std::string note;
  std::string source;
  std::string url;
};

std::span<const PublishedResult> published_results();

/// Reads a table in the form of src/catalog/published_results.csv; an error names the line.
Result<std::vector<PublishedResult>> parse_published_results(std::string_view text);

/// The model of a result: a GPT of the row's sizes, or a known model.
Result<Model> published_model(const PublishedResult& result);

enum class ModelKind : std::uint8_t { dense, moe, multimodal, recurrent };
std::string_view to_string(ModelKind kind);
ModelKind kind_of(const Model& model);

/// A result in our convention (model-v1, dense peak of the catalog).
struct ComparableResult {
  const PublishedResult* result = nullptr;
  ModelKind kind = ModelKind::dense;
  WideInt active_parameters = 0;
  std::optional<double> mfu;  ///< empty: the source gives too little
  bool recounted = false;     ///< false: MFU is the source's own
};
/// `model` is the published_model().
ComparableResult recount_published(const PublishedResult& result, const Result<Model>& model);

/// Model and hardware of a search for similar results.
struct PublishedQuery {
  ModelKind kind = ModelKind::dense;
  WideInt active_parameters = 0;
  std::string device;          ///< as a driver reports it; empty: every device
  std::optional<Dtype> dtype;  ///< empty: every dtype
  bool lora = false;
};
PublishedQuery published_query(const Model& model, bool lora);

/// Results of the same kind of model with half to twice the active parameters, on a device with the
/// same peak, in the same dtype.
struct PublishedComparison {
  std::vector<ComparableResult> results;  ///< with an MFU, highest first
  std::string text;  ///< "published for 7–8B dense, H100, bf16: 38–54 %, 14 results"

  [[nodiscard]] std::optional<double> low() const;
  [[nodiscard]] std::optional<double> high() const;
  /// Addresses of the sources, each once.
  [[nodiscard]] std::vector<std::string_view> links() const;
};
PublishedComparison compare_published(const PublishedQuery& query);

/// {text, mfu_low, mfu_high, results, links}.
void write_json(JsonWriter& json, const PublishedComparison& comparison);

}  // namespace flopmeter
