// SPDX-License-Identifier: Apache-2.0
//
// Subset of DCGM's interface, from dcgm_structs.h, dcgm_fields.h, and dcgm_agent.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace flopmeter::dcgm {

using Return = int;
using Handle = std::uintptr_t;
using Group = std::uintptr_t;
using FieldGroup = std::uintptr_t;

inline constexpr Return ok = 0;
inline constexpr int operation_mode_automatic = 1;
inline constexpr int entity_gpu = 1;
inline constexpr Group all_gpus = 0x7fffffff;
inline constexpr std::size_t most_devices = 32;
/// Values from here on mean: blank, not found, not supported, not permitted.
inline constexpr double fp64_blank = 140737488355328.0;

enum Field : unsigned short {
  dev_uuid = 54,
  prof_sm_active = 1002,
  prof_pipe_tensor_active = 1004,
  prof_dram_active = 1005,
  prof_pipe_fp64_active = 1006,
  prof_pipe_fp32_active = 1007,
  prof_pipe_fp16_active = 1008,
};

inline constexpr unsigned short type_double = 'd';
inline constexpr unsigned short type_string = 's';

struct FieldValue {
  unsigned version = 0;
  unsigned short field = 0;
  unsigned short type = 0;
  int status = 0;
  std::int64_t microseconds = 0;
  union {
    std::int64_t i64;
    double dbl;
    std::array<char, 256> text;
    std::array<char, 4096> blob;
  } value{};
};
static_assert(sizeof(FieldValue) == 4120 && offsetof(FieldValue, value) == 24);

}  // namespace flopmeter::dcgm
