// SPDX-License-Identifier: Apache-2.0
#include "python_package.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace flopmeter {
namespace {

namespace fs = std::filesystem;

/// "python", "python3.11", "pypy3", and paths to them.
bool is_python(const std::string& word) {
  const std::string name = fs::path(word).filename();
  constexpr std::array<std::string_view, 2> starts = {"python", "pypy"};
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view start) {
    return name.starts_with(start) &&
           name.find_first_not_of("0123456789.", start.size()) == std::string::npos;
  });
}

/// Whether the words after an interpreter contain -I, -E, or -S, alone or in a cluster.
bool has_isolating_flag(const std::vector<std::string>& words, std::size_t at) {
  for (++at; at < words.size() && words[at].size() > 1 && words[at][0] == '-'; ++at) {
    const std::string& word = words[at];
    if (word[1] == '-') return false;
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char flag = word[i];
      if (flag == 'I' || flag == 'E' || flag == 'S') return true;
      if (flag == 'c' || flag == 'm') return false;  // the rest belongs to the program
      if (flag != 'W' && flag != 'X') continue;
      if (i + 1 == word.size()) ++at;  // its value is the next word
      break;
    }
  }
  return false;
}

std::optional<std::string> isolated_in(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_python(words[i])) continue;
    if (!has_isolating_flag(words, i)) return std::nullopt;
    return words[i] + " " + words[i + 1];
  }
  return std::nullopt;
}

fs::path found_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::stringstream folders{path != nullptr ? path : ""};
  std::error_code ignored;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (fs::path file = fs::path(folder) / name; fs::is_regular_file(file, ignored)) return file;
  }
  return {};
}

/// The words after "#!" in the first line of a script; none for a program.
std::vector<std::string> interpreter_of(const std::string& command) {
  constexpr std::size_t longest = 256;  // as the kernel reads it
  const fs::path file = found_in_path(command);
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  std::string line(longest, '\0');
  std::ifstream in(file);
  in.read(line.data(), longest);
  line.resize(std::min(static_cast<std::size_t>(in.gcount()), line.find('\n')));
  if (!line.starts_with("#!")) return {};
  std::stringstream text{line.substr(2)};
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

}  // namespace

Result<std::string> python_package() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder :
       {here.parent_path(),
        here / "python" / "flopmeter",
        here.parent_path() / "lib" / "flopmeter" / "python" / "flopmeter"}) {
    if (fs::exists(folder / "launcher" / "startup" / "sitecustomize.py", ignored))
      return folder.string();
  }
  return Error{ErrorCode::not_found,
               "the Python package is not installed with this program; build with "
               "-DFLOPMETER_PYTHON=ON, or install with pip"};
}

std::optional<std::string> isolated_python(const std::vector<std::string>& command) {
  if (auto isolated = isolated_in(command)) return isolated;
  return command.empty() ? std::nullopt : isolated_in(interpreter_of(command.front()));
}

}  // namespace flopmeter
