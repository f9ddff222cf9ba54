// SPDX-License-Identifier: Apache-2.0
#include "option_flags.h"

#include <flopmeter/catalog/convention.h>
#include <flopmeter/monitor/options.h>

#include <unistd.h>

#include <algorithm>

namespace flopmeter {
namespace {

std::string flag_of(std::string_view name) {
  std::string flag{name == "directory" ? "dir" : name};
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

bool is_on(const OptionRow& row, const Options& options) {
  return row.show(options) == "true";
}

}  // namespace

void OptionFlags::add_to(Arguments& app) {
  const Options defaults;
  for (const OptionRow& row : option_rows()) {
    if (!row.native) continue;
    Flag& flag = flags_.emplace_back(Flag{.row = &row});
    const std::string name = flag_of(row.name);
    std::string help{row.help};
    if (row.is_switch) {
      const bool on = is_on(row, defaults);
      app.add_flag(on ? "--no-" + name : "--" + name, flag.toggled, on ? "do not " + help : help);
      continue;
    }
    if (const std::string shown = row.show(defaults); !shown.empty()) help += " (" + shown + ")";
    app.add_option("--" + name, flag.values, help);
  }
  app.add_option("--config", config_, "YAML file with these and further options");
}

Result<Options> OptionFlags::options() const {
  Options options;
  if (const auto applied = apply_environment(options, environ); !applied) return applied.error();
  if (!config_.empty()) {
    if (const auto applied = apply_yaml_file(options, config_); !applied) return applied.error();
  }
  const Options defaults;
  for (const Flag& flag : flags_) {
    std::vector<std::string> values = flag.values;
    if (flag.toggled) values = {is_on(*flag.row, defaults) ? "false" : "true"};
    for (const std::string& value : values) {
      if (const auto done = set_option(options, flag.row->name, value); !done) return done.error();
    }
  }
  if (const auto known = convention_called(options.convention); !known) return known.error();
  return options;
}

}  // namespace flopmeter
