// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace flopmeter {

/// `text` in memory that lasts as long as the process, so that records can point to it.  Keeps a
/// thousand different texts of up to a thousand bytes (longer ones are cut); every further one
/// becomes "(text not kept)", so that no file can exhaust the memory.
std::string_view static_text(std::string_view text);

}  // namespace flopmeter
