// SPDX-License-Identifier: Apache-2.0
// Device memory, pinned host memory, and the hooks through which torch finds them.
//
// Device memory is address space of the process. Its pages are used only if something writes to
// them, so a model of many gigabytes costs nothing while values are off.
#include "timeline.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

namespace simgpu {
namespace {

using c10::CachingAllocator::Stat;
constexpr auto type_of_device = c10::DeviceType::PrivateUse1;

/// Blocks by rounded size; a freed block is kept for the next allocation of its size, as in a
/// caching allocator.
class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const size_t size = (bytes + block - 1) / block * block;
    void* pointer = size == 0 ? nullptr : take(size);
    return {pointer, pointer, &DeviceMemory::free, c10::Device(type_of_device, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &DeviceMemory::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [size, pointer] : cached_) {
      munmap(pointer, size);
      for_all(stats_.reserved_bytes, [&, n = size](Stat& stat) { stat.decrease(n); });
    }
    cached_.clear();
  }
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    for_all(stats_.allocated_bytes, [](Stat& stat) { stat.reset_accumulated(); });
    for_all(stats_.reserved_bytes, [](Stat& stat) { stat.reset_accumulated(); });
  }
  void resetPeakStats(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    for_all(stats_.allocated_bytes, [](Stat& stat) { stat.reset_peak(); });
    for_all(stats_.reserved_bytes, [](Stat& stat) { stat.reset_peak(); });
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    const std::lock_guard lock(mutex_);
    return {capacity() - in_use(), capacity()};
  }

 private:
  static constexpr size_t block = 512;
  static size_t capacity() { return static_cast<size_t>(settings().memory_gb * 1e9); }
  static constexpr size_t aggregate = 0;  // StatType::AGGREGATE, the one of all sizes
  template <class Change>
  static void for_all(c10::CachingAllocator::StatArray& stats, Change change) {
    change(stats[aggregate]);
  }
  size_t in_use() const { return static_cast<size_t>(stats_.allocated_bytes[aggregate].current); }

  void* take(size_t size) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK_WITH(OutOfMemoryError,
                     in_use() + size <= capacity(),
                     "simgpu out of memory. Tried to allocate ",
                     size,
                     " bytes of ",
                     capacity());
    for_all(stats_.allocated_bytes, [&](Stat& stat) { stat.increase(size); });
    void* pointer = nullptr;
    if (const auto found = cached_.find(size); found != cached_.end()) {
      pointer = found->second;
      cached_.erase(found);
      if (size <= small) std::memset(pointer, 0, size);
    } else {
      pointer = mmap(nullptr,
                     size,
                     PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     -1,
                     0);
      TORCH_CHECK(pointer != MAP_FAILED, "simgpu: cannot map ", size, " bytes");
      for_all(stats_.reserved_bytes, [&](Stat& stat) { stat.increase(size); });
    }
    sizes_[pointer] = size;
    return pointer;
  }
  static void free(void* pointer);
  void give_back(void* pointer) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(pointer);
    if (found == sizes_.end()) return;
    for_all(stats_.allocated_bytes, [&](Stat& stat) { stat.decrease(found->second); });
    cached_.emplace(found->second, pointer);
    sizes_.erase(found);
  }

  static constexpr size_t small = 4096;  // read by scripts (a loss), so it starts as zero
  std::mutex mutex_;
  std::unordered_map<void*, size_t> sizes_;
  std::unordered_multimap<size_t, void*> cached_;
  c10::CachingDeviceAllocator::DeviceStats stats_;
};
DeviceMemory& device_memory() {
  static auto* instance = new DeviceMemory;
  return *instance;
}
void DeviceMemory::free(void* pointer) {
  if (pointer != nullptr) device_memory().give_back(pointer);
}

/// Host memory from the CPU allocator, remembered as pinned.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr inner = c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* pointer = inner.get();
    const std::lock_guard lock(mutex_);
    blocks_[pointer] = {bytes, std::move(inner)};
    return {pointer, pointer, &PinnedMemory::free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &PinnedMemory::free; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool contains(const void* pointer) {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(const_cast<void*>(pointer));
    if (after == blocks_.begin()) return false;
    const auto& [start, held] = *--after;
    return pointer == start || pointer < static_cast<char*>(start) + held.bytes;
  }

 private:
  struct Block {
    size_t bytes;
    c10::DataPtr memory;
  };
  static void free(void* pointer);
  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};
PinnedMemory& pinned_memory() {
  static auto* instance = new PinnedMemory;
  return *instance;
}
void PinnedMemory::free(void* pointer) {
  const std::lock_guard lock(pinned_memory().mutex_);
  pinned_memory().blocks_.erase(pointer);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  bool isPinnedPtr(const void* pointer) const override { return pinned_memory().contains(pointer); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  at::Device getDeviceFromPtr(void*) const override { return {type_of_device, 0}; }
  // Random numbers come from the CPU's generator, so that values equal those of the CPU.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::detail::createCPUGenerator();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::DataPtr grown = device_memory().allocate(bytes);
    const size_t kept = std::min(bytes, storage.nbytes());
    if (settings().values != 0 && kept > 0) std::memcpy(grown.get(), storage.data(), kept);
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(grown));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  c10::SetAllocator(type_of_device, &device_memory());
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace simgpu
