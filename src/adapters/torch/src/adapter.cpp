// SPDX-License-Identifier: Apache-2.0
//
// The one function that the adapter exports.
#include "backward_hook.h"
#include "c10d_exchange.h"
#include "device_clock.h"
#include "device_delay.h"
#include "host.h"
#include "interceptor.h"
#include "module_log.h"
#include "op_profiler.h"
#include "starts.h"

#include <type_traits>

namespace flopmeter::torch_adapter {
namespace {

/// `function` as a C function that returns `failed` if torch or an allocation throws.
template <auto function, auto failed, class Signature = decltype(function)>
struct Guarded;
template <auto function, auto failed, class Return, class... Args>
struct Guarded<function, failed, Return (*)(Args...)> {
  static Return call(Args... args) noexcept try { return function(args...); } catch (...) {
    if constexpr (!std::is_void_v<Return>) return Return(failed);
  }
};
template <auto function, auto failed = 0>
constexpr auto guarded = &Guarded<function, failed>::call;

void add_users(std::int32_t counting, std::int32_t modules) {
  counting_users.fetch_add(counting);
  module_users.fetch_add(modules);
}

constexpr FlopmeterAdapter adapter{
    .abi_version = FLOPMETER_ADAPTER_ABI_VERSION,
    .framework_version = TORCH_VERSION,
    .install = guarded<install>,
    .intercept = guarded<intercept, FLOPMETER_NO_SUCH_OP>,
    .list_intercepted = guarded<list_intercepted>,
    .find_new_ops = guarded<find_new_ops>,
    .open_op = guarded<open_op>,
    .begin_call = guarded<begin_call>,
    .end_call = guarded<end_call>,
    .inside_call = guarded<inside_call>,
    .current_module = guarded<module_now>,
    .count_call = guarded<count_outside>,
    .describe_tensor = guarded<describe_tensor, -1>,
    .find_starts = guarded<find_starts, nullptr>,
    .copy_starts = guarded<copy_starts, nullptr>,
    .read_starts = guarded<read_starts, 0>,
    .release_starts = guarded<release_starts>,
    .add_users = guarded<add_users>,
    .run_matmuls = guarded<run_matmuls, -1>,
    .enter_module = guarded<enter_module>,
    .leave_module = guarded<leave_module>,
    .begin_profile = guarded<begin_profile>,
    .end_profile = guarded<end_profile, 1>,
    .exclude_from_profile = guarded<exclude_from_profile>,
    .make_backward_hook = guarded<make_backward_hook, nullptr>,
    .free_backward_hook = guarded<free_backward_hook>,
    .hook_tensor = guarded<hook_tensor, -1>,
    .take_begun = guarded<take_begun>,
    .use_device_of = guarded<use_device_of>,
    .open_device_clock = guarded<open_device_clock, -1>,
    .record_device_event = guarded<record_device_event>,
    .read_device_event = guarded<read_device_event, -1>,
    .release_device_event = guarded<release_device_event>,
    .anchor_device_clock = guarded<anchor_device_clock>,
    .prepare_device_delay = guarded<prepare_device_delay>,
    .delay_device = guarded<delay_device>,
    .count_captures = guarded<count_captures>,
    .find_group = guarded<find_group, nullptr>,
    .group_rank = guarded<group_rank>,
    .group_size = guarded<group_size>,
    .broadcast = guarded<broadcast>,
};

}  // namespace
}  // namespace flopmeter::torch_adapter

[[gnu::visibility("default")]] const FlopmeterAdapter* flopmeter_torch_adapter(
    const FlopmeterHost* host) {
  if (host->abi_version != FLOPMETER_ADAPTER_ABI_VERSION) return nullptr;
  flopmeter::torch_adapter::host = host;
  return &flopmeter::torch_adapter::adapter;
}
