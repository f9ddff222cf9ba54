// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <flopmeter/counting/op_profiler.h>

#include <algorithm>
#include <stdexcept>

namespace flopmeter {
namespace {

void add_row(void* context, const FlopmeterProfileRow* row) noexcept try {
  auto& profile = *static_cast<OpProfile*>(context);
  profile.rows.push_back({.name = row->name,
                          .kind = static_cast<OpKind>(row->kind),
                          .calls = row->calls,
                          .self = {row->self_seconds},
                          .elements = row->elements,
                          .backward = row->backward != 0,
                          .phase = static_cast<Phase>(row->phase),
                          .recompute = row->recompute != 0,
                          .across_devices = row->across_devices != 0,
                          .shape = row->shape,
                          .flops = row->flops,
                          .bytes = row->bytes});
  profile.calls += row->calls;
  profile.busy.value += row->self_seconds;
} catch (...) {  // no memory: the row is missing, as if it had not run
}

void add_gap(void* context, const FlopmeterProfileGap* gap) noexcept try {
  static_cast<OpProfile*>(context)->gaps.push_back({.phase = static_cast<Phase>(gap->phase),
                                                    .recompute = gap->recompute != 0,
                                                    .pause = gap->pause != 0,
                                                    .count = gap->count,
                                                    .time = {gap->seconds}});
} catch (...) {  // no memory
}

void set_totals(void* context, double wall_seconds, int on_device, int device_times) noexcept {
  auto& profile = *static_cast<OpProfile*>(context);
  profile.wall = {wall_seconds};
  profile.on_device = on_device != 0;
  profile.device_times = device_times != 0;
}

}  // namespace

OpProfiler::OpProfiler(Seconds tiny, bool device_times) {
  if (require_adapter().begin_profile(tiny.value, device_times ? 1 : 0) == 0)
    throw std::logic_error("flopmeter::OpProfiler: another profile is running; stop it first");
}

OpProfiler::~OpProfiler() {
  if (running_) require_adapter().end_profile(nullptr);
}

OpProfile OpProfiler::stop() {
  return take().value_or(OpProfile{});
}

std::optional<OpProfile> OpProfiler::take() {
  OpProfile result;
  if (!running_) return std::nullopt;
  const FlopmeterProfileReceiver receiver{
      .context = &result, .row = add_row, .gap = add_gap, .totals = set_totals};
  running_ = require_adapter().end_profile(&receiver) == 0;
  if (running_) return std::nullopt;
  std::sort(result.rows.begin(),
            result.rows.end(),
            [](const OpProfileRow& a, const OpProfileRow& b) { return a.self > b.self; });
  return result;
}

}  // namespace flopmeter
