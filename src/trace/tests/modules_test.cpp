// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

namespace flopmeter {
namespace {

constexpr std::string_view mm_args =
    R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"], "Sequence number": 9)";
constexpr WideInt mm_flops = 2 * 64 * 32 * 16;

TEST(TraceModules, work_belongs_to_the_innermost_module_and_so_does_its_backward) {
  const DeviceReport report =
      TraceText{}
          .event("user_annotation", "my forward", 0, 100)
          .event("python_function", "nn.Module: Gpt_0", 1, 90)
          .event("python_function", "nn.Module: Linear_12", 2, 40)
          .event("python_function", "torch/nn/functional.py(12): linear", 3, 30)
          .op("aten::mm", 4, 10, mm_args)
          .kernel("sgemm", 1, 5, 200, 10)
          .event("python_function", "nn.Module: Linear_13", 50, 30)
          .op("aten::add", 55, 5)
          .kernel("add", 2, 56, 220, 4)
          .op("autograd::engine::evaluate_function: MmBackward0",
              110,
              40,
              R"("Sequence number": 9)")
          .op("aten::mm",
              115,
              10,
              R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])")
          .kernel("sgemm", 3, 116, 240, 30)
          .report();
  ASSERT_EQ(report.modules.size(), 1U);
  EXPECT_EQ(report.modules[0].module, "Gpt/Linear");
  EXPECT_EQ(report.modules[0].forward, 14000);
  EXPECT_EQ(report.modules[0].backward, 30000);
  EXPECT_EQ(report.modules[0].flops.value, 2 * mm_flops);
}

TEST(TraceModules, without_stacks_annotations_name_the_parts) {
  const DeviceReport report = TraceText{}
                                  .step(1, 0, 100)
                                  .event("user_annotation", "encoder", 1, 90)
                                  .op("aten::mm", 4, 10, mm_args)
                                  .kernel("sgemm", 1, 5, 200, 10)
                                  .report();
  ASSERT_EQ(report.modules.size(), 1U);
  EXPECT_EQ(report.modules[0].module, "encoder");
}

TEST(TraceModules, a_trace_without_both_has_none) {
  EXPECT_TRUE(TraceText{}.step(1, 0, 50).op("aten::mm", 0, 10, mm_args).report().modules.empty());
}

TEST(TraceModules, on_a_host_modules_have_the_own_time_of_their_operators) {
  const DeviceReport report = TraceText{}
                                  .event("python_function", "nn.Module: Mlp_0", 0, 90)
                                  .op("aten::linear", 2, 20)
                                  .op("aten::addmm", 4, 15)
                                  .report();
  ASSERT_EQ(report.modules.size(), 1U);
  EXPECT_EQ(report.modules[0].forward, 20000);
}

}  // namespace
}  // namespace flopmeter
