# SPDX-License-Identifier: Apache-2.0
"""Families with recurrent layers: Mamba-2 and gated delta nets.

Without the kernels of mamba_ssm and fla, transformers runs a chunked form of the recurrence, whose cost depends on the
chunk size. The catalog counts the recurrence itself. All other components are compared.
"""

import re

import transformers as hf

from families import Family, maybe, sizes, without
from families_moe import experts, some_layers


def nemotron_h(rng):
    row = sizes(rng)
    kinds = ["linear_attention", "full_attention", "mlp", "moe"]
    groups = rng.choice([1, 2])
    return hf.NemotronHConfig(
        hidden_size=row["hidden_size"], vocab_size=row["vocab_size"], tie_word_embeddings=row["tie_word_embeddings"],
        layers_block_type=["linear_attention"] + [rng.choice(kinds) for _ in range(rng.randint(1, 6))],
        num_attention_heads=row["num_attention_heads"], num_key_value_heads=row["num_key_value_heads"],
        head_dim=rng.choice([8, 24]), intermediate_size=row["intermediate_size"], mlp_bias=maybe(rng),
        mamba_num_heads=groups * rng.choice([2, 4]), mamba_head_dim=8, n_groups=groups, ssm_state_size=rng.choice([4, 8]),
        conv_kernel=rng.choice([2, 4]), use_conv_bias=maybe(rng), use_bias=maybe(rng), chunk_size=8,
        **experts(rng, "n_routed_experts"), moe_intermediate_size=rng.choice([16, 20]),
        moe_shared_expert_intermediate_size=rng.choice([16, 24]), moe_latent_size=rng.choice([None, 12]),
        max_position_embeddings=64, pad_token_id=None, bos_token_id=None, eos_token_id=None)


def mamba2(rng):
    row = sizes(rng)
    groups = rng.choice([1, 2])
    heads = groups * rng.choice([2, 4])
    return hf.Mamba2Config(
        hidden_size=heads * 4, num_heads=heads, head_dim=8, expand=2, n_groups=groups, state_size=rng.choice([4, 8]),
        num_hidden_layers=row["num_hidden_layers"], vocab_size=row["vocab_size"], conv_kernel=rng.choice([2, 4]),
        use_bias=maybe(rng), use_conv_bias=maybe(rng), tie_word_embeddings=row["tie_word_embeddings"], chunk_size=8,
        pad_token_id=None, bos_token_id=None, eos_token_id=None)


def mixer_names(config, module):
    """Renames `mixer` to the names of other families."""
    found = re.search(r"layers\.(\d+)\.mixer", module)
    if not found:
        return module
    kind = config.layer_types[int(found[1])]
    name = {"linear_attention": "linear_attn", "full_attention": "self_attn"}.get(kind, "mlp")
    return module.replace(".mixer", f".{name}")


def mixers(rng, row):
    """Mixer sizes of Falcon-H1 and Bamba; the width is `mamba_expand` or `mamba_d_ssm`."""
    groups = rng.choice([1, 2])
    return {
        "mamba_n_heads": groups * 2, "mamba_n_groups": groups, "mamba_d_state": rng.choice([4, 8]),
        "mamba_d_conv": rng.choice([2, 4]), "mamba_conv_bias": maybe(rng), "mamba_proj_bias": maybe(rng),
        "mamba_chunk_size": 8, "attention_bias": maybe(rng), "mlp_bias": maybe(rng), **row,
    }


def falcon_h1(rng):
    return hf.FalconH1Config(
        **mixers(rng, sizes(rng)), mamba_d_ssm=rng.choice([None, 32, 48]), mamba_rms_norm=maybe(rng),
        projectors_bias=maybe(rng))


def bamba(rng):
    row = sizes(rng)
    others = range(1, row["num_hidden_layers"])  # the first layer always has a mixer
    return hf.BambaConfig(**mixers(rng, row), attn_layer_indices=[layer for layer in others if maybe(rng)] or None)


def mamba_names(config, module):
    """Renames `mamba` to the name of other families."""
    return module.replace(".mamba", ".linear_attn")


def granitemoehybrid(rng):
    row = sizes(rng)
    kinds = ["linear_attention", "full_attention"]
    layers = kinds[:1] + [rng.choice(kinds) for _ in range(row["num_hidden_layers"] - 1)]
    chosen = experts(rng, "num_local_experts") if maybe(rng) else {"num_local_experts": 0}
    return hf.GraniteMoeHybridConfig(
        **without(mixers(rng, row), "mlp_bias"), **chosen, layer_types=layers,
        shared_intermediate_size=rng.choice([20, 36]))


