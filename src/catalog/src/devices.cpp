// SPDX-License-Identifier: Apache-2.0
#include "csv.h"
#include "device_name.h"

#include <flopmeter/catalog/devices.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace flopmeter {

std::string_view devices_csv();  // embedded by the build

namespace {

Error at_line(std::size_t line, const std::string& what) {
  return {ErrorCode::parse_error, "device table, line " + std::to_string(line) + ": " + what};
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return list;
}

struct Column {
  std::string name;
  std::size_t dtype = dtype_count;  ///< the dtype of a column of rates
  bool achievable = false;          ///< "bf16_matmul": a measured rate, not a peak
};

constexpr std::size_t rated_dtypes = static_cast<std::size_t>(Dtype::other);

Result<std::vector<Column>> read_header(const CsvFields& names, std::size_t line) {
  static constexpr auto known = std::to_array<std::string_view>({"name",
                                                                 "vendor",
                                                                 "unit",
                                                                 "aliases",
                                                                 "sparse",
                                                                 "memory_gb",
                                                                 "bandwidth_gbs",
                                                                 "source",
                                                                 "note"});
  std::vector<Column> columns;
  for (const std::string& name : names) {
    Column column{name};
    for (std::size_t dtype = 0; dtype < rated_dtypes; ++dtype) {
      const std::string rated{to_string(static_cast<Dtype>(dtype))};
      column.achievable |= name == rated + "_matmul";
      if (name == rated || name == rated + "_matmul") column.dtype = dtype;
    }
    if (column.dtype == dtype_count && std::find(known.begin(), known.end(), name) == known.end()) {
      return at_line(line, "unknown column '" + printable(name) + "'" + did_you_mean(name, known));
    }
    const bool twice = std::any_of(
        columns.begin(), columns.end(), [&](const Column& c) { return c.name == name; });
    if (twice) return at_line(line, "column '" + name + "' is there twice");
    columns.push_back(std::move(column));
  }
  for (const auto needed : {"name", "source"}) {
    const bool there = std::any_of(
        columns.begin(), columns.end(), [&](const Column& c) { return c.name == needed; });
    if (!there) return at_line(line, std::string{"column '"} + needed + "' is missing");
  }
  return columns;
}

/// A positive number scaled by `scale`; nothing for an empty cell.
Result<std::optional<double>> read_positive(const std::string& cell,
                                            const std::string& column,
                                            double scale,
                                            std::size_t line) {
  constexpr double largest = 1e9;  // TFLOP/s, GB or GB/s: beyond any device
  if (cell.empty()) return std::optional<double>{};
  const auto value = parse_double(cell);
  if (!value || !(*value > 0) || *value > largest) {
    return at_line(line,
                   column + " '" + printable(cell) +
                       "' is not a positive number; leave the cell empty if the value is unknown");
  }
  return std::optional<double>{*value * scale};
}

Result<void> read_sparse(Device& device, const std::string& cell, std::size_t line) {
  for (const std::string& word : split_list(cell)) {
    const auto dtype = parse_dtype(word);
    const std::size_t index = dtype ? static_cast<std::size_t>(*dtype) : dtype_count;
    if (index >= rated_dtypes || !device.dense[index]) {
      return at_line(
          line, "sparse '" + printable(word) + "' is not a dtype for which this row has a figure");
    }
    device.sparse_doubles[index] = true;
  }
  return {};
}

Result<Device> read_row(const std::vector<Column>& columns,
                        const CsvFields& cells,
                        std::size_t line) {
  if (cells.size() != columns.size()) {
    return at_line(line,
                   std::to_string(cells.size()) + " fields where the header has " +
                       std::to_string(columns.size()));
  }
  Device device;
  device.unit = "device";
  std::string sparse;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& name = columns[i].name;
    const std::string& cell = cells[i];
    if (columns[i].dtype != dtype_count || name == "memory_gb" || name == "bandwidth_gbs") {
      constexpr double gib = 1024.0 * 1024.0 * 1024.0;
      const double scale = name == "memory_gb" ? gib : name == "bandwidth_gbs" ? 1e9 : 1e12;
      const auto value = read_positive(cell, name, scale, line);
      if (!value) return value.error();
      if (!*value) continue;
      if (name == "memory_gb") {
        device.memory = Bytes{static_cast<WideInt>(std::llround(**value))};
      } else if (name == "bandwidth_gbs") {
        device.memory_bytes_per_second = **value;
      } else {
        auto& rates = columns[i].achievable ? device.achievable : device.dense;
        rates[columns[i].dtype] = FlopsPerSecond{**value};
      }
    } else if (name == "name") {
      device.name = cell;
    } else if (name == "vendor") {
      device.vendor = cell;
    } else if (name == "unit" && !cell.empty()) {
      device.unit = cell;
    } else if (name == "aliases") {
      device.aliases = split_list(cell);
    } else if (name == "sparse") {
      sparse = cell;
    } else if (name == "source") {
      device.source = cell;
    } else if (name == "note") {
      device.note = cell;
    }
  }
  if (device.source.empty())
    return at_line(
        line, "'" + printable(device.name) + "' has no source; name where its figures come from");
  if (const auto read = read_sparse(device, sparse, line); !read) return read.error();
  return device;
}

