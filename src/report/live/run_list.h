// SPDX-License-Identifier: Apache-2.0
//
// RunList: the runs below some directories.  One thread looks for new runs and follows those that
// grow; runs that have not changed for long are looked at less often.
#pragma once

#include "../src/run_index.h"

#include <flopmeter/core/json_writer.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace flopmeter {

enum class RunState : std::uint8_t {
  reading,  ///< not all of it is read yet
  live,
  stalled,  ///< its process exists, but it has not written a record for long
  done,
};
std::string_view to_string(RunState state);

struct ListedRun {
  std::string id;    ///< depends on the path only, so that a link to the run stays valid
  std::string name;  ///< path below the root
  RunIndex index;
  RunState state = RunState::reading;
  std::string problem{};      ///< why it cannot be read; empty: it can
  std::string summary{};      ///< JSON, as written to the list
  std::int64_t change = 0;    ///< number of the last change of any run when this one changed
  std::int64_t version = -1;  ///< of the index when the summary was written
  bool was_written = false;   ///< a process has been seen that writes it
  double last_unix = 0;       ///< end of the newest step
  double due = 0;             ///< when to look for changes again
};

/// Thread-safe.
class RunList {
 public:
  explicit RunList(std::vector<std::string> roots);
  RunList(const RunList&) = delete;
  RunList& operator=(const RunList&) = delete;
  RunList(RunList&&) = delete;
  RunList& operator=(RunList&&) = delete;
  ~RunList();

  /// The object with all runs.
  [[nodiscard]] std::string json() const;
  /// Calls `use` with the run, while nothing changes it; false if there is none.
  bool with(std::string_view id, const std::function<void(const ListedRun&)>& use) const;
  /// Ids of the runs that changed after change number `seen`, which becomes the newest one.
  std::vector<std::string> changed(std::int64_t& seen) const;

 private:
  struct Folder {
    std::int64_t changed = -1;  ///< modification time when it was listed, ns; -1: list it again
    std::vector<std::string> folders;
    bool is_run = false;
  };

  void follow();
  void scan();
  void list(const std::string& path, Folder& folder) const;
  bool advance(ListedRun& run, double now);
  void summarize(ListedRun& run, double now);

  std::vector<std::string> roots_;
  std::map<std::string, Folder> folders_;                   ///< used by the thread only
  mutable std::mutex mutex_;                                ///< of everything below
  std::map<std::string, std::unique_ptr<ListedRun>> runs_;  ///< by path
  std::map<std::string, ListedRun*, std::less<>> by_id_;
  std::int64_t change_ = 0;
  bool stop_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace flopmeter
