// SPDX-License-Identifier: Apache-2.0
#include "host.h"

#include <flopmeter/counting/c10d_exchange.h>

namespace flopmeter {
namespace {

class C10dExchange final : public Exchange {
 public:
  C10dExchange(const FlopmeterAdapter& adapter, void* group) : adapter_(adapter), group_(group) {}

  [[nodiscard]] int rank() const override { return adapter_.group_rank(group_); }
  [[nodiscard]] int world_size() const override { return adapter_.group_size(group_); }

  bool broadcast(std::span<std::byte> bytes,
                 std::chrono::milliseconds deadline,
                 const std::stop_token& stop) override {
    const auto stopped = [](void* token) {
      return static_cast<const std::stop_token*>(token)->stop_requested() ? 1 : 0;
    };
    auto* token = const_cast<std::stop_token*>(&stop);  // NOLINT: C passes it through as void*
    return adapter_.broadcast(
               group_, bytes.data(), bytes.size(), deadline.count(), token, stopped) != 0;
  }

 private:
  const FlopmeterAdapter& adapter_;
  void* group_;
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_c10d_exchange(const std::string& group_name) {
  const FlopmeterAdapter* adapter = attached_adapter();
  void* group = adapter != nullptr ? adapter->find_group(group_name.c_str()) : nullptr;
  if (group == nullptr) {
    return Error{ErrorCode::not_found,
                 "torch.distributed has no process group named '" + group_name + "'"};
  }
  return std::unique_ptr<Exchange>{std::make_unique<C10dExchange>(*adapter, group)};
}

}  // namespace flopmeter
