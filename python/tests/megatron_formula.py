# SPDX-License-Identifier: Apache-2.0
"""Megatron-LM's formula for the FLOPs of a step, to compare with the model of its arguments."""

# Arguments of a small model.
SMALL = {
    "num_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "seq_length": 32,
    "padded_vocab_size": 128,
    "swiglu": True,
    "ffn_hidden_size": 96,
}
LATENT = {
    "multi_latent_attention": True,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_head_dim": 8,
    "qk_pos_emb_head_dim": 4,
    "v_head_dim": 8,
}


def _get(a, name, otherwise=None):
    return otherwise if getattr(a, name, None) is None else getattr(a, name)


def _attention(a):
    """Weights of an attention layer, and the width of its core."""
    h, n = a.hidden_size, a.num_attention_heads
    if _get(a, "multi_latent_attention", False):
        nope, rope, v, rank = a.qk_head_dim, a.qk_pos_emb_head_dim, a.v_head_dim, a.kv_lora_rank
        q = h * n * (nope + rope) if a.q_lora_rank is None else a.q_lora_rank * (h + n * (nope + rope) + 1)
        return q + rank * (h + n * (nope + v) + 1) + h * rope + n * v * h, n * (nope + rope + v)
    d = _get(a, "kv_channels", h // n)
    groups = _get(a, "num_query_groups", n) if _get(a, "group_query_attention", False) else n
    gates = 2 if _get(a, "attention_output_gate", False) else 1
    return h * (n * d * gates + 2 * groups * d) + n * d * h, 2 * n * d


def _delta_net(a):
    keys, values = a.linear_num_key_heads * a.linear_key_head_dim, a.linear_num_value_heads * a.linear_value_head_dim
    inside = a.hidden_size * (2 * keys + 2 * values + 2 * a.linear_num_value_heads) + a.linear_conv_kernel_dim * (2 * keys + values)
    return inside + 4 * values * a.linear_value_head_dim + a.hidden_size * values


def _experts(a):
    h, gate, latent = a.hidden_size, 3 if a.swiglu else 2, _get(a, "moe_latent_size", 0)
    width = _get(a, "moe_ffn_hidden_size", a.ffn_hidden_size) * _get(a, "moe_router_topk", 0)
    routed = latent * gate * width + 2 * h * latent if latent else h * gate * width
    return routed + h * gate * _get(a, "moe_shared_expert_intermediate_size", 0)


def hybrid_flops(a, batch):
    """num_floating_point_operations() of Megatron-LM for a hybrid: Mamba layers are twice as wide as the model."""
    h, tokens, pairs = a.hidden_size, batch * a.seq_length, batch * a.seq_length**2
    pattern = _get(a, "hybrid_layer_pattern", _get(a, "hybrid_override_pattern", ""))
    if not pattern:
        attention, mlps = round(a.num_layers * a.hybrid_attention_ratio), round(a.num_layers * a.hybrid_mlp_ratio)
        pattern = "*" * attention + "-" * mlps + "M" * (a.num_layers - attention - mlps)
    weights, core = _attention(a)
    heads = _get(a, "mamba_num_heads", 2 * h // a.mamba_head_dim)
    scan = 7 * 2 * h * a.mamba_state_dim
    layer = {
        "M": 2 * h * (4 * h + 2 * a.mamba_num_groups * a.mamba_state_dim + heads) + scan + 4 * h * h,
        "*": 2 * weights,
        "-": 2 * h * a.ffn_hidden_size * (3 if a.swiglu else 2),
        "E": 2 * _experts(a) if "E" in pattern else 0,
        "G": 2 * _delta_net(a) if "G" in pattern else 0,
    }
    linear = sum(layer.get(letter, 0) for letter in pattern) + 2 * h * a.padded_vocab_size * (1 + _get(a, "mtp_num_layers", 0))
    return 3 * (tokens * linear + pairs * core * pattern.count("*"))


def megatron_flops(a, batch):
    """num_floating_point_operations() of Megatron-LM: attention, MLP, experts, logits."""
    if any(_get(a, name) for name in ("hybrid_layer_pattern", "hybrid_override_pattern", "is_hybrid_model")):
        return hybrid_flops(a, batch)
    tokens, pairs = batch * a.seq_length, batch * a.seq_length**2
    h, layers = a.hidden_size, a.num_layers
    mtp = _get(a, "mtp_num_layers", 0)
    frequency = _get(a, "moe_layer_freq", 1) if _get(a, "num_experts", 0) else [0] * layers
    if isinstance(frequency, int):
        frequency = [int(i % frequency == 0) for i in range(layers)]
    moe = sum(frequency) + mtp * frequency[-1]
    dense = layers + mtp - moe
    weights, core = _attention(a)
    linear = 0
    if _get(a, "experimental_attention_variant"):
        every = a.linear_attention_freq
        linear = sum(every) if isinstance(every, list) else sum((i + 1) % every != 0 for i in range(layers))
    attention = (layers + mtp - linear) * (6 * tokens * weights + 3 * pairs * core)
    attention += linear * 6 * tokens * _delta_net(a) if linear else 0
    mlp = 6 * tokens * h * (3 if a.swiglu else 2) * a.ffn_hidden_size * dense
    experts = 6 * tokens * _experts(a) * moe
    logits = 6 * tokens * h * a.padded_vocab_size * (1 + mtp)
    return attention + mlp + experts + logits + mtp * 6 * tokens * (2 * h * h + 3 * h)
