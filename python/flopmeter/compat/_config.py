# SPDX-License-Identifier: Apache-2.0
"""What a training script's own configuration says about monitoring."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flopmeter import _flopmeter
from flopmeter.compat._estimate import reason

_BLOCKS = ("flopmeter", "monitoring", "monitor")


def find(config: Any, *names: str) -> Any:
    """The first of the names that the configuration or one of its blocks holds."""
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


def usable(config: Any, tell: Callable[[str], None]) -> dict[str, Any]:
    """The keys about monitoring that the native monitor knows, in its blocks; each other one is told of in a line."""
    if not isinstance(config, Mapping):
        return {}
    kept: dict[str, Any] = {}
    for block in _BLOCKS:
        if not isinstance(config.get(block), Mapping):
            continue
        for path, value in _leaves(config[block], (block,)):
            if path == ("monitoring", "flops_backend"):
                continue  # TrainingMonitor's own
            alone: Any = value
            for name in reversed(path):
                alone = {name: alone}
            try:
                _flopmeter.Options().apply_yaml(json.dumps(alone, default=str), "config")
            except ValueError as error:
                tell(f"A key of the configuration is not used: {reason(error).partition(': ')[2]}")
                continue
            place = kept
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = value
    return kept
