# SPDX-License-Identifier: Apache-2.0
"""Counts graphs of a device (CUDA graphs): the work of a capture is counted once, taken out, and added at each replay."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from flopmeter import _flopmeter
from flopmeter.torch import loaded_torch
from flopmeter.torch.imports import after_import

_CAPTURE = ("capture_begin", "capture_end", "replay")

_CLASSES = {  # by the module that defines them
    "torch.cuda.graphs": "CUDAGraph",
    "torch.xpu.graphs": "XPUGraph",
    "torch.accelerator.graphs": "Graph",
    "torch.mtia.mtia_graph": "MTIAGraph",
}

_hooks: list[Any] = []  # of the monitors, run at each replay


class ReplayHook:
    """Runs a C function of a monitor, which does not raise, at each replay."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook
        _hooks.append(hook)

    def remove(self) -> None:
        """Remove the hook."""
        _hooks.remove(self._hook)


def _count_replays(graph_type: Any) -> None:
    """Wrap the methods of a graph class.  The captured work is kept on the graph."""
    begin, end, replay = (getattr(graph_type, name) for name in _CAPTURE)
    reset = getattr(graph_type, "reset", None)
    inside, unsupported, count_captures = _flopmeter.inside_call, _flopmeter.add_unsupported, _flopmeter.count_captures
    name = f"{graph_type.__module__}::{graph_type.__name__}.replay"

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        count_captures(1)
        try:
            result = begin(self, *args, **kwargs)
        except BaseException:
            count_captures(-1)
            raise
        self._flopmeter_capture = _flopmeter.Region()
        return result

    @functools.wraps(end)
    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        region = self.__dict__.pop("_flopmeter_capture", None)
        try:
            result = end(self, *args, **kwargs)
        finally:
            if region is not None:
                count_captures(-1)
        if region is not None:
            region.discard()
            self._flopmeter_replay = region.replay
        return result

    @functools.wraps(replay)
    def counted_replay(self: Any) -> Any:
        for hook in _hooks:
            hook()
        result = replay(self)
        try:
            self._flopmeter_replay()
        except AttributeError:  # captured before anything was counted
            if not inside():
                unsupported(name)
        return result

    graph_type.capture_begin = capture_begin
    graph_type.capture_end = capture_end
    graph_type.replay = counted_replay
    if reset is not None:

        @functools.wraps(reset)
        def counted_reset(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.__dict__.pop("_flopmeter_replay", None)
            return reset(self, *args, **kwargs)

        graph_type.reset = counted_reset


def _count_replays_once(graph_type: Any) -> None:
    if not hasattr(graph_type.replay, "__wrapped__"):
        _count_replays(graph_type)


def _patch(module: ModuleType) -> None:
    graph_type = getattr(module, _CLASSES[module.__name__], None)
    if graph_type is not None:
        _count_replays_once(graph_type)


def count_replays_of(device: str) -> None:
    """Count the replays of the graph classes of another backend, which its module ``torch.<device>`` has."""
    module = sys.modules.get(f"torch.{device}") or getattr(loaded_torch(), device, None)
    for value in list(vars(module).values()) if module is not None else ():
        is_graph = isinstance(value, type) and all(callable(getattr(value, name, None)) for name in _CAPTURE)
        if is_graph and value.__dictoffset__ != 0:  # the work of a capture is kept on the graph
            _count_replays_once(value)


def install() -> None:
    """Count the replays of all kinds of graphs that this torch has."""
    _flopmeter.count_captures(0)
    for module in _CLASSES:
        after_import(module, _patch)
