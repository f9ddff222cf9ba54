// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/sinks/sinks.h>

namespace flopmeter {

Result<std::unique_ptr<Sink>> make_sink(std::string_view specification, const RunContext& run) {
  const std::size_t colon = specification.find(':');
  const std::string_view name = specification.substr(0, colon);
  const std::string_view target =
      colon == std::string_view::npos ? "" : specification.substr(colon + 1);
  std::vector<std::string_view> names;
  for (const SinkPlugin* plugin : sink_plugins()) {
    if (plugin->name == name) return plugin->make(run, target);
    names.push_back(plugin->name);
  }
  std::string message =
      "unknown sink '" + printable(name) + "'" + did_you_mean(name, names) + " (known sinks:";
  for (const auto known : names) message.append(" ").append(known);
  message.push_back(')');
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace flopmeter