/// Keys of the name and aliases of each row; two rows must not share a key.
class NamesSeen {
 public:
  Result<void> add(const Device& device, std::size_t line) {
    if (auto added = add(device.name, line); !added) return added;
    for (const std::string& alias : device.aliases) {
      if (auto added = add(alias, line); !added) return added;
    }
    return {};
  }

 private:
  Result<void> add(const std::string& name, std::size_t line) {
    DeviceKey key = device_key(name);
    if (key.words.empty()) return at_line(line, "'" + printable(name) + "' is not a device name");
    const std::size_t by_words = words_.emplace(std::move(key.words), line).first->second;
    const std::size_t by_letters = letters_.emplace(std::move(key.letters), line).first->second;
    const std::size_t other = std::min(by_words, by_letters);
    if (other == line) return {};
    return at_line(
        line, "'" + printable(name) + "' is the name of line " + std::to_string(other) + " too");
  }

  std::map<std::vector<std::string>, std::size_t> words_;
  std::map<std::string, std::size_t> letters_;
};

}  // namespace

Result<std::vector<Device>> parse_devices(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<Device> table;
  std::vector<Column> columns;
  NamesSeen names;
  std::size_t line = 0;
  while (const auto row = next_csv_line(text, line)) {
    const auto cells = split_csv(*row);
    if (!cells) return at_line(line, "a quote is not closed");
    if (columns.empty()) {
      auto header = read_header(*cells, line);
      if (!header) return header.error();
      columns = *std::move(header);
      continue;
    }
    auto device = read_row(columns, *cells, line);
    if (!device) return device.error();
    if (const auto added = names.add(*device, line); !added) return added.error();
    table.push_back(*std::move(device));
  }
  if (columns.empty())
    return Error{ErrorCode::parse_error, "device table: no header line (name,bf16,source)"};
  return table;
}

std::span<const Device> devices() {
  static const std::vector<Device> table = [] {
    auto read = parse_devices(devices_csv());
    assert(read && "src/catalog/devices.csv is read by the tests");
    return read ? *std::move(read) : std::vector<Device>{};
  }();
  return table;
}

PeakTable peaks_of(const Device& device, bool sparse) {
  PeakTable table;
  table.device = device.name;
  table.peaks = device.dense;
  table.memory_bytes_per_second = device.memory_bytes_per_second;
  std::string doubled;
  for (std::size_t dtype = 0; sparse && dtype < dtype_count; ++dtype) {
    if (!device.sparse_doubles[dtype]) continue;
    table.peaks[dtype]->value *= 2;
    doubled.append(doubled.empty() ? "" : " ").append(to_string(static_cast<Dtype>(dtype)));
  }
  const std::string form = !sparse ? "dense"
                           : doubled.empty()
                               ? "dense: this device has no 2:4 sparsity"
                               : "2:4 sparse for " + doubled + ", twice the dense rate";
  table.source = "catalog: " + device.source + " [" + form + ", per " + device.unit + "]";
  return table;
}

}  // namespace flopmeter
