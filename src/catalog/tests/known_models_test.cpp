// SPDX-License-Identifier: Apache-2.0
//
// Known models against published numbers: parameters and FLOPs per sequence, to the integer.
#include <flopmeter/catalog/cost_model.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace flopmeter {
namespace {

Model known(std::string_view name) {
  auto model = find_model(name);
  EXPECT_TRUE(model) << model.error().message;
  return *std::move(model);
}

/// A training step of one sequence under `pairs`.
Breakdown step(const Model& model, std::int64_t length, Policy::Pairs pairs, bool router = true) {
  Policy policy;
  policy.pairs = pairs;
  policy.router = router;
  return flop_cost(model, Batch::uniform(1, length), {}, policy);
}

std::string attention(const Breakdown& parts) {
  const PartFlops& core = parts[Component::attention_core];
  return to_string((core.forward + core.backward).value);
}

/// All but the attention core.
std::string linear(const Breakdown& parts) {
  const PartFlops all = parts.total();
  const PartFlops& core = parts[Component::attention_core];
  return to_string((all.forward + all.backward).value - (core.forward + core.backward).value);
}

TEST(KnownModels, have_the_published_parameters) {
  int compared = 0;
  for (const EmbeddedFile& file : known_models()) {
    const auto config = Config::parse(file.text, file.name);
    ASSERT_TRUE(config) << config.error().message;
    if (!(*config).has("_parameters")) continue;
    const auto model = build_model(*config);
    ASSERT_TRUE(model) << model.error().message;
    const ParameterCounts counts = count_parameters(*model);
    ASSERT_TRUE(counts.buffers) << file.name;
    EXPECT_EQ(to_string(counts.total + *counts.buffers),
              std::to_string((*config).size({"_parameters"})))
        << file.name;
    ++compared;
  }
  EXPECT_EQ(compared, 167);
}

TEST(KnownModels, are_found_by_the_names_in_the_list_with_its_parameters) {
  std::ifstream in(std::string{FLOPMETER_TEST_DATA} + "/known_models.json");
  const auto list = nlohmann::json::parse(in);
  int exact = 0;
  for (const auto& row : list["models"]) {
    const auto name = row["name"].get<std::string>();
    const Model model = known(name);
    if (!row["hf_id"].is_null()) {
      EXPECT_EQ(known(row["hf_id"].get<std::string>()).name, model.name);
    }
    const auto config = Config::parse(row["config"].dump(), name);
    ASSERT_TRUE(config) << config.error().message;
    const auto from_keys = build_model(*config);
    ASSERT_TRUE(from_keys) << from_keys.error().message;
    EXPECT_FALSE((*from_keys).bare_parameters) << name;
    if (row["published_total"].is_null()) continue;
    const auto published = std::to_string(row["published_total"].get<std::int64_t>());
    const ParameterCounts counts = count_parameters(model);
    EXPECT_EQ(counts.buffers, row["buffers"].get<std::int64_t>()) << name;
    EXPECT_EQ(to_string(counts.total + counts.buffers.value_or(0)), published) << name;
    EXPECT_EQ(to_string(count_parameters(*from_keys).total + counts.buffers.value_or(0)), published)
        << name;
    ++exact;
  }
  EXPECT_EQ(exact, 73);
}

TEST(KnownModels, deepseek_balances_with_a_parameter_and_transformers_with_a_buffer) {
  const std::string sizes = R"("model_type": "deepseek_v3", "hidden_size": 8,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 32,
    "n_routed_experts": 16, "first_k_dense_replace": 1)";
  const auto total = [&](const std::string& more) {
    const auto config = Config::parse("{" + sizes + more + "}", "test");
    EXPECT_TRUE(config) << config.error().message;
    return static_cast<std::int64_t>(count_parameters(*build_model(*config)).total);
  };
  const std::int64_t own = total("");
  EXPECT_EQ(total(R"(, "transformers_version": "5.0.0")"), own - 16);
  EXPECT_EQ(total(R"(, "transformers_version": "4.33.1", "auto_map": {"AutoModel": "x"})"), own);
  EXPECT_EQ(total(R"(, "topk_method": "greedy")"), own - 16);
}

