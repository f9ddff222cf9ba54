// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <flopmeter/counting/backward_hook.h>

#include <utility>

namespace flopmeter {
namespace {

/// No exception may reach the autograd engine.
void call(const std::function<void()>& listener) noexcept try { listener(); } catch (...) {
}

}  // namespace

BackwardHook::BackwardHook(std::function<void()> begins, std::function<void()> ends)
    : begins_(std::move(begins)), ends_(std::move(ends)) {
  hook_ = require_adapter().make_backward_hook(
      this,
      [](void* self) { call(static_cast<BackwardHook*>(self)->begins_); },
      [](void* self) { call(static_cast<BackwardHook*>(self)->ends_); });
}

BackwardHook::~BackwardHook() {
  require_adapter().free_backward_hook(hook_);
}

std::optional<bool> BackwardHook::watch(std::uintptr_t tensor) {
  const int place = require_adapter().hook_tensor(hook_, tensor);
  if (place < 0) return std::nullopt;
  return place == 1;
}

bool BackwardHook::take_begun() {
  return require_adapter().take_begun(hook_) != 0;
}

}  // namespace flopmeter
