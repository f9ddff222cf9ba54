// SPDX-License-Identifier: Apache-2.0
#include "static_text.h"

#include <atomic>
#include <string>

namespace flopmeter {
namespace {

struct Node {
  std::string text;
  Node* next = nullptr;
};

constinit std::atomic<Node*> texts{nullptr};

}  // namespace

std::string_view static_text(std::string_view text) {
  Node* head = texts.load(std::memory_order_acquire);
  for (const Node* node = head; node != nullptr; node = node->next) {
    if (node->text == text) return node->text;
  }
  Node* added = new Node{std::string{text}, head};
  while (!texts.compare_exchange_weak(added->next, added, std::memory_order_release)) {
  }
  return added->text;
}

}  // namespace flopmeter
