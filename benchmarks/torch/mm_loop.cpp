// SPDX-License-Identifier: Apache-2.0
//
// mm_loop mm|add plain|off|counted N: N operators on 8 x 8 matrices, in a process that never made a
// counter, after one was made and left, or inside one.  Two runs with different N under callgrind
// give the instructions of one operator.
#include <flopmeter/torch/op_counter.h>

#include <ATen/Parallel.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <optional>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool product = std::string_view(argv[1]) == "mm";
  const int count = std::atoi(argv[3]);
  at::set_num_threads(1);
  const at::Tensor a = at::ones({8, 8});
  at::Tensor out = at::empty({8, 8});
  std::optional<flopmeter::OpCounter> counter;
  const std::string_view mode = argv[2];
  if (mode != "plain") counter.emplace();
  if (mode == "off") counter.reset();
  for (int i = 0; i < count; ++i) {
    if (product) {
      at::mm_out(out, a, a);
    } else {
      at::add_out(out, a, a);
    }
  }
  const std::uint64_t expected = product ? static_cast<std::uint64_t>(count) * 2 * 8 * 8 * 8 : 0;
  return !counter || counter->counts().executed() == expected ? 0 : 1;
}
