// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/current_phase.h>
#include <flopmeter/torch/op_counter.h>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>

namespace flopmeter {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr std::uint64_t mm_flops = 2 * 32 * 48 * 40;

// torch::autograd works on tensors that remember their history; at::randn makes plain ones.
at::Tensor leaf(at::IntArrayRef sizes) {
  return at::randn(sizes).requires_grad_();
}

TEST(OpCounter, matmuls_of_an_optimizer_are_not_work_of_the_model) {
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter;
  current_phase() = Phase::optimizer;
  at::mm(a, b).sum().backward();  // a closure's
  {
    const at::NoGradGuard own;
    at::mm(a, b);
  }
  current_phase() = Phase::other;
  const Counts counts = counter.counts();
  EXPECT_EQ(counts.model_flops(), 3 * mm_flops);
  EXPECT_EQ(counts.hardware_flops(), 4 * mm_flops);
}

TEST(OpCounter, counts_forward_and_backward_of_a_matmul) {
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter;
  at::mm(a, b).sum().backward();
  const Counts counts = counter.counts();
  EXPECT_EQ(counts.hardware_flops(Pass::forward), mm_flops);
  EXPECT_EQ(counts.hardware_flops(Pass::backward), 2 * mm_flops);
  EXPECT_EQ(counts.hardware_flops(Pass::recompute), 0);
  EXPECT_EQ(counts.model_flops(), 3 * mm_flops);
  EXPECT_EQ(counts.hardware_flops(), 3 * mm_flops);
  EXPECT_EQ(counts.hardware_flops(Dtype::fp32), 3 * mm_flops);
  EXPECT_EQ(counts.totals.calls, 3);
  EXPECT_TRUE(counts.unsupported.empty());
}

TEST(OpCounter, counts_nothing_once_stopped) {
  const at::Tensor a = at::randn({4, 4});
  OpCounter counter;
  at::mm(a, a);
  counter.stop();
  at::mm(a, a);
  EXPECT_EQ(counter.counts().hardware_flops(), 128);
}

TEST(OpCounter, counts_convolutions_and_their_gradients) {
  const at::Tensor x = leaf({2, 8, 16, 16});
  const at::Tensor w = leaf({12, 4, 3, 3});
  const OpCounter counter;
  at::conv2d(x, w, {}, 2, 1, 1, 2).sum().backward();
  EXPECT_EQ(counter.counts().hardware_flops(), 3 * 2 * 2 * 64 * 12 * 4 * 9);
}

TEST(OpCounter, is_exact_over_threads_that_come_and_go) {
  const OpCounter counter;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        const at::Tensor a = at::ones({8, 8});
        for (int n = 0; n < 10; ++n) at::mm(a, a);
      });
    }
    for (auto& thread : threads) thread.join();
  }
  EXPECT_EQ(counter.counts().hardware_flops(), 20 * 4 * 10 * 2 * 8 * 8 * 8);
}

TEST(OpCounter, may_be_switched_a_thousand_times_while_four_threads_run) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> calls{0};
  std::vector<std::thread> threads;
  {
    const OpCounter whole;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const at::Tensor a = at::ones({8, 8});
        while (!stop) {
          at::mm(a, a);
          at::addmm(a, a, a);
          calls.fetch_add(2);
        }
      });
    }
    for (int i = 0; i < 1000; ++i) {
      const OpCounter inner(i % 3 == 0);
      EXPECT_EQ(inner.counts().hardware_flops() % (2 * 8 * 8 * 8), 0);
    }
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(whole.counts().hardware_flops(), calls * 2 * 8 * 8 * 8);
  }
}

/// A reentrant checkpoint in C++: the forward again under grad mode, then a backward
/// inside.
struct Checkpoint : Function<Checkpoint> {
  static at::Tensor forward(AutogradContext* saved_for, const at::Tensor& x, const at::Tensor& w) {
    saved_for->save_for_backward({x, w});
    return at::mm(x, w).square();
  }
  static variable_list backward(AutogradContext* saved_for, const variable_list& grads) {
    const auto saved = saved_for->get_saved_variables();
    const at::AutoGradMode grad_mode(true);
    const at::Tensor x = saved[0].detach().requires_grad_();
    const at::Tensor w = saved[1].detach().requires_grad_();
    return torch::autograd::grad({at::mm(x, w).square()}, {x, w}, {grads[0]});
  }
};

TEST(OpCounter, distinguishes_the_recompute_of_a_checkpoint_from_backward) {
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter;
  Checkpoint::apply(a, b).sum().backward();
  EXPECT_EQ(counter.counts().hardware_flops(Pass::forward), mm_flops);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::backward), 2 * mm_flops);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::recompute), mm_flops);
  EXPECT_EQ(counter.counts().model_flops(), 3 * mm_flops);
}

