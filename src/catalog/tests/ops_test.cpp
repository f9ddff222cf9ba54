// SPDX-License-Identifier: Apache-2.0
//
// Rules against loops that count every multiply-add, and common properties of all rules.
#include <flopmeter/catalog/op_call_text.h>
#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/catalog/operations.h>

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace flopmeter {
namespace {

OpCost flop_cost(std::string_view op, const std::string& text) {
  const Result<OwnedOpCall> parsed = parse_op_call(text);
  EXPECT_TRUE(parsed) << text;
  const OpRule* rule = find_op_rule(op);
  EXPECT_NE(rule, nullptr) << op;
  const std::optional<OpCost> cost = rule->flop_cost((*parsed).call());
  EXPECT_TRUE(cost) << op << " " << text;
  return cost.value_or(OpCost{});
}

std::string joined(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

struct RandomConvolution {
  std::vector<std::int64_t> input, weight, stride, padding, dilation;
  std::int64_t groups = 1;
  bool transposed = false;

  /// Multiply-adds of a loop over images, groups, channels, kernel positions, and kernel elements.
  [[nodiscard]] int multiply_adds() const {
    int places = 1;
    int taps = 1;
    for (std::size_t d = 0; d < stride.size(); ++d) {
      int along = 0;
      if (transposed) {  // the kernel is applied at every input
        for (std::int64_t i = 0; i < input[2 + d]; ++i) ++along;
      } else {  // else wherever it is inside the padded input
        const std::int64_t last_tap = dilation[d] * (weight[2 + d] - 1);
        for (std::int64_t start = -padding[d]; start + last_tap < input[2 + d] + padding[d];
             start += stride[d]) {
          ++along;
        }
      }
      places *= along;
      taps *= static_cast<int>(weight[2 + d]);
    }
    int count = 0;
    const std::int64_t from = input[1] / groups;
    const std::int64_t to = transposed ? weight[1] : weight[0] / groups;
    for (std::int64_t image = 0; image < input[0]; ++image) {
      for (std::int64_t group = 0; group < groups; ++group) {
        for (std::int64_t in = 0; in < from; ++in) {
          for (std::int64_t out = 0; out < to; ++out) {
            for (int place = 0; place < places; ++place) count += taps;
          }
        }
      }
    }
    return count;
  }

  [[nodiscard]] std::string arguments() const {
    return "[" + joined(input) + "] [" + joined(weight) + "]";
  }
  [[nodiscard]] std::string settings() const {
    return " (" + joined(stride) + ") (" + joined(padding) + ") (" + joined(dilation) + ") " +
           (transposed ? "1" : "0") + " (0) " + std::to_string(groups);
  }
};

RandomConvolution random_convolution(std::mt19937& random) {
  const auto from = [&random](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  RandomConvolution c;
  c.transposed = from(0, 1) == 1;
  c.groups = from(1, 3);
  const std::int64_t in = c.groups * from(1, 3);
  const std::int64_t out = c.groups * from(1, 3);
  c.input = {from(1, 3), in};
  c.weight = c.transposed ? std::vector{in, out / c.groups} : std::vector{out, in / c.groups};
  for (std::int64_t d = from(1, 3); d > 0; --d) {
    c.weight.push_back(from(1, 3));
    c.stride.push_back(from(1, 3));
    c.padding.push_back(from(0, 2));
    c.dilation.push_back(from(1, 2));
    c.input.push_back(from(5, 8));  // no smaller than the kernel
  }
  return c;
}

TEST(ConvolutionRule, equals_a_loop_over_every_multiply_add) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const RandomConvolution c = random_convolution(random);
    const OpCost forward = flop_cost("aten::convolution", c.arguments() + " -" + c.settings());
    ASSERT_EQ(static_cast<int>(forward.executed.value), 2 * c.multiply_adds())
        << c.arguments() << c.settings();
    for (const auto& [mask, times] :
         {std::pair{"(0,0,1)", 0}, {"(1,0,0)", 1}, {"(0,1,1)", 1}, {"(1,1,1)", 2}}) {
      const std::string call = "- " + c.arguments() + " -" + c.settings() + " " + mask;
      const OpCost backward = flop_cost("aten::convolution_backward", call);
      ASSERT_EQ(static_cast<int>(backward.executed.value), times * 2 * c.multiply_adds()) << call;
      ASSERT_EQ(static_cast<int>(backward.bytes.value),
                times * static_cast<int>(forward.bytes.value))
          << call;
    }
  }
}

TEST(LinearRule, each_requested_gradient_costs_one_matmul) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const std::string k = std::to_string(random() % 9 + 1);
    const std::string n = std::to_string(random() % 9 + 1);
    const std::string rows = std::to_string(random() % 9 + 1) + "," + std::to_string(random() % 4);
    const std::string x = "[" + rows + "," + k + "]";
    const std::string weight = "[" + n + "," + k + "]";
    const OpCost forward = flop_cost("aten::linear", x + " " + weight + " -");
    for (const auto& [mask, times] :
         {std::pair{" (0,0,0)", 0}, {" (1,0,1)", 1}, {" (0,1,0)", 1}, {" (1,1,1)", 2}}) {
      const OpCost backward =
          flop_cost("aten::linear_backward", x + " [" + rows + "," + n + "] " + weight + mask);
      EXPECT_EQ(backward.executed, times * forward.executed);
      EXPECT_EQ(backward.bytes, times * forward.bytes);
    }
  }
}

