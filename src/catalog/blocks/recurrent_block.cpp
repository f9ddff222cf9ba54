// SPDX-License-Identifier: Apache-2.0
#include "recurrent_block.h"

namespace flopmeter {

void check_mamba2(const Config& config, const Mamba2Block& spec) {
  const std::int64_t inner = product(config, spec.heads, spec.head_dim);
  const std::int64_t states = product(config, spec.groups, spec.state);
  static_cast<void>(product(config, spec.hidden, inner));
  static_cast<void>(product(config, spec.hidden, states));
}

Value mamba2_block(LayerBuilder& layer, Value x, const Mamba2Block& spec) {
  const std::int64_t inner = spec.heads * spec.head_dim;
  const std::int64_t channels = inner + 2 * spec.groups * spec.state;
  const Mamba2Names& names = spec.names;
  Value y = layer.linear(x,
                         {.name = names.in_proj,
                          .in = spec.hidden,
                          .out = inner + channels + spec.heads,
                          .bias = spec.bias,
                          .component = Component::attention_projections});
  y = layer.convolution(y,
                        names.conv,
                        spec.kernel,
                        channels,
                        spec.conv_bias,
                        Rows::tokens,
                        Component::linear_attention);
  for (const std::string_view name : {names.dt_bias, names.a_log, names.d})
    y = layer.parameters(y, name, spec.heads);
  y = layer.scan(y, names.scan, inner, spec.state);
  if (!names.norm.empty()) y = norm(layer, y, names.norm, inner);
  return layer.linear(y,
                      {.name = names.out_proj,
                       .in = inner,
                       .out = spec.hidden,
                       .bias = spec.out_bias,
                       .component = Component::attention_projections});
}

void check_delta_net(const Config& config, const DeltaNetBlock& spec) {
  const std::int64_t keys = product(config, spec.key_heads, spec.d_k);
  const std::int64_t values = product(config, spec.value_heads, spec.d_v);
  static_cast<void>(product(config, spec.hidden, keys));
  static_cast<void>(product(config, spec.hidden, values));
  if (spec.value_heads % spec.key_heads != 0)
    config.fail("key 'linear_num_value_heads' is not a multiple of 'linear_num_key_heads'");
}

Value delta_net_block(LayerBuilder& layer, Value x, const DeltaNetBlock& spec) {
  const std::int64_t keys = spec.key_heads * spec.d_k;
  const std::int64_t values = spec.value_heads * spec.d_v;
  const auto project = [&](Value from, std::string_view name, std::int64_t in, std::int64_t out) {
    return layer.linear(
        from, {.name = name, .in = in, .out = out, .component = Component::attention_projections});
  };
  Value y = x;
  if (spec.split) {
    y = project(x, "linear_attn.in_proj_qkv", spec.hidden, 2 * keys + values);
    y = layer.sum(y, project(x, "linear_attn.in_proj_z", spec.hidden, values));
    y = layer.sum(y, project(x, "linear_attn.in_proj_b", spec.hidden, spec.value_heads));
    y = layer.sum(y, project(x, "linear_attn.in_proj_a", spec.hidden, spec.value_heads));
  } else {
    y = project(x, "linear_attn.in_proj_qkvz", spec.hidden, 2 * keys + 2 * values);
    y = layer.sum(y, project(x, "linear_attn.in_proj_ba", spec.hidden, 2 * spec.value_heads));
  }
  y = layer.convolution(y,
                        "linear_attn.conv1d",
                        spec.kernel,
                        2 * keys + values,
                        /*bias=*/false,
                        Rows::tokens,
                        Component::linear_attention);
  for (const std::string_view name : {"linear_attn.dt_bias", "linear_attn.A_log"})
    y = layer.parameters(y, name, spec.value_heads);
  y = layer.delta_rule(y, "linear_attn", spec.value_heads, spec.d_k, spec.d_v);
  y = norm(layer, y, "linear_attn.norm", spec.d_v);
  return project(y, "linear_attn.out_proj", values, spec.hidden);
}

}  // namespace flopmeter