struct GradUnderGradMode : Function<GradUnderGradMode> {
  static at::Tensor forward(AutogradContext* saved_for, const at::Tensor& x, const at::Tensor& w) {
    saved_for->save_for_backward({x, w});
    return at::mm(x, w);
  }
  static variable_list backward(AutogradContext* saved_for, const variable_list& grads) {
    const auto saved = saved_for->get_saved_variables();
    const at::AutoGradMode grad_mode(true);
    return {at::mm(grads[0], saved[1].t()), at::mm(saved[0].t(), grads[0])};
  }
};

TEST(OpCounter, counts_a_custom_backward_under_grad_mode_as_backward) {
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter;
  GradUnderGradMode::apply(a, b).sum().backward();
  EXPECT_EQ(counter.counts().hardware_flops(Pass::backward), 2 * mm_flops);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::recompute), 0);
}

TEST(OpCounter, counts_create_graph_as_backward) {
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter;
  torch::autograd::grad({at::mm(a, b).square().sum()}, {a, b}, {}, true, true);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::backward), 2 * mm_flops);
  EXPECT_EQ(counter.counts().hardware_flops(Pass::recompute), 0);
}

#if TORCH_VERSION_MAJOR >= 2  // 1.13 does not report which node runs
TEST(OpCounter, attributes_work_to_modules_forward_and_backward) {
  const ModuleId first = module_id("first");
  const ModuleId second = module_id("second");
  const at::Tensor a = leaf({32, 48});
  const at::Tensor b = leaf({48, 40});
  const OpCounter counter(true);
  at::Tensor y;
  {
    const ModuleScope scope(first);
    y = at::mm(a, b);
  }
  {
    const ModuleScope scope(second);
    y = at::mm(y.t(), a);
  }
  at::mm(a.detach(), b.detach());
  y.sum().backward();
  std::map<std::string, std::uint64_t> sums;
  for (const CountRow& row : counter.counts().modules) sums[row.name] += row.executed;
  EXPECT_EQ(sums,
            (std::map<std::string, std::uint64_t>{
                {"", mm_flops}, {"first", 3 * mm_flops}, {"second", 3 * 2 * 40 * 32 * 48}}));
}
#endif

TEST(Region, adds_what_it_counted_for_each_replay) {
  const at::Tensor a = at::randn({4, 4});
  const OpCounter counter;
  Region region;
  at::mm(a, a);
  region.stop();
  region.replayed(9);
  EXPECT_EQ(region.counts().hardware_flops(), 128);
  EXPECT_EQ(counter.counts().hardware_flops(), 1280);
  EXPECT_EQ(counter.counts().ops.front().calls, 10);
}

at::Tensor twice(const at::Tensor& x) {
  return at::mm(x, x) * 2;
}

