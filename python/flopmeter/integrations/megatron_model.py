# SPDX-License-Identifier: Apache-2.0
"""The model that Megatron's arguments describe, as a configuration that the catalog reads."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from flopmeter.integrations.megatron_vision import frozen_parts, has_vision_tower, with_vision_tower


def _get(args: Namespace, name: str, otherwise: Any = None) -> Any:
    value = getattr(args, name, None)
    return otherwise if value is None else value


def needed(args: Namespace, name: str) -> int:
    """A size that cannot be done without."""
    if not _get(args, name):
        raise ValueError(f"Megatron's arguments have no {name}")
    return int(getattr(args, name))


def low_dtype(args: Namespace) -> str | None:
    """The dtype of a recipe for 8 or 4 bits; Megatron's parser has the formats e4m3, hybrid, and e2m1."""
    return next((dtype for dtype in ("fp4", "fp8") if _get(args, dtype)), None)


def _vocabulary(args: Namespace) -> int:
    """Megatron computes logits over the padded vocabulary, which it sets after its arguments are parsed."""
    if _get(args, "padded_vocab_size"):
        return int(args.padded_vocab_size)
    if not _get(args, "vocab_size"):
        raise ValueError("Megatron's arguments have neither padded_vocab_size nor vocab_size; the LM head's size is not known")
    multiple = int(_get(args, "make_vocab_size_divisible_by", 128)) * int(_get(args, "tensor_model_parallel_size", 1))
    return -(-int(args.vocab_size) // multiple) * multiple


def _mlp_width(args: Namespace, hidden: int) -> int:
    """As given, else as Megatron's validation sets it: SwiGLU's three matrices as large as two of 4 h, in steps of 64."""
    otherwise = int(4 * hidden * 2 / 3 / 64) * 64 if _get(args, "swiglu", False) else 4 * hidden
    return int(_get(args, "ffn_hidden_size", otherwise))


def _windows(args: Namespace, layers: int) -> tuple[int, list[bool]]:
    """The keys that a windowed query sees, itself included, and the layers that have the window."""
    size, skip = _get(args, "window_size"), _get(args, "window_attn_skip_freq")
    if not size or int(size[0]) < 0:
        return 0, [False] * layers
    if isinstance(skip, (list, tuple)) and len(skip) != layers:
        raise ValueError(f"window_attn_skip_freq has {len(skip)} entries for {layers} layers")
    if isinstance(skip, int):
        return int(size[0]) + 1, [layer % skip != 0 for layer in range(1, layers + 1)]
    return int(size[0]) + 1, [True] * layers if skip is None else [bool(each) for each in skip]


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
    heads = needed(args, "num_attention_heads")
    groups = int(_get(args, "num_query_groups", heads)) if _get(args, "group_query_attention", False) else heads
    width = int(_get(args, "kv_channels", args.hidden_size // heads))
    return {"num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": width}


# Sizes of latent attention, of gated delta nets, and of Mamba layers, with Megatron's defaults.
_LATENT = {"kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128}
_LINEAR = {
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}
_DELTA_NETS = (None, "gated_delta_net", "gdn")  # the last two are one layer: releases after core 0.19 name it gdn
_MAMBA = {"mamba_state_dim": 128, "mamba_head_dim": 64, "mamba_num_groups": 8}
# They change the work, and no family of the catalog has them from these arguments.
_UNKNOWN = (
    "decoder_num_layers",
    "enable_mhc_connections",
    "freeze_all_layers",
    "heterogeneous_layers_config_encoded_json",
    "heterogeneous_layers_config_path",
    "retro_add_retriever",
)


def _pattern(args: Namespace) -> str:
    """The layers of a hybrid, a letter each; empty for other models.  Older releases have ratios in place of a pattern."""
    pattern = str(_get(args, "hybrid_layer_pattern", _get(args, "hybrid_override_pattern", "")))
    if not pattern and _get(args, "is_hybrid_model", False):
        layers = needed(args, "num_layers")
        attention, mlps = (round(layers * float(_get(args, name, 0))) for name in ("hybrid_attention_ratio", "hybrid_mlp_ratio"))
        pattern = "*" * attention + "-" * mlps + "M" * (layers - attention - mlps)
    depths, predicted = int(_get(args, "mtp_num_layers", 0)), _get(args, "mtp_hybrid_override_pattern")
    if pattern and depths and "/" not in pattern:
        if not predicted:
            raise ValueError("mtp_num_layers together with a hybrid pattern without the layers of a prediction: no model of the catalog")
        pattern += f"/{predicted}" * depths
    return pattern


# The linears that LoRA of FlagScale and Megatron-Bridge may adapt; those of MLA are in no family.
_ADAPTED = ("linear_qkv", "linear_proj", "linear_fc1", "linear_fc2")


def _knows_adapters(args: Namespace) -> bool:
    targets = set(_get(args, "lora_target_modules", _ADAPTED))
    known = bool(targets) and targets <= set(_ADAPTED) and str(args.peft_type).lower() == "lora"
    return known and not (_get(args, "num_experts") or _get(args, "multi_latent_attention") or _pattern(args))


def trainable_of(args: Namespace) -> str:
    """The trained parameters: all, all but frozen parts, or LoRA adapters on Megatron's fused linears."""
    if not _get(args, "peft_type"):
        frozen = frozen_parts(args)
        return f"freeze:{','.join(frozen)}" if frozen else "all"
    adapted = ",".join(f"*.{name}" for name in _get(args, "lora_target_modules", _ADAPTED))
    return f"lora:{int(_get(args, 'lora_dim', 8))}:{adapted}"


def _refuse_unknown(args: Namespace) -> None:
    names = [name for name in _UNKNOWN if _get(args, name)]
    variant = _get(args, "experimental_attention_variant")
    if variant not in _DELTA_NETS:
        names.append(f"experimental_attention_variant {variant}")
    if _get(args, "multi_latent_attention", False):
        names += [name for name in ("attention_output_gate", "hybrid_layer_pattern") if _get(args, name)]
    if _pattern(args) and any(name in str(_get(args, "spec", "")) for name in ("gdp_stack_spec", "gated_delta_product")):
        names.append(f"spec {args.spec}")
    if _get(args, "peft_type") and not _knows_adapters(args):
        names.append("peft_type")
    if str(_get(args, "tokenizer_type", "")).startswith("BertWordPiece"):  # the only difference between BERT or T5 and a GPT
        names.append(f"tokenizer_type {args.tokenizer_type}, which encoders have")
    if names:
        raise ValueError(f"the catalog has no model for Megatron's {', '.join(names)}")


def model_config(args: Namespace) -> dict[str, Any]:
    """A configuration for ``flopmeter.estimate`` and ``Monitor(model=...)``; vision towers included.

    Biases and positions follow the nearest family; they do not enter the FLOPs.  What no family of the catalog
    describes is a ValueError.
    """
    text = _text_config(args)
    return with_vision_tower(args, text) if has_vision_tower(args) else text


def _text_config(args: Namespace) -> dict[str, Any]:
    """The language model: GQA, MoE, MLA, windows, and hybrids included."""
    _refuse_unknown(args)
    layers, hidden = needed(args, "num_layers"), needed(args, "hidden_size")
    gated = bool(_get(args, "swiglu", False) or _get(args, "quick_geglu", False))
    width = _mlp_width(args, hidden)
    window, windowed = _windows(args, layers)
    config: dict[str, Any] = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "intermediate_size": width,
        "vocab_size": _vocabulary(args),
        "max_position_embeddings": int(_get(args, "max_position_embeddings", _get(args, "seq_length", 2048))),
        "tie_word_embeddings": not _get(args, "untie_embeddings_and_output_weights", False),
    }
    if _needs_own_family(args, gated) or _bf16_layers(args) and not (window or has_vision_tower(args)):
        if window:
            raise ValueError("window_size together with MLA, shared experts, MTP, output gates, delta nets, or a hybrid: no model of the catalog")
        return _own_family(args, layers, width, gated)
    config |= _attention(args)
    if _get(args, "num_experts", 0):
        return _with_experts(args, config, layers, width) | (_expert_windows(args, window, windowed) if window else {})
    if window:
        return config | _dense_windows(gated, window, windowed)
    if gated:
        return config | {"model_type": "llama"}
    if config["num_key_value_heads"] == config["num_attention_heads"] and config["head_dim"] * config["num_attention_heads"] == hidden:
        return config | {"model_type": "gpt_neox", "use_parallel_residual": False}
    return config | {"model_type": "phi"}


def _needs_own_family(args: Namespace, gated: bool) -> bool:
    """Whether no published family has this mixture, so that Megatron's own one describes it."""
    mixed = ("attention_output_gate", "experimental_attention_variant", "moe_latent_size", "mtp_num_layers", "multi_latent_attention", "peft_type")
    experts = bool(_get(args, "num_experts", 0))
    return bool(_pattern(args)) or any(_get(args, name) for name in mixed) or experts and bool(not gated or _get(args, "moe_shared_expert_intermediate_size"))


def _bf16_layers(args: Namespace) -> dict[str, Any]:
    """The layers that an fp8 or fp4 recipe leaves in bf16, in the words of the arguments."""
    if not _get(args, "first_last_layers_bf16", False) or not low_dtype(args):
        return {}
    counts = ("num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16")
    return {"first_last_layers_bf16": True, **{name: int(_get(args, name, 1)) for name in counts}}


def _linear_layers(args: Namespace, layers: int) -> list[int]:
    """1 for layers with a gated delta net: every layer but the Nth of N, or as listed."""
    frequency = _get(args, "linear_attention_freq")
    if isinstance(frequency, int):
        return [int((layer + 1) % frequency != 0) for layer in range(layers)]
    if frequency is None or len(frequency) not in (layers, layers + int(_get(args, "mtp_num_layers", 0))):
        raise ValueError(f"linear_attention_freq is {frequency!r}: expected a number, or an entry for each of {layers} layers")
    return [int(bool(each)) for each in frequency[:layers]]


def _own_family(args: Namespace, layers: int, width: int, gated: bool) -> dict[str, Any]:
    attention, pattern = _attention(args), _pattern(args)
    config: dict[str, Any] = {
        "model_type": "megatron_hybrid" if pattern else "megatron",
        "hidden_size": int(args.hidden_size),
        "ffn_hidden_size": width,
        "num_attention_heads": attention["num_attention_heads"],
        "num_query_groups": attention["num_key_value_heads"],
        "kv_channels": attention["head_dim"],
        "padded_vocab_size": _vocabulary(args),
        "max_position_embeddings": int(_get(args, "max_position_embeddings", _get(args, "seq_length", 2048))),
        "swiglu": gated,
        "add_bias_linear": False,
        "normalization": "RMSNorm",
        "position_embedding_type": "rope",
        "untie_embeddings_and_output_weights": bool(_get(args, "untie_embeddings_and_output_weights", False)),
        "attention_output_gate": bool(_get(args, "attention_output_gate", False)),
        **_bf16_layers(args),
    }
    if _get(args, "num_experts", 0):
        config |= {
            "num_experts": int(args.num_experts),
            "moe_router_topk": int(_get(args, "moe_router_topk", 2)),
            "moe_ffn_hidden_size": int(_get(args, "moe_ffn_hidden_size", width)),
            "moe_shared_expert_intermediate_size": int(_get(args, "moe_shared_expert_intermediate_size", 0)),
            "moe_latent_size": int(_get(args, "moe_latent_size", 0)),
        }
    if _get(args, "experimental_attention_variant") or "G" in pattern:
        config |= {name: int(_get(args, name, otherwise)) for name, otherwise in _LINEAR.items()}
    if pattern:
        heads = {"mamba_num_heads": int(args.mamba_num_heads)} if _get(args, "mamba_num_heads") else {}
        return config | {name: int(_get(args, name, otherwise)) for name, otherwise in _MAMBA.items()} | heads | {"hybrid_layer_pattern": pattern}
    config["num_layers"] = layers
    if _get(args, "num_experts", 0):
        config["moe_layer_pattern"] = [int(each) for each in _moe_layers(args, layers)]
    if _get(args, "mtp_num_layers", 0):
        config["mtp_num_layers"] = int(args.mtp_num_layers)
    if _get(args, "experimental_attention_variant"):
        config["linear_attention_pattern"] = _linear_layers(args, layers)
    if _get(args, "multi_latent_attention", False):
        config |= {name: int(_get(args, name, otherwise)) for name, otherwise in _LATENT.items()}
        config |= {"multi_latent_attention": True, "q_lora_rank": int(_get(args, "q_lora_rank", 0))}
    return config


def _with_experts(args: Namespace, config: dict[str, Any], layers: int, width: int) -> dict[str, Any]:
    return config | {
        "model_type": "qwen3_moe",
        "num_experts": int(args.num_experts),
        "num_experts_per_tok": int(_get(args, "moe_router_topk", 2)),
        "moe_intermediate_size": int(_get(args, "moe_ffn_hidden_size", width)),
        "decoder_sparse_step": 1,
        "mlp_only_layers": [layer for layer, has in enumerate(_moe_layers(args, layers)) if not has],
    }


def _layer_types(windowed: list[bool]) -> list[str]:
    return ["sliding_attention" if each else "full_attention" for each in windowed]


def _dense_windows(gated: bool, window: int, windowed: list[bool]) -> dict[str, Any]:
    if gated:
        types = {"use_sliding_window": True, "layer_types": _layer_types(windowed)}
        return {"model_type": "qwen3", "sliding_window": window, **types}
    if not all(windowed):
        raise ValueError("window_attn_skip_freq without --swiglu or --quick-geglu: no model of the catalog")
    return {"model_type": "starcoder2", "sliding_window": window}


def _expert_windows(args: Namespace, window: int, windowed: list[bool]) -> dict[str, Any]:
    """Windows in some layers only is GPT-OSS, whose layers all have experts."""
    if all(windowed):
        return {"use_sliding_window": True, "sliding_window": window}
    if not all(_moe_layers(args, len(windowed))):
        raise ValueError("window_attn_skip_freq together with layers without experts: no model of the catalog")
    width = int(_get(args, "moe_ffn_hidden_size", _mlp_width(args, int(args.hidden_size))))
    return {
        "model_type": "gpt_oss",
        "num_local_experts": int(args.num_experts),
        "intermediate_size": width,
        "sliding_window": window,
        "layer_types": _layer_types(windowed),
    }


_WITHOUT_MATMULS = {"layernorm", "moe_act", "gdn_norm_out", "mhc"}  # recomputing them runs no matmul


def recompute_of(args: Namespace) -> tuple[str, str]:
    """Recomputation for the estimator, and a message if it is an approximation."""
    granularity = _get(args, "recompute_granularity", "selective" if _get(args, "recompute_activations", False) else "none")
    if granularity == "full":
        stages = int(_get(args, "pipeline_model_parallel_size", 1)) * int(_get(args, "virtual_pipeline_model_parallel_size", 1))
        some = int(_get(args, "recompute_num_layers", 1))
        if _get(args, "recompute_method") == "block" and some * stages < int(_get(args, "num_layers", 0)):
            return "full", f"recompute_num_layers {some} is taken as every layer: hardware FLOPs and HFU are too high"
        return "full", ""
    if granularity != "selective":
        return "none", ""
    modules = set(_get(args, "recompute_modules", ["core_attn"])) | ({"moe"} if _get(args, "moe_layer_recompute", False) else set())
    taken = "selective" if "core_attn" in modules else "none"
    ignored = sorted(modules - _WITHOUT_MATMULS - {"core_attn"})
    return taken, f"recompute_modules {', '.join(ignored)} are ignored: hardware FLOPs and HFU are too low" if ignored else ""
