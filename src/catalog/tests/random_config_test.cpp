// SPDX-License-Identifier: Apache-2.0
//
// Random configurations: twice the layers, batch or sequence changes each component as its formula
// says, and the total is that of Megatron's closed form, written here a second time.
// FLOPMETER_LONG=1 draws 1000 configurations a family in place of 50.
#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>

namespace flopmeter {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

/// Draws sizes, and writes them as a configuration.
struct RandomFamily {
  std::string type;
  bool grouped = true;  ///< key heads of their own number
  bool gated = true;
  bool experts = false;
  bool latent = false;
  enum class Ffn { own, half, four_hidden } ffn = Ffn::own;  ///< what `intermediate_size` means
  std::string extra;                                         ///< further keys, as JSON
  bool recurrent = false;   ///< layers of several kinds take turns; not in the closed form here
  bool mixer_only = false;  ///< neither attention nor an MLP
  std::string text_type;    ///< of a text model that is an object of its own
  bool both_ways = false;   ///< an encoder: every pair counts, and a linear lies before the head
};

/// DeepSeek's: the first layers are dense, and a number of experts is shared.
bool has_first_dense(const RandomFamily& family) {
  return family.latent || family.type == "deepseek" || family.type == "glm4_moe" ||
         family.type == "dots1";
}

/// Whether experts have a width apart from the MLP's.
bool sizes_of_their_own(const RandomFamily& family) {
  constexpr std::array<std::string_view, 8> plain = {
      "mixtral", "gpt_oss", "llama4_text", "olmoe", "minimax_m2", "granitemoe", "phimoe", "dbrx"};
  return std::find(plain.begin(), plain.end(), family.type) == plain.end();
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random_);
  }

  Sizes sizes(const RandomFamily& family) {
    Sizes s;
    const std::int64_t kv = between(1, 8);
    s["num_attention_heads"] = kv * (family.grouped ? between(1, 4) : 1);
    s["num_key_value_heads"] = kv;
    s["hidden_size"] = s["num_attention_heads"] * 2 * between(1, 64);
    s["intermediate_size"] = 2 * between(1, 2500);
    s["num_hidden_layers"] = between(2, 40);
    s["vocab_size"] = between(1, 50000);
    if (family.experts) {
      s["experts"] = between(1, 64);
      s["num_experts_per_tok"] = between(1, s["experts"]);
      s["moe_intermediate_size"] = between(1, 900);
      s["shared"] = between(0, 3);
    }
    if (family.latent) {
      s["q_lora_rank"] = between(1, 300);
      s["kv_lora_rank"] = between(1, 300);
      s["qk_nope_head_dim"] = between(1, 128);
      s["qk_rope_head_dim"] = between(1, 64);
      s["v_head_dim"] = between(1, 128);
    }
    if (has_first_dense(family)) {
      s["first_k_dense_replace"] = between(0, s["num_hidden_layers"]);
    }
    return s;
  }

 private:
  std::mt19937 random_;
};

/// Each family finds the keys it knows and ignores the others.
std::string json(const RandomFamily& family, const Sizes& sizes) {
  const bool nested = !family.text_type.empty();
  std::string text = R"({"model_type": ")" + family.type + '"' + family.extra;
  if (nested) text += R"(, "text_config": {"model_type": ")" + family.text_type + '"';
  const auto add = [&](std::string_view key, std::int64_t value) {
    text += ", \"" + std::string{key} + "\": " + std::to_string(value);
  };
  for (const auto& [key, value] : sizes) {
    if (key == "experts") {
      for (const auto* name : {"num_local_experts", "num_experts", "n_routed_experts"})
        add(name, value);
    } else if (key == "shared") {
      add("n_shared_experts", value);
      add("shared_expert_intermediate_size", std::max<std::int64_t>(value, 1) * 10);
    } else if (key == "num_hidden_layers" && family.recurrent) {
      add(key, 4 * value);
      text += R"(, "hybrid_override_pattern": ")";
      for (std::int64_t i = 0; i < value; ++i) text += "M*-E";
      text += '"';
    } else {
      add(key, value);
    }
  }
  // The same sizes under the names that other families have for them.
  add("head_dim", sizes.at("hidden_size") / sizes.at("num_attention_heads"));
  for (const auto* name : {"n_inner", "ffn_dim", "ffn_hidden_size"})
    add(name, sizes.at("intermediate_size"));
  add("num_layers", sizes.at("num_hidden_layers"));
  add("padded_vocab_size", sizes.at("vocab_size"));
  const std::int64_t kv = sizes.at("num_key_value_heads");
  for (const auto* name : {"num_kv_heads", "multi_query_group_num", "num_query_groups"})
    add(name, kv);
  text += R"(, "attn_config": {"kv_n_heads": )" + std::to_string(kv) + "}";
  if (family.type == "dbrx") {
    text += R"(, "ffn_config": {"ffn_hidden_size": )" +
            std::to_string(sizes.at("intermediate_size")) + R"(, "moe_num_experts": )" +
            std::to_string(sizes.at("experts")) + R"(, "moe_top_k": )" +
            std::to_string(sizes.at("num_experts_per_tok")) + "}";
  }
  return text + (nested ? "}}" : "}");
}

