// SPDX-License-Identifier: Apache-2.0
#include "starts.h"

#include "device_clock.h"
#include "device_waits.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <mutex>
#include <vector>

namespace flopmeter::torch_adapter {
namespace {

constexpr std::int64_t most_values = 1 << 16;

struct Copy {
  at::Tensor source;  ///< kept: its address identifies it
  at::Tensor host;
  std::uint32_t version = 0;
  std::uint64_t group = 0;
  void* event = nullptr;  ///< after the copy; null if the values are known
  std::vector<std::int64_t> values;
  int users = 0;

  void read_values() {
    const auto read = [this](const auto* first) { values.assign(first, first + host.numel()); };
    if (host.scalar_type() == at::kInt) {
      read(host.data_ptr<std::int32_t>());
    } else {
      read(host.data_ptr<std::int64_t>());
    }
    host.reset();
    source.reset();
  }
};

/// Copies that have users.  Never freed: threads may outlive static destruction.
struct Copies {
  std::mutex mutex;
  std::vector<std::unique_ptr<Copy>> all;
};
Copies& copies() {
  static Copies& instance = *new Copies;
  return instance;
}

std::uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<std::uint32_t>(tensor._version());
}

/// Null while a graph is captured.
std::unique_ptr<Copy> copy_from_device(const at::Tensor& source) {
  if (!device_clock_is_open())
    use_device_of(reinterpret_cast<std::uintptr_t>(source.unsafeGetTensorImpl()));  // NOLINT
  if (!device_clock_is_open() || device_is_captured()) return nullptr;
  auto copy = std::make_unique<Copy>();
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  const UnreportedCopies unreported;
  copy->host = at::empty(source.sizes(), source.options().device(at::kCPU).pinned_memory(true));
  copy->host.copy_(source, /*non_blocking=*/true);
  std::int64_t stream = 0;
  if (record_device_event(&copy->event, &stream) != 1) return nullptr;
  copy->source = source;
  return copy;
}

}  // namespace

const void* as_starts(const c10::TensorImpl& tensor) {
  const auto type = c10::typeMetaToScalarType(tensor.dtype());
  const bool fits = tensor.dim() == 1 && (type == at::kInt || type == at::kLong) &&
                    tensor.numel() <= most_values && tensor.is_contiguous();
  return fits ? &tensor : nullptr;
}

const void* find_starts(std::uintptr_t tensor) {
  return as_starts(*reinterpret_cast<const c10::TensorImpl*>(tensor));  // NOLINT: an address
}

void* copy_starts(const void* tensor, std::uint64_t group, int may_be_late) {
  auto* impl = static_cast<c10::TensorImpl*>(const_cast<void*>(tensor));  // NOLINT: to own it
  if (impl->is_cpu()) {
    auto copy = std::make_unique<Copy>();
    copy->host = at::Tensor(
        c10::intrusive_ptr<c10::TensorImpl,
                           c10::UndefinedTensorImpl>::unsafe_reclaim_from_nonowning(impl));
    copy->read_values();
    copy->users = 1;
    const std::lock_guard lock(copies().mutex);
    return copies().all.emplace_back(std::move(copy)).get();
  }
  if (may_be_late == 0 || impl->is_meta()) return nullptr;
  const at::Tensor source(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::unsafe_reclaim_from_nonowning(
          impl));
  const std::uint32_t version = version_of(source);
  const std::lock_guard lock(copies().mutex);
  for (const auto& each : copies().all) {
    if (each->source.defined() && each->source.unsafeGetTensorImpl() == impl &&
        each->version == version && each->group == group) {
      ++each->users;
      return each.get();
    }
  }
  auto made = copy_from_device(source);
  if (made == nullptr) return nullptr;
  made->version = version;
  made->group = group;
  made->users = 1;
  return copies().all.emplace_back(std::move(made)).get();
}

int read_starts(void* copy, const std::int64_t** values, std::size_t* count) {
  auto& read = *static_cast<Copy*>(copy);
  if (read.event != nullptr) {
    if (!is_device_event_reached(read.event)) return 0;
    release_device_event(read.event);
    read.event = nullptr;
    const std::lock_guard lock(copies().mutex);
    read.read_values();
  }
  *values = read.values.data();
  *count = read.values.size();
  return 1;
}

void release_starts(void* copy) {
  const std::lock_guard lock(copies().mutex);
  auto& all = copies().all;
  for (auto each = all.begin(); each != all.end(); ++each) {
    if (each->get() != copy || --(*each)->users > 0) continue;
    // The device may still write to the memory: torch's allocator of pinned memory waits for it.
    if ((*each)->event != nullptr) release_device_event((*each)->event);
    all.erase(each);
    return;
  }
}

}  // namespace flopmeter::torch_adapter
