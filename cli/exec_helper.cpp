// SPDX-License-Identifier: Apache-2.0
#include "exec_helper.h"

#include <unistd.h>

#include <filesystem>

namespace flopmeter {

Exit exec_helper(const std::string& name, const std::vector<std::string>& arguments) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::string path = self.parent_path() / name;
  std::vector<char*> argv = {
      const_cast<char*>(path.c_str())};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  for (const std::string& argument : arguments) {
    argv.push_back(
        const_cast<char*>(argument.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  argv.push_back(nullptr);
  execv(path.c_str(), argv.data());
  return refuse(
      {ErrorCode::io_error,
       "'" + name + "' is not installed; it needs libtorch: install torch, then run make build"});
}

}  // namespace flopmeter
