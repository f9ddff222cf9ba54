// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <flopmeter/counting/op_profiler.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

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

void set_totals(void* context, double wall_seconds, int on_device) noexcept {
  auto& profile = *static_cast<OpProfile*>(context);
  profile.wall = {wall_seconds};
  profile.on_device = on_device != 0;
}

}  // namespace

OpProfiler::OpProfiler(Seconds tiny) {
  if (require_adapter().begin_profile(tiny.value) == 0)
    throw std::logic_error("flopmeter::OpProfiler: another profile is running; stop it first");
}

OpProfiler::~OpProfiler() {
  static_cast<void>(stop());
}

OpProfile OpProfiler::stop() {
  OpProfile result;
  if (!std::exchange(running_, false)) return result;
  const FlopmeterProfileReceiver receiver{
      .context = &result, .row = add_row, .gap = add_gap, .totals = set_totals};
  require_adapter().end_profile(&receiver);
  std::sort(result.rows.begin(),
            result.rows.end(),
            [](const OpProfileRow& a, const OpProfileRow& b) { return a.self > b.self; });
  return result;
}

}  // namespace flopmeter
