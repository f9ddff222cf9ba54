// SPDX-License-Identifier: Apache-2.0
#include "run_index.h"

#include <flopmeter/analysis/run_evidence.h>
#include <flopmeter/runstore/profile_stream.h>
#include <flopmeter/runstore/record_stream.h>
#include <flopmeter/runstore/run_start.h>

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::int64_t bytes_a_record = 1200;
constexpr std::int64_t place_bytes = 1 << 20;  ///< between two places where reading can begin

/// A twentieth of the run, within what an evaluation can use.
std::size_t steps_per_evaluation(std::int64_t bytes) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes / bytes_a_record / 20, 20, 512));
}

}  // namespace

RunIndex::RunIndex(std::string directory, std::size_t most_buckets)
    : listing_(std::move(directory)),
      most_buckets_(most_buckets),
      overview_(most_buckets),
      comparison_(run().metadata) {}

/// Forgets what was read.
void RunIndex::restart() {
  const std::int64_t version = version_;
  *this = RunIndex{listing_.directory(), most_buckets_};
  version_ = version + 1;
}

/// Looks for new streams, if the directory has changed since it was last listed.
Result<void> RunIndex::list() {
  const bool first = streams_.empty();
  const auto changed = listing_.refresh();
  if (!changed) return changed.error();
  if (!*changed) return {};
  std::map<std::string, Stream> known;
  for (Stream& stream : streams_) known.emplace(stream.file.path, std::move(stream));
  streams_.clear();
  for (const RankFile& file : run().files) {
    const auto found = known.find(file.path);
    streams_.push_back(found == known.end() ? Stream{.file = file} : std::move(found->second));
    if (found == known.end()) ++version_;
  }
  next_ = 0;
  if (!first || streams_.empty()) return {};
  comparison_ = RankComparison{run().metadata};
  // Steps that a later start repeated; a start without a record is checked once it has one.
  for (std::size_t i = streams_.size(); i-- > 1;) {
    if (streams_[i].file.rank != streams_[i - 1].file.rank) continue;
    const auto record = RecordReader{streams_[i].file.path}.next();
    streams_[i - 1].repeated_from =
        std::min(streams_[i].repeated_from,
                 record ? record->step : std::numeric_limits<std::int64_t>::max());
  }
  Evidence about;
  about.peaks = run().metadata.peaks;
  about.processors = run().metadata.processors;
  about.pipeline_stages = run().metadata.pipeline_parallel;
  about.rank = streams_.front().file.rank;
  struct stat size {};
  stat(streams_.front().file.path.c_str(), &size);
  marks_.emplace(std::move(about), steps_per_evaluation(size.st_size));
  return {};
}

/// Whether a start repeats steps of an earlier one that were read as if they were not.
bool RunIndex::begins_again(const Stream& stream) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& other) {
    return other.file.rank == stream.file.rank && other.file.stamp < stream.file.stamp &&
           other.last_step >= *stream.first_step && other.repeated_from > *stream.first_step;
  });
}

bool RunIndex::read(Stream& stream, std::int64_t& most) {
  struct stat info {};
  if (stat(stream.file.path.c_str(), &info) != 0 || info.st_size == stream.offset) return true;
  if (stream.offset > 0 && (info.st_ino != stream.inode || info.st_size < stream.offset))
    return false;
  if (stream.given_up) return true;
  stream.inode = info.st_ino;
  const bool first_rank = stream.file.rank == streams_.front().file.rank;
  if (first_rank && !std::exchange(profiled_, true))
    marks_->set_profiles(read_profiles(run(), stream.file.rank));
  const std::int64_t begin = stream.offset;
  RecordReader reader{stream.file.path, stream.offset};
  while (reader.offset() - begin < most) {
    const auto record = reader.next();
    if (!record) break;
    ++version_;
    if (!stream.first_step) {
      stream.first_step = record->step;
      if (begins_again(stream)) return false;
    }
    if (record->step >= stream.repeated_from) continue;
    if (reader.offset() - (stream.places.empty() ? 0 : stream.places.back().second) > place_bytes)
      stream.places.emplace_back(std::max(stream.last_step, record->step), reader.offset());
    stream.last_step = std::max(stream.last_step, record->step);
    overview_.add(*record);
    rank_map_.add(*record);
    comparison_.add(*record);
    if (first_rank) marks_->add(*record);
  }
  damaged_ += reader.damaged_lines();
  most -= reader.offset() - begin;
  stream.offset = reader.offset();
  stream.given_up = reader.gave_up();
  return true;
}

Result<bool> RunIndex::advance(std::int64_t most) {
  if (next_ == 0) {
    if (const auto listed = list(); !listed) return listed.error();
  }
  while (next_ < streams_.size()) {
    if (most <= 0) return true;
    if (!read(streams_[next_], most)) {
      restart();
      return true;
    }
    if (most > 0) ++next_;
  }
  next_ = 0;
  if (std::exchange(profiled_, false)) marks_->set_profiles({});  // frees their memory
  return false;
}

bool RunIndex::read_steps(std::int64_t first,
                          std::int64_t last,
                          std::int64_t most,
                          const std::function<void(const StepRecord&)>& use) const {
  struct Part {
    const Stream* stream;
    std::int64_t begin;
    std::int64_t end;
  };
  std::vector<Part> parts;
  for (const Stream& stream : streams_) {
    if (!stream.first_step || *stream.first_step > last || stream.last_step < first) continue;
    Part part{&stream, 0, stream.offset};
    for (const auto& [step, offset] : stream.places) {
      if (step < first) part.begin = offset;
      if (step > last) {
        part.end = offset;
        break;
      }
    }
    most -= part.end - part.begin;
    if (most < 0) return false;
    parts.push_back(part);
  }
  for (const auto& [stream, begin, end] : parts) {
    RecordReader reader{stream->file.path, begin};
    while (reader.offset() < end) {
      const auto record = reader.next();
      if (!record) break;
      if (record->tag == StepTag::train && record->step >= first && record->step <= last &&
          record->step < stream->repeated_from)
        use(*record);
    }
  }
  return true;
}

std::vector<FindingMark> RunIndex::marks() const {
  if (!marks_) return {};
  FindingMarks marks = *marks_;
  marks.settle();
  return marks.marks();
}

Evidence RunIndex::evidence() const {
  return read_evidence(run(), {.totals = overview_.all(), .ranks = comparison_.figures()});
}

std::vector<RunIndex::Start> RunIndex::starts() const {
  std::map<std::string, std::optional<std::int64_t>> first;
  for (const Stream& stream : streams_) first.try_emplace(stream.file.stamp, stream.first_step);
  std::vector<Start> starts;
  for (const auto& [stamp, step] : first) starts.push_back({stamp, step});
  return starts;
}

double RunIndex::last_unix() const {
  double last = 0;
  for (const auto& [rank, totals] : overview_.ranks) last = std::max(last, totals.steps.last_unix);
  return last;
}

double RunIndex::step_seconds() const {
  if (overview_.ranks.empty()) return 0;
  return overview_.ranks.begin()->second.steps.step_seconds().value_or(Seconds{}).value;
}

void RunIndex::settle() {
  if (marks_) marks_->settle();
}

bool RunIndex::written() const {
  const Stream* newest = nullptr;
  for (const Stream& stream : streams_) {
    if (stream.file.rank != streams_.front().file.rank) break;
    newest = &stream;
  }
  return newest != nullptr && newest->offset > 0 && has_writer(newest->file.path);
}

}  // namespace flopmeter
