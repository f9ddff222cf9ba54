// SPDX-License-Identifier: Apache-2.0
#include "c10d_exchange.h"

#include "collectives.h"
#include "torch_version.h"

#if FLOPMETER_TORCH_VERSION >= 200 && __has_include(<torch/csrc/distributed/c10d/GroupRegistry.hpp>)
#define FLOPMETER_HAS_GROUPS
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <cstring>
#include <thread>
#endif

namespace flopmeter::torch_adapter {

#ifdef FLOPMETER_HAS_GROUPS
namespace {

constexpr auto poll_interval = std::chrono::milliseconds{1};

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

Group& to_group(void* group) {
  return *static_cast<Group*>(group);
}

}  // namespace

void* find_group(const char* name) try {
  return new Group(c10d::resolve_process_group(name));
} catch (...) {  // no group of this name
  return nullptr;
}

int group_rank(void* group) {
  return to_group(group)->getRank();
}

int group_size(void* group) {
  return to_group(group)->getSize();
}

int broadcast(void* group,
              void* bytes,
              std::size_t size,
              std::int64_t deadline_milliseconds,
              void* context,
              int (*stop)(void*)) try {
  const OwnCollective own;
  const std::chrono::milliseconds deadline{deadline_milliseconds};
  std::vector<at::Tensor> tensors{
      at::empty({static_cast<std::int64_t>(size)}, at::TensorOptions().dtype(at::kByte))};
  std::memcpy(tensors[0].data_ptr(), bytes, size);
  c10d::BroadcastOptions options;
  options.rootRank = 0;
  options.timeout = deadline;
  // The operation holds the tensor, which therefore outlives an abandoned broadcast.
  const auto work = to_group(group)->broadcast(tensors, options);
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!work->isCompleted()) {
    if (stop(context) != 0 || std::chrono::steady_clock::now() >= end) return 0;
    std::this_thread::sleep_for(poll_interval);
  }
  work->wait();  // throws if the operation failed
  std::memcpy(bytes, tensors[0].data_ptr(), size);
  return 1;
} catch (...) {  // the deadline passed, or a rank is gone
  return 0;
}
#else  // this torch does not find process groups by name
void* find_group(const char* /*name*/) {
  return nullptr;
}
int group_rank(void* /*group*/) {
  return 0;
}
int group_size(void* /*group*/) {
  return 0;
}
int broadcast(void* /*group*/,
              void* /*bytes*/,
              std::size_t /*size*/,
              std::int64_t /*deadline_milliseconds*/,
              void* /*context*/,
              int (* /*stop*/)(void*)) {
  return 0;
}
#endif

}  // namespace flopmeter::torch_adapter