def lfm2_sizes(rng):
    """Sizes and layers of both families, always including a convolution."""
    row = sizes(rng)
    kinds = ["conv", "full_attention"]
    layers = kinds[:1] + [rng.choice(kinds) for _ in range(row["num_hidden_layers"] - 1)]
    return {**row, "layer_types": layers, "conv_bias": maybe(rng), "conv_L_cache": rng.choice([2, 3])}


def lfm2(rng):
    return hf.Lfm2Config(
        **lfm2_sizes(rng), block_auto_adjust_ff_dim=maybe(rng), block_multiple_of=rng.choice([8, 12]),
        block_ffn_dim_multiplier=rng.choice([0.75, 1.0, 1.3]))


def lfm2_moe(rng):
    return hf.Lfm2MoeConfig(
        **lfm2_sizes(rng), **experts(rng, "num_experts"), moe_intermediate_size=rng.choice([16, 20]),
        num_dense_layers=rng.randint(0, 2))


def lfm2_names(config, module):
    """Renames the parts to the names of other families."""
    return re.sub(r"\.conv$", ".linear_attn", module.replace(".conv.", ".linear_attn.")).replace(
        ".feed_forward.gate", ".mlp.gate")


def delta_nets(rng, layers):
    """Sizes of gated delta nets and the layers that use them, always including the first."""
    keys = rng.choice([1, 2])
    kinds = ["linear_attention", "full_attention"]
    return {
        "layer_types": kinds[:1] + [rng.choice(kinds) for _ in range(layers - 1)], "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * rng.choice([1, 2]), "linear_key_head_dim": 8,
        "linear_value_head_dim": rng.choice([8, 12]), "linear_conv_kernel_dim": rng.choice([2, 4]),
    }


def gated_experts(rng):
    """Routed experts and a shared expert."""
    return {
        **experts(rng, "num_experts"), "moe_intermediate_size": rng.choice([16, 20]),
        "shared_expert_intermediate_size": rng.choice([16, 24]),
    }


def qwen3_next(rng):
    row = sizes(rng)
    layers = row["num_hidden_layers"]
    return hf.Qwen3NextConfig(
        **row, **delta_nets(rng, layers), **gated_experts(rng), head_dim=16, attention_bias=maybe(rng),
        decoder_sparse_step=rng.choice([1, 2]), mlp_only_layers=some_layers(rng, layers))


def qwen3_5_sizes(rng, *left_out):
    """Dimensions of the text model, also for the rows with a vision tower."""
    row = without(sizes(rng), *left_out)
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5}
    return {
        **row, **delta_nets(rng, row["num_hidden_layers"]), "head_dim": 16, "attention_bias": maybe(rng),
        "rope_parameters": rope,
    }


def qwen3_5_text(rng):
    return hf.Qwen3_5TextConfig(**qwen3_5_sizes(rng))


def qwen3_5_moe_text(rng):
    return hf.Qwen3_5MoeTextConfig(**qwen3_5_sizes(rng, "intermediate_size"), **gated_experts(rng))


HYBRID = [
    Family("nemotron_h", hf.NemotronHForCausalLM, nemotron_h, rename=mixer_names, by_kernel=("linear_attention",)),
    Family(
        "mamba2", hf.Mamba2ForCausalLM, mamba2, rename=mixer_names, by_kernel=("linear_attention",), attention=("eager",)),
    Family("falcon_h1", hf.FalconH1ForCausalLM, falcon_h1, rename=mamba_names, by_kernel=("linear_attention",)),
    Family("bamba", hf.BambaForCausalLM, bamba, rename=mamba_names, by_kernel=("linear_attention",)),
    Family(
        "granitemoehybrid", hf.GraniteMoeHybridForCausalLM, granitemoehybrid, rename=mamba_names,
        by_kernel=("linear_attention",)),
    Family("lfm2", hf.Lfm2ForCausalLM, lfm2, rename=lfm2_names, by_kernel=("linear_attention",)),
    Family("lfm2_moe", hf.Lfm2MoeForCausalLM, lfm2_moe, rename=lfm2_names, by_kernel=("linear_attention",)),
    Family("qwen3_next", hf.Qwen3NextForCausalLM, qwen3_next, by_kernel=("linear_attention",)),
    Family("qwen3_5_text", hf.Qwen3_5ForCausalLM, qwen3_5_text, by_kernel=("linear_attention",)),
    Family("qwen3_5_moe_text", hf.Qwen3_5MoeForCausalLM, qwen3_5_moe_text, by_kernel=("linear_attention",)),
]
