# SPDX-License-Identifier: Apache-2.0
"""Finds the catalog's model behind whatever a user calls a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from flopmeter import _flopmeter

_POSITIONS = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")
_registered: dict[str, Callable[[], Mapping[str, Any]]] = {}


def register_model(name: str, builder: Callable[[], Mapping[str, Any]]) -> None:
    """Make ``name`` a model: ``builder()`` returns its configuration, as a ``config.json`` would hold it."""
    _registered[name] = builder


def config_of(model: Any) -> dict[str, Any] | None:
    """The configuration of a Hugging Face model or config object, of a wrapped model, or a dict as it is."""
    for _ in range(8):  # DDP, FSDP, compiled and PEFT models hold the model one or two levels down
        if isinstance(model, Mapping):
            return dict(model)
        config: Any = model if hasattr(model, "model_type") else getattr(model, "config", None)
        if hasattr(config, "model_type") and hasattr(config, "to_dict"):
            return config.to_dict()
        inner = getattr(model, "module", None) or getattr(model, "_orig_mod", None) or getattr(model, "base_model", None)
        if inner is None or inner is model:
            return None
        model = inner
    return None


def _from_text(text: str) -> tuple[_flopmeter.Model, int | None]:
    path = os.path.join(text, "config.json") if os.path.isdir(text) else text
    if not (text.endswith(".json") or os.path.exists(path)):
        if text in _registered:
            return _from_config(dict(_registered[text]()), text)
        return _flopmeter.Model.named(text), None
    with open(path, encoding="utf-8") as file:
        content = file.read()
    model = _flopmeter.Model.from_config(content, path)
    return model, longest(json.loads(content))


def _from_config(config: dict[str, Any], origin: str) -> tuple[_flopmeter.Model, int | None]:
    return _flopmeter.Model.from_config(json.dumps(config, default=str), origin), longest(config)


def stored_form(model: Any) -> dict[str, str]:
    """The model as run.json keeps it, so that a run can be recounted: a catalog name or the configuration."""
    config: Mapping[str, Any] | None = None
    if isinstance(model, _flopmeter.Model):
        return {"name": model.name}
    if isinstance(model, (str, os.PathLike)):
        text = os.fspath(model)
        path = os.path.join(text, "config.json") if os.path.isdir(text) else text
        if text.endswith(".json") or os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
        elif text in _registered:
            config = _registered[text]()
        else:
            return {"name": text}
    else:
        config = config_of(model)
    if not isinstance(config, Mapping):
        return {}
    kept = {key: value for key, value in config.items() if not key.startswith("_")}  # "_name_or_path"
    return {"config": json.dumps(kept, default=str)}


def longest(config: Mapping[str, Any]) -> int | None:
    """The longest sequence that a configuration speaks of."""
    text = config.get("text_config") or config
    for key in _POSITIONS:
        if isinstance(text.get(key), int) and text[key] > 0:
            return text[key]
    return None


def find_model(model: Any) -> tuple[_flopmeter.Model, int | None]:
    """The catalog's model, and the longest sequence where it is known.

    ``model``: a well-known name, a ``config.json`` or a folder that holds one, a configuration as a dict or a
    Hugging Face object, or a module that has one.
    """
    if isinstance(model, _flopmeter.Model):
        return model, None
    if isinstance(model, (str, os.PathLike)):
        return _from_text(os.fspath(model))
    config = config_of(model)
    if config is None:
        raise ValueError(
            f"flopmeter: {type(model).__name__} has no configuration to estimate from; "
            "give a model's name, a config.json, a dict or a Hugging Face model"
        )
    return _from_config(config, f"the configuration of {type(model).__name__}")
