// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/catalog/config.h>
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>

#include <random>

namespace flopmeter {
namespace {

std::string failure(std::string_view json) {
  const auto config = Config::parse(json, "config.json");
  if (!config) return config.error().message;
  const auto model = build_model(*config);
  return model ? "" : model.error().message;
}

TEST(Config, a_missing_key_is_named_with_its_place) {
  EXPECT_EQ(failure(R"({"model_type": "llama", "hidden_size": 8})"),
            "config.json: key 'num_hidden_layers' is missing");
}

TEST(Config, a_size_that_makes_no_sense_is_shown) {
  constexpr std::string_view rest =
      R"("num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4, "vocab_size": 9)";
  for (const std::string_view bad :
       {"-5", "0", "1.5", "\"8\"", "[]", "1e30", "true", "99999999999999"}) {
    const std::string json = R"({"model_type": "llama", "hidden_size": )" + std::string{bad} +
                             ", " + std::string{rest} + "}";
    EXPECT_NE(failure(json).find("key 'hidden_size' is"), std::string::npos) << failure(json);
  }
}

TEST(Config, text_that_is_no_json_object_is_refused_with_the_place) {
  EXPECT_NE(failure("{\"a\": ").find("not valid JSON at byte 7"), std::string::npos)
      << failure("{\"a\": ");
  EXPECT_NE(failure("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(failure("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(failure(std::string(200, '[')).find("nested"), std::string::npos);
  EXPECT_NE(failure(std::string((16U << 20U) + 1, ' ')).find("larger"), std::string::npos);
}

TEST(Config, an_unknown_architecture_becomes_parameters_times_tokens_and_says_so) {
  const auto config = Config::parse(
      R"({"model_type": "zebra", "hidden_size": 10, "num_hidden_layers": 2, "vocab_size": 100})",
      "z");
  const auto model = build_model(*config);
  ASSERT_TRUE(model);
  const auto result = estimate(*model, {.batch = Batch::uniform(1, 7)});
  ASSERT_TRUE(result);
  EXPECT_EQ((*result).parameters.total, 12 * 2 * 100 + 1000);
  EXPECT_EQ((*result).model_flops.value, 6 * 3400 * 7);
  EXPECT_EQ((*result).convention, "params-2");
  EXPECT_NE((*result).notes.at(0).find("zebra"), std::string::npos);
}

TEST(Config, random_damage_never_crashes) {
  std::mt19937 random{1};
  for (const ModelFamily* family : model_families()) {
    for (int i = 0; i < 200; ++i) {
      std::string text{family->example.config};
      for (unsigned hits = 1 + random() % 4; hits > 0; --hits) {
        text[random() % text.size()] = static_cast<char>(
            random() % 3 == 0 ? random() % 256 : "0123456789-.eE{}[],:\"ntf"[random() % 23]);
      }
      const auto config = Config::parse(text, "damaged");
      if (!config) continue;
      const auto model = build_model(*config);
      if (model) (void)estimate(*model, {.batch = Batch::uniform(2, 64)});
    }
  }
}

}  // namespace
}  // namespace flopmeter
