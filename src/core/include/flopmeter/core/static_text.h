// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace flopmeter {

/// `text` in memory that stays for the life of the process: records point at it from wherever they
/// are kept.  Keeps a thousand different texts of up to a thousand bytes (longer ones are cut);
/// every further one becomes "(text not kept)", so that no file can fill the memory.
std::string_view static_text(std::string_view text);

}  // namespace flopmeter