TEST(AttentionRule, backward_is_twice_the_model_and_five_halves_executed) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto some = [&random] { return std::to_string(random() % 7 + 1); };
    const std::string batch = some();
    const std::string size = some();
    const std::string q = "[" + batch + "," + some() + "," + some() + "," + size + "] ";
    const std::string kv = "[" + batch + "," + some() + "," + some() + "," + size + "] ";
    const std::string causal = random() % 2 == 0 ? "0" : "1";
    const OpCost forward =
        flop_cost("aten::_scaled_dot_product_flash_attention_for_cpu", q + kv + kv + "- " + causal);
    const OpCost backward = flop_cost("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                                      q + q + kv + kv + q + "[1] - " + causal);
    EXPECT_EQ(backward.model, 2 * forward.model);
    EXPECT_EQ(2 * backward.executed, 5 * forward.executed);
  }
}

TEST(AttentionRule, a_mask_tensor_counts_as_full_and_is_marked) {
  const OpCost masked = flop_cost("aten::_scaled_dot_product_flash_attention_for_cpu",
                                  "[1,2,8,4] [1,2,8,4] [1,2,8,4] - 0 [8,8]");
  EXPECT_EQ(masked.pairs, AttentionPairs::full);
  const OpCost causal = flop_cost("aten::_scaled_dot_product_flash_attention_for_cpu",
                                  "[1,2,8,4] [1,2,8,4] [1,2,8,4] - 1 -");
  EXPECT_EQ(causal.pairs, AttentionPairs::exact);
  EXPECT_EQ(to_string(masked.executed.value), to_string(2 * 64 * 2 * (4 + 4)));
  EXPECT_EQ(to_string(causal.executed.value), to_string(2 * 36 * 2 * (4 + 4)));
}

TEST(AttentionRule, packed_sequences_are_never_undercounted) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const bool causal = random() % 2 == 0;
    std::int64_t queries = 0;
    std::int64_t keys = 0;
    std::int64_t longest_q = 0;
    std::int64_t longest_k = 0;
    WideInt pairs = 0;
    const auto sequences = static_cast<std::int64_t>(random() % 4 + 1);
    for (std::int64_t i = 0; i < sequences; ++i) {
      const auto q = static_cast<std::int64_t>(random() % 6);
      const auto k = static_cast<std::int64_t>(random() % 6);
      const auto shape = causal ? MaskPairs::Shape::causal_bottom_right : MaskPairs::Shape::full;
      pairs += mask_pairs({.shape = shape}, q, k);
      queries += q;
      keys += k;
      longest_q = std::max(longest_q, q);
      longest_k = std::max(longest_k, k);
    }
    const std::string starts = "[" + std::to_string(sequences + 1) + "] ";
    const std::string kv = "[" + std::to_string(keys) + ",1,3] ";
    const OpCost cost =
        flop_cost("aten::_flash_attention_forward",
                  "[" + std::to_string(queries) + ",1,3] " + kv + kv + starts + starts +
                      std::to_string(longest_q) + " " + std::to_string(longest_k) + " - " +
                      (causal ? "1" : "0") + " 0");
    const Flops needed{2 * pairs * (3 + 3)};
    if (cost.pairs == AttentionPairs::exact) {
      EXPECT_EQ(cost.executed, needed);
    } else {
      EXPECT_GE(cost.executed, needed);
    }
  }
}

