# SPDX-License-Identifier: Apache-2.0
"""Monitoring keys in the configuration of a training script."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flopmeter import _flopmeter
from flopmeter.compat._estimate import reason
from flopmeter.compat._language import is_chinese

_BLOCKS = ("flopmeter", "monitoring", "monitor")


def find(config: Any, *names: str) -> Any:
    """Value of the first name that the configuration or one of its blocks contains."""
    if not isinstance(config, Mapping):
        return None
    for block in (config, *(value for value in config.values() if isinstance(value, Mapping))):
        for name in names:
            if block.get(name) is not None:
                return block[name]
    return None


def _leaves(block: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in block.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def usable(config: Any, report: Callable[[str], None]) -> dict[str, Any]:
    """The monitoring keys that the native monitor supports, in its blocks; each other key is reported in one line."""
    if not isinstance(config, Mapping):
        return {}
    kept: dict[str, Any] = {}
    for block in _BLOCKS:
        if not isinstance(config.get(block), Mapping):
            continue
        for path, value in _leaves(config[block], (block,)):
            if path == ("monitoring", "flops_backend"):
                continue  # a key of TrainingMonitor
            alone: Any = value
            for name in reversed(path):
                alone = {name: alone}
            try:
                _flopmeter.Options().apply_yaml(json.dumps(alone, default=str), "config")
            except ValueError as error:
                why = reason(error).partition(": ")[2]
                report(f"不使用配置中的键：{why}" if is_chinese() else f"A key of the configuration is not used: {why}")
                continue
            place = kept
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = value
    return kept
