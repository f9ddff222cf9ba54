// SPDX-License-Identifier: Apache-2.0
//
// Contract of every file in src/catalog/models, and every known model.
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/core/text.h>

#include <gtest/gtest.h>

#include <sstream>

namespace flopmeter {
namespace {

class Families : public testing::TestWithParam<const ModelFamily*> {};

TEST_P(Families, reproduces_its_worked_example) {
  const ModelFamily& family = *GetParam();
  const auto config = Config::parse(family.example.config, family.name);
  ASSERT_TRUE(config) << config.error().message;
  const auto model = build_model(*config);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model).family, family.name);
  const auto result = estimate(*model, {.batch = Batch::uniform(1, family.example.seq_len)});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(to_string((*result).parameters.total), to_string(family.example.parameters));
  EXPECT_EQ(to_string((*result).model_flops.value), to_string(family.example.training_flops));
}

TEST_P(Families, has_a_help_text_and_unique_types) {
  const ModelFamily& family = *GetParam();
  EXPECT_FALSE(family.help.empty());
  ASSERT_FALSE(family.types.empty());
  for (const ModelFamily* other : model_families()) {
    if (other == &family) continue;
    std::istringstream types{std::string{family.types}};
    for (std::string type; types >> type;)
      EXPECT_FALSE(has_word(other->types, type)) << type << ' ' << other->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog,
                         Families,
                         testing::ValuesIn(model_families().begin(), model_families().end()),
                         [](const auto& suite) {
                           std::string name{suite.param->name};
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           return name;
                         });

TEST(KnownModels, are_found_in_every_spelling) {
  for (const std::string_view name :
       {"llama-3-8b", "LLAMA3_8B", "Llama 3 8B", "meta-llama/Meta-Llama-3-8B"}) {
    const auto model = find_model(name);
    ASSERT_TRUE(model) << name;
    EXPECT_EQ((*model).name, "llama-3-8b");
  }
  EXPECT_FALSE(find_model("llama-3-80b"));
  EXPECT_FALSE(find_model(""));
}

TEST(KnownModels, all_build_and_have_a_source) {
  for (const EmbeddedFile& file : known_models()) {
    const auto model = find_model(file.name);
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_FALSE((*model).bare_parameters) << file.name;
    EXPECT_NE(file.text.find("\"_source\""), std::string_view::npos) << file.name;
  }
}

}  // namespace
}  // namespace flopmeter
