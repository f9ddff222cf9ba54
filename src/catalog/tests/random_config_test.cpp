// SPDX-License-Identifier: Apache-2.0
//
// Random configurations of every family: doubling the layers, the batch, or the sequence scales
// each component as its formula requires, and the total equals Megatron's closed form, which is
// implemented here independently.  FLOPMETER_LONG=1 draws 1000 configurations per family, not 50.
#include <flopmeter/catalog/convention.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>

namespace flopmeter {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

std::string type_of(const ModelFamily& family) {
  const std::string_view type = family.random_config.type;
  return std::string{type.empty() ? family.types.substr(0, family.types.find(' ')) : type};
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>{low, high}(random_);
  }

  Sizes sizes(const RandomConfig& traits) {
    Sizes s;
    const std::int64_t kv = between(1, 8);
    s["num_attention_heads"] = kv * (traits.grouped ? between(1, 4) : 1);
    s["num_key_value_heads"] = kv;
    s["hidden_size"] = s["num_attention_heads"] * 2 * between(1, 64);
    s["intermediate_size"] = 2 * between(1, 2500);
    s["num_hidden_layers"] = between(2, 40);
    s["vocab_size"] = between(1, 50000);
    if (traits.experts != RandomConfig::Experts::none) {
      s["experts"] = between(1, 64);
      s["num_experts_per_tok"] = between(1, s["experts"]);
      s["moe_intermediate_size"] = between(1, 900);
      s["shared"] = between(0, 3);
    }
    if (traits.latent) {
      s["q_lora_rank"] = between(1, 300);
      s["kv_lora_rank"] = between(1, 300);
      s["qk_nope_head_dim"] = between(1, 128);
      s["qk_rope_head_dim"] = between(1, 64);
      s["v_head_dim"] = between(1, 128);
    }
    if (traits.first_dense) {
      s["first_k_dense_replace"] = between(0, s["num_hidden_layers"]);
    }
    return s;
  }

 private:
  std::mt19937 random_;
};

/// Each family reads its own keys and ignores the others.
std::string json(const ModelFamily& family, const Sizes& sizes) {
  const RandomConfig& traits = family.random_config;
  const bool nested = !traits.text_type.empty();
  std::string text = R"({"model_type": ")" + type_of(family) + '"';
  if (!traits.keys.empty()) text.append(", ").append(traits.keys);
  if (nested) text.append(R"(, "text_config": {"model_type": ")").append(traits.text_type) += '"';
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
    } else if (key == "num_hidden_layers" && traits.recurrent) {
      add(key, 4 * value);
      text += R"(, "hybrid_override_pattern": ")";
      for (std::int64_t i = 0; i < value; ++i) text += "M*-E";
      text += '"';
    } else {
      add(key, value);
    }
  }
  // The same sizes under the names of other families.
  add("head_dim", sizes.at("hidden_size") / sizes.at("num_attention_heads"));
  for (const auto* name : {"n_inner", "ffn_dim", "ffn_hidden_size"})
    add(name, sizes.at("intermediate_size"));
  add("num_layers", sizes.at("num_hidden_layers"));
  add("padded_vocab_size", sizes.at("vocab_size"));
  const std::int64_t kv = sizes.at("num_key_value_heads");
  for (const auto* name : {"num_kv_heads", "multi_query_group_num", "num_query_groups"})
    add(name, kv);
  text += R"(, "attn_config": {"kv_n_heads": )" + std::to_string(kv) + "}";
  if (traits.experts != RandomConfig::Experts::none) {
    text += R"(, "ffn_config": {"ffn_hidden_size": )" +
            std::to_string(sizes.at("intermediate_size")) + R"(, "moe_num_experts": )" +
            std::to_string(sizes.at("experts")) + R"(, "moe_top_k": )" +
            std::to_string(sizes.at("num_experts_per_tok")) + "}";
  }
  return text + (nested ? "}}" : "}");
}

/// 6 T (weights per token, without embedding and router) + 6 * half of the pairs * widths.
WideInt megatron(const RandomConfig& traits, const Sizes& s, std::int64_t batch, std::int64_t len) {
  const auto at = [&](const char* key) { return WideInt{s.at(key)}; };
  const WideInt h = at("hidden_size");
  const WideInt n = at("num_attention_heads");
  const WideInt g = traits.grouped ? at("num_key_value_heads") : n;
  const WideInt d = h / n;
  const WideInt matrices = traits.gated ? 3 : 2;
  const WideInt layers = at("num_hidden_layers");
  WideInt attention = h * (n * d + 2 * g * d) + n * d * h;
  WideInt widths = 2 * n * d;  // of queries and values, over half of s^2
  if (traits.latent) {
    const WideInt qk = at("qk_nope_head_dim") + at("qk_rope_head_dim");
    attention = at("q_lora_rank") * (h + n * qk) +
                h * (at("kv_lora_rank") + at("qk_rope_head_dim")) +
                at("kv_lora_rank") * n * (at("qk_nope_head_dim") + at("v_head_dim")) +
                n * at("v_head_dim") * h + at("q_lora_rank") +
                at("kv_lora_rank");  // norms count like weights
    widths = n * (qk + at("v_head_dim"));
  }
  using Ffn = RandomConfig::Ffn;
  using Experts = RandomConfig::Experts;
  using Shared = RandomConfig::Shared;
  const WideInt f_dense = traits.ffn == Ffn::four_hidden ? 4 * h
                          : traits.ffn == Ffn::half      ? at("intermediate_size") / 2
                                                         : at("intermediate_size");
  const WideInt dense = matrices * h * f_dense;
  WideInt mlp = layers * dense;
  if (traits.experts != Experts::none) {
    const bool own = traits.experts == Experts::of_own_width;
    const WideInt f = own ? at("moe_intermediate_size") : at("intermediate_size");
    WideInt shared = 0;
    if (traits.shared == Shared::one) shared = f;
    if (traits.shared == Shared::several) shared = at("shared") * f;
    if (traits.shared == Shared::of_own_width) shared = std::max<WideInt>(at("shared"), 1) * 10;
    const WideInt first = traits.first_dense ? at("first_k_dense_replace") : 0;
    mlp = first * dense + (layers - first) * 3 * h * (at("num_experts_per_tok") * f + shared);
  }
  const WideInt tokens = WideInt{batch} * len;
  const WideInt squares = WideInt{batch} * len * len * (traits.bidirectional ? 2 : 1);
  const WideInt before_head = traits.bidirectional ? h * h : 0;
  return 6 * tokens * (layers * attention + mlp + before_head + h * at("vocab_size")) +
         3 * squares * widths * layers;
}

