// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include "texts.h"

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

/// Pointwise kernels and reductions: they do no matmuls.
bool is_elementwise_kernel(std::string_view name) {
  static constexpr auto parts = std::to_array<std::string_view>(
      {"triton_poi_", "triton_red_", "triton_per_", "at::native::"});
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

}  // namespace

std::vector<Work> classify_work(const Trace& trace, const Links& links, const OpFlops& flops) {
  std::vector<bool> failed(trace.host_events.size(), false);
  for (const std::uint32_t event : flops.failed) failed[event] = true;
  const auto elementwise = by_text(trace, is_elementwise_kernel);
  std::vector<Work> all(trace.device_events.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const DeviceEvent& event = trace.device_events[i];
    Work& work = all[i];
    work.name = event.name;
    const std::uint32_t op = links.op[i];
    const std::uint32_t launch = links.launch[i];
    if (const std::uint32_t host = op != no_event ? op : launch; host != no_event) {
      const OpContext context = flops.context[host];
      work.backward = context.backward;
      work.phase = context.optimizer  ? Phase::optimizer
                   : context.backward ? Phase::backward
                                      : Phase::forward;
    }
    if (event.kind != DeviceClass::compute) continue;
    if (op != no_event) {
      const HostEvent& host = trace.host_events[op];
      work.name = host.name;
      work.counted = flops.counted_as[op];
      if (work.counted != no_event)
        work.name = trace.host_events[flops.ops[work.counted].event].name;
      if (flops.supported[op]) {
        work.kind = OpKind::compute;
        continue;
      }
      if (trace.text(host.name).starts_with("aten::") && !failed[op]) continue;
    } else if (launch != no_event &&
               trace.text(trace.host_events[launch].name).find("GraphLaunch") !=
                   std::string_view::npos) {
      work.name = trace.host_events[launch].name;
    }
    if (!elementwise[event.name]) work.kind = OpKind::unknown;
  }
  return all;
}

}  // namespace flopmeter
