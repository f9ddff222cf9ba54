// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/adapter_abi.h>
#include <flopmeter/core/compilations.h>
#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/device_clock.h>

#include <atomic>
#include <thread>

namespace flopmeter {
namespace {

static_assert(static_cast<int>(DeviceEvent::backward_call) == FLOPMETER_BACKWARD_CALL);

// No lock: a forked child may inherit one that is held.
std::atomic<DeviceListener*> listener{nullptr};
std::atomic<int> calls{0};  ///< of the listener, under way

/// A device is used, and the adapter cannot time it.
std::atomic<bool> untimed_device{false};

std::atomic<bool (*)(double)> delay_kernel{nullptr};

class AdapterClock final : public DeviceClock {
 public:
  State open() noexcept override {
    adapter_ = attached_adapter();
    if (adapter_ == nullptr) return State::no_device;
    if (adapter_->open_device_clock == nullptr)
      return untimed_device.load() ? State::unsupported : State::no_device;
    const int answer = adapter_->open_device_clock();
    if (answer > 0 && !run_delay_kernel(0)) adapter_->prepare_device_delay();
    return answer > 0 ? State::ready : answer == 0 ? State::no_device : State::unsupported;
  }
  Recorded record() noexcept override {
    Recorded recorded;
    if (adapter_->record_device_event(&recorded.event, &recorded.stream) != 1) return {};
    return recorded;
  }
  Reading read(void* event, std::int64_t& device_ns) noexcept override {
    const int answer = adapter_->read_device_event(event, &device_ns);
    return answer > 0 ? Reading::reached : answer == 0 ? Reading::not_reached : Reading::failed;
  }
  void release(void* event) noexcept override { adapter_->release_device_event(event); }
  bool anchor(Anchor& anchor) noexcept override {
    return adapter_->anchor_device_clock(&anchor.host_ns, &anchor.device_ns) == 1;
  }
  bool delay(double seconds) noexcept override {
    if (!run_delay_kernel(seconds) && adapter_->delay_device(seconds) != 1) return false;
    adapter_->exclude_from_profile();
    return true;
  }
  void listen(DeviceListener& next) noexcept override { listener.store(&next); }
  void stop_listening(DeviceListener& own) noexcept override {
    DeviceListener* expected = &own;
    listener.compare_exchange_strong(expected, nullptr);
    while (calls.load() != 0) std::this_thread::yield();
  }

 private:
  /// False if there is none.
  static bool run_delay_kernel(double seconds) noexcept {
    const auto kernel = delay_kernel.load();
    return kernel != nullptr && kernel(seconds);
  }

  const FlopmeterAdapter* adapter_ = nullptr;
};

}  // namespace

DeviceClock* adapter_device_clock() {
  static auto* const clock = new AdapterClock;  // hooks may outlive everything else
  return clock;
}

void use_device_of(std::uintptr_t tensor) {
  const FlopmeterAdapter* adapter = attached_adapter();
  if (adapter == nullptr) return;
  if (adapter->use_device_of != nullptr) {
    adapter->use_device_of(tensor);
  } else {
    untimed_device.store(true);
  }
}

void count_captures(int change) {
  if (change > 0) compilations().fetch_add(1, std::memory_order_relaxed);
  const FlopmeterAdapter* adapter = attached_adapter();
  if (adapter != nullptr && adapter->count_captures != nullptr) adapter->count_captures(change);
}

void set_device_delay(bool (*delay)(double seconds)) {
  delay_kernel.store(delay);
}

void report_device_event(DeviceEvent event, std::int64_t bytes) noexcept {
  calls.fetch_add(1);
  if (DeviceListener* current = listener.load()) current->on(event, bytes);
  calls.fetch_sub(1);
}

}  // namespace flopmeter
