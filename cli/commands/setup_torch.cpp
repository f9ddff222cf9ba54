// SPDX-License-Identifier: Apache-2.0
#include "../command.h"
#include "../python_package.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace flopmeter {
namespace {

/// The Python that started this program, or the one of the active environment.
std::string default_python() {
  const char* own = std::getenv("FLOPMETER_PYTHON");
  return own != nullptr && *own != '\0' ? own : "python3";
}

Exit run(const std::string& python) {
  const auto package = python_package();
  if (!package) return refuse(package.error());
  const std::string script = *package + "/launcher/setup_torch.py";
  ::execlp(python.c_str(), python.c_str(), script.c_str(), nullptr);
  return refuse(
      {ErrorCode::io_error, "cannot start '" + python + "': " + std::string(std::strerror(errno))});
}

std::function<Exit()> set_up(Arguments& app) {
  auto python = std::make_shared<std::string>(default_python());
  app.add_option("--python", *python, "Python interpreter that has torch (python3)");
  return [python] { return run(*python); };
}

}  // namespace

extern constinit const Command command_setup_torch{
    .name = "setup-torch",
    .help = "Build the torch adapter before the first run (container images, login nodes)",
    .order = 91,
    .set_up = set_up};

}  // namespace flopmeter
