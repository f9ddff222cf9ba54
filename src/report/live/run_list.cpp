// SPDX-License-Identifier: Apache-2.0
#include "run_list.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

namespace flopmeter {
namespace {

constexpr int deepest = 8;  ///< folders below a root
constexpr std::size_t most_folders = 20'000;
constexpr std::size_t most_buckets = 512;      ///< of a curve: as many as a screen shows
constexpr std::int64_t slice_bytes = 2 << 20;  ///< read at a time, while views wait
constexpr double longest_interval = 30;        ///< seconds between two looks at an old run
constexpr std::size_t sparkline_points = 40;

double now_unix() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string id_of(const std::string& path) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : path) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  std::string id;
  for (int i = 60; i >= 0; i -= 4) id.push_back("0123456789abcdef"[(hash >> i) & 15U]);
  return id;
}

std::optional<std::string> known(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional{text};
}

/// The mean of a curve in at most `sparkline_points` parts.
void write_sparkline(JsonWriter& json, const Timeline& timeline) {
  const auto& curves = timeline.curves();
  const auto measured = [&](std::size_t i) {
    return std::any_of(timeline.buckets().begin(), timeline.buckets().end(), [i](const auto& each) {
      return each.second.spreads[i].count > 0;
    });
  };
  std::size_t curve = 0;  // MFU, else the first that has values
  while (curve + 1 < curves.size() && !measured(curve)) ++curve;
  const std::size_t each = (timeline.buckets().size() + sparkline_points - 1) / sparkline_points;
  json.field("sparkline_field", full_name(*curves[curve])).key("sparkline").begin_array();
  ValueSpread part;
  std::size_t n = 0;
  for (const auto& [index, bucket] : timeline.buckets()) {
    part.add(bucket.spreads[curve]);
    if (++n % each != 0 && n != timeline.buckets().size()) continue;
    const auto mean = part.mean();
    mean ? void(json.raw(shortest(static_cast<double>(static_cast<float>(*mean)))))
         : void(json.null());
    part = {};
  }
  json.end_array();
}

/// Whether the run did all steps that it planned.
bool has_ended(const RunIndex& index) {
  const auto planned = index.run().metadata.total_steps;
  const auto& buckets = index.overview().timeline.buckets();
  return planned && !buckets.empty() && buckets.rbegin()->second.last_step >= *planned;
}

}  // namespace

std::string_view to_string(RunState state) {
  constexpr std::array<std::string_view, 4> names = {"reading", "live", "stalled", "done"};
  return names[static_cast<std::size_t>(state)];
}

RunList::RunList(std::vector<std::string> roots) : roots_(std::move(roots)) {
  thread_ = std::thread{[this] { follow(); }};
}

