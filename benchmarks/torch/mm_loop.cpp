// SPDX-License-Identifier: Apache-2.0
//
// mm_loop mm|add plain|off|counted N: runs N operators on 8 x 8 matrices without a counter, after a
// counter was closed, or with an active counter. Two runs with different N under callgrind give the
// instructions per operator.
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
  const bool matmul = std::string_view(argv[1]) == "mm";
  const int count = std::atoi(argv[3]);
  at::set_num_threads(1);
  const at::Tensor a = at::ones({8, 8});
  at::Tensor out = at::empty({8, 8});
  std::optional<flopmeter::OpCounter> counter;
  const std::string_view mode = argv[2];
  if (mode != "plain") counter.emplace();
  if (mode == "off") counter.reset();
  for (int i = 0; i < count; ++i) {
    if (matmul) {
      at::mm_out(out, a, a);
    } else {
      at::add_out(out, a, a);
    }
  }
  const std::uint64_t expected = matmul ? static_cast<std::uint64_t>(count) * 2 * 8 * 8 * 8 : 0;
  return !counter || counter->counts().hardware_flops() == expected ? 0 : 1;
}
