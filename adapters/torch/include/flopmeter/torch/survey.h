// SPDX-License-Identifier: Apache-2.0
//
// Survey: everything that ran, for a step now and then.  Counting sees only operators that bear
// FLOPs; a survey watches all of them, which costs some tens of percent while it is on and nothing
// when it is off.
#pragma once

#include <flopmeter/core/op_survey.h>

#include <memory>

namespace flopmeter {

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
