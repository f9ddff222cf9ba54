// SPDX-License-Identifier: Apache-2.0
//
// Survey: everything that ran, for a step now and then.  Counting sees only operators that bear
// FLOPs; a survey watches all of them, which costs some tens of percent while it is on and nothing
// when it is off.
#pragma once

#include <flopmeter/core/units.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flopmeter {

/// What an operator's time is worth.
enum class OpKind : std::uint8_t {
  priced,   ///< bears FLOPs and has a rule
  memory,   ///< bears none: moves data
  tiny,     ///< the calls among those that were too short to be worth their launch
  unknown,  ///< from a library whose operators have no rule: may bear FLOPs that nobody counts
};

struct SurveyRow {
  std::string name;
  OpKind kind = OpKind::memory;
  std::uint64_t calls = 0;
  Seconds self;  ///< without the operators it called
  std::int64_t elements =
      0;                  ///< of its largest argument, to the power of two below; 0 without tensors
  bool backward = false;  ///< inside an autograd node
};

/// One survey; rows by name, kind, size and pass, longest self time first.
struct SurveyResult {
  std::vector<SurveyRow> rows;
  std::uint64_t calls = 0;
  Seconds wall;  ///< from start to stop
  Seconds busy;  ///< self time of all operators, summed over threads

  [[nodiscard]] Seconds self_time(OpKind kind) const;
};

/// Watches all operators of all threads between start and stop.  One at a time in a process.
class Survey {
 public:
  /// Starts watching; throws std::logic_error while another survey runs.  An operator shorter than
  /// `tiny` that bears no FLOPs is one that its launch outweighs.
  explicit Survey(Seconds tiny = {10e-6});
  ~Survey();
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;
  Survey(Survey&&) = delete;
  Survey& operator=(Survey&&) = delete;

  /// Ends watching; operators that still run are left out.
  SurveyResult stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopmeter
