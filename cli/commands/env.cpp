// SPDX-License-Identifier: Apache-2.0
//
// flopmeter env: prints the variables with which any launcher starts monitored processes.  Shells
// evaluate the output, so nothing else goes to standard output.
#include "../option_flags.h"
#include "../python_package.h"

#include <flopmeter/monitor/options.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

/// A word of a POSIX shell that stands for `text` itself.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

/// The launcher may start processes elsewhere.  A directory that is not named stays so: each node
/// evaluates the output, and all of them follow the id of the job.
std::string absolute(const std::string& directory) {
  std::error_code failed;
  const auto path = std::filesystem::absolute(directory, failed);
  return directory.empty() || failed ? directory : path.string();
}

Exit run(const OptionFlags& flags, bool json) {
  auto options = flags.options();
  if (!options) return refuse(options.error());
  for (const std::string& warning : (*options).warnings) notify(warning);
  const auto package = python_package();
  if (!package) return refuse(package.error());
  (*options).directory = absolute((*options).directory);
  const std::string config = options_text(*options);
  const std::string hook = *package + "/launcher/startup";
  if (json) {
    const char* path = std::getenv("PYTHONPATH");
    const bool any = path != nullptr && *path != '\0';
    return print_json([&](JsonWriter& writer) {
      writer.begin_object();
      writer.field("PYTHONPATH", any ? hook + ":" + path : hook);
      writer.field("FLOPMETER_CONFIG", config);
      writer.end_object();
    });
  }
  // The node's own PYTHONPATH follows; an empty entry would mean the working directory.
  return print("export PYTHONPATH=" + quoted(hook) + "\"${PYTHONPATH:+:${PYTHONPATH}}\"\n" +
               "export FLOPMETER_CONFIG=" + quoted(config) + "\n");
}

std::function<Exit()> set_up(Arguments& app) {
  auto flags = std::make_shared<OptionFlags>();
  auto json = std::make_shared<bool>(false);
  app.footer("In a shell: eval \"$(flopmeter env --dir logs/run)\"");
  flags->add_to(app);
  app.add_flag(
      "--json", *json, "print the variables as a JSON object, for launchers without a shell");
  return [flags, json] { return run(*flags, *json); };
}

}  // namespace

extern constinit const Command command_env{
    .name = "env",
    .help = "Print shell exports that attach flopmeter to any launcher",
    .order = 6,
    .set_up = set_up};

}  // namespace flopmeter