// A pattern without a layer number is evaluated for one layer; a class of one letter for each.
TEST(KnownModels, layers_that_a_pattern_does_not_distinguish_cost_the_same) {
  const Model model = known("deepseek-v3");
  const auto cost_of = [&](const std::string& trainable) {
    const Training training{.trainable = *Trainable::parse(trainable)};
    const PartFlops sum = flop_cost(model, Batch::uniform(1, 512), training, {}).total();
    return to_string(sum.backward.value) + " for " +
           to_string(count_parameters(model, training).trainable);
  };
  EXPECT_EQ(cost_of("freeze:*.mlp.*"), cost_of("freeze:*.[m]lp.*"));
  EXPECT_EQ(cost_of("lora:8:*.self_attn.*"), cost_of("lora:8:*.[s]elf_attn.*"));
  EXPECT_NE(cost_of("freeze:model.layers.[0-9].*"), cost_of("freeze:model.layers.*"));
  EXPECT_NE(cost_of("freeze:model.layers.?.*"), cost_of("freeze:model.layers.*"));
}

TEST(KnownModels, are_found_by_their_other_names_in_any_case) {
  EXPECT_EQ(known("Llama-3-8B").name, "llama-3-8b");
  EXPECT_EQ(known("meta-llama/Meta-Llama-3-8B").name, "llama-3-8b");
  EXPECT_EQ(known("qwen/qwen2.5-vl-7b-instruct").name, "qwen2.5-vl-7b");
  EXPECT_EQ(known("gpt2").name, "gpt-2");
  EXPECT_EQ(known("llama3-8b").name, "llama-3-8b");
  EXPECT_EQ(known("LLAMA3_70B").name, "llama-3-70b");
  EXPECT_EQ(known("GPT-2 XL 1.5B").name, "gpt-2-xl");
  EXPECT_FALSE(find_model("llama-3"));
  EXPECT_FALSE(find_model("3.1-8b"));
  EXPECT_FALSE(find_model("someone/3.1-8b"));
  EXPECT_FALSE(find_model("vocab_size"));
}

TEST(KnownModels, have_the_sizes_of_the_model_they_were_tuned_from) {
  EXPECT_EQ(known("Qwen/Qwen2.5-7B-Instruct").name, "qwen2.5-7b");
  EXPECT_EQ(known("meta-llama/Llama-2-13b-chat-hf").name, "llama-2-13b");
  EXPECT_EQ(known("google/gemma-3-12b-it").name, "gemma-3-12b");
  EXPECT_EQ(known("internlm/internlm2-chat-20b").name, "internlm2-20b");
  EXPECT_EQ(known("mistralai/Mistral-7B-Instruct-v0.3").name, "mistral-7b-v0.3");
  EXPECT_EQ(known("mistralai/Mixtral-8x22B-Instruct-v0.1").name, "mixtral-8x22b-instruct");
  EXPECT_FALSE(find_model("instruct"));
  EXPECT_FALSE(find_model("Qwen/Qwen2.5-7B-Instruct-AWQ"));
}

TEST(KnownModels, digits_do_not_move_between_numbers) {
  EXPECT_EQ(known("opt-13b").name, "opt-13b");
  EXPECT_EQ(known("opt-1.3b").name, "opt-1.3b");
  EXPECT_EQ(known("Qwen2-57B-A14B").name, "qwen2-57b-a14b");
  for (const char* other :
       {"qwen2-57b", "llama-3-18b", "qwen2-5.7b", "pythia-69b", "gpt-2.5", "llama-31-8b"})
    EXPECT_FALSE(find_model(other)) << other;
}

TEST(KnownModels, a_near_miss_is_suggested_without_the_owner) {
  const auto missing = find_model("meta-llama/Llama-3-9B");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("did you mean llama-3-8b"), std::string::npos)
      << missing.error().message;
}

