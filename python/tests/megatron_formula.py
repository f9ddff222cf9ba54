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


def megatron_flops(a, batch):
    """num_floating_point_operations() of Megatron-LM without norms: attention, MLP, experts, logits."""
    get = lambda name, otherwise: otherwise if getattr(a, name, None) is None else getattr(a, name)  # noqa: E731
    tokens, pairs = batch * a.seq_length, batch * a.seq_length**2
    h, n, layers = a.hidden_size, a.num_attention_heads, a.num_layers
    mtp = get("mtp_num_layers", 0)
    frequency = get("moe_layer_freq", 1) if get("num_experts", 0) else [0] * layers
    if isinstance(frequency, int):
        frequency = [int(i % frequency == 0) for i in range(layers)]
    moe = sum(frequency) + mtp * frequency[-1]
    dense = layers + mtp - moe
    gate = 3 if a.swiglu else 2
    if get("multi_latent_attention", False):
        nope, rope, v, rank = a.qk_head_dim, a.qk_pos_emb_head_dim, a.v_head_dim, a.kv_lora_rank
        q = h * n * (nope + rope) if a.q_lora_rank is None else a.q_lora_rank * (h + n * (nope + rope))
        projections = q + rank * (h + n * (nope + v)) + h * rope + n * v * h
        core = n * (nope + rope + v)
    else:
        d = get("kv_channels", h // n)
        groups = get("num_query_groups", n) if get("group_query_attention", False) else n
        projections = h * (n * d * (2 if get("attention_output_gate", False) else 1) + 2 * groups * d) + n * d * h
        core = 2 * n * d
    linear = 0
    if get("experimental_attention_variant", None):
        every = a.linear_attention_freq
        linear = sum(every) if isinstance(every, list) else sum((i + 1) % every != 0 for i in range(layers + mtp))
        keys, values = a.linear_num_key_heads * a.linear_key_head_dim, a.linear_num_value_heads * a.linear_value_head_dim
        inside = h * (2 * keys + 2 * values + 2 * a.linear_num_value_heads) + a.linear_conv_kernel_dim * (2 * keys + values)
        delta_net = inside + 4 * values * a.linear_value_head_dim + h * values
    attention = (layers + mtp - linear) * (6 * tokens * projections + 3 * pairs * core)
    attention += linear * 6 * tokens * delta_net if linear else 0
    mlp = 6 * tokens * h * gate * a.ffn_hidden_size * dense
    width = get("moe_ffn_hidden_size", a.ffn_hidden_size) * get("moe_router_topk", 0)
    latent = get("moe_latent_size", 0)
    routed = latent * gate * width + 2 * h * latent if latent else h * gate * width
    experts = 6 * tokens * (routed + h * gate * get("moe_shared_expert_intermediate_size", 0)) * moe
    logits = 6 * tokens * h * a.padded_vocab_size * (1 + mtp)
    return attention + mlp + experts + logits + mtp * 6 * tokens * 2 * h * h
