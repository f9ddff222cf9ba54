// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

#include <gmock/gmock.h>

namespace flopmeter {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr std::string_view mm_args =
    R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["float", "float"])";
constexpr WideInt mm_flops = 2 * 64 * 32 * 16;

WideInt of(const std::array<WideInt, dtype_count>& flops, Dtype dtype) {
  return flops[static_cast<std::size_t>(dtype)];
}

TEST(TraceFlops, the_outermost_supported_operator_counts) {
  const DeviceReport report =
      TraceText{}
          .op("aten::linear",
              0,
              40,
              R"("Input Dims": [[64, 32], [16, 32], []], "Input type": ["float", "float", ""])")
          .op("aten::addmm",
              5,
              30,
              R"("Input Dims": [[16], [64, 32], [32, 16]], "Input type": ["float", "float", "float"])")
          .op("aten::addmm",
              6,
              20,
              R"("Input Dims": [[16], [64, 32], [32, 16]], "Input type": ["float", "float", "float"])")
          .kernel("sgemm", 1, 10, 50, 10)
          .report();
  EXPECT_EQ(report.flops->hardware.value, mm_flops);
  EXPECT_EQ(report.flops->model.value, mm_flops);
  EXPECT_DOUBLE_EQ(*report.coverage, 1);
}

TEST(TraceFlops, a_composite_counts_if_nothing_in_it_does) {
  const DeviceReport report =
      TraceText{}
          .op("aten::linear",
              0,
              40,
              R"("Input Dims": [[64, 32], [16, 32], []], "Input type": ["float", "float", ""])")
          .kernel("vendor_gemm", 1, 10, 50, 10)
          .report();
  EXPECT_EQ(report.flops->hardware.value, mm_flops);
}

TEST(TraceFlops, an_operator_that_launched_nothing_did_not_run) {
  const DeviceReport report = TraceText{}
                                  .op("aten::mm", 0, 10, mm_args)  // captured into a graph
                                  .op("aten::mm", 20, 10, mm_args)
                                  .kernel("sgemm", 1, 22, 50, 10)
                                  .report();
  EXPECT_EQ(report.flops->hardware.value, mm_flops);
}

TEST(TraceFlops, without_device_work_all_operators_ran) {
  const DeviceReport report = TraceText{}.op("aten::mm", 0, 10, mm_args).report();
  EXPECT_EQ(report.flops->hardware.value, mm_flops);
  EXPECT_FALSE(report.device_index);
  EXPECT_FALSE(report.mfu);
}

TEST(TraceFlops, the_kernel_name_distinguishes_tf32_from_fp32) {
  const DeviceReport report =
      TraceText{}
          .op("aten::mm", 0, 10, mm_args)
          .kernel("ampere_sgemm_128x64_nn", 1, 2, 50, 10)
          .op("aten::mm", 20, 10, mm_args)
          .kernel("cutlass_80_tensorop_s1688gemm_128x256", 2, 22, 70, 10)
          .op("aten::mm",
              40,
              10,
              R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["c10::BFloat16", "c10::BFloat16"])")
          .kernel("ampere_bf16_s16816gemm", 3, 42, 90, 10)
          .report();
  EXPECT_EQ(of(report.flops->hardware_by_dtype, Dtype::fp32), mm_flops);
  EXPECT_EQ(of(report.flops->hardware_by_dtype, Dtype::tf32), mm_flops);
  EXPECT_EQ(of(report.flops->hardware_by_dtype, Dtype::bf16), mm_flops);
}

TEST(TraceFlops, recomputation_is_hardware_work_only) {
  const DeviceReport report =
      TraceText{}
          .op("autograd::engine::evaluate_function: CheckpointBackward", 0, 100)
          .op("aten::mm", 10, 10, std::string{mm_args} + R"(, "Sequence number": 5)")
          .kernel("sgemm", 1, 12, 150, 10)
          .op("aten::mm", 30, 10, mm_args)
          .kernel("sgemm", 2, 32, 170, 10)
          .report();
  EXPECT_EQ(report.flops->hardware.value, 2 * mm_flops);
  EXPECT_EQ(report.flops->model.value, mm_flops);
}

