// SPDX-License-Identifier: Apache-2.0
//
// The C interface with an adapter that is a fake: it intercepts nothing and counts one matmul.
#include <flopmeter/core/flop_counter.h>
#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/op_counter.h>

#include <gtest/gtest.h>

#include <array>

namespace flopmeter {
namespace {

const FlopmeterHost* host = nullptr;

FlopmeterArg matrix(const std::array<std::int64_t, 2>& extents) {
  FlopmeterArg arg{};
  arg.kind = FLOPMETER_TENSOR;
  arg.dtype = FLOPMETER_FP32;
  arg.rank = 2;
  arg.values = extents.data();
  return arg;
}

double run_matmuls(
    std::int64_t m, std::int64_t k, std::int64_t n, std::int32_t calls, int counted) {
  const std::array<std::int64_t, 2> left{m, k};
  const std::array<std::int64_t, 2> right{k, n};
  const std::array<FlopmeterArg, 2> args{matrix(left), matrix(right)};
  FlopmeterCall call{};
  call.args = args.data();
  call.arg_count = args.size();
  call.module = FLOPMETER_MODULES_OFF;
  call.dtype = FLOPMETER_FP32;
  const FlopmeterOp* op = host->find_op("aten::mm.out", nullptr, 0);
  for (std::int32_t i = 0; counted != 0 && i < calls; ++i) op->count(op, &call);
  return 1;
}

FlopmeterAdapter fake{
    .abi_version = FLOPMETER_ADAPTER_ABI_VERSION,
    .framework_version = "fake",
    .install = [] {},
    .intercept = [](const char*, FlopmeterOp*) -> int { return FLOPMETER_NO_SUCH_OP; },
    .find_new_ops = [] {},
    .add_users = [](std::int32_t, std::int32_t) {},
    .run_matmuls = run_matmuls};

TEST(Adapter, without_one_counting_reports_what_to_link) {
  ASSERT_EQ(attached_adapter(), nullptr);
  EXPECT_EQ(install_op_counter().error().code, ErrorCode::unsupported);
  EXPECT_THROW(OpCounter{}, std::runtime_error);
}

TEST(Adapter, of_another_version_is_refused) {
  static FlopmeterAdapter newer = fake;
  newer.abi_version = FLOPMETER_ADAPTER_ABI_VERSION + 1;
  EXPECT_FALSE(
      attach_adapter([](const FlopmeterHost*) -> const FlopmeterAdapter* { return &newer; }));
  EXPECT_FALSE(
      attach_adapter([](const FlopmeterHost*) -> const FlopmeterAdapter* { return nullptr; }));
  EXPECT_EQ(attached_adapter(), nullptr);
}

TEST(Adapter, that_is_not_a_library_is_refused) {
  EXPECT_FALSE(load_adapter("/nowhere/adapter.so"));
}

TEST(Adapter, counts_by_the_rules_of_the_catalog) {
  ASSERT_TRUE(attach_adapter([](const FlopmeterHost* given) -> const FlopmeterAdapter* {
    host = given;
    return &fake;
  }));
  const OpCounter counter;
  run_matmuls(2, 3, 4, 5, 1);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::forward), 5 * 48);
  ASSERT_EQ(counter.counts().ops.size(), 1);
  EXPECT_EQ(counter.counts().ops[0].name, "aten::mm");
  EXPECT_EQ(host->find_op("aten::relu", nullptr, 0), nullptr);
  EXPECT_EQ(register_op("mylib::op", {}).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace flopmeter
