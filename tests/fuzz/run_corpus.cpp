// SPDX-License-Identifier: Apache-2.0
//
// Runs the fuzz target once for each file in the given folders, so that all compilers test the
// corpus.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator{argv[i]}) {
      std::ifstream in{entry.path(), std::ios::binary};
      const std::vector<char> text{std::istreambuf_iterator<char>{in}, {}};
      const std::vector<std::uint8_t> bytes{text.begin(), text.end()};
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      // Truncated files, too.
      for (std::size_t size = 0; size < bytes.size(); size += 97)
        LLVMFuzzerTestOneInput(bytes.data(), size);
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
