// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/report/run_follower.h>
#include <flopmeter/runstore/record_stream.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace flopmeter {
namespace {

constexpr std::size_t window_records = 512;
/// Of the history that a view starts with, all ranks together and one of them.
constexpr std::int64_t history_bytes = 32 << 20;
constexpr std::int64_t most_history = 4 << 20;
constexpr std::int64_t least_history = 6 << 10;  // a whole record is sure to be in it

/// Bytes [from, to) of a file; fewer if it has shrunk.
std::string read_part(const std::string& path, std::int64_t from, std::int64_t to) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string text(static_cast<std::size_t>(to - from), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        pread(fd, text.data() + have, text.size() - have, from + static_cast<std::int64_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  close(fd);
  text.resize(have);
  return text;
}

}  // namespace

/// Looks for new streams, if the directory has changed since it was last listed.
Result<bool> RunFollower::list() {
  auto changed = listing_.refresh();
  if (!changed || !*changed) return changed;
  bool news = false;
  const std::vector<RankFile>& files = run().files;
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].rank == files[i - 1].rank) totals_.is_cut = true;  // an earlier start
  }
  for (const RankFile& file : files) {  // of one rank, the newest comes last
    Stream& stream = streams_[file.rank];
    if (stream.path == file.path) continue;
    stream = {.path = file.path};
    news = true;
  }
  return news;
}

Result<bool> RunFollower::refresh() {
  auto changed = list();
  if (!changed) return changed;
  bool news = *changed;
  const std::int64_t history = std::clamp(
      history_bytes / std::max<std::int64_t>(1, static_cast<std::int64_t>(streams_.size())),
      least_history,
      most_history);
  for (auto& [rank, stream] : streams_) {
    struct stat info {};
    if (stat(stream.path.c_str(), &info) != 0 || info.st_size == stream.size) continue;
    if (read(stream, info.st_size, history)) news = true;
  }
  return news;
}

/// Reads the whole lines up to `size`, and of a stream not read before the last `most` bytes only.
bool RunFollower::read(Stream& stream, std::int64_t size, std::int64_t most) {
  const bool fresh = stream.size < 0;
  stream.size = size;
  if (size < stream.offset) stream.offset = 0;  // truncated and written again
  std::int64_t from = stream.offset;
  if (fresh && size > most) {
    from = size - most;
    totals_.is_cut = true;
  }
  const std::string text = read_part(stream.path, from, size);
  std::string_view rest = text;
  if (from > stream.offset) rest.remove_prefix(std::min(rest.find('\n') + 1, rest.size()));
  const std::size_t end = rest.rfind('\n');
  if (end == std::string_view::npos) return false;
  stream.offset = from + static_cast<std::int64_t>(rest.data() - text.data() +
                                                   static_cast<std::ptrdiff_t>(end) + 1);
  rest = rest.substr(0, end + 1);
  while (!rest.empty()) {
    const std::size_t stop = rest.find('\n');
    take(rest.substr(0, stop));
    rest.remove_prefix(stop + 1);
  }
  return true;
}

void RunFollower::take(std::string_view line) {
  const auto record = parse_record(line);
  if (!record) return;
  totals_.add(*record);
  if (record->rank != streams_.begin()->first) return;
  window_.push_back(*record);
  if (window_.size() > window_records) window_.pop_front();
}

}  // namespace flopmeter
