// SPDX-License-Identifier: Apache-2.0
//
// Dotted paths of YAML files and Hydra words ("train.system.perf_log_interval") as options.
#pragma once

#include <flopmeter/monitor/options.h>

#include <string_view>

namespace flopmeter {

/// The part of a path that names an option, from its block on; empty if the path is not in one of
/// the known blocks.
std::string_view option_path(std::string_view path);

/// The known block that the first name of a path was probably meant to be; empty: none.
std::string_view misspelled_block(std::string_view path);

/// Sets the option that `path`, a result of option_path(), names.  `where` begins error messages.
Result<void> set_path(Options& options,
                      std::string_view path,
                      std::string_view value,
                      std::string_view where);

/// "--flag=value" or "KEY=value" in two.
struct Assignment {
  std::string_view name;
  std::optional<std::string_view> value;
};

Assignment split(std::string_view text);

}  // namespace flopmeter