/// 6 T (weights a token passes, the embedding and the router left out) + 6 * half pairs * widths.
WideInt megatron(const RandomFamily& family, const Sizes& s, std::int64_t batch, std::int64_t len) {
  const auto at = [&](const char* key) { return WideInt{s.at(key)}; };
  const WideInt h = at("hidden_size");
  const WideInt n = at("num_attention_heads");
  const WideInt g = family.grouped ? at("num_key_value_heads") : n;
  const WideInt d = h / n;
  const WideInt matrices = family.gated ? 3 : 2;
  const WideInt layers = at("num_hidden_layers");
  WideInt attention = h * (n * d + 2 * g * d) + n * d * h;
  WideInt widths = 2 * n * d;  // of queries and values, over half of s^2
  if (family.latent) {
    const WideInt qk = at("qk_nope_head_dim") + at("qk_rope_head_dim");
    attention = at("q_lora_rank") * (h + n * qk) +
                h * (at("kv_lora_rank") + at("qk_rope_head_dim")) +
                at("kv_lora_rank") * n * (at("qk_nope_head_dim") + at("v_head_dim")) +
                n * at("v_head_dim") * h;
    widths = n * (qk + at("v_head_dim"));
  }
  using Ffn = RandomFamily::Ffn;
  const WideInt f_dense = family.ffn == Ffn::four_hidden ? 4 * h
                          : family.ffn == Ffn::half      ? at("intermediate_size") / 2
                                                         : at("intermediate_size");
  const WideInt dense = matrices * h * f_dense;
  WideInt mlp = layers * dense;
  if (family.experts) {
    const bool llama4 = family.type == "llama4_text";
    const bool own = sizes_of_their_own(family);
    const WideInt f = own ? at("moe_intermediate_size") : at("intermediate_size");
    WideInt shared = llama4 ? f : 0;
    if (has_first_dense(family)) shared = at("shared") * f;
    if (family.type == "qwen2_moe") shared = std::max<WideInt>(at("shared"), 1) * 10;
    const WideInt first = has_first_dense(family) ? at("first_k_dense_replace") : 0;
    mlp = first * dense + (layers - first) * 3 * h * (at("num_experts_per_tok") * f + shared);
  }
  const WideInt tokens = WideInt{batch} * len;
  const WideInt squares = WideInt{batch} * len * len * (family.both_ways ? 2 : 1);
  const WideInt before_head = family.both_ways ? h * h : 0;
  return 6 * tokens * (layers * attention + mlp + before_head + h * at("vocab_size")) +
         3 * squares * widths * layers;
}

class RandomConfigs : public testing::TestWithParam<RandomFamily> {
 protected:
  static int draws() {
    const char* asked = std::getenv("FLOPMETER_LONG");
    return asked != nullptr && std::string_view{asked} == "1" ? 1000 : 50;
  }
  static Model build(const std::string& text) {
    const auto config = Config::parse(text, "random");
    EXPECT_TRUE(config) << config.error().message;
    auto model = build_model(*config);
    EXPECT_TRUE(model) << model.error().message << "\n" << text;
    EXPECT_FALSE((*model).bare_parameters) << text;
    return *std::move(model);
  }
  static WideInt all(const PartFlops& part) { return part.forward.value + part.backward.value; }
  static WideInt part(const Breakdown& b, Component c) { return all(b[c]); }
};

