// SPDX-License-Identifier: Apache-2.0
//
// Replaces operator new for the test program, in a separate file so that it cannot be inlined.
#include "allocation_probe.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool watching = false;
thread_local std::size_t allocations = 0;

void* allocate(std::size_t size) noexcept {
  if (watching) ++allocations;
  return std::malloc(size);
}

}  // namespace

std::size_t flopmeter::count_allocations(bool on) {
  const std::size_t counted = allocations;
  watching = on;
  if (on) allocations = 0;
  return counted;
}

void* operator new(std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc{};
}
void* operator new[](std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
