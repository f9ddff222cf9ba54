// SPDX-License-Identifier: Apache-2.0
//
// Scripted loops for the step tracker: the records that a sequence of events gives.  The clock
// advances by one between two events, so every time is a number of events.
#pragma once

#include "../src/step_tracker.h"
#include "support.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace flopmeter {

using Kind = StepEventKind;

inline constexpr StepInput four_samples{.samples = 4};

/// A tracker whose records are read back from the ring.
class Script {
 public:
  explicit Script(StepPolicy policy, bool has_model = true)
      : recorder_(Options{}, connections(), "model-v1", ring_),
        tracker_(policy, has_model, HandClock::clock(), recorder_) {
    HandClock::reset();
  }

  StepReply on(StepEvent event) {
    HandClock::advance(1);
    return tracker_.on(event);
  }
  StepReply on(Kind kind) { return on(StepEvent{.kind = kind}); }
  void on(std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) on(kind);
  }
  StepTracker& mark() {
    HandClock::advance(1);
    return tracker_;
  }

  StepReply forward_begin(const StepInput& input, bool training = true, bool gradients = true) {
    input_ = input;
    return on({.kind = Kind::forward_begin,
               .training = training,
               .gradients = gradients,
               .describe = describe,
               .context = this});
  }
  void forward_end(BackwardReport backward = BackwardReport::reported,
                   bool training = true,
                   bool gradients = true) {
    on({.kind = Kind::forward_end,
        .training = training,
        .gradients = gradients,
        .backward = backward});
  }
  void forward(const StepInput& input = four_samples) {
    forward_begin(input);
    forward_end();
  }
  void backward() { on({Kind::backward_begin, Kind::backward_end}); }
  StepReply optimizer(bool owned = true) {
    on(Kind::optimizer_begin);
    return on({.kind = Kind::optimizer_end, .owns = owned ? nullptr : disowns});
  }
  StepReply train() {
    forward();
    backward();
    return optimizer();
  }
  void evaluate() {
    forward_begin(four_samples, false, false);
    forward_end(BackwardReport::none, false, false);
  }
  void fetch(std::uintptr_t loader = 0) {
    on({.kind = Kind::fetch_begin, .loader = loader});
    on(Kind::fetch_end);
  }
  /// The wrapped loader hands over a batch.
  void next(const StepInput& input = four_samples) {
    on(Kind::fetch_begin);
    input_ = input;
    on({.kind = Kind::fetch_end, .has_batch = true, .describe = describe, .context = this});
  }
  StepReply begin_loop(StepPolicy policy = StepPolicy::per_optimizer_step, bool gradients = true) {
    return on({.kind = Kind::loop_begin, .gradients = gradients, .policy = policy});
  }
  void resume_loop(std::int64_t step) {
    input_ = {.step = step};
    on({.kind = Kind::loop_begin, .describe = describe, .context = this});
  }
  void begin_batch(const StepInput& input = four_samples) {
    input_ = input;
    on({.kind = Kind::batch_begin, .describe = describe, .context = this});
  }

  std::vector<StepRecord> records() {
    tracker_.finish();
    for (; ring_.front() != nullptr; ring_.pop()) records_.push_back(ring_.front()->record);
    return records_;
  }
  /// Records as "tag step samples/micro-batches", for example "train 1 8/2".
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    for (const StepRecord& record : records()) {
      std::string line{to_string(record.tag)};
      line += ' ' + std::to_string(record.step);
      if (record.samples)
        line += ' ' + std::to_string(*record.samples) + '/' + std::to_string(record.micro_batches);
      lines.push_back(line);
    }
    return lines;
  }
  [[nodiscard]] std::uint64_t misuse() const { return tracker_.misuse(); }

 private:
  static Connections connections() {
    Connections connections;
    connections.clock = HandClock::clock();
    return connections;
  }
  static const StepInput* describe(void* self) { return &static_cast<Script*>(self)->input_; }
  static bool disowns(void* /*context*/) { return false; }

  Ring<Slot> ring_{256};
  StepRecorder recorder_;
  StepTracker tracker_;
  StepInput input_;
  std::vector<StepRecord> records_;
};

inline std::int64_t time_of(const StepRecord& record, Phase phase) {
  const auto time = record.phases[static_cast<std::size_t>(phase)];
  return time ? static_cast<std::int64_t>(time->value * 1e9 + 0.5) : -1;
}

inline std::int64_t time_of(const StepRecord& record) {
  return static_cast<std::int64_t>(record.step_seconds.value * 1e9 + 0.5);
}

using Lines = std::vector<std::string>;

}  // namespace flopmeter
