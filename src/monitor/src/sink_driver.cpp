// SPDX-License-Identifier: Apache-2.0
#include "sink_driver.h"

#include <flopmeter/core/step_fields.h>

#include <algorithm>
#include <exception>

namespace flopmeter {
namespace {

constexpr std::int64_t first_backoff_ns = 1'000'000'000;
constexpr std::int64_t longest_backoff_ns = 60'000'000'000;
constexpr int most_merged_steps = 100;

}  // namespace

void SinkDriver::failed(Entry& entry, std::int64_t now_ns, std::string_view why) noexcept {
  ++failures_;
  entry.backoff_ns = std::clamp(2 * entry.backoff_ns, first_backoff_ns, longest_backoff_ns);
  entry.not_before_ns = now_ns + entry.backoff_ns;
  if (entry.reported) return;
  try {
    entry.reported = true;
    // One full disk or missing directory is one line, not one for each output.
    if (!reasons_.insert(std::string{why}).second) return;
    report_("output " + entry.name + " failed: " + std::string{why} +
            "; training continues, and the output is retried");
  } catch (...) {  // an allocation failed: it is reported next time
    entry.reported = false;
  }
}

template <class Call>
void SinkDriver::attempt(Entry& entry, std::int64_t now_ns, Call&& call) noexcept {
  if (now_ns < entry.not_before_ns) {
    ++failures_;
    return;
  }
  try {
    if (const Result<void> result = call(*entry.sink); !result) {
      failed(entry, now_ns, result.error().message);
    } else {
      entry.backoff_ns = 0;
    }
  } catch (const std::exception& error) {
    failed(entry, now_ns, error.what());
  } catch (...) {
    failed(entry, now_ns, "unknown exception");
  }
}

void SinkDriver::write(const StepRecord& record, std::int64_t now_ns, bool may_wait) {
  if (may_wait && merged_ && merged_->steps < most_merged_steps && merge(*merged_, record)) return;
  write_merged(now_ns);
  if (may_wait) {
    merged_ = record;
  } else {
    write_now(record, now_ns);
  }
}

void SinkDriver::write_merged(std::int64_t now_ns) noexcept {
  if (merged_) write_now(*merged_, now_ns);
  merged_.reset();
}

void SinkDriver::write_now(const StepRecord& record, std::int64_t now_ns) noexcept {
  for (Entry& entry : entries_)
    attempt(entry, now_ns, [&](Sink& sink) { return sink.write(record); });
}

void SinkDriver::flush(std::int64_t now_ns) noexcept {
  for (Entry& entry : entries_) {
    if (now_ns >= entry.not_before_ns)
      attempt(entry, now_ns, [](Sink& sink) { return sink.flush(); });
  }
}

void SinkDriver::found(const std::vector<Finding>& findings, std::int64_t now_ns) noexcept {
  for (Entry& entry : entries_)
    attempt(entry, now_ns, [&](Sink& sink) { return sink.found(findings); });
}

void SinkDriver::finish(const std::vector<Finding>& findings) noexcept {
  for (Entry& entry : entries_) {
    entry.not_before_ns = 0;
    attempt(entry, 0, [&](Sink& sink) { return sink.finish(findings); });
  }
}

}  // namespace flopmeter
