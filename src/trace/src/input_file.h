// SPDX-License-Identifier: Apache-2.0
//
// The text of a trace file: mapped if it is plain, inflated if it is gzip.
#pragma once

#include <flopmeter/core/result.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Memory from mmap, unmapped at the end of its life.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(void* address, std::size_t size) : address_(address), size_(size) {}
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;
  ~MappedMemory();

  [[nodiscard]] char* data() const { return static_cast<char*>(address_); }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Gives the whole pages of a part back to the system; what they held must not be read again.
  void release(const char* from, const char* to) const;

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

struct InputFile {
  MappedMemory memory;
  std::vector<char> read;  ///< used instead of `memory` if the file is a pipe
  std::string_view text;
  bool damaged = false;  ///< gzip data that ends early or is corrupt: `text` is what came before
};

/// The text of `path`, gzip or not.  Errors name what the file is if it cannot be a trace.
Result<InputFile> open_input(const std::string& path);

}  // namespace flopmeter
