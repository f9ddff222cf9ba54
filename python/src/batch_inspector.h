// SPDX-License-Identifier: Apache-2.0
//
// BatchInspector: samples, tokens, and lengths of a batch.  Python inspects a batch once per shape;
// later batches of the same shape are recognized here without running any Python code.
#pragma once

#include "python_monitor.h"

#include <cstdint>
#include <map>
#include <vector>

namespace flopmeter {

class BatchInspector {
 public:
  /// The description of `batch`, valid until the next call; null if nothing is known.  Needs the
  /// GIL.  Never raises, and runs no code of the user's program: only exact types are inspected.
  /// `is_only_source`: nothing else can describe the step's batch.
  const StepInput* describe(pybind11::handle batch,
                            PythonMonitor& monitor,
                            bool is_only_source) noexcept;

  /// The batch that was described last.
  [[nodiscard]] const OwnedBatch& last() const noexcept { return *last_; }

 private:
  using Key = std::vector<std::int64_t>;
  bool add_to_key(PyObject* value, int depth) noexcept;
  bool add_tensor(PyObject* tensor) noexcept;
  const StepInput* inspect(pybind11::handle batch, PythonMonitor& monitor, bool is_only_source);

  static constexpr std::size_t most_shapes = 256;
  PyObject* tensor_type_ = nullptr;  ///< torch.Tensor; torch is never unloaded
  Key key_;
  std::map<Key, OwnedBatch> known_;
  OwnedBatch current_;
  const OwnedBatch* last_ = &current_;
  StepInput view_;
};

}  // namespace flopmeter
