// SPDX-License-Identifier: Apache-2.0
//
// FlagScale's performance monitor, with T tokens, h wide, n heads of size h/n, g key groups, f the
// MLP's width. A layer forward: gated 2 T h (2 h + 2 g h/n) + 4 s^2 h + 6 T h f + T f; plain 8 T
// h^2 + 4 s^2 h + 4 T h f; experts 8 T h^2 + 4 s^2 h + 2 T h E + 4 T k h f, without key
// groups and gates.  Logits 2 T h V; the embedding costs nothing.  The sum counts three times,
// with attention over all pairs.  Gated models count as its LLaMA and Qwen, which it recognizes by
// name; it treats other names as GPT, without key groups.
#include "../src/closed_form.h"

namespace flopmeter {
namespace {

Counted count(const Model& model, const Batch& batch, const Training& training) {
  const ModelFacts& facts = model.facts;
  const WideInt t = batch.tokens();
  const WideInt h = facts.hidden;
  const WideInt l = facts.layers;
  const bool experts = facts.experts > 0;
  const bool grouped = facts.gated_mlp && !experts;
  const WideInt kv = grouped ? h / facts.heads * facts.kv_heads : h;
  WideInt mlp = 4 * t * h * facts.ffn;
  if (grouped) mlp = 6 * t * h * facts.ffn + t * facts.ffn;
  if (experts) mlp *= facts.experts_active;
  Counted counted;
  Breakdown& parts = counted.parts;
  parts[Component::attention_projections] =
      tripled({l * (4 * t * h * h + 4 * t * h * kv)}, training);
  parts[Component::attention_core] = tripled({l * 4 * squared_lengths(batch) * h}, training);
  parts[Component::mlp] = tripled({l * mlp}, training);
  parts[Component::router] = tripled({l * 2 * t * h * facts.experts}, training);
  parts[Component::lm_head] = tripled({2 * t * h * facts.vocab}, training);
  return counted;
}

}  // namespace

extern constinit const Convention convention_flagscale{
    .name = "flagscale",
    .help =
        "three times forward, attention over all pairs; with experts, no grouped queries or gates",
    .source = "https://github.com/flagos-ai/FlagScale/pull/892",
    .count = count,
    .example = {.model_flops = 3 * (4 * 4 * 64 + 4 * 4 * 8 * 4 + 512 + 6 * 4 * 8 * 16 + 4 * 16 +
                                    2 * 4 * 8 * 32)}};

}  // namespace flopmeter
