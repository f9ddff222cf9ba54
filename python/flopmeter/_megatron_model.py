# SPDX-License-Identifier: Apache-2.0
"""The model that Megatron's arguments describe, as a configuration that the catalog reads."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def _get(args: Namespace, name: str, otherwise: Any = None) -> Any:
    value = getattr(args, name, None)
    return otherwise if value is None else value


def _vocabulary(args: Namespace) -> int:
    """Megatron computes logits over the padded vocabulary."""
    for name in ("padded_vocab_size", "vocab_size"):
        if _get(args, name):
            return int(getattr(args, name))
    raise ValueError("Megatron's arguments have neither padded_vocab_size nor vocab_size; the LM head's size is not known")


def _moe_layers(args: Namespace, layers: int) -> list[bool]:
    """Which layers have experts: Megatron's parser makes a number N (every Nth from the first) or a list of 0 and 1."""
    frequency = _get(args, "moe_layer_freq", 1)
    if isinstance(frequency, str):
        raise ValueError(f"moe_layer_freq is the text {frequency!r}; give what Megatron's parser makes of it, a number or list")
    if isinstance(frequency, int):
        return [layer % frequency == 0 for layer in range(layers)]
    if len(frequency) != layers:
        raise ValueError(f"moe_layer_freq has {len(frequency)} entries for {layers} layers")
    return [bool(each) for each in frequency]


def _attention(args: Namespace) -> dict[str, Any]:
    heads = int(args.num_attention_heads)
    groups = int(_get(args, "num_query_groups", heads)) if _get(args, "group_query_attention", False) else heads
    width = int(_get(args, "kv_channels", args.hidden_size // heads))
    return {"num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": width}


def _latent_attention(args: Namespace) -> dict[str, Any]:
    return {
        "num_attention_heads": int(args.num_attention_heads),
        "num_key_value_heads": int(args.num_attention_heads),
        "q_lora_rank": _get(args, "q_lora_rank"),
        "kv_lora_rank": int(_get(args, "kv_lora_rank", 512)),
        "qk_nope_head_dim": int(_get(args, "qk_head_dim", 128)),
        "qk_rope_head_dim": int(_get(args, "qk_pos_emb_head_dim", 64)),
        "v_head_dim": int(_get(args, "v_head_dim", 128)),
    }


def _experts(args: Namespace, layers: int, dense_width: int) -> dict[str, Any]:
    """Experts of the DeepSeek kind: leading dense layers, routed and shared experts of one width."""
    moe = _moe_layers(args, layers)
    first = moe.index(True) if True in moe else layers
    width = int(_get(args, "moe_ffn_hidden_size", dense_width))
    shared = int(_get(args, "moe_shared_expert_intermediate_size", 0))
    if shared % width:
        raise ValueError(f"moe_shared_expert_intermediate_size {shared} is not a multiple of moe_ffn_hidden_size {width}")
    if moe[first:] != [True] * (layers - first):
        raise ValueError("moe_layer_freq mixes dense and expert layers in a way the catalog has no model for")
    return {
        "n_routed_experts": int(args.num_experts),
        "num_experts_per_tok": int(_get(args, "moe_router_topk", 2)),
        "moe_intermediate_size": width,
        "n_shared_experts": shared // width,
        "first_k_dense_replace": first,
        "moe_layer_freq": 1,
    }


# They change Megatron's figure, and no family of the catalog has them from these arguments.
_UNKNOWN = (
    "attention_output_gate",
    "experimental_attention_variant",
    "hybrid_layer_pattern",
    "hybrid_override_pattern",
    "is_hybrid_model",
    "moe_latent_size",
)


def _refuse_unknown(args: Namespace) -> None:
    names = [name for name in _UNKNOWN if _get(args, name)]
    if _get(args, "mtp_num_layers", 0) and not _get(args, "multi_latent_attention", False):
        names.append("mtp_num_layers without multi_latent_attention")
    if names:
        raise ValueError(f"the catalog has no model for Megatron's {', '.join(names)}")


def model_config(args: Namespace) -> dict[str, Any]:
    """A configuration for ``flopmeter.estimate`` and ``Monitor(model=...)``; GQA, MoE and MLA included.

    Biases and positions follow the nearest family; they do not enter the FLOPs.  What no family of the catalog
    describes is a ValueError.
    """
    _refuse_unknown(args)
    layers, hidden = int(args.num_layers), int(args.hidden_size)
    gated = bool(_get(args, "swiglu", False))
    width = int(_get(args, "ffn_hidden_size", 4 * hidden))
    config: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": width,
        "vocab_size": _vocabulary(args),
        "max_position_embeddings": int(_get(args, "max_position_embeddings", _get(args, "seq_length", 2048))),
        "tie_word_embeddings": not _get(args, "untie_embeddings_and_output_weights", False),
    }
    experts = bool(_get(args, "num_experts", 0))
    latent = bool(_get(args, "multi_latent_attention", False))
    if (experts or latent) and not gated:
        raise ValueError("Megatron's arguments ask for MoE or MLA without --swiglu; the catalog has no such model")
    if latent:
        config |= {"model_type": "deepseek_v3", **_latent_attention(args)}
        config |= _experts(args, layers, width) if experts else _no_experts(layers)
        return config | {"num_nextn_predict_layers": int(_get(args, "mtp_num_layers", 0))}
    config |= _attention(args)
    if experts:
        return _with_experts(args, config, layers, width)
    if gated:
        return config | {"model_type": "llama"}
    if config["num_key_value_heads"] == config["num_attention_heads"] and config["head_dim"] * config["num_attention_heads"] == hidden:
        return config | {"model_type": "gpt_neox", "use_parallel_residual": False}
    return config | {"model_type": "phi"}


def _no_experts(layers: int) -> dict[str, Any]:
    return {
        "n_routed_experts": 1,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 1,
        "n_shared_experts": 0,
        "first_k_dense_replace": layers,
    }


def _with_experts(args: Namespace, config: dict[str, Any], layers: int, width: int) -> dict[str, Any]:
    moe = _moe_layers(args, layers)
    shared = int(_get(args, "moe_shared_expert_intermediate_size", 0))
    if shared and config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]:
        return config | _experts(args, layers, width) | {"model_type": "deepseek"}
    if shared:
        raise ValueError("shared experts together with kv_channels x heads other than hidden_size: no model of the catalog")
    return config | {
        "model_type": "qwen3_moe",
        "num_experts": int(args.num_experts),
        "num_experts_per_tok": int(_get(args, "moe_router_topk", 2)),
        "moe_intermediate_size": int(_get(args, "moe_ffn_hidden_size", width)),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [layer for layer, has in enumerate(moe) if not has],
    }
