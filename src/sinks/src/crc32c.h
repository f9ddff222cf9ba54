// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace flopmeter {

/// CRC-32C (Castagnoli), used by the framing of TensorBoard files.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace flopmeter
