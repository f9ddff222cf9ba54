// SPDX-License-Identifier: Apache-2.0
//
// A small GPT in plain LibTorch, without flopmeter code.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace flopmeter::demo {

struct GptSizes {
  std::int64_t vocab = 256;
  std::int64_t layers = 4;
  std::int64_t width = 256;
  std::int64_t heads = 4;
  std::int64_t length = 128;
};

class GptImpl : public torch::nn::Module {
 public:
  explicit GptImpl(const GptSizes& sizes);
  /// The mean loss of predicting `targets` from `tokens`, both [batch, length].
  torch::Tensor forward(const torch::Tensor& tokens, const torch::Tensor& targets);

 private:
  GptSizes sizes_;
  torch::nn::Embedding token_embedding_{nullptr};
  torch::nn::Embedding position_embedding_{nullptr};
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm final_norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Gpt);

}  // namespace flopmeter::demo
