// SPDX-License-Identifier: Apache-2.0
//
// Records as CSV (RFC 4180): one column per field, named "name" or "group.name"; unknown values are
// empty.
#include "../src/bounded_file.h"

#include <flopmeter/core/sink.h>
#include <flopmeter/core/step_fields.h>
#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

#include <cmath>

namespace flopmeter {
namespace {

void append_cell(std::string& line, const FieldValue& value) {
  if (const auto* integer = std::get_if<WideInt>(&value)) {
    line.append(to_string(*integer));
  } else if (const auto* number = std::get_if<double>(&value)) {
    if (std::isfinite(*number)) line.append(shortest(*number));
  } else if (const auto* text = std::get_if<std::string_view>(&value)) {
    line.push_back('"');
    for (const char c : printable(*text)) {
      if (c == '"') line.push_back('"');
      line.push_back(c);
    }
    line.push_back('"');
  }
}

std::string header() {
  std::string line;
  for (const Field& field : step_fields()) {
    if (!line.empty()) line.push_back(',');
    line.append(full_name(field));
  }
  return line + "\n";
}

class CsvSink final : public Sink {
 public:
  CsvSink(const RunContext& run, std::string path)
      : file_(run, std::move(path), OutputFile::Name::fresh, header()) {}

  Result<void> write(const StepRecord& record) override {
    if (!file_.keep()) return {};
    line_.clear();
    for (const Field& field : step_fields()) {
      if (!line_.empty()) line_.push_back(',');
      append_cell(line_, field.read(record));
    }
    line_.push_back('\n');
    return file_.append(line_);
  }
  Result<void> flush() override { return file_.touch(); }

 private:
  BoundedFile file_;
  std::string line_;
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  std::string path = target.empty() ? RunLayout{run}.records_csv() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<CsvSink>(run, std::move(path))};
}

}  // namespace

extern constinit const SinkPlugin sink_csv{
    "csv", "every record as a line of comma-separated values", make};

}  // namespace flopmeter