TEST(TraceFlops, mfu_excludes_matmuls_of_an_optimizer) {
  const DeviceReport report = TraceText{}
                                  .event("user_annotation", "Optimizer.step#Muon.step", 0, 100)
                                  .op("aten::mm", 10, 10, mm_args)
                                  .kernel("sgemm", 1, 12, 150, 10)
                                  .report();
  EXPECT_EQ(report.flops->model.value, mm_flops);
  EXPECT_EQ(report.flops->optimizer.value, mm_flops);
  EXPECT_FALSE(report.mfu);
  EXPECT_EQ(report.records.at(0).model_flops->value, 0);
}

TEST(TraceFlops, scalar_arguments_are_read) {
  constexpr std::string_view q = "[2, 4, 8, 16]";
  const auto attention = [&](std::string_view causal) {
    return R"("Input Dims": [)" + std::string{q} + ", " + std::string{q} + ", " + std::string{q} +
           R"(, [], []], "Input type": ["c10::Half", "c10::Half", "c10::Half", "Scalar", "Scalar"],)" +
           R"("Concrete Inputs": ["", "", "", "0.", ")" + std::string{causal} + R"("])";
  };
  const auto flops = [&](std::string_view causal) {
    return TraceText{}
        .op("aten::_scaled_dot_product_flash_attention", 0, 10, attention(causal))
        .kernel("flash_fwd_kernel", 1, 2, 20, 5)
        .report()
        .flops->model.value;
  };
  EXPECT_EQ(flops("False"), 2 * (2 * 8 * 8) * 4 * (16 + 16));
  EXPECT_EQ(flops("True"), 2 * (2 * 8 * 9 / 2) * 4 * (16 + 16));
}

TEST(TraceFlops, lists_may_be_written_as_tuples) {
  const auto flops = [](std::string_view stride, std::string_view padding) {
    return TraceText{}
        .op("aten::convolution",
            0,
            10,
            R"("Input Dims": [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []], )"
            R"("Input type": ["float", "float", "", "", "", "", "", "", ""], )"
            R"("Concrete Inputs": ["", "", "", ")" +
                std::string{stride} + R"(", ")" + std::string{padding} +
                R"(", "[1, 1]", "False", "[0, 0]", "1"])")
        .kernel("conv", 1, 2, 20, 10)
        .report()
        .flops->hardware.value;
  };
  constexpr std::int64_t by_hand = 2 * 4 * 4 * (4 * 3 * 3 * 3);  // an output of 4 x 4 positions
  EXPECT_EQ(flops("[2, 2]", "[1, 1]"), by_hand);
  EXPECT_EQ(flops("(2,2)", "(1, 1)"), by_hand);
}

TEST(TraceFlops, an_old_convolution_is_learned_from_its_backward) {
  const DeviceReport report =
      TraceText{}
          .op("aten::convolution",
              0,
              10,
              R"("Input Dims": [[2, 3, 8, 8], [4, 3, 3, 3], []], "Input type": ["float", "float", ""])")
          .kernel("scudnn_fwd", 1, 2, 200, 5)
          .op("CudnnConvolutionBackward", 50, 40, R"("Sequence number": 1)")
          .op("aten::cudnn_convolution_backward",
              52,
              30,
              R"("Input Dims": [[2, 3, 8, 8], [2, 4, 4, 4], [4, 3, 3, 3], []], "Input type": ["float", "float", "float", "GenericList"])")
          .op("aten::cudnn_convolution_backward_weight", 60, 5)
          .kernel("scudnn_wgrad", 2, 61, 210, 5)
          .report();
  const WideInt once = 2 * 2 * (4 * 4) * (4 * 3 * 3 * 3);
  EXPECT_EQ(report.flops->model.value, 2 * once);  // forward, and the gradient of the weight
}

