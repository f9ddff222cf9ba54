// SPDX-License-Identifier: Apache-2.0
//
// OpProfile: the operators of one profiled step with their own times.  Adapters create it, the
// monitor stores it, and the analysis reads it.
#pragma once

#include <flopmeter/core/phase.h>
#include <flopmeter/core/step_timeline.h>
#include <flopmeter/core/units.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Kind of work of an operator.
enum class OpKind : std::uint8_t {
  compute,  ///< has a FLOP cost and a rule
  memory,   ///< has no FLOP cost: moves data
  tiny,     ///< such calls that were shorter than their launch
  unknown,  ///< from a library whose operators have no rule: may have FLOPs that are not counted
  communication,  ///< a collective, as far as the device waited for it
};
inline constexpr std::size_t op_kind_count = 5;
std::string_view to_string(OpKind kind);
std::optional<OpKind> parse_op_kind(std::string_view text);

struct OpProfileRow {
  std::string name;
  OpKind kind = OpKind::memory;
  std::uint64_t calls = 0;
  Seconds self;  ///< without the operators it called
  std::int64_t elements =
      0;                  ///< of its largest argument, to the power of two below; 0 without tensors
  bool backward = false;  ///< inside an autograd node
  Phase phase = Phase::other;   ///< what the training loop was doing
  bool recompute = false;       ///< in backward, but repeats the forward pass
  bool across_devices = false;  ///< has arguments on host and device: a copy between them
  /// Of a compute operator's tensors: "[512,256] [256,1024]"; in device times also the largest
  /// tensor of any other.
  std::string shape;
  std::uint64_t flops = 0;  ///< executed, of all calls; compute operators only
  std::uint64_t bytes = 0;  ///< least memory traffic of all calls; compute operators only
};

/// Time of the training thread and of autograd nodes without an operator: Python, autograd, and the
/// dispatcher between two operators.
struct IdleSpan {
  Phase phase = Phase::other;  ///< of the operator after it
  bool recompute = false;      ///< before an operator that recomputes
  bool stall = false;          ///< longer than dispatching the next operator takes
  std::uint64_t count = 0;
  Seconds time;
};

/// One profile; rows by name, kind, size, pass and phase, longest self time first.
struct OpProfile {
  std::int64_t step = 0;  ///< of the record that was profiled
  double time_unix = 0;   ///< end of that step
  std::vector<OpProfileRow> rows;
  std::vector<IdleSpan> idle;
  StepTimeline timeline;  ///< longest outermost operators; of a run only its newest profile has one
  std::uint64_t calls = 0;
  Seconds wall;               ///< from start to stop
  Seconds busy;               ///< self time of all operators, summed over threads
  bool on_device = false;     ///< work was queued on a device: operators' times are the host's
  bool device_times = false;  ///< operators' times are the device's, by events
};

}  // namespace flopmeter
