// SPDX-License-Identifier: Apache-2.0
#include "gpt.h"

#include <cmath>

namespace flopmeter::demo {
namespace {

namespace nn = torch::nn;

/// softmax(Q K^T) V over the causal mask, by the fused kernel where this torch has one.
torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
#else
  const auto hidden = torch::ones({q.size(2), k.size(2)}, torch::kBool).triu(1);
  const auto scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(3)));
  return scores.masked_fill(hidden, -INFINITY).softmax(-1).matmul(v);
#endif
}

class BlockImpl : public nn::Module {
 public:
  BlockImpl(std::int64_t width, std::int64_t heads) : heads_(heads) {
    norm1_ = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})));
    qkv_ = register_module("qkv", nn::Linear(width, 3 * width));
    out_ = register_module("out", nn::Linear(width, width));
    norm2_ = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})));
    up_ = register_module("up", nn::Linear(width, 4 * width));
    down_ = register_module("down", nn::Linear(4 * width, width));
  }

  torch::Tensor forward(torch::Tensor x) {
    const auto batch = x.size(0);
    const auto length = x.size(1);
    const auto width = x.size(2);
    const auto parts = qkv_(norm1_(x)).split(width, 2);
    const auto by_head = [&](const torch::Tensor& t) {
      return t.view({batch, length, heads_, width / heads_}).transpose(1, 2);
    };
    const auto core = attend(by_head(parts[0]), by_head(parts[1]), by_head(parts[2]));
    x = x + out_(core.transpose(1, 2).reshape({batch, length, width}));
    return x + down_(torch::gelu(up_(norm2_(x))));
  }

 private:
  std::int64_t heads_;
  nn::LayerNorm norm1_{nullptr};
  nn::LayerNorm norm2_{nullptr};
  nn::Linear qkv_{nullptr};
  nn::Linear out_{nullptr};
  nn::Linear up_{nullptr};
  nn::Linear down_{nullptr};
};
TORCH_MODULE(Block);

}  // namespace

GptImpl::GptImpl(const GptSizes& sizes) : sizes_(sizes) {
  token_embedding_ = register_module("tokens", nn::Embedding(sizes.vocab, sizes.width));
  position_embedding_ = register_module("positions", nn::Embedding(sizes.length, sizes.width));
  blocks_ = register_module("blocks", nn::ModuleList());
  for (std::int64_t i = 0; i < sizes.layers; ++i)
    blocks_->push_back(Block(sizes.width, sizes.heads));
  final_norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({sizes.width})));
  head_ =
      register_module("head", nn::Linear(nn::LinearOptions(sizes.width, sizes.vocab).bias(false)));
}

torch::Tensor GptImpl::forward(const torch::Tensor& tokens, const torch::Tensor& targets) {
  const auto positions = torch::arange(tokens.size(1));
  auto x = token_embedding_(tokens) + position_embedding_(positions);
  for (const auto& block : *blocks_) x = block->as<Block>()->forward(x);
  const auto logits = head_(final_norm_(x));
  return nn::functional::cross_entropy(logits.view({-1, sizes_.vocab}), targets.reshape({-1}));
}

}  // namespace flopmeter::demo
