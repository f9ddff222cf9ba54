# SPDX-License-Identifier: Apache-2.0
"""Finds the catalog's model for a name, a configuration, or a module."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from flopmeter import _flopmeter
from flopmeter.torch import as_module

_MOST_WRAPPERS = 8  # around a model
_POSITIONS = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")
_registered: dict[str, Callable[[], Mapping[str, Any]]] = {}


def register_model(name: str, builder: Callable[[], Mapping[str, Any]]) -> None:
    """Register the model ``name``: ``builder()`` returns its configuration, as in a ``config.json``."""
    _registered[name] = builder


def _layers(model: Any, *names: str) -> Iterator[Any]:
    """The model and the ones inside it, outermost first.  A model may name itself: the depth is limited."""
    for _ in range(_MOST_WRAPPERS):
        yield model
        model = next((inner for name in names if (inner := getattr(model, name, None)) is not None), None)
        if model is None:
            return


def model_name(model: Any) -> str:
    """The usual name of a model; empty if it has none."""
    if model is None or isinstance(model, Mapping):
        return ""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    modules = takewhile(lambda each: as_module(each) is not None, _layers(model, "module", "_orig_mod"))
    model = [model, *modules][-1]  # the one inside DDP, FSDP, and torch.compile
    return getattr(getattr(model, "config", model), "name_or_path", "") or type(model).__name__


def _class_name(model: Any) -> str | None:
    """The transformers class of a model, or of the model that it wraps."""
    for each in _layers(model, "module", "_orig_mod", "model"):
        for base in type(each).__mro__:
            if base.__module__.startswith(("transformers.models.", "transformers_modules.")):
                return base.__name__
    return None


def config_of(model: Any) -> dict[str, Any] | None:
    """The configuration of a Hugging Face model or config object, of a wrapped model, or a dict as it is."""
    for each in _layers(model, "module", "_orig_mod", "base_model"):  # of DDP, FSDP, torch.compile, and PEFT
        if isinstance(each, Mapping):
            return dict(each)
        config: Any = each if hasattr(each, "model_type") else getattr(each, "config", None)
        if hasattr(config, "model_type") and hasattr(config, "to_dict"):
            known = config.to_dict()
            # A file may name another class, which has another head.
            own = None if config is each else _class_name(each)
            return known | {"architectures": [own]} if own else known
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
    """The longest sequence that a configuration allows."""
    text = config.get("text_config") or config
    for key in _POSITIONS:
        if isinstance(text.get(key), int) and text[key] > 0:
            return text[key]
    return None


def find_model(model: Any) -> tuple[_flopmeter.Model, int | None]:
    """The catalog's model, and the longest sequence if it is known.

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
            "specify a model name, a config.json, a dict, or a Hugging Face model"
        )
    return _from_config(config, f"the configuration of {type(model).__name__}")
