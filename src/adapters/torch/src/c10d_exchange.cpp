// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "collectives.h"

#include <flopmeter/torch/c10d_exchange.h>

#if FLOPMETER_TORCH_VERSION >= 200 && __has_include(<torch/csrc/distributed/c10d/GroupRegistry.hpp>)
#define FLOPMETER_HAS_GROUPS
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstring>
#include <thread>
#endif

namespace flopmeter {

#ifdef FLOPMETER_HAS_GROUPS
namespace {

constexpr auto poll_interval = std::chrono::milliseconds{1};

class C10dExchange final : public Exchange {
 public:
  explicit C10dExchange(c10::intrusive_ptr<c10d::ProcessGroup> group) : group_(std::move(group)) {}

  [[nodiscard]] int rank() const override { return group_->getRank(); }
  [[nodiscard]] int world_size() const override { return group_->getSize(); }

  bool broadcast(std::span<std::byte> bytes,
                 std::chrono::milliseconds deadline,
                 const std::stop_token& stop) override try {
    const torch_adapter::OwnCollective own;
    std::vector<at::Tensor> tensors{
        at::empty({static_cast<std::int64_t>(bytes.size())}, at::TensorOptions().dtype(at::kByte))};
    std::memcpy(tensors[0].data_ptr(), bytes.data(), bytes.size());
    c10d::BroadcastOptions options;
    options.rootRank = 0;
    options.timeout = deadline;
    // Whatever happens the tensor lives as long as the operation, which holds it.
    const auto work = group_->broadcast(tensors, options);
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (!work->isCompleted()) {
      if (stop.stop_requested() || std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(poll_interval);
    }
    work->wait();  // throws what went wrong
    std::memcpy(bytes.data(), tensors[0].data_ptr(), bytes.size());
    return true;
  } catch (...) {  // the deadline, or a rank that is gone
    return false;
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

}  // namespace

Result<std::unique_ptr<Exchange>> make_c10d_exchange(const std::string& group_name) try {
  return std::unique_ptr<Exchange>{
      std::make_unique<C10dExchange>(c10d::resolve_process_group(group_name))};
} catch (const std::exception&) {
  return Error{ErrorCode::not_found,
               "torch.distributed has no process group named '" + group_name + "'"};
}
#else
Result<std::unique_ptr<Exchange>> make_c10d_exchange(const std::string&) {
  return Error{ErrorCode::unsupported,
               "this torch does not tell its process groups by name; torch 2 does"};
}
#endif

}  // namespace flopmeter