TEST_P(RandomConfigs, twice_the_batch_is_twice_of_everything) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Model model = build(json(GetParam(), draw.sizes(GetParam())));
    const std::int64_t batch = draw.between(1, 64);
    const std::int64_t length = draw.between(1, 9000);
    const auto supported = [&](std::int64_t count) {
      return flop_cost(model, with_default_images(model, Batch::uniform(count, length)), {}, {});
    };
    const Breakdown once = supported(batch);
    const Breakdown twice = supported(2 * batch);
    for (std::size_t c = 0; c < component_count; ++c)
      ASSERT_TRUE(2 * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
  }
}

TEST_P(RandomConfigs, twice_the_sequence_is_twice_of_all_but_attention) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Model model = build(json(GetParam(), draw.sizes(GetParam())));
    const std::int64_t s = draw.between(1, 9000);
    const Breakdown once = flop_cost(model, Batch::uniform(1, s), {}, {});
    const Breakdown twice = flop_cost(model, Batch::uniform(1, 2 * s), {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const bool core = static_cast<Component>(c) == Component::attention_core;
      const bool causal = core && !GetParam().both_ways;
      // Pairs grow from s (s + 1) / 2 to s (2 s + 1), or from s^2 to 4 s^2.
      const WideInt before = causal ? 2 * (2 * WideInt{s} + 1) : (core ? 4 : 2);
      const WideInt after = causal ? WideInt{s} + 1 : 1;
      ASSERT_TRUE(before * all(once.parts[c]) == after * all(twice.parts[c])) << "seed " << seed;
    }
  }
}

TEST_P(RandomConfigs, twice_the_layers_is_twice_of_all_but_the_head) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    Sizes sizes = draw.sizes(GetParam());
    const Batch batch = Batch::uniform(draw.between(1, 8), draw.between(1, 9000));
    const Breakdown once = flop_cost(build(json(GetParam(), sizes)), batch, {}, {});
    sizes["num_hidden_layers"] *= 2;
    if (has_first_dense(GetParam())) sizes["first_k_dense_replace"] *= 2;
    const Breakdown twice = flop_cost(build(json(GetParam(), sizes)), batch, {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const int factor = static_cast<Component>(c) == Component::lm_head ? 1 : 2;
      ASSERT_TRUE(factor * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
    }
    ASSERT_TRUE(part(once, Component::lm_head) > 0);
    ASSERT_EQ(part(once, Component::attention_core) > 0, !GetParam().mixer_only);
    ASSERT_EQ(part(once, Component::mlp) > 0, !GetParam().mixer_only);
  }
}

TEST_P(RandomConfigs, total_is_megatrons_closed_form) {
  const Convention* convention = find_convention("megatron");
  ASSERT_NE(convention, nullptr);
  if (GetParam().recurrent) GTEST_SKIP() << "the closed form has no recurrent layers";
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Sizes sizes = draw.sizes(GetParam());
    const std::int64_t batch = draw.between(1, 64);
    const std::int64_t length = draw.between(1, 9000);
    const std::string text = json(GetParam(), sizes);
    const Counted counted =
        convention->count(build(text), Batch::uniform(batch, length), {.mtp = Training::Mtp::off});
    ASSERT_EQ(to_string(all(counted.parts.total())),
              to_string(megatron(GetParam(), sizes, batch, length)))
        << "seed " << seed << ": " << text;
  }
}

