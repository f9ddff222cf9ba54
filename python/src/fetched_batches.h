// SPDX-License-Identifier: Apache-2.0
//
// FetchedBatches: the real lengths of batches that a loop moves to a device before the model sees
// them.  They are read when the loader hands the batch over, while it is on the host.
#pragma once

#include "batch_inspector.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace flopmeter {

/// A model gets the batches of a loader in their order, some of them later: a loop may fetch
/// several before the first is used.
class FetchedBatches {
 public:
  /// A loader's iterator handed over `batch`.  Needs the GIL and never raises.
  void add(PyObject* iterator, pybind11::handle batch, PythonMonitor& monitor) noexcept {
    if (std::exchange(reading_, true)) {  // two threads fetch: their order is not known
      loaders_.clear();
      return;
    }
    const StepInput* input = inspector_.describe(batch, monitor, false);
    reading_ = false;
    if (input == nullptr || input->sequence_lengths.empty()) return;
    try {
      const auto at = std::find_if(loaders_.begin(), loaders_.end(), [&](const Loader& l) {
        return l.iterator == iterator;
      });
      if (at == loaders_.end()) {
        if (loaders_.size() == most_loaders) loaders_.erase(loaders_.begin());
        loaders_.push_back({iterator, {}});
      } else {
        std::rotate(at, at + 1, loaders_.end());  // the last one is the one in use
      }
      std::deque<OwnedBatch>& batches = loaders_.back().batches;
      if (batches.size() == most_batches) batches.clear();  // no model uses them
      batches.push_back(inspector_.last());
    } catch (...) {
      loaders_.clear();
    }
  }

  /// The model gets the next batch, of which `input` has the shape only.  Returns the lengths
  /// that were read, if they are of a batch of this shape, else `input`.
  const StepInput* next(const StepInput* input) noexcept {
    if (loaders_.empty() || loaders_.back().batches.empty()) return input;
    std::deque<OwnedBatch>& batches = loaders_.back().batches;
    used_ = std::move(batches.front());
    batches.pop_front();
    view_ = used_.view();
    return input != nullptr && has_shape_of(view_, *input) ? &view_ : input;
  }

 private:
  struct Loader {
    const PyObject* iterator;  ///< compared, not used
    std::deque<OwnedBatch> batches;
  };

  /// Whether `known` are the lengths of rows of this size: padded ones, or documents that fill it.
  static bool has_shape_of(const StepInput& known, const StepInput& shape) noexcept {
    const auto& rows = shape.sequence_lengths;
    if (rows.empty() || shape.padded_length != 0) return false;  // read from the batch itself
    const auto size = static_cast<std::int64_t>(rows.size());
    if (known.padded_length != 0)
      return known.padded_length == rows.front() &&
             static_cast<std::int64_t>(known.sequence_lengths.size()) == size;
    std::int64_t tokens = 0;
    for (const std::int64_t length : known.sequence_lengths) tokens += length;
    return tokens == size * rows.front();
  }

  static constexpr std::size_t most_loaders = 8;
  static constexpr std::size_t most_batches = 256;
  BatchInspector inspector_;
  bool reading_ = false;  ///< reading may release the GIL
  std::vector<Loader> loaders_;
  OwnedBatch used_;
  StepInput view_;
};

}  // namespace flopmeter
