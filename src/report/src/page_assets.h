// SPDX-License-Identifier: Apache-2.0
//
// The files of the page, which are part of the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flopmeter {

/// A script or style by its file name ("dom.js"); empty if the page has no such file.
std::optional<std::string_view> page_asset(std::string_view name);

/// The page of the dashboard, which loads its files and data from the server.
std::string live_page();

}  // namespace flopmeter
