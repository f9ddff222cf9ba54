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

TEST(Config, an_invalid_size_is_shown) {
  constexpr std::string_view rest =
      R"("num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4, "vocab_size": 9)";
  for (const std::string_view bad :
       {"-5", "0", "1.5", "\"8\"", "[]", "1e30", "true", "99999999999999"}) {
    const std::string json = R"({"model_type": "llama", "hidden_size": )" + std::string{bad} +
                             ", " + std::string{rest} + "}";
    EXPECT_NE(failure(json).find("key 'hidden_size' is"), std::string::npos) << failure(json);
  }
}

TEST(Config, text_that_is_not_a_json_object_is_refused_with_its_place) {
  EXPECT_NE(failure("{\"a\": ").find("not valid JSON at byte 7"), std::string::npos)
      << failure("{\"a\": ");
  EXPECT_NE(failure("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(failure("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(failure(std::string(200, '[')).find("nested"), std::string::npos);
  EXPECT_NE(failure(std::string((16U << 20U) + 1, ' ')).find("larger"), std::string::npos);
}

TEST(Config, an_unknown_architecture_becomes_parameters_times_tokens_with_a_note) {
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
  EXPECT_EQ((*result).notes.at(0),
            "unknown architecture 'zebra': parameters are those of a plain decoder of these sizes, "
            "FLOPs are parameters x tokens x 2 forward, without attention");
}

Model read(std::string_view json) {
  const auto config = Config::parse(json, "config.json");
  EXPECT_TRUE(config) << config.error().message;
  auto model = build_model(*config);
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

std::string parameters(std::string_view json) {
  return to_string(count_parameters(read(json)).total);
}

// 350 M of llm-foundry's benchmark tables, which print 355985408 parameters at 2048 tokens.
TEST(Config, without_a_type_gpt_2_and_megatron_are_recognized_by_their_keys) {
  EXPECT_EQ(parameters(R"({"n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 2048,
                           "vocab_size": 50368})"),
            "355985408");
  const std::string_view megatron = R"({"num_layers": 24, "hidden_size": 1024, "seq_length": 2048,
                                        "vocab_size": 50368})";
  EXPECT_EQ(parameters(megatron), "355985408");
  ASSERT_EQ(read(megatron).notes.size(), 1U);
  EXPECT_EQ(read(megatron).notes[0],
            "no key 'model_type': read as megatron_gpt because of its other keys");
}

// LLaMA-3-8B as Megatron's arguments.
TEST(Config, megatrons_arguments_describe_a_llama) {
  EXPECT_EQ(parameters(R"({"num_layers": 32, "hidden_size": 4096, "ffn_hidden_size": 14336,
                           "num_attention_heads": 32, "num_query_groups": 8, "swiglu": true,
                           "add_bias_linear": false, "normalization": "RMSNorm",
                           "position_embedding_type": "rope", "padded_vocab_size": 128256,
                           "untie_embeddings_and_output_weights": true})"),
            "8030261248");
}

