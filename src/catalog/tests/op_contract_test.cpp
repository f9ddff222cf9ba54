// SPDX-License-Identifier: Apache-2.0
//
// Contract of every file in src/catalog/ops.
#include <flopmeter/catalog/op_call_text.h>
#include <flopmeter/catalog/op_rule.h>

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace flopmeter {
namespace {

TEST(OpContract, families_have_a_help_text_and_a_source) {
  std::set<std::string_view> names;
  for (const OpFamily* family : op_families()) {
    EXPECT_TRUE(names.insert(family->name).second) << family->name;
    EXPECT_FALSE(family->help.empty()) << family->name;
    EXPECT_FALSE(family->source.empty()) << family->name;
    EXPECT_FALSE(family->rules.empty()) << family->name;
  }
}

TEST(OpContract, an_operator_has_one_rule_and_is_found_by_its_name) {
  std::set<std::string_view> names;
  for (const OpFamily* family : op_families()) {
    for (const OpRule& rule : family->rules) {
      EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
      EXPECT_NE(rule.name.find("::"), std::string_view::npos) << rule.name;
      EXPECT_EQ(find_op_rule(rule.name), &rule) << rule.name;
      ASSERT_NE(rule.flop_cost, nullptr) << rule.name;
    }
  }
}

TEST(OpContract, every_cost_has_an_example) {
  for (const OpFamily* family : op_families()) {
    std::set<std::string_view> shown;
    for (const OpExample& example : family->examples) shown.insert(example.op);
    std::size_t supported = 0;
    for (const OpRule& rule : family->rules) {
      const bool has_cost = rule.flop_cost != unknown_cost;
      EXPECT_EQ(shown.contains(rule.name), has_cost) << rule.name;
      if (has_cost) ++supported;
    }
    EXPECT_EQ(shown.size(), supported) << family->name << " has an example of another family";
  }
}

TEST(OpContract, examples_are_reproduced) {
  for (const OpFamily* family : op_families()) {
    for (const OpExample& example : family->examples) {
      const std::string what = std::string{example.op} + " " + std::string{example.call};
      const OpRule* rule = find_op_rule(example.op);
      ASSERT_NE(rule, nullptr) << what;
      const Result<OwnedOpCall> parsed = parse_op_call(example.call);
      ASSERT_TRUE(parsed) << what << ": " << parsed.error().message;
      const OpCall call = (*parsed).call();
      EXPECT_TRUE(call.arg(rule->dtype_argument).is_tensor() ||
                  call.arg(rule->dtype_argument).kind == Arg::Kind::tensors)
          << what;
      const std::optional<OpCost> cost = rule->flop_cost(call);
      ASSERT_TRUE(cost) << what;
      EXPECT_EQ(to_string(cost->executed.value), to_string(example.executed)) << what;
      EXPECT_EQ(to_string(cost->model.value), to_string(example.model)) << what;
      EXPECT_EQ(to_string(cost->bytes.value), to_string(example.bytes)) << what;
      EXPECT_EQ(to_string(cost->pairs), to_string(example.pairs)) << what;
      EXPECT_EQ(cost->bounded, example.bounded) << what;
    }
  }
}

TEST(OpContract, calls_without_arguments_have_no_cost) {
  const std::vector<Arg> absent(30);
  for (const OpFamily* family : op_families()) {
    for (const OpRule& rule : family->rules) {
      EXPECT_FALSE(rule.flop_cost({})) << rule.name;
      EXPECT_FALSE(rule.flop_cost({.args = absent, .output = {}})) << rule.name;
    }
  }
}

TEST(OpContract, an_example_cut_short_or_of_another_rank_never_crashes) {
  for (const OpFamily* family : op_families()) {
    for (const OpExample& example : family->examples) {
      const Result<OwnedOpCall> parsed = parse_op_call(example.call);
      ASSERT_TRUE(parsed);
      const OpCall call = (*parsed).call();
      const OpRule* rule = find_op_rule(example.op);
      for (std::size_t size = 0; size < call.args.size(); ++size) {
        (void)rule->flop_cost({.args = call.args.first(size), .output = {}});
      }
      for (std::size_t i = 0; i < call.args.size(); ++i) {
        std::vector<Arg> args(call.args.begin(), call.args.end());
        for (int rank = 0; rank <= args[i].rank && !args[i].is_number(); ++rank) {
          args[i].rank = rank;
          (void)rule->flop_cost({.args = args, .output = {}});
          args[i].rank = call.args[i].rank;
        }
        args[i] = Arg{};
        (void)rule->flop_cost({.args = args, .output = call.output});
      }
    }
  }
}

TEST(OpContract, any_mixture_of_arguments_has_a_cost_or_none) {
  std::mt19937 random(7);
  const std::vector<std::int64_t> values = {0, 3, 1, 2, 0, 5, 1};
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Arg> items(3);
    std::vector<Arg> args(static_cast<std::size_t>(below(20)));
    const auto any = [&](int kinds) {
      const auto part = std::span{values}.first(static_cast<std::size_t>(below(8)));
      switch (below(kinds)) {
        case 0:
          return Arg{};
        case 1:
          return Arg::number(below(5) - 1);
        case 2:
          return Arg::list(part);
        case 3:
          return Arg::tensors(items);
        default:
          return Arg::tensor(part, static_cast<Dtype>(below(dtype_count)));
      }
    };
    for (Arg& item : items) item = Arg::tensor(values);
    for (Arg& arg : args) arg = any(9);
    const OpCall call{.args = args, .output = any(9)};
    for (const OpFamily* family : op_families()) {
      for (const OpRule& rule : family->rules) {
        EXPECT_GE(rule.flop_cost(call).value_or(OpCost{}).executed.value, 0) << rule.name;
      }
    }
  }
}

TEST(FindOpRule, overloads_and_in_place_forms_use_the_rule_of_their_operator) {
  ASSERT_NE(find_op_rule("aten::addmm"), nullptr);
  EXPECT_EQ(find_op_rule("aten::addmm.out"), find_op_rule("aten::addmm"));
  EXPECT_EQ(find_op_rule("aten::addmm_"), find_op_rule("aten::addmm"));
  EXPECT_EQ(find_op_rule("aten::add"), nullptr);
  EXPECT_EQ(find_op_rule("aten::"), nullptr);
  EXPECT_EQ(find_op_rule(""), nullptr);
}

TEST(OpCallText, names_the_word_that_it_cannot_read) {
  for (const std::string_view text :
       {"[2,3", "[2,,3]", "[2,]", "x[2]", "bf16(1)", "{[2]", "{1}", "abc", "1.5"}) {
    EXPECT_FALSE(parse_op_call(text)) << text;
  }
}

}  // namespace
}  // namespace flopmeter
