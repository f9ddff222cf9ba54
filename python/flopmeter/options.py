# SPDX-License-Identifier: Apache-2.0
"""Options of a monitor from the environment, a configuration, and keywords."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from flopmeter import _flopmeter


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def make_options(
    named: Mapping[str, Any], config: str | os.PathLike[str] | Mapping[str, Any] | None, model: str
) -> _flopmeter.Options:
    """Options from the environment, then ``config``, then keywords."""
    options = _flopmeter.Options()
    options.apply_environment()
    if isinstance(config, Mapping):
        options.apply_yaml(json.dumps(config, default=str), "config")
    elif config is not None:
        text = os.fspath(config)
        if "\n" in text:
            options.apply_yaml(text, "config")
        else:
            options.apply_yaml_file(text)
    if model and not options.values()["model"]:
        options.set("model", model)
    for name, value in named.items():
        if value is None:
            continue
        for each in value if isinstance(value, (list, tuple)) else [value]:
            options.set(name, _as_text(each))
    return options


def run_directory(root: str | os.PathLike[str]) -> str | None:
    """``root``/perf_monitor, unless the environment names a directory."""
    options = _flopmeter.Options()
    unnamed = options.values()["directory"]
    options.apply_environment()
    return os.path.join(root, "perf_monitor") if options.values()["directory"] == unnamed else None