TEST(AttentionRule, pages_and_chunks_have_no_cost) {
  const std::string qkv = "[2,3,4,8] [9,16,2,8] [9,16,2,8] ";
  for (const auto& [op, rest] :
       {std::pair{"aten::_flash_attention_forward", "- - 3 5 - 1 0 - - - [2] - [2,4] -"},
        {"xformers_flash::flash_fwd", "- - [2] 3 5 - - 1 -1 -1 0 [2,4] 0"},
        {"flash_attn_3::fwd", "- - - - - - - - - - - - - - - - - - - - - 1 -1 -1 64"}}) {
    const Result<OwnedOpCall> parsed = parse_op_call(qkv + rest);
    ASSERT_TRUE(parsed);
    EXPECT_FALSE(find_op_rule(op)->flop_cost((*parsed).call())) << op;
  }
}

TEST(EveryRule, complex_matmuls_cost_four_real_ones) {
  for (const auto& [op, real, complex] :
       {std::tuple{"aten::mm", "[2,3] [3,4]", "complex[2,3] complex[3,4]"},
        {"aten::bmm", "[5,2,3] [5,3,4]", "complex[5,2,3] complex[5,3,4]"},
        {"aten::convolution",
         "[1,4,6] [2,4,3] - (1) (0) (1) 0 (0) 1",
         "complex[1,4,6] complex[2,4,3] - (1) (0) (1) 0 (0) 1"}}) {
    EXPECT_EQ(flop_cost(op, complex).executed, 4 * flop_cost(op, real).executed) << op;
    EXPECT_EQ(flop_cost(op, complex).bytes, 2 * flop_cost(op, real).bytes) << op;
  }
}

TEST(CheckedFlopCost, excessive_sizes_have_no_cost) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  for (const OpFamily* family : op_families()) {
    for (const OpExample& example : family->examples) {
      const Result<OwnedOpCall> parsed = parse_op_call(example.call);
      ASSERT_TRUE(parsed);
      const OpCall call = (*parsed).call();
      const OpRule& rule = *find_op_rule(example.op);
      EXPECT_TRUE(checked_flop_cost(rule, call)) << example.op;
      for (std::size_t i = 0; i < call.args.size(); ++i) {
        for (const std::int64_t extent : {huge, std::int64_t{-1}, std::int64_t{1} << 41}) {
          std::vector<Arg> args(call.args.begin(), call.args.end());
          if (!args[i].is_tensor() || args[i].rank == 0) continue;
          std::vector<std::int64_t> extents(args[i].values, args[i].values + args[i].rank);
          extents.back() = extent;
          args[i].values = extents.data();
          EXPECT_FALSE(checked_flop_cost(rule, {.args = args, .output = call.output}))
              << example.op;
        }
      }
    }
  }
}

TEST(CheckedFlopCost, the_largest_accepted_sizes_do_not_overflow) {
  const std::vector<std::int64_t> wide = {std::int64_t{1} << 20, std::int64_t{1} << 20};
  const std::vector<Arg> args = {Arg::tensor(wide), Arg::tensor(wide)};
  const auto cost = checked_flop_cost(*find_op_rule("aten::mm"), {.args = args, .output = {}});
  ASSERT_TRUE(cost);
  EXPECT_EQ(to_string(cost->executed.value), "2305843009213693952");  // 2 * 2^60
}

}  // namespace
}  // namespace flopmeter
