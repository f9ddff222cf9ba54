# SPDX-License-Identifier: Apache-2.0
"""Families with experts, and families with multi-head latent attention (MLA)."""

import transformers as hf

from families import Family, maybe, sizes, window, without


def experts(rng, name, groups=1):
    """Number of experts under key `name`, and the number of experts per token."""
    count = groups * rng.choice([2, 4, 6])
    return {name: count, "num_experts_per_tok": rng.randint(1, count)}


def some_layers(rng, layers):
    """A random choice of layer numbers, often empty."""
    return sorted(rng.sample(range(layers), rng.randint(0, layers // 2)))


def mixtral(rng):
    return hf.MixtralConfig(
        **sizes(rng), **experts(rng, "num_local_experts"), head_dim=rng.choice([None, 8, 24]),
        sliding_window=rng.choice([None, 5]))


def qwen2_moe(rng):
    row = sizes(rng)
    return hf.Qwen2MoeConfig(
        **row, **experts(rng, "num_experts"), moe_intermediate_size=rng.choice([16, 20]),
        shared_expert_intermediate_size=rng.choice([24, 48]), decoder_sparse_step=rng.choice([1, 2]),
        mlp_only_layers=some_layers(rng, row["num_hidden_layers"]), qkv_bias=maybe(rng, 0.7),
        use_sliding_window=maybe(rng, 0.3), sliding_window=5, max_window_layers=rng.randint(0, 4))


def qwen3_moe(rng):
    row = sizes(rng)
    return hf.Qwen3MoeConfig(
        **row, **experts(rng, "num_experts"), head_dim=rng.choice([8, 24]), moe_intermediate_size=rng.choice([16, 20]),
        decoder_sparse_step=rng.choice([1, 2]), mlp_only_layers=some_layers(rng, row["num_hidden_layers"]),
        attention_bias=maybe(rng), use_sliding_window=maybe(rng, 0.3), sliding_window=5)


def gpt_oss(rng):
    row = sizes(rng)
    return hf.GptOssConfig(
        **row, **experts(rng, "num_local_experts"), head_dim=rng.choice([8, 24]), attention_bias=maybe(rng, 0.7),
        rope_parameters={"rope_type": "default", "rope_theta": 150000.0}, **window(rng, row["num_hidden_layers"]))


def latent(rng):
    """Ranks and head dimensions of MLA."""
    return {
        "q_lora_rank": rng.choice([None, 12, 20]), "kv_lora_rank": rng.choice([8, 20]),
        "qk_nope_head_dim": rng.choice([8, 16]), "qk_rope_head_dim": rng.choice([4, 8]),
        "v_head_dim": rng.choice([8, 12, 24]),
    }


def deepseek(rng, groups):
    """Keys that both DeepSeek configurations share."""
    row = sizes(rng, grouped=False)
    return {
        **row, **latent(rng), **experts(rng, "n_routed_experts", groups), "moe_intermediate_size": rng.choice([16, 20]),
        "n_shared_experts": rng.choice([1, 2]), "attention_bias": maybe(rng, 0.3),
        "first_k_dense_replace": rng.randint(0, row["num_hidden_layers"]),
    }


def deepseek_v2(rng):
    return hf.DeepseekV2Config(**deepseek(rng, 1))


def deepseek_v3(rng):
    row = without(deepseek(rng, 2), "num_experts_per_tok")
    return hf.DeepseekV3Config(
        **row, n_group=2, topk_group=2, num_experts_per_tok=rng.randint(1, row["n_routed_experts"]),
        num_nextn_predict_layers=rng.choice([0, 1]))


def glm4_moe(rng):
    row = sizes(rng)
    return hf.Glm4MoeConfig(
        **row, **experts(rng, "n_routed_experts"), moe_intermediate_size=rng.choice([16, 20]), use_qk_norm=maybe(rng),
        n_shared_experts=rng.choice([1, 2]), attention_bias=maybe(rng),
        first_k_dense_replace=rng.randint(0, row["num_hidden_layers"]))


def ernie4_5_moe(rng):
    row = sizes(rng)
    count = rng.choice([2, 4, 6])
    return hf.Ernie4_5_MoeConfig(
        **row, moe_num_experts=count, moe_k=rng.randint(1, count), moe_intermediate_size=rng.choice([16, 20]),
        moe_num_shared_experts=rng.choice([0, 1, 2]), use_bias=maybe(rng), moe_layer_interval=rng.choice([1, 2]),
        moe_layer_start_index=rng.randint(0, row["num_hidden_layers"]),
        moe_layer_end_index=rng.choice([-1, rng.randint(0, row["num_hidden_layers"])]))


def llama4(rng):
    """Sizes of the text model, also for the row with a vision tower."""
    row = sizes(rng)
    count = rng.choice([2, 4, 6])
    return {
        **row, "head_dim": rng.choice([8, 24]), "num_local_experts": count, "num_experts_per_tok": rng.randint(1, count),
        "intermediate_size_mlp": rng.choice([24, 48]), "interleave_moe_layer_step": rng.choice([1, 2]),
        "attention_chunk_size": rng.choice([5, 32]), "attention_bias": maybe(rng), "use_qk_norm": maybe(rng),
    }


def llama4_text(rng):
    return hf.Llama4TextConfig(**llama4(rng))


def olmoe(rng):
    return hf.OlmoeConfig(**sizes(rng), **experts(rng, "num_experts"), attention_bias=maybe(rng))


def minimax_m2(rng):
    return hf.MiniMaxM2Config(**sizes(rng), **experts(rng, "num_local_experts"), head_dim=rng.choice([8, 24]))


def granitemoe(rng):
    return hf.GraniteMoeConfig(**sizes(rng), **experts(rng, "num_local_experts"), attention_bias=maybe(rng))


def granitemoeshared(rng):
    return hf.GraniteMoeSharedConfig(
        **sizes(rng), **experts(rng, "num_local_experts"), attention_bias=maybe(rng),
        shared_intermediate_size=rng.choice([0, 20, 36]))


def phimoe(rng):
    chosen = experts(rng, "num_local_experts") | {"num_experts_per_tok": 2}  # the router selects two regardless of the configuration
    return hf.PhimoeConfig(
        **sizes(rng), **chosen, attention_bias=maybe(rng), lm_head_bias=maybe(rng),
        sliding_window=rng.choice([None, 5]))


def dbrx(rng):
    row = sizes(rng)
    count = rng.choice([2, 4, 6])
    return hf.DbrxConfig(
        d_model=row["hidden_size"], n_heads=row["num_attention_heads"], n_layers=row["num_hidden_layers"], max_seq_len=64,
        vocab_size=row["vocab_size"], attn_config={"kv_n_heads": row["num_key_value_heads"], "rope_theta": 10000.0, "clip_qkv": 8},
        ffn_config={"hidden_size": row["hidden_size"], "ffn_hidden_size": row["intermediate_size"],
                    "moe_num_experts": count, "moe_top_k": rng.randint(1, count)})


def glm4_moe_lite(rng):
    row = without(deepseek(rng, 1), "first_k_dense_replace")
    layers = row["num_hidden_layers"]
    kinds = [rng.choice(["dense", "sparse"]) for _ in range(layers)]
    return hf.Glm4MoeLiteConfig(**row, mlp_layer_types=rng.choice([None, kinds]))


def dots1(rng):
    row = sizes(rng)
    return hf.Dots1Config(
        **row, **experts(rng, "n_routed_experts"), **window(rng, row["num_hidden_layers"]), attention_bias=maybe(rng),
        moe_intermediate_size=rng.choice([16, 20]), n_shared_experts=rng.choice([1, 2]), head_dim=rng.choice([8, 24]),
        first_k_dense_replace=rng.randint(0, row["num_hidden_layers"]))


MOE = [
    Family("mixtral", hf.MixtralForCausalLM, mixtral),
    Family("qwen2_moe", hf.Qwen2MoeForCausalLM, qwen2_moe),
    Family("qwen3_moe", hf.Qwen3MoeForCausalLM, qwen3_moe),
    Family("gpt_oss", hf.GptOssForCausalLM, gpt_oss, attention=("eager",)),
    Family("glm4_moe", hf.Glm4MoeForCausalLM, glm4_moe),
    Family("ernie4_5_moe", hf.Ernie4_5_MoeForCausalLM, ernie4_5_moe),
    Family("llama4_text", hf.Llama4ForCausalLM, llama4_text),
    Family("olmoe", hf.OlmoeForCausalLM, olmoe),
    Family("minimax_m2", hf.MiniMaxM2ForCausalLM, minimax_m2),
    Family("granitemoe", hf.GraniteMoeForCausalLM, granitemoe),
    Family("granitemoeshared", hf.GraniteMoeSharedForCausalLM, granitemoeshared),
    Family("deepseek_v2", hf.DeepseekV2ForCausalLM, deepseek_v2),
    Family("deepseek_v3", hf.DeepseekV3ForCausalLM, deepseek_v3),
    Family("phimoe", hf.PhimoeForCausalLM, phimoe),
    Family("dbrx", hf.DbrxForCausalLM, dbrx),
    Family("glm4_moe_lite", hf.Glm4MoeLiteForCausalLM, glm4_moe_lite),
    Family("dots1", hf.Dots1ForCausalLM, dots1),
]
