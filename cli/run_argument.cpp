// SPDX-License-Identifier: Apache-2.0
#include "run_argument.h"

#include "command.h"

namespace flopmeter {

Result<RunDirectory> run_argument(const std::string& directory) {
  auto run = open_run(directory);
  if (run && !run->note.empty()) notify(run->note);
  return run;
}

}  // namespace flopmeter