TEST(TraceFlops, torch_1_8_nests_the_backward_of_a_convolution_in_itself) {
  constexpr std::string_view args =
      R"("Input dims": [[2, 3, 8, 8], [2, 4, 4, 4], [4, 3, 3, 3], []], "Input type": [])";
  const DeviceReport report =
      TraceText{}
          .op("aten::cudnn_convolution_backward", 50, 40, args)
          .op("aten::cudnn_convolution_backward", 51, 38, args)
          .op("aten::cudnn_convolution_backward_input", 52, 5)
          .kernel("cudnn::detail::dgrad_engine<float, 512, 6>", 1, 53, 210, 5)
          .op("aten::cudnn_convolution_backward_weight", 60, 5)
          .kernel("cudnn::cnn::wgrad_alg0_engine<float, 128>", 2, 61, 220, 5)
          .report();
  EXPECT_EQ(report.flops->model.value, 2 * 2 * 2 * (4 * 4) * (4 * 3 * 3 * 3));
  EXPECT_EQ(report.flops->model_by_dtype[static_cast<std::size_t>(Dtype::fp32)],
            report.flops->model.value);
  EXPECT_THAT(report.notes, testing::Not(Contains(HasSubstr("does not state"))));
}

TEST(TraceFlops, uncounted_work_is_named) {
  const DeviceReport report =
      TraceText{}
          .op("aten::mm", 0, 10, mm_args)
          .kernel("sgemm", 1, 2, 20, 10)
          .op("vllm::moe_forward", 30, 10)
          .kernel("fused_moe_kernel", 2, 32, 50, 30)
          .event("cuda_runtime", "cudaGraphLaunch", 60, 5, R"("correlation": 3)")
          .device("kernel", "gemm in a graph", 90, 40, R"("correlation": 3)")
          .op("aten::add", 70, 5)
          .kernel("add_kernel", 4, 71, 140, 20)
          .report();
  ASSERT_EQ(report.unsupported.size(), 2U);
  EXPECT_EQ(report.unsupported[0].op, "cudaGraphLaunch");
  EXPECT_EQ(report.unsupported[0].time, 40000);
  EXPECT_EQ(report.unsupported[1].op, "vllm::moe_forward");
  EXPECT_DOUBLE_EQ(*report.coverage, 0.1);
  EXPECT_THAT(report.notes, Contains(HasSubstr("lower bound")));
}

TEST(TraceFlops, without_shapes_there_are_none) {
  const DeviceReport report =
      TraceText{}.op("aten::mm", 0, 10).kernel("sgemm", 1, 2, 20, 10).report();
  EXPECT_FALSE(report.flops);
  EXPECT_FALSE(report.mfu);
  EXPECT_THAT(report.notes, Contains(HasSubstr("record_shapes=True")));
}

TEST(TraceFlops, the_formula_of_a_model_gives_mfu_without_shapes) {
  const StepFormula formula{.model = "gpt2",
                            .tokens = 8,
                            .seq_len = 4,
                            .flops = {WideInt{3120000}},
                            .dtype = Dtype::bf16};
  const DeviceReport report = TraceText{}
                                  .step(3, 0, 50)
                                  .op("aten::mm", 0, 10)
                                  .kernel("gemm", 1, 2, 20, 80)
                                  .report({.peaks = std::nullopt, .formula = formula});
  EXPECT_DOUBLE_EQ(*report.mfu, 3120000 / 312e12 / 100e-6);
  EXPECT_DOUBLE_EQ(*report.steps.at(0).mfu, *report.mfu);
  EXPECT_FALSE(report.flops);
  EXPECT_EQ(report.records.at(0).flops_source, FlopsProvenance::estimate);
  EXPECT_EQ(report.records.at(0).tokens, 8);
  EXPECT_THAT(report.notes, Contains(HasSubstr("by the formula of gpt2")));
}

TEST(TraceFlops, mfu_is_ideal_time_over_device_time) {
  const DeviceReport report = TraceText{}
                                  .step(3, 0, 50)
                                  .op("aten::mm", 0, 10, mm_args)
                                  .kernel("ampere_sgemm", 1, 2, 20, 80)
                                  .report();
  const double peak = report.peaks->peak(Dtype::fp32)->value;
  EXPECT_DOUBLE_EQ(*report.mfu, static_cast<double>(mm_flops) / peak / 100e-6);
  ASSERT_EQ(report.records.size(), 1U);
  EXPECT_EQ(report.records[0].step, 3);
  EXPECT_DOUBLE_EQ(*report.records[0].mfu, *report.mfu);
  ASSERT_EQ(report.profiles.size(), 1U);
  EXPECT_EQ(report.profiles[0].rows[0].shape, "[64,32] [32,16]");
}

}  // namespace
}  // namespace flopmeter
