// SPDX-License-Identifier: Apache-2.0
#include "json_input.h"

#include <flopmeter/core/files.h>
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/runstore/run_metadata_json.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace flopmeter {
namespace {

std::optional<std::string_view> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>{text};
}

void write_device(JsonWriter& json, const PeakTable& peaks) {
  json.begin_object().field("name", peaks.device).field("source", peaks.source);
  json.key("peak_flops_per_second").begin_object();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (peaks.peaks[i]) json.field(to_string(static_cast<Dtype>(i)), *peaks.peaks[i]);
  }
  json.end_object().field("memory_bytes_per_second", peaks.memory_bytes_per_second);
  json.key("shape_rates").begin_array();
  for (const ShapeRate& shape : peaks.shapes) {
    json.begin_object()
        .field("dtype", to_string(shape.dtype))
        .field("rows", shape.rows)
        .field("width", shape.width)
        .field("flops_per_second", shape.rate)
        .end_object();
  }
  json.end_array().end_object();
}

PeakTable read_device(const JsonElement& device) {
  PeakTable peaks;
  peaks.device = json_text(device, "name");
  peaks.source = json_text(device, "source");
  peaks.memory_bytes_per_second = json_positive(device, "memory_bytes_per_second");
  if (const auto rates = json_get<JsonElement>(device, "peak_flops_per_second")) {
    for (std::size_t i = 0; i < dtype_count; ++i) {
      const auto dtype = static_cast<Dtype>(i);
      if (const auto rate = json_positive(*rates, to_string(dtype))) peaks.set(dtype, {*rate});
    }
  }
  if (const auto shapes = json_get<simdjson::dom::array>(device, "shape_rates")) {
    for (const JsonElement shape : *shapes) {
      if (peaks.shapes.size() == InputLimits::shape_rates) break;
      const auto dtype = parse_dtype(json_text(shape, "dtype"));
      const auto rows = json_count(shape, "rows");
      const auto width = json_count(shape, "width");
      const auto rate = json_positive(shape, "flops_per_second");
      if (dtype && rows && width && rate) peaks.shapes.push_back({*dtype, *rows, *width, {*rate}});
    }
  }
  return peaks;
}

ModelSource read_source(const JsonElement& json) {
  ModelSource source;
  source.name = json_text(json, "name");
  if (const auto config = json_get<simdjson::dom::object>(json, "config"))
    source.config = simdjson::minify(*config);
  source.family = json_text(json, "family");
  source.trainable = json_text(json, "trainable");
  source.recompute = json_text(json, "recompute");
  source.attention = json_text(json, "attention");
  source.mtp = json_get<bool>(json, "mtp");
  source.dtype = parse_dtype(json_text(json, "dtype"));
  source.parameters = json_get<std::int64_t>(json, "parameters");
  return source;
}

}  // namespace

void write_json(JsonWriter& json, const ModelSource& source) {
  json.begin_object().field("name", known(source.name));
  json.key("config");
  JsonInput input;  // text that is not JSON would damage the file
  input.object(source.config) ? json.raw(source.config) : json.null();
  json.field("family", known(source.family))
      .field("parameters", source.parameters)
      .field("trainable", known(source.trainable))
      .field("recompute", known(source.recompute))
      .field("attention", known(source.attention))
      .field("mtp", source.mtp)
      .field("dtype", source.dtype ? std::optional{to_string(*source.dtype)} : std::nullopt)
      .end_object();
}

std::string to_json(const RunMetadata& run) {
  std::string text;
  JsonWriter json{text, 2};
  json.begin_object()
      .field("schema", run_schema)
      .field("run_id", run.run_id)
      .field("stamp", run.stamp)
      .field("model", known(run.model))
      .field("convention", run.convention)
      .field("mode", run.mode);
  json.key("device");
  write_device(json, run.peaks);
  json.key("world").begin_object();
  json.field("size", run.world_size)
      .field("data_parallel", run.data_parallel)
      .field("tensor_parallel", run.tensor_parallel)
      .field("pipeline_parallel", run.pipeline_parallel)
      .field("pipeline_stride", run.pipeline_stride)
      .field("context_parallel", run.context_parallel)
      .field("expert_parallel", run.expert_parallel)
      .field("devices_per_rank", run.devices_per_rank)
      .end_object();
  json.field("processors", run.processors)
      .field("log_interval", run.log_interval)
      .field("total_steps", run.total_steps);
  json.key("model_source");
  write_json(json, run.model_source);
  json.end_object();
  text.push_back('\n');
  return text;
}

Result<RunMetadata> parse_run_metadata(std::string_view text) {
  JsonInput input;
  const std::string valid = valid_utf8(text);
  const auto json = input.object(valid);
  if (!json) return Error{ErrorCode::parse_error, "run.json is damaged"};
  if (const std::string schema = json_text(*json, "schema"); schema != run_schema) {
    return Error{ErrorCode::unsupported,
                 "another version of flopmeter wrote this run (" +
                     (schema.empty() ? "no schema" : printable(schema)) + "; this version reads " +
                     std::string{run_schema} + ")"};
  }
  RunMetadata run;
  run.run_id = json_text(*json, "run_id");
  run.stamp = json_text(*json, "stamp");
  run.model = json_text(*json, "model");
  run.convention = json_text(*json, "convention");
  run.mode = json_text(*json, "mode");
  if (const auto device = json_get<JsonElement>(*json, "device")) run.peaks = read_device(*device);
  if (const auto world = json_get<JsonElement>(*json, "world")) {
    run.world_size = json_count(*world, "size");
    run.data_parallel = json_count(*world, "data_parallel");
    run.tensor_parallel = json_count(*world, "tensor_parallel");
    run.pipeline_parallel = json_count(*world, "pipeline_parallel");
    run.pipeline_stride = json_count(*world, "pipeline_stride");
    run.context_parallel = json_count(*world, "context_parallel");
    run.expert_parallel = json_count(*world, "expert_parallel");
    run.devices_per_rank = json_count(*world, "devices_per_rank");
  }
  run.processors = json_count(*json, "processors");
  run.log_interval = json_count(*json, "log_interval");
  run.total_steps = json_get<std::int64_t>(*json, "total_steps");
  if (const auto source = json_get<JsonElement>(*json, "model_source"))
    run.model_source = read_source(*source);
  return run;
}

Result<RunMetadata> read_run_metadata(const std::string& directory) {
  const auto text = read_file(RunLayout::metadata_in(directory), InputLimits::metadata_bytes);
  if (!text) return text.error();
  return parse_run_metadata(*text);
}

Result<void> write_run_metadata(const std::string& directory,
                                const RunMetadata& run,
                                bool only_new) {
  const std::string text = to_json(run);
  const std::string path = RunLayout::metadata_in(directory);
  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  unlink(temporary.c_str());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  int code = errno;
  if (fd >= 0) close(fd);
  if (good) {
    // link() keeps an existing file.
    good = only_new ? link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST
                    : rename(temporary.c_str(), path.c_str()) == 0;
    code = errno;
  }
  unlink(temporary.c_str());
  if (good) return {};
  std::array<char, 128> buffer{};
  return Error{ErrorCode::io_error,
               "cannot write " + path + ": " + strerror_r(code, buffer.data(), buffer.size())};
}

}  // namespace flopmeter
