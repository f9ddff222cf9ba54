# SPDX-License-Identifier: Apache-2.0
"""Vision towers under Megatron: Qwen2.5-VL and Qwen3-VL, from FlagScale's arguments or Megatron-Bridge's configuration.

FlagScale's arguments do not contain the sizes of a tower: its programs set them by the size of the language model.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

# Arguments of one of FlagScale's programs; the one for Qwen3.5 also has that of Qwen3.
_QWEN2_5, _QWEN3, _QWEN3_5 = "vision_recompute_layer_steps", "vision_recompute_activations", "vision_num_layers"
_BRIDGE = ("qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")


def has_vision_tower(args: Namespace) -> bool:
    """Whether the program has one: FlagScale's parser for multimodal models has freeze_ViT."""
    return hasattr(args, "freeze_ViT") or bool(getattr(args, "vision_pretraining", None))


def _tower_of_bridge(args: Namespace) -> tuple[str, dict[str, Any]] | None:
    config = getattr(args, "vision_config", None)
    if config is None or getattr(config, "model_type", None) not in _BRIDGE:
        return None
    return config.model_type, config.to_dict()


def _tower(args: Namespace) -> tuple[str, dict[str, Any]] | None:
    """The family and the sizes of the tower; None if it is unknown."""
    if not hasattr(args, "freeze_ViT"):
        return _tower_of_bridge(args)
    sizes: dict[str, Any]
    merge = {"spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": int(args.hidden_size), "num_heads": 16}
    if hasattr(args, _QWEN2_5):
        width = 3420 if args.num_layers in (28, 36) else 3456
        sizes = {"depth": 32, "hidden_size": 1280, "intermediate_size": width, "patch_size": 14, "window_size": 112}
        return "qwen2_5_vl", {**merge, **sizes, "fullatt_block_indexes": [7, 15, 23, 31]}
    if not hasattr(args, _QWEN3) or hasattr(args, _QWEN3_5):
        return None
    if (args.num_layers, args.hidden_size) == (36, 2560):
        sizes = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "deepstack_visual_indexes": [5, 11, 17]}
    else:
        sizes = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "deepstack_visual_indexes": [8, 16, 24]}
    return "qwen3_vl", {**merge, **sizes, "patch_size": 16, "num_position_embeddings": 2304}


def with_vision_tower(args: Namespace, text: dict[str, Any]) -> dict[str, Any]:
    """The multimodal model whose language model is ``text``; a ValueError if no family of the catalog has both."""
    tower = _tower(args)
    if tower is None:
        raise ValueError("the catalog has no model for Megatron's vision tower")
    family, sizes = tower
    experts = text["model_type"] == "qwen3_moe"
    if text["model_type"] != "llama" and not (experts and family != "qwen2_5_vl"):
        raise ValueError(f"the catalog has no model with the vision tower of {family} and a language model like {text['model_type']}")
    return {
        "model_type": "qwen3_vl_moe" if experts else family,
        "vision_config": {key: value for key, value in sizes.items() if key != "model_type"},
        "text_config": {key: value for key, value in text.items() if key != "model_type"},
        "tie_word_embeddings": text["tie_word_embeddings"],
    }


def frozen_parts(args: Namespace) -> list[str]:
    """Patterns of the parameters that FlagScale freezes; a frozen tower includes its merger."""
    tower = ["model.visual*"] if getattr(args, "freeze_ViT", False) else []
    return tower + (["model.language_model*", "lm_head*"] if getattr(args, "freeze_LM", False) else [])
