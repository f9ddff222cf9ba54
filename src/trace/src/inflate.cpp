// SPDX-License-Identifier: Apache-2.0
#include "inflate.h"

#include <libdeflate.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

namespace flopmeter {
namespace {

bool starts_member(std::string_view data) {
  return data.starts_with("\x1f\x8b");
}

/// Deflate never expands by more than this.
constexpr std::size_t largest_ratio = 1032;

/// As much address space as `size` bytes can inflate to, or as the machine has memory.  Pages cost
/// nothing until they are written.
MappedMemory reserve_for(std::size_t size) {
  const auto pages = static_cast<std::size_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L));
  const std::size_t memory = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t most = std::min(size, memory / largest_ratio) * largest_ratio + 65536;
  void* const address = mmap(
      nullptr, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? MappedMemory{} : MappedMemory{address, most};
}

/// The size of the inflated text modulo 2^32, as the last four bytes state it, if it is a usual
/// one.
std::size_t stated_size(std::string_view data) {
  constexpr std::size_t usual_ratio = 64;
  std::uint32_t size = 0;
  if (data.size() < sizeof size) return 0;
  std::memcpy(&size, data.data() + data.size() - sizeof size, sizeof size);
  return size <= data.size() * usual_ratio ? size : 0;
}

/// Maps the first pages at once, which takes less time than a page fault for each.
void populate(const MappedMemory& memory, std::size_t size) {
#ifdef MADV_POPULATE_WRITE
  madvise(memory.data(), std::min(size, memory.size()), MADV_POPULATE_WRITE);
#endif
}

/// The size of all members together once inflated; empty if some member is damaged.
std::optional<std::size_t> inflate_whole(std::string_view data, const MappedMemory& out) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> inflater{
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor};
  if (!inflater) return std::nullopt;
  std::size_t written = 0;
  while (starts_member(data)) {
    std::size_t used = 0;
    std::size_t produced = 0;
    const libdeflate_result result = libdeflate_gzip_decompress_ex(inflater.get(),
                                                                   data.data(),
                                                                   data.size(),
                                                                   out.data() + written,
                                                                   out.size() - written,
                                                                   &used,
                                                                   &produced);
    if (result != LIBDEFLATE_SUCCESS) return std::nullopt;
    written += produced;
    data.remove_prefix(used);
  }
  return written;
}

/// Inflates up to the end of the data or the first error, and returns the size of the result.
std::size_t inflate_readable(std::string_view data, const MappedMemory& out) {
  z_stream stream{};
  constexpr int gzip_only = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_only) != Z_OK) return 0;
  constexpr std::size_t most = std::numeric_limits<uInt>::max();
  std::size_t written = 0;
  std::size_t read = 0;
  int result = Z_OK;
  while (result == Z_OK && written < out.size()) {
    // zlib's interface takes a pointer to non-const but does not write through it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(data.size() - read, most));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - written, most));
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    read += in_before - stream.avail_in;
    written += out_before - stream.avail_out;
    if (result == Z_STREAM_END && starts_member(data.substr(read))) result = inflateReset(&stream);
  }
  inflateEnd(&stream);
  return written;
}

}  // namespace

Result<InputFile> inflate_gzip(std::string_view data) {
  InputFile file;
  file.memory = reserve_for(data.size());
  if (file.memory.data() == nullptr) return Error{ErrorCode::io_error, "not enough memory"};
  populate(file.memory, stated_size(data));
  std::optional<std::size_t> size = inflate_whole(data, file.memory);
  if (!size) {
    file.damaged = true;
    size = inflate_readable(data, file.memory);
  }
  file.text = {file.memory.data(), *size};
  return file;
}

}  // namespace flopmeter