// Keys as in tables of models: one spelling for all families, without defaults.
TEST(Config, normalized_keys_describe_the_published_models) {
  EXPECT_EQ(parameters(R"({"architectures": ["QWenLMHeadModel"], "hidden_size": 2048,
                           "intermediate_size": 5504, "config_json_intermediate_size": 11008,
                           "num_hidden_layers": 24, "num_attention_heads": 16,
                           "num_key_value_heads": 16, "head_dim": 128, "vocab_size": 151936})"),
            "1836828672");
  EXPECT_EQ(parameters(R"({"architectures": ["ChatGLMModel"], "hidden_size": 4096,
                           "ffn_hidden_size": 13696, "num_layers": 28, "num_attention_heads": 32,
                           "multi_query_group_num": 2, "kv_channels": 128,
                           "padded_vocab_size": 65024})"),
            "6243584000");
  EXPECT_EQ(parameters(R"({"architectures": ["InternLM2ForCausalLM"], "hidden_size": 4096,
                           "intermediate_size": 14336, "num_hidden_layers": 32,
                           "num_attention_heads": 32, "num_key_value_heads": 8,
                           "vocab_size": 92544})"),
            "7737708544");
  EXPECT_EQ(parameters(R"({"architectures": ["Gemma3ForConditionalGeneration"], "head_dim": 256,
                           "hidden_size": 2560, "intermediate_size": 10240, "vocab_size": 262208,
                           "num_hidden_layers": 34, "num_attention_heads": 8,
                           "num_key_value_heads": 4, "sliding_window": 1024,
                           "vision_config": {"hidden_size": 1152, "intermediate_size": 4304,
                             "num_hidden_layers": 27, "num_attention_heads": 16, "patch_size": 14,
                             "image_size": 896, "mm_tokens_per_image": 256}})"),
            "4300079472");
}

// Sizes as in the first files of these models, which omit what their classes have as default.
TEST(Config, files_of_older_releases_describe_the_published_models) {
  EXPECT_EQ(parameters(R"({"model_type": "mistral3", "transformers_version": "4.50.0.dev0",
                           "spatial_merge_size": 2, "multimodal_projector_bias": false,
                           "text_config": {"model_type": "mistral", "hidden_size": 5120,
                             "intermediate_size": 32768, "num_hidden_layers": 40, "head_dim": 128,
                             "num_attention_heads": 32, "num_key_value_heads": 8,
                             "vocab_size": 131072},
                           "vision_config": {"model_type": "pixtral", "hidden_size": 1024,
                             "intermediate_size": 4096, "num_hidden_layers": 24,
                             "num_attention_heads": 16, "image_size": 1540, "patch_size": 14}})"),
            "24011361280");
  EXPECT_EQ(parameters(R"({"model_type": "idefics3", "transformers_version": "4.46.0",
                           "scale_factor": 3, "tie_word_embeddings": false,
                           "text_config": {"model_type": "llama", "hidden_size": 2048,
                             "intermediate_size": 8192, "num_hidden_layers": 24,
                             "num_attention_heads": 32, "num_key_value_heads": 32,
                             "vocab_size": 49155},
                           "vision_config": {"model_type": "idefics3", "hidden_size": 1152,
                             "intermediate_size": 4304, "num_hidden_layers": 27,
                             "num_attention_heads": 16, "image_size": 384, "patch_size": 14}})"),
            "2246272880");
}

// Published with the class's names, not with the model's.
TEST(Config, the_class_selects_the_head) {
  const auto total = [](const std::string& name, const std::string& rest) {
    return parameters("{\"architectures\": [\"" + name + "\"], " + rest);
  };
  const std::string minilm = R"("model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6,
    "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522})";
  EXPECT_EQ(total("BertModel", minilm), "22713216");
  const std::string mistral = R"("model_type": "mistral", "hidden_size": 4096,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 32000, "id2label": {"0": "reward"}})";
  EXPECT_EQ(total("MistralModel", mistral), "7110660096");
  EXPECT_EQ(total("MistralForSequenceClassification", mistral), "7110664192");
  EXPECT_EQ(total("MistralForCausalLM", mistral), "7241732096");
  const Model other = read(R"({"architectures": ["MistralForSomething"], )" + mistral);
  ASSERT_EQ(other.notes.size(), 1U);
  EXPECT_EQ(other.notes[0],
            "the head of 'MistralForSomething' is unknown: counted as a head for words");
}

TEST(Config, numbers_that_python_writes_but_json_does_not_have_are_read_as_null) {
  EXPECT_EQ(parameters(R"({"model_type": "llama", "name\"": "Infinity", "a": [0.0, Infinity],
                           "b": -Infinity, "c": NaN, "hidden_size": 8, "num_hidden_layers": 1,
                           "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32})"),
            "1176");
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
