// SPDX-License-Identifier: Apache-2.0
//
// BERT, RoBERTa and XLM-RoBERTa: encoders with bidirectional attention, norms after
// attention and MLP, and the head that the file's class names; without one, that of masked words.
#include "../blocks/class_head.h"
#include "../blocks/decoder.h"

#include <flopmeter/catalog/model_family.h>

namespace flopmeter {
namespace {

constexpr std::string_view types =
    "bert BertForMaskedLM roberta RobertaForMaskedLM xlm-roberta XLMRobertaForMaskedLM";

struct Encoder {
  bool roberta = false;
  std::int64_t layers = 0;
  std::int64_t positions = 0;
  std::int64_t types = 0;
  std::int64_t labels = 0;
  std::int64_t vocab = 0;
  bool tied = true;
  AttentionBlock attention;
  MlpBlock mlp;
  Head head = Head::words;
};

Encoder read(const Config& config) {
  Encoder encoder;
  const bool bert = is_type(config, "bert", "BertForMaskedLM");
  const bool roberta = is_type(config, "roberta", "RobertaForMaskedLM");
  encoder.roberta = !bert;
  encoder.layers = config.size_or({"num_hidden_layers"}, 12);
  encoder.positions = config.size_or({"max_position_embeddings"}, 512);
  encoder.types = config.size_or({"type_vocab_size"}, 2);
  encoder.labels = read_labels(config);
  encoder.vocab = config.size_or({"vocab_size"}, roberta ? 50265 : 30522);
  encoder.tied = config.flag_or({"tie_word_embeddings"}, true);
  const std::int64_t hidden = config.size_or({"hidden_size"}, 768);
  const std::int64_t heads = config.size_or({"num_attention_heads"}, 12);
  if (hidden % heads != 0) config.fail("the hidden size is not a multiple of the attention heads");
  encoder.attention = {.hidden = hidden,
                       .heads = heads,
                       .kv_heads = heads,
                       .head_dim = hidden / heads,
                       .qkv_bias = true,
                       .out_bias = true,
                       .mask = {.shape = MaskPairs::Shape::full},
                       .names = {.q = "attention.self.query",
                                 .k = "attention.self.key",
                                 .v = "attention.self.value",
                                 .o = "attention.output.dense"}};
  encoder.mlp = {.hidden = hidden,
                 .ffn = config.size_or({"intermediate_size"}, 3072),
                 .gated = false,
                 .bias = true,
                 .up = "intermediate.dense",
                 .down = "output.dense"};
  if (config.flag_or({"is_decoder"}, false))
    config.fail("key 'is_decoder' is true, expected false: only encoders are supported");
  return encoder;
}

/// A linear of the head: of each token, or of the first one of a sequence.
Value head_linear(LayerBuilder& layer, Value x, std::string_view name, Linear spec) {
  spec.name = name;
  spec.bias = true;
  spec.component = Component::lm_head;
  return layer.linear(x, spec);
}

/// Scores of all words: a linear, a norm, and the embedding with a bias.
Value add_words(LayerBuilder& layer, Value x, const Encoder& encoder) {
  const std::int64_t hidden = encoder.attention.hidden;
  const bool own = encoder.roberta;
  x = head_linear(layer,
                  x,
                  own ? "lm_head.dense" : "cls.predictions.transform.dense",
                  {.in = hidden, .out = hidden});
  x = norm(layer,
           x,
           own ? "lm_head.layer_norm" : "cls.predictions.transform.LayerNorm",
           hidden,
           /*bias=*/true);
  // The class has the biases of the head twice, tied if the words are tied.
  if (!encoder.tied) {
    x = layer.parameters(x, own ? "lm_head" : "cls.predictions", encoder.vocab);
  }
  return head_linear(layer,
                     x,
                     own ? "lm_head.decoder" : "cls.predictions.decoder",
                     {.in = hidden, .out = encoder.vocab, .tied = encoder.tied});
}

/// A linear of the first token of a sequence.
Value add_pooler(LayerBuilder& layer, Value x, const Encoder& encoder, std::string_view name) {
  const std::int64_t hidden = encoder.attention.hidden;
  return head_linear(layer, x, name, {.in = hidden, .out = hidden, .rows = Rows::sequences});
}

/// Scores of a sequence, from its first token.
Value add_sequence(LayerBuilder& layer, Value x, const Encoder& encoder, std::string_view scores) {
  const std::int64_t hidden = encoder.attention.hidden;
  const std::int64_t labels = encoder.head == Head::sequence ? encoder.labels : 2;
  x = add_pooler(layer, x, encoder, encoder.roberta ? "classifier.dense" : "bert.pooler.dense");
  return head_linear(layer, x, scores, {.in = hidden, .out = labels, .rows = Rows::sequences});
}

Value add_head(LayerBuilder& layer, Value x, const Encoder& encoder) {
  const Linear labels{.in = encoder.attention.hidden, .out = encoder.labels};
  switch (encoder.head) {
    case Head::words:
      return add_words(layer, x, encoder);
    case Head::words_and_pair:
      return layer.sum(add_words(layer, x, encoder),
                       add_sequence(layer, x, encoder, "cls.seq_relationship"));
    case Head::sequence:
      return add_sequence(
          layer, x, encoder, encoder.roberta ? "classifier.out_proj" : "classifier");
    case Head::tokens:
      return head_linear(layer, x, "classifier", labels);
    case Head::answer:
      return head_linear(layer, x, "qa_outputs", labels);
    case Head::none:
      return add_pooler(layer, x, encoder, "pooler.dense");
  }
  return x;
}

Model build(const Config& config) {
  Encoder encoder = read(config);
  ClassHead own = read_class_head(config, types);
  encoder.head = own.head;
  Decoder sizes;
  sizes.layers = encoder.layers;
  sizes.attention = encoder.attention;
  if (!check_sizes(config, sizes)) return {};
  const std::int64_t hidden = encoder.attention.hidden;
  const std::string prefix = encoder.roberta ? "roberta." : "bert.";
  ModelBuilder builder;
  builder.once(prefix + "embeddings.", [&](LayerBuilder& layer) {
    Value x = layer.embedding("word_embeddings", encoder.vocab, hidden);
    x = layer.sum(x, layer.embedding("position_embeddings", encoder.positions, hidden));
    x = layer.sum(x, layer.embedding("token_type_embeddings", encoder.types, hidden));
    layer.output(norm(layer, x, "LayerNorm", hidden, /*bias=*/true));
  });
  builder.layers(prefix + "encoder.layer.", encoder.layers, [&](LayerBuilder& layer) {
    Value x = LayerBuilder::input();
    const auto normed = [&](Value y, std::string_view name) {
      return norm(layer, layer.sum(x, y), name, hidden, /*bias=*/true);
    };
    x = normed(attention_block(layer, x, encoder.attention), "attention.output.LayerNorm");
    layer.output(normed(mlp_block(layer, x, encoder.mlp), "output.LayerNorm"));
  });
  builder.once("", [&](LayerBuilder& layer) {
    layer.output(add_head(layer, LayerBuilder::input(), encoder));
  });
  set_facts(builder.model,
            encoder.attention,
            encoder.layers,
            encoder.mlp.ffn,
            /*gated=*/false,
            encoder.vocab,
            encoder.tied);
  if (!own.note.empty()) builder.model.notes.push_back(std::move(own.note));
  return std::move(builder.model);
}

}  // namespace

extern constinit const ModelFamily model_bert{
    .name = "bert",
    .help = "BERT, RoBERTa, XLM-RoBERTa: encoders with a head for masked words, labels, or none",
    .types = types,
    .own_heads = true,
    .build = build,
    .random_config = {.grouped = false, .gated = false, .bidirectional = true},
    // One layer, h = 8, n = 2, d = 4, f = 16, V = 32, 16 positions, 2 types, s = 4.
    // Parameters: words, tied to the head, 256; positions 128; types 16; q, k, v, out 64 + 8 each;
    // MLP 128 + 16 and 128 + 8; norms 3*16; head 64 + 8, norm 16, biases 32: 1136. Per token,
    // forward: 2*(256 + 256 + 64 + 256) = 1664; attention: 16 pairs x 2 heads x 2*(4+4) = 512.
    // Training: 3*(4*1664 + 512).
    .example = {.config = R"({"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "intermediate_size": 16,
                             "max_position_embeddings": 16, "vocab_size": 32})",
                .parameters = 1136,
                .seq_len = 4,
                .training_flops = 21504}};

}  // namespace flopmeter