TORCH_LIBRARY(flopmeter_test, library) {
  library.def("twice(Tensor x) -> Tensor");
  library.def("unlisted(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(flopmeter_test, CPU, library) {
  library.impl("twice", twice);
  library.impl("unlisted", twice);
}

TEST(RegisterOp, counts_a_custom_operator_as_a_whole) {
  const auto registered = register_op(
      "flopmeter_test::twice",
      [](const OpCall& call) -> std::optional<Flops> { return Flops{1000 + call.args[0][0]}; });
  ASSERT_TRUE(registered) << registered.error().message;
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("flopmeter_test::twice", "")
                      .typed<at::Tensor(const at::Tensor&)>();
  const OpCounter counter;
  op.call(at::ones({4, 4}));
  ASSERT_EQ(counter.counts().ops.size(), 1);
  EXPECT_EQ(counter.counts().ops[0].name, "flopmeter_test::twice");
  EXPECT_EQ(counter.counts().hardware_flops(), 1004);
}

TEST(RegisterOp, refuses_operators_that_cannot_be_counted) {
  const UserRule one = [](const OpCall&) { return std::optional<Flops>(Flops{1}); };
  EXPECT_EQ(register_op("mm", one).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(register_op("nowhere::nothing", one).error().code, ErrorCode::not_found);
  EXPECT_EQ(register_op("aten::matmul", one).error().code, ErrorCode::unsupported);
}

TEST(TorchFlopCounter, totals_grow_by_what_ran_and_the_cost_of_a_call_is_known) {
  TorchFlopCounter source;
  source.enable(true);
  const at::Tensor a = at::randn({4, 4});
  const FlopTotals before = source.snapshot();
  at::mm(a, a);
  const FlopTotals ran = source.snapshot() - before;
  EXPECT_EQ(ran.executed[static_cast<std::size_t>(Dtype::fp32)][0], 128);
  EXPECT_EQ(ran.calls, 1);
  source.enable(false);
  at::mm(a, a);
  EXPECT_EQ((source.snapshot() - before).calls, 1);
  EXPECT_LT(source.nanoseconds_per_call(), 5000);
  EXPECT_EQ((source.snapshot() - before).calls, 1) << "calibration must not be counted";
}

TEST(OpProfiler, sees_every_operator_with_its_own_time) {
  const at::Tensor a = leaf({64, 64});
  OpProfiler profile;
  at::mm(a, a).relu().sum().backward();
  const OpProfile result = profile.stop();
  std::map<std::string, std::uint64_t> calls;
  std::map<OpKind, double> seconds;
  for (const OpProfileRow& row : result.rows) {
    calls[row.name] += row.calls;
    seconds[row.kind] += row.self.value;
  }
  EXPECT_EQ(calls["aten::mm"], 3);
  EXPECT_EQ(calls["aten::relu"], 1);
  EXPECT_GT(seconds[OpKind::compute], 0);
  EXPECT_GE(result.wall.value * 2, result.busy.value);
  EXPECT_EQ(seconds[OpKind::unknown], 0);
}

/// Seconds without an operator.
double idle(const OpProfile& result, bool stall) {
  double sum = 0;
  for (const IdleSpan& span : result.idle) {
    if (span.stall == stall) sum += span.time.value;
  }
  return sum;
}

TEST(OpProfiler, distinguishes_dispatch_between_operators_from_a_stall) {
  const at::Tensor a = leaf({64, 64});
  OpProfiler profile;
  for (int i = 0; i < 100; ++i) at::mm(a, a).sum().backward();
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  at::mm(a, a);
  const OpProfile result = profile.stop();
  EXPECT_GT(idle(result, false), 0);
  EXPECT_GE(idle(result, true), 0.02);
  // Time of the training thread is an operator or idle, or it is the profile's own.
  EXPECT_LE(result.busy.value + idle(result, false) + idle(result, true), result.wall.value);
}

TEST(OpProfiler, puts_outermost_operators_on_a_time_axis) {
  const at::Tensor a = leaf({64, 64});
  OpProfiler profile;
  for (int i = 0; i < 3000; ++i) at::linear(a, a);
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  at::linear(a, a).sum().backward();
  const OpProfile result = profile.stop();
  const StepTimeline& timeline = result.timeline;
  std::map<std::string, std::size_t> count;
  std::size_t spans = 0;
  double longest_idle = 0;
  for (const StepTimeline::Lane& lane : timeline.lanes) {
    double end = 0;
    for (const StepTimeline::Span& span : lane.spans) {
      ++count[lane.kind + " " + span.name];
      if (lane.kind == "idle") {
        EXPECT_GT(span.seconds, 200e-6) << "dispatching an operator takes less";
        longest_idle = std::max(longest_idle, span.seconds);
      }
      EXPECT_GE(span.start, end - 1e-6) << span.name;
      end = span.start + span.seconds;
    }
    EXPECT_LE(end, timeline.seconds + 1e-6);
    if (lane.kind != "phases") spans += lane.spans.size();
  }
  EXPECT_GE(longest_idle, 0.02);
  EXPECT_GT(count["compute aten::linear"], 1000U);
  EXPECT_EQ(count["compute aten::addmm"], 0U) << "inside aten::linear";
  EXPECT_EQ(spans, 2000U) << "the longest ones";
  EXPECT_GT(timeline.omitted, 1000);
}

TEST(OpProfiler, names_operators_of_other_libraries_as_unknown_unless_they_have_a_rule) {
  const auto registered = register_op("flopmeter_test::twice",
                                      [](const OpCall&) { return std::optional<Flops>(Flops{1}); });
  ASSERT_TRUE(registered) << registered.error().message;
  OpProfiler profile;
  for (const char* name : {"flopmeter_test::twice", "flopmeter_test::unlisted"}) {
    c10::Dispatcher::singleton()
        .findSchemaOrThrow(name, "")
        .typed<at::Tensor(const at::Tensor&)>()
        .call(at::ones({4, 4}));
  }
  std::map<std::string, OpKind> kinds;
  for (const OpProfileRow& row : profile.stop().rows) kinds[row.name] = row.kind;
  EXPECT_EQ(kinds.at("flopmeter_test::twice"), OpKind::compute);
  EXPECT_EQ(kinds.at("flopmeter_test::unlisted"), OpKind::unknown);
}

TEST(OpProfiler, refuses_a_second_one_at_the_same_time) {
  const OpProfiler profile;
  EXPECT_THROW(OpProfiler{}, std::logic_error);
}

}  // namespace
}  // namespace flopmeter