RunList::~RunList() {
  {
    const std::lock_guard lock{mutex_};
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RunList::follow() {
  double scan_at = 0;
  while (true) {
    const double begin = now_unix();
    if (begin >= scan_at) {
      scan();
      // Looking takes at most a hundredth of the time.
      scan_at = now_unix() + std::clamp(100 * (now_unix() - begin), 2.0, 600.0);
    }
    std::vector<ListedRun*> runs;  // only this thread removes runs
    {
      const std::lock_guard lock{mutex_};
      for (const auto& [path, run] : runs_) runs.push_back(run.get());
    }
    for (ListedRun* run : runs) {
      if (run->due > now_unix()) continue;
      for (bool more = true; more;) {  // one after the other: a run that is read takes most memory
        {
          const std::lock_guard lock{mutex_};
          if (stop_) return;
          more = advance(*run, now_unix());
        }
        // A mutex is not fair: lets those that wait for it have it.
        if (more) std::this_thread::sleep_for(std::chrono::microseconds{200});
      }
    }
    std::unique_lock lock{mutex_};
    if (wake_.wait_for(lock, std::chrono::milliseconds{500}, [this] { return stop_; })) return;
  }
}

/// Reads a slice of what is new; true if there is more.
bool RunList::advance(ListedRun& run, double now) {
  const auto read = run.index.advance(slice_bytes);
  run.problem = read ? "" : read.error().message;
  if (read && *read) return true;
  const std::size_t ranks = run.index.overview().ranks.size();
  if (run.index.version() != run.version) run.last_unix = run.index.last_unix();
  const double age = now - run.last_unix;
  const bool written = age < 7 * 86400.0 && run.index.written();
  const bool fresh = age < std::max(60.0, 10 * run.index.step_seconds());
  const bool may_go_on = !run.was_written && !has_ended(run.index);
  const RunState state = fresh && (written || may_go_on) ? RunState::live
                         : written                       ? RunState::stalled
                                                         : RunState::done;
  run.was_written = run.was_written || written;
  if (state == RunState::done) run.index.settle();
  if (state != run.state || run.index.version() != run.version || run.summary.empty()) {
    run.state = state;
    run.version = run.index.version();
    run.change = ++change_;
    summarize(run, now);
  }
  const double interval = std::max(age / 60, 1e-3 * static_cast<double>(ranks));
  run.due = now + std::clamp(interval, 0.5, longest_interval);
  return false;
}

void RunList::summarize(ListedRun& run, double now) {
  const RunOverview& overview = run.index.overview();
  const RunMetadata& about = run.index.run().metadata;
  const StepTotals all = overview.all();
  const bool any = all.steps > 0;
  run.summary.clear();
  JsonWriter json{run.summary};
  json.begin_object()
      .field("id", run.id)
      .field("name", valid_utf8(run.name))
      .field("state", to_string(run.state))
      .field("problem", known(run.problem))
      .field("model", known(about.model))
      .field("device", known(about.peaks.device))
      .field("ranks", overview.ranks.size())
      .field("world_size", about.world_size)
      .field("silent_ranks", overview.silent_ranks().size())
      .field("mfu", all.mfu())
      .field("tokens_per_second", all.tokens_per_second())
      .field("samples_per_second", all.samples_per_second())
      .field("step_seconds", all.step_seconds())
      .field("step", any ? std::optional{all.last_step} : std::nullopt)
      .field("total_steps", about.total_steps)
      .field("remaining_seconds", all.remaining(about.total_steps))
      .field("last_unix", any ? std::optional{all.last_unix} : std::nullopt)
      .field("looked_unix", now);
  write_sparkline(json, overview.timeline);
  json.end_object();
}

void RunList::list(const std::string& path, Folder& folder) const {
  DIR* stream = opendir(path.c_str());
  if (stream == nullptr) return;
  folder.folders.clear();
  folder.is_run = false;
  while (const dirent* entry = readdir(stream)) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (name.starts_with('.') || name == "node_modules" || name == "__pycache__") continue;
    struct stat info {};
    const bool unknown = entry->d_type == DT_UNKNOWN;
    if (unknown && lstat((path + "/" + entry->d_name).c_str(), &info) != 0) continue;
    // Links are not followed: "latest" would be a second name of a run.
    if (unknown ? S_ISDIR(info.st_mode) : entry->d_type == DT_DIR) {
      folder.folders.emplace_back(name);
    } else if (name == RunLayout::metadata_name || RunLayout::parse_records(name)) {
      folder.is_run = true;
    }
  }
  closedir(stream);
}

void RunList::scan() {
  std::map<std::string, Folder> found;
  std::map<std::string, std::string> runs;  // path and name
  const double now = now_unix();
  for (const std::string& root : roots_) {
    std::vector<std::pair<std::string, int>> open{{root, 0}};
    while (!open.empty() && found.size() < most_folders) {
      const auto [path, depth] = std::move(open.back());
      open.pop_back();
      struct stat info {};
      if (found.contains(path) || stat(path.c_str(), &info) != 0) continue;
      Folder folder = std::move(folders_[path]);
      const std::int64_t changed = info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
      if (folder.changed != changed) {
        list(path, folder);
        // A later change in the same tick does not change the time.
        folder.changed = now - static_cast<double>(info.st_mtim.tv_sec) > 2 ? changed : -1;
      }
      if (folder.is_run) {
        std::string name = path.substr(std::min(root.size() + 1, path.size()));
        const std::string top = std::filesystem::path{root}.filename().string();
        if (name.empty() || roots_.size() > 1) name = name.empty() ? top : top + "/" + name;
        runs.emplace(path, std::move(name));
      }
      if (depth < deepest) {
        for (const std::string& name : folder.folders)
          open.emplace_back(path == "/" ? path + name : path + "/" + name, depth + 1);
      }
      found.emplace(path, std::move(folder));
    }
  }
  folders_ = std::move(found);
  const std::lock_guard lock{mutex_};
  for (auto run = runs_.begin(); run != runs_.end();) {
    if (runs.erase(run->first) != 0) {
      ++run;
      continue;
    }
    by_id_.erase(run->second->id);
    run = runs_.erase(run);
    ++change_;
  }
  for (auto& [path, name] : runs) {
    auto run = std::make_unique<ListedRun>(ListedRun{
        .id = id_of(path), .name = std::move(name), .index = RunIndex{path, most_buckets}});
    by_id_[run->id] = run.get();
    runs_.emplace(path, std::move(run));
    ++change_;
  }
}

std::string RunList::json() const {
  const std::lock_guard lock{mutex_};
  std::string text;
  JsonWriter json{text};
  json.begin_object().field("schema", "flopmeter.runs/1").field("now_unix", now_unix());
  json.key("runs").begin_array();
  std::size_t reading = 0;
  for (const auto& [path, run] : runs_) {
    if (run->summary.empty()) {
      ++reading;
    } else {
      json.raw(run->summary);
    }
  }
  json.end_array().field("reading", reading).end_object();
  return text;
}

bool RunList::with(std::string_view id, const std::function<void(const ListedRun&)>& use) const {
  const std::lock_guard lock{mutex_};
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return false;
  use(*found->second);
  return true;
}

std::vector<std::string> RunList::changed(std::int64_t& seen) const {
  const std::lock_guard lock{mutex_};
  std::vector<std::string> ids;
  if (seen == change_) return ids;
  for (const auto& [id, run] : by_id_) {
    if (run->change > seen) ids.push_back(id);
  }
  seen = change_;
  return ids;
}

}  // namespace flopmeter
