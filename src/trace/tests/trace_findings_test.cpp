// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

#include <gmock/gmock.h>

namespace flopmeter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> rules_of(const TraceText& text) {
  std::vector<std::string> rules;
  for (const Finding& finding : text.report().findings) rules.push_back(finding.rule);
  return rules;
}

constexpr std::string_view large_mm =
    R"("Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"])";

TEST(TraceFindings, a_busy_device_has_none) {
  // 137 GFLOP at 156 TFLOP/s take 881 us.
  EXPECT_THAT(
      rules_of(
          TraceText{}.op("aten::mm", 0, 10, large_mm).kernel("ampere_tf32_gemm", 1, 2, 20, 1000)),
      IsEmpty());
}

TEST(TraceFindings, pageable_copies_are_named_with_their_bytes) {
  const DeviceReport report =
      TraceText{}
          .device("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, 50, R"("bytes": 1000000)")
          .device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 50, R"("bytes": 1000000)")
          .device("kernel", "k", 100, 900)
          .report();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].rule, "host_to_device");
  EXPECT_DOUBLE_EQ(*report.findings[0].seconds, 50e-6);
  EXPECT_THAT(report.findings[0].evidence, HasSubstr("1 pageable copies"));
}

TEST(TraceFindings, fp32_matmuls_on_a_device_with_tf32_are_found) {
  EXPECT_THAT(rules_of(TraceText{}
                           .op("aten::mm", 0, 10, large_mm)
                           .kernel("ampere_sgemm_128x64", 1, 2, 20, 8000)),
              ElementsAre("no_mixed_precision"));
}

TEST(TraceFindings, a_matmul_far_below_its_peak_is_named_with_its_shape) {
  const DeviceReport report = TraceText{}
                                  .op("aten::mm", 0, 10, large_mm)
                                  .kernel("ampere_tf32_gemm", 1, 2, 20, 10000)
                                  .report();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].rule, "slow_matmuls");
  EXPECT_THAT(report.findings[0].evidence, HasSubstr("aten::mm [4096,4096] [4096,4096] at 8.8 %"));
}

TEST(TraceFindings, softmax_next_to_batched_matmuls_is_unfused_attention) {
  TraceText text;
  text.op("aten::bmm", 0, 10).kernel("bmm", 1, 2, 20, 100);
  text.op("aten::_softmax", 20, 10).kernel("softmax", 2, 22, 120, 100);
  EXPECT_THAT(rules_of(text), ElementsAre("poor_implementation"));
}

TEST(TraceFindings, tiny_kernels_count_only_if_the_device_waits_for_launches) {
  TraceText waiting;
  TraceText queued;
  for (int i = 0; i < 10; ++i) {
    waiting.kernel("small", i, 20 * i, 20 * i + 8, 3);
    queued.kernel("small", i, i, 20 + 3 * i, 3);
  }
  EXPECT_THAT(rules_of(waiting), ElementsAre("launch_overhead"));
  EXPECT_THAT(rules_of(queued), IsEmpty());
}

TEST(TraceFindings, exposed_collectives_and_transposes_are_found) {
  EXPECT_THAT(rules_of(TraceText{}
                           .device("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 0, 100)
                           .device("kernel", "cudnn::nchwToNhwcKernel", 100, 50)
                           .device("kernel", "k", 150, 850)),
              ElementsAre("communication", "layout_transposes"));
}

TEST(TraceFindings, a_data_loader_without_workers_is_named) {
  const DeviceReport report =
      TraceText{}
          .kernel("k", 1, 0, 10, 100)
          .event("user_annotation",
                 "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                 20,
                 400)
          .kernel("k", 2, 430, 440, 100)
          .report();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].rule, "data_loading");
  EXPECT_THAT(report.findings[0].evidence, HasSubstr("num_workers=0"));
  EXPECT_DOUBLE_EQ(*report.findings[0].seconds, 310e-6);  // 110 to 420 us
}

TEST(TraceFindings, a_transpose_for_a_matmul_is_not_a_layout_transpose) {
  const auto transpose_in = [](std::string_view op) {
    return TraceText{}.op(op, 0, 10).kernel("batched_transpose_32x32_half", 1, 2, 20, 1000);
  };
  EXPECT_THAT(rules_of(transpose_in("aten::miopen_convolution")), ElementsAre("layout_transposes"));
  EXPECT_THAT(rules_of(transpose_in("GroupedLinear")), IsEmpty());
}

Finding finding(std::string rule, double share, std::string evidence, std::optional<int> rank) {
  Finding one;
  one.rule = std::move(rule);
  one.share = share;
  one.evidence = std::move(evidence);
  one.rank = rank;
  return one;
}

TEST(TraceFindings, a_concept_that_a_rule_has_found_is_listed_once) {
  std::vector<Finding> findings = {finding("communication", 0.2, "exposed", {}),
                                   finding("synchronization", 0.1, "waits", 1)};
  add_findings(findings,
               std::vector{finding("communication", 0.3, "2 allreduce", 0),
                           finding("synchronization", 0.15, "3 calls", 0),
                           finding("slow_matmuls", 0.4, "aten::mm", 0)});
  std::vector<std::string> rules;
  for (const Finding& each : findings) rules.push_back(each.rule);
  EXPECT_THAT(rules,
              ElementsAre("slow_matmuls", "communication", "synchronization", "synchronization"));
  EXPECT_EQ(findings[1].evidence, "exposed; in the trace 2 allreduce");
}

}  // namespace
}  // namespace flopmeter
