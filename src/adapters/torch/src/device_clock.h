// SPDX-License-Identifier: Apache-2.0
//
// Events of an asynchronous device, recorded and read through c10's guard, which every backend of
// torch implements: no header or library of a vendor is needed.
#pragma once

#include "host.h"
#include "torch_version.h"

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace flopmeter::torch_adapter {

/// The device that the model runs on; the first one stays.
void set_training_device(c10::Device device);
bool is_training_device(c10::DeviceType type);
/// Once one is known.
c10::Device known_training_device();
/// Whether the device clock is open.
bool device_clock_is_open();

void use_device_of(std::uintptr_t tensor);
int open_device_clock();
int record_device_event(void** event, std::int64_t* stream);
int read_device_event(void* event, std::int64_t* device_ns);
void release_device_event(void* event);
int anchor_device_clock(std::int64_t* host_ns, std::int64_t* device_ns);
void count_captures(int change);

/// Whether the current stream is being captured; the clock is open.
bool device_is_captured();

/// In the training thread.  False while a graph is captured.
bool is_device_event_reached(void* event);
/// Nanoseconds between two events of one stream that the device has reached.
std::int64_t device_time_between(void* from, void* to);
/// When by the host's clock the device reached this event; empty if that takes too long to find
/// out.
std::optional<std::int64_t> host_time_of(void* event);

}  // namespace flopmeter::torch_adapter
