// SPDX-License-Identifier: Apache-2.0
//
// Random configurations: twice the layers, batch or sequence changes each component as its formula
// says, and the total is that of Megatron's closed form, written here a second time.  FLOPMETER_LONG=1
// draws 1000 configurations a family in place of 50.
#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>

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
  std::string extra;  ///< further keys, as JSON
};

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
    s["intermediate_size"] = between(1, 5000);
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
      s["first_k_dense_replace"] = between(0, s["num_hidden_layers"]);
    }
    return s;
  }

 private:
  std::mt19937 random_;
};

/// Each family finds the keys it knows and ignores the others.
std::string json(const RandomFamily& family, const Sizes& sizes) {
  std::string text = R"({"model_type": ")" + family.type + '"' + family.extra;
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
    } else {
      add(key, value);
    }
  }
  const auto heads = sizes.at("num_attention_heads");
  if (family.type == "gpt2") {
    add("n_inner", sizes.at("intermediate_size"));
  } else {
    add("head_dim", sizes.at("hidden_size") / heads);
  }
  return text + "}";
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
    attention = at("q_lora_rank") * (h + n * qk) + h * (at("kv_lora_rank") + at("qk_rope_head_dim")) +
                at("kv_lora_rank") * n * (at("qk_nope_head_dim") + at("v_head_dim")) +
                n * at("v_head_dim") * h;
    widths = n * (qk + at("v_head_dim"));
  }
  const WideInt dense = matrices * h * at("intermediate_size");
  WideInt mlp = layers * dense;
  if (family.experts) {
    const bool own = family.type != "mixtral" && family.type != "gpt_oss";
    const WideInt f = own ? at("moe_intermediate_size") : at("intermediate_size");
    WideInt shared = 0;
    if (family.latent) shared = at("shared") * f;
    if (family.type == "qwen2_moe") shared = std::max<WideInt>(at("shared"), 1) * 10;
    const WideInt first = family.latent ? at("first_k_dense_replace") : 0;
    mlp = first * dense + (layers - first) * 3 * h * (at("num_experts_per_tok") * f + shared);
  }
  const WideInt tokens = WideInt{batch} * len;
  const WideInt squares = WideInt{batch} * len * len;
  return 6 * tokens * (layers * attention + mlp + h * at("vocab_size")) +
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
    const Breakdown once = price(model, Batch::uniform(batch, length), {}, {});
    const Breakdown twice = price(model, Batch::uniform(2 * batch, length), {}, {});
    for (std::size_t c = 0; c < component_count; ++c)
      ASSERT_TRUE(2 * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
  }
}

TEST_P(RandomConfigs, twice_the_sequence_is_twice_of_all_but_attention) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Model model = build(json(GetParam(), draw.sizes(GetParam())));
    const std::int64_t s = draw.between(1, 9000);
    const Breakdown once = price(model, Batch::uniform(1, s), {}, {});
    const Breakdown twice = price(model, Batch::uniform(1, 2 * s), {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const bool core = static_cast<Component>(c) == Component::attention_core;
      // Pairs grow from s (s + 1) / 2 to s (2 s + 1).
      const WideInt before = core ? 2 * (2 * WideInt{s} + 1) : 2;
      const WideInt after = core ? WideInt{s} + 1 : 1;
      ASSERT_TRUE(before * all(once.parts[c]) == after * all(twice.parts[c])) << "seed " << seed;
    }
  }
}

TEST_P(RandomConfigs, twice_the_layers_is_twice_of_all_but_the_head) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    Sizes sizes = draw.sizes(GetParam());
    const Batch batch = Batch::uniform(draw.between(1, 8), draw.between(1, 9000));
    const Breakdown once = price(build(json(GetParam(), sizes)), batch, {}, {});
    sizes["num_hidden_layers"] *= 2;
    if (GetParam().latent) sizes["first_k_dense_replace"] *= 2;
    const Breakdown twice = price(build(json(GetParam(), sizes)), batch, {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const int factor = static_cast<Component>(c) == Component::lm_head ? 1 : 2;
      ASSERT_TRUE(factor * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
    }
    ASSERT_TRUE(part(once, Component::lm_head) > 0);
    ASSERT_TRUE(part(once, Component::attention_core) > 0);
    ASSERT_EQ(part(once, Component::mlp) > 0, true);
  }
}

TEST_P(RandomConfigs, total_is_megatrons_closed_form) {
  const Convention* convention = find_convention("megatron");
  ASSERT_NE(convention, nullptr);
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Sizes sizes = draw.sizes(GetParam());
    const std::int64_t batch = draw.between(1, 64);
    const std::int64_t length = draw.between(1, 9000);
    const std::string text = json(GetParam(), sizes);
    const Counted counted = convention->count(
        build(text), Batch::uniform(batch, length), {.mtp = Training::Mtp::off});
    ASSERT_EQ(to_string(all(counted.parts.total())),
              to_string(megatron(GetParam(), sizes, batch, length)))
        << "seed " << seed << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Catalog,
    RandomConfigs,
    testing::Values(
        RandomFamily{.type = "gpt2", .grouped = false, .gated = false},
        RandomFamily{.type = "llama"},
        RandomFamily{.type = "qwen2"},
        RandomFamily{.type = "qwen3"},
        RandomFamily{.type = "mixtral", .experts = true},
        RandomFamily{.type = "qwen2_moe", .experts = true},
        RandomFamily{.type = "qwen3_moe", .experts = true},
        RandomFamily{.type = "gpt_oss", .experts = true, .extra = R"(, "sliding_window": null)"},
        RandomFamily{.type = "deepseek_v2", .grouped = false, .experts = true, .latent = true},
        RandomFamily{.type = "deepseek_v3", .grouped = false, .experts = true, .latent = true}),
    [](const auto& suite) { return suite.param.type; });

}  // namespace
}  // namespace flopmeter
