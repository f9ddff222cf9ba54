// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/static_text.h>

#include <atomic>
#include <string>

namespace flopmeter {
namespace {

constexpr std::size_t most_texts = 1000;
constexpr std::size_t longest_text = 1000;

struct Node {
  std::string text;
  Node* next = nullptr;
  std::size_t count = 1;  ///< of the list from here on
};

constinit std::atomic<Node*> texts{nullptr};

}  // namespace

std::string_view static_text(std::string_view text) {
  text = text.substr(0, longest_text);
  Node* head = texts.load(std::memory_order_acquire);
  for (const Node* node = head; node != nullptr; node = node->next) {
    if (node->text == text) return node->text;
  }
  if (head != nullptr && head->count >= most_texts) return "(text not kept)";
  Node* added = new Node{std::string{text}, head};
  do {
    added->count = added->next == nullptr ? 1 : added->next->count + 1;
  } while (!texts.compare_exchange_weak(added->next, added, std::memory_order_release));
  return added->text;
}

}  // namespace flopmeter