class RandomConfigs : public testing::TestWithParam<const ModelFamily*> {
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
  static const RandomConfig& traits() { return GetParam()->random_config; }
  static WideInt all(const PartFlops& part) { return part.forward.value + part.backward.value; }
  static WideInt part(const Breakdown& b, Component c) { return all(b[c]); }
};

TEST_P(RandomConfigs, doubling_the_batch_doubles_everything) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Model model = build(json(*GetParam(), draw.sizes(traits())));
    const std::int64_t batch = draw.between(1, 64);
    const std::int64_t length = draw.between(1, 9000);
    const auto flops = [&](std::int64_t count) {
      return flop_cost(model, with_default_images(model, Batch::uniform(count, length)), {}, {});
    };
    const Breakdown once = flops(batch);
    const Breakdown twice = flops(2 * batch);
    for (std::size_t c = 0; c < component_count; ++c)
      ASSERT_TRUE(2 * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
  }
}

TEST_P(RandomConfigs, doubling_the_sequence_doubles_all_but_attention) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Model model = build(json(*GetParam(), draw.sizes(traits())));
    const std::int64_t s = draw.between(1, 9000);
    const Breakdown once = flop_cost(model, Batch::uniform(1, s), {}, {});
    const Breakdown twice = flop_cost(model, Batch::uniform(1, 2 * s), {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const bool core = static_cast<Component>(c) == Component::attention_core;
      const bool causal = core && !traits().bidirectional;
      // Pairs grow from s (s + 1) / 2 to s (2 s + 1), or from s^2 to 4 s^2.
      const WideInt before = causal ? 2 * (2 * WideInt{s} + 1) : (core ? 4 : 2);
      const WideInt after = causal ? WideInt{s} + 1 : 1;
      ASSERT_TRUE(before * all(once.parts[c]) == after * all(twice.parts[c])) << "seed " << seed;
    }
  }
}

TEST_P(RandomConfigs, doubling_the_layers_doubles_all_but_the_head) {
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    Sizes sizes = draw.sizes(traits());
    const Batch batch = Batch::uniform(draw.between(1, 8), draw.between(1, 9000));
    const Breakdown once = flop_cost(build(json(*GetParam(), sizes)), batch, {}, {});
    sizes["num_hidden_layers"] *= 2;
    if (traits().first_dense) sizes["first_k_dense_replace"] *= 2;
    const Breakdown twice = flop_cost(build(json(*GetParam(), sizes)), batch, {}, {});
    for (std::size_t c = 0; c < component_count; ++c) {
      const int factor = static_cast<Component>(c) == Component::lm_head ? 1 : 2;
      ASSERT_TRUE(factor * all(once.parts[c]) == all(twice.parts[c])) << "seed " << seed;
    }
    ASSERT_TRUE(part(once, Component::lm_head) > 0);
    ASSERT_EQ(part(once, Component::attention_core) > 0, !traits().mixer_only);
    ASSERT_EQ(part(once, Component::mlp) > 0, !traits().mixer_only);
  }
}

TEST_P(RandomConfigs, total_equals_megatrons_closed_form) {
  const Convention* convention = find_convention("megatron");
  ASSERT_NE(convention, nullptr);
  if (traits().recurrent) GTEST_SKIP() << "the closed form has no recurrent layers";
  for (int seed = 0; seed < draws(); ++seed) {
    Draw draw{static_cast<unsigned>(seed)};
    const Sizes sizes = draw.sizes(traits());
    const std::int64_t batch = draw.between(1, 64);
    const std::int64_t length = draw.between(1, 9000);
    const std::string text = json(*GetParam(), sizes);
    const Counted counted =
        convention->count(build(text), Batch::uniform(batch, length), {.mtp = Training::Mtp::off});
    ASSERT_EQ(to_string(all(counted.parts.total())),
              to_string(megatron(traits(), sizes, batch, length)))
        << "seed " << seed << ": " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog,
                         RandomConfigs,
                         testing::ValuesIn(model_families().begin(), model_families().end()),
                         [](const auto& suite) { return type_of(*suite.param); });

}  // namespace
}  // namespace flopmeter