TEST(KnownModels, every_name_means_one_model) {
  for (const EmbeddedFile& file : known_models()) {
    const auto config = Config::parse(file.text, file.name);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(known(file.name).name, file.name);
    for (const std::string& alias : (*config).texts({"_aliases"}))
      EXPECT_EQ(known(alias).name, file.name) << alias;
  }
}

TEST(KnownModels, llama_3_8b_has_the_published_flops) {
  const Model model = known("llama-3-8b");
  EXPECT_EQ(linear(step(model, 8192, Policy::Pairs::exact)), "368868971249664");
  EXPECT_EQ(attention(step(model, 8192, Policy::Pairs::full)), "105553116266496");
  EXPECT_EQ(attention(step(model, 8192, Policy::Pairs::half)), "52776558133248");
  EXPECT_EQ(attention(step(model, 8192, Policy::Pairs::exact)), "52783000584192");
}

TEST(KnownModels, mixtral_has_the_published_flops) {
  const Model model = known("mixtral-8x7b");
  EXPECT_EQ(linear(step(model, 4096, Policy::Pairs::half)), "313309274308608");
  EXPECT_EQ(linear(step(model, 4096, Policy::Pairs::half, false)), "313283504504832");
  EXPECT_EQ(attention(step(model, 4096, Policy::Pairs::half)), "13194139533312");
}

TEST(KnownModels, qwen2_5_7b_has_the_published_flops) {
  const Model model = known("qwen2.5-7b");
  EXPECT_EQ(linear(step(model, 4096, Policy::Pairs::half)), "173759344410624");
  EXPECT_EQ(attention(step(model, 4096, Policy::Pairs::half)), "10101763080192");
}

TEST(KnownModels, deepseek_v3_has_the_published_flops) {
  const Model model = known("deepseek-v3");
  EXPECT_EQ(linear(step(model, 4096, Policy::Pairs::half)), "900086095675392");
  EXPECT_EQ(linear(step(model, 4096, Policy::Pairs::half, false)), "897470460592128");
  EXPECT_EQ(attention(step(model, 4096, Policy::Pairs::half)), "125756642426880");
}

TEST(KnownModels, gpt_2_has_the_published_flops) {
  const Model model = known("gpt-2");
  EXPECT_EQ(linear(step(model, 1024, Policy::Pairs::half)), "758980804608");
  EXPECT_EQ(attention(step(model, 1024, Policy::Pairs::half)), "57982058496");
}

TEST(KnownModels, vision_tower_of_qwen2_5_vl_has_the_published_flops) {
  const Model model = known("qwen2.5-vl-7b");
  const std::pair<ImageGrid, std::string> cases[] = {{{1, 32, 32}, "1346937815040"},
                                                     {{1, 36, 50}, "2394885160960"},
                                                     {{4, 24, 24}, "3009470791680"},
                                                     {{1, 98, 146}, "22709543485440"}};
  for (const auto& [grid, flops] : cases) {
    Batch batch = Batch::uniform(1, 8192);
    batch.images = {grid};
    const Breakdown parts = flop_cost(model, batch, {.forward_only = true}, {});
    EXPECT_EQ(to_string(parts[Component::vision].forward.value), flops) << grid.h << "x" << grid.w;
  }
}

// A prediction layer has the projection of two states to one (2 h^2), latent attention (187105280
// weights), 8 routed experts and 1 shared (44040192 each), and the shared head (h V).
TEST(KnownModels, deepseek_v3_trains_its_prediction_layer_on_request) {
  const Model model = known("deepseek-v3");
  Policy policy;
  policy.router = false;
  const auto total = [&](Training::Mtp mtp) {
    const PartFlops sum = flop_cost(model, Batch::uniform(1, 1), {.mtp = mtp}, policy).total();
    return sum.forward.value + sum.backward.value;
  };
  const WideInt h = 7168;
  const WideInt attention_weights = 187105280;
  const WideInt core = 128 * (192 + 128);
  const WideInt weights = 2 * h * h + attention_weights + 9 * WideInt{44040192} + h * 129280;
  EXPECT_EQ(to_string(total(Training::Mtp::on) - total(Training::Mtp::off)),
            to_string(6 * (weights + core)));
}

}  // namespace
}  // namespace flopmeter
