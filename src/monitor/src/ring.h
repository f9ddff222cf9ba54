// SPDX-License-Identifier: Apache-2.0
//
// Ring: a fixed queue from one producer to one consumer without locks.  A full ring has no free
// slot; neither side waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace flopmeter {

template <class T>
class Ring {
  static_assert(std::is_nothrow_copy_assignable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  /// `capacity` must be a power of two.  Allocates and touches all memory.
  explicit Ring(std::size_t capacity) : mask_(capacity - 1), slots_(capacity) {}

  /// The next free slot, or null if the ring is full.  Producer only.
  T* claim() noexcept {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - known_head_ > mask_) {
      known_head_ = head_.load(std::memory_order_acquire);
      if (tail - known_head_ > mask_) return nullptr;
    }
    return &slots_[tail & mask_];
  }
  /// Hands the claimed slot to the consumer.
  void publish() noexcept {
    tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  /// The oldest slot, or null if there is none.  Consumer only.
  T* front() noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr : &slots_[head & mask_];
  }
  void pop() noexcept {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  [[nodiscard]] std::size_t size() const noexcept {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  std::size_t mask_;
  std::vector<T> slots_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t known_head_ = 0;  // head_ as the producer last read it
};

}  // namespace flopmeter
