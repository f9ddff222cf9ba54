// SPDX-License-Identifier: Apache-2.0
// Streams and events as torch sees them: the device guard of PrivateUse1.
#include "timeline.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace simgpu {
namespace {

constexpr auto type_of_device = c10::DeviceType::PrivateUse1;
c10::Stream as_stream(int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(type_of_device, 0), id);
}
Event& as_event(void* event) {
  return *static_cast<Event*>(event);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return type_of_device; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return {type_of_device, 0}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    setDevice(device);
    return getDevice();
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() <= 0, "simgpu: there is one device, simgpu:0");
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}

  c10::Stream getStream(c10::Device) const override { return as_stream(current_stream()); }
  c10::Stream getDefaultStream(c10::Device) const override { return as_stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    TORCH_CHECK(settings().stream_pool != 0, "simgpu: there is no pool of streams");
    return as_stream(device().stream_from_pool());
  }
  c10::Stream getNewStream(c10::Device, int) const override {
    return as_stream(device().new_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return as_stream(std::exchange(current_stream(), stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return device().query_stream(stream.id());
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    device().synchronize_stream(stream.id());
  }
  void synchronizeDevice(c10::DeviceIndex) const override { device().synchronize_device(); }
  bool isStreamCapturing(const c10::Stream& stream) const override {
    TORCH_CHECK(settings().capture_state != 0, "Backend doesn't support captures.");
    return device().is_capturing(stream.id());
  }

  void record(void** event,
              const c10::Stream& stream,
              c10::DeviceIndex,
              c10::EventFlag flag) const override {
    if (*event == nullptr) {
      *event = new Event{.timing = flag == c10::EventFlag::BACKEND_DEFAULT};
    }
    device().record(as_event(*event), stream.id());
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) device().block(as_event(event), stream.id());
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || device().query(as_event(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) device().synchronize(as_event(event));
  }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    TORCH_CHECK(from != nullptr && to != nullptr, "simgpu: an event was never recorded");
    return device().elapsed_ms(as_event(from), as_event(to));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace simgpu