const std::vector<RandomFamily>& families() {
  using Ffn = RandomFamily::Ffn;
  const std::string no_window = R"(, "sliding_window": null)";
  static const std::vector<RandomFamily> list = {
      {.type = "gpt2", .grouped = false, .gated = false},
      {.type = "gptj", .grouped = false, .gated = false},
      {.type = "gpt_neox", .grouped = false, .gated = false},
      {.type = "opt", .grouped = false, .gated = false},
      {.type = "bloom", .grouped = false, .gated = false, .ffn = Ffn::four_hidden},
      {.type = "mpt", .grouped = false, .gated = false, .ffn = Ffn::four_hidden},
      {.type = "falcon", .gated = false, .extra = R"(, "new_decoder_architecture": true)"},
      {.type = "llama"},
      {.type = "mistral", .extra = no_window},
      {.type = "qwen", .grouped = false, .ffn = Ffn::half},
      {.type = "qwen2"},
      {.type = "qwen3"},
      {.type = "aquila"},
      {.type = "gemma"},
      {.type = "gemma2", .extra = no_window},
      {.type = "gemma3_text", .extra = no_window},
      {.type = "phi", .gated = false},
      {.type = "phi3", .extra = no_window},
      {.type = "baichuan", .grouped = false},
      {.type = "internlm", .grouped = false},
      {.type = "internlm2"},
      {.type = "glm"},
      {.type = "chatglm", .extra = R"(, "multi_query_attention": true)"},
      {.type = "mixtral", .experts = true},
      {.type = "qwen2_moe", .experts = true},
      {.type = "qwen3_moe", .experts = true},
      {.type = "deepseek", .experts = true},
      {.type = "gpt_oss", .experts = true, .extra = no_window},
      {.type = "deepseek_v2", .grouped = false, .experts = true, .latent = true},
      {.type = "deepseek_v3", .grouped = false, .experts = true, .latent = true},
      {.type = "olmo"},
      {.type = "olmo2"},
      {.type = "stablelm"},
      {.type = "cohere"},
      {.type = "smollm3"},
      {.type = "nemotron", .gated = false},
      {.type = "starcoder2", .gated = false},
      {.type = "ernie4_5"},
      {.type = "ernie4_5_moe",
       .experts = true,
       .extra = R"(, "moe_num_shared_experts": 0, "moe_layer_start_index": 0)"},
      {.type = "glm4_moe", .experts = true},
      {.type = "llama4_text", .experts = true, .extra = R"(, "attention_chunk_size": null)"},
      {.type = "olmoe", .experts = true},
      {.type = "minimax_m2", .experts = true},
      {.type = "granitemoe", .experts = true},
      {.type = "phimoe", .experts = true},
      {.type = "dbrx", .experts = true},
      {.type = "seed_oss"},
      {.type = "gpt_neo", .grouped = false, .gated = false, .extra = R"(, "window_size": null)"},
      {.type = "exaone4", .extra = no_window},
      {.type = "hunyuan_v1_dense"},
      {.type = "dots1", .experts = true, .extra = no_window},
      {.type = "glm4_moe_lite", .grouped = false, .experts = true, .latent = true},
      {.type = "megatron", .extra = R"(, "swiglu": true)"},
      {.type = "nemotron_h", .recurrent = true},
      {.type = "mamba2", .recurrent = true, .mixer_only = true},
      {.type = "falcon_h1", .recurrent = true},
      {.type = "qwen3_next", .experts = true, .recurrent = true},
      {.type = "qwen3_5_text", .recurrent = true},
      {.type = "qwen3_vl"},
      {.type = "llava"},
      {.type = "internvl", .text_type = "llama"},
      {.type = "idefics3", .text_type = "llama"},
      {.type = "mistral3", .text_type = "llama"},
      {.type = "paligemma", .text_type = "gemma"},
      {.type = "qwen2_vl"},
      {.type = "qwen2_5_vl"},
      {.type = "bert", .grouped = false, .gated = false, .both_ways = true},
      {.type = "roberta", .grouped = false, .gated = false, .both_ways = true}};
  return list;
}

TEST(RandomFamilies, leave_out_none_that_is_known) {
  std::vector<std::string_view> drawn;
  for (const RandomFamily& family : families()) {
    for (const ModelFamily* known : model_families()) {
      const auto& types = known->types;
      if (std::find(types.begin(), types.end(), family.type) != types.end())
        drawn.push_back(known->name);
    }
  }
  for (const ModelFamily* known : model_families())
    EXPECT_NE(std::find(drawn.begin(), drawn.end(), known->name), drawn.end()) << known->name;
}

INSTANTIATE_TEST_SUITE_P(Catalog,
                         RandomConfigs,
                         testing::ValuesIn(families()),
                         [](const auto& suite) { return suite.param.type; });

}  // namespace
}  // namespace flopmeter
