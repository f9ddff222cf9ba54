// SPDX-License-Identifier: Apache-2.0
#include "trace_argument.h"

#include "progress_line.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

#include <algorithm>
#include <filesystem>

namespace flopmeter {
namespace {

namespace fs = std::filesystem;

struct TraceFile {
  std::string path;
  bool named = true;  ///< by the user, not found in a directory
};

/// A run directory has other JSON files, too.
bool may_be_trace(const fs::path& path, bool in_run) {
  const std::string name = path.filename().string();
  return (name.ends_with(".json") || name.ends_with(".json.gz")) &&
         (!in_run || name.starts_with("trace_"));
}

Result<std::vector<TraceFile>> find_files(const std::vector<std::string>& paths) {
  std::vector<TraceFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back({.path = path});
      continue;
    }
    const std::size_t before = files.size();
    const bool is_run = fs::exists(RunLayout::metadata_in(path), error);
    for (fs::directory_iterator entry{path, error}, end; !error && entry != end;
         entry.increment(error)) {
      if (entry->is_regular_file(error) && may_be_trace(entry->path(), is_run))
        files.push_back({.path = entry->path().string(), .named = false});
    }
    if (files.size() == before) {
      return Error{ErrorCode::not_found,
                   "no trace in " + path +
                       (is_run ? ": record one with `flopmeter run --kineto-step N`"
                               : ": it has no file named *.json or *.json.gz")};
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before),
              files.end(),
              [](const TraceFile& a, const TraceFile& b) { return a.path < b.path; });
  }
  return files;
}

Result<Trace> read_with_progress(const std::string& path) {
  ProgressLine line{fs::path{path}.filename().string()};
  return read_trace(path, {.threads = 0, .progress = [&](double share) { line.show(share); }});
}

/// Traces of several ranks that do not state theirs get it from their names, else from their order.
void complete_ranks(std::vector<DeviceReport>& reports, std::size_t files) {
  if (files < 2) return;
  int next = 0;
  for (DeviceReport& report : reports) {
    const int order = next++;
    if (report.rank) continue;
    report.rank = rank_of_file_name(fs::path{report.file}.filename().string());
    report.notes.emplace_back(report.rank ? "the rank is taken from the file's name"
                                          : "the rank is taken from the order of the files");
    if (!report.rank) report.rank = order;
  }
}

}  // namespace

std::optional<int> rank_of_file_name(std::string_view name) {
  for (const std::string_view word : {"rank", "worker"}) {
    const std::size_t at = name.find(word);
    if (at == std::string_view::npos) continue;
    std::string_view rest = name.substr(at + word.size());
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '_')) rest.remove_prefix(1);
    const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
    constexpr std::size_t most_digits = 7;
    if (!digits.empty() && digits.size() <= most_digits)
      return static_cast<int>(*parse_int(digits));
  }
  return std::nullopt;
}

Result<TraceReport> read_trace_arguments(const std::vector<std::string>& paths,
                                         const TraceReportOptions& options) {
  const auto files = find_files(paths);
  if (!files) return files.error();
  std::vector<DeviceReport> reports;
  std::vector<std::string> unread;
  Error first_error;
  for (const TraceFile& file : *files) {
    Result<Trace> trace = read_with_progress(file.path);
    if (!trace) {
      if (file.named) return trace.error();
      if (unread.empty()) first_error = trace.error();
      unread.push_back(trace.error().message);
      continue;
    }
    for (DeviceReport& report : report_devices(*trace, options))
      reports.push_back(std::move(report));
  }
  if (reports.empty()) return first_error;
  complete_ranks(reports, (*files).size() - unread.size());
  TraceReport report = merge_ranks(std::move(reports));
  for (std::string& message : unread) report.notes.push_back("skipped: " + std::move(message));
  return report;
}

}  // namespace flopmeter
