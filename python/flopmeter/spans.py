# SPDX-License-Identifier: Apache-2.0
"""Context managers of ``monitor.step()``, ``monitor.phase()``, and ``monitor.stage()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flopmeter import _flopmeter

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor


class Step:
    """An open step; a step that raises leaves no record."""

    __slots__ = ("_core", "_monitor")

    def __init__(self, monitor: Monitor) -> None:
        self._core = monitor.core
        self._monitor = monitor

    def __enter__(self) -> Monitor:
        self._core.keep_step()
        return self._monitor

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._core.end()
        else:
            self._core.abandon_step()


class Phase:
    """A phase; an unknown name is ignored."""

    __slots__ = ("_core", "_name")

    def __init__(self, core: _flopmeter.Monitor, name: str) -> None:
        self._core, self._name = core, name

    def __enter__(self) -> None:
        self._core.begin_phase(self._name)

    def __exit__(self, *_error: object) -> None:
        self._core.end_phase(self._name)


class Stage:
    """A named part of the run.  Stages may be nested: the innermost one counts."""

    __slots__ = ("_core", "_name", "_outer")

    def __init__(self, core: _flopmeter.Monitor, name: str) -> None:
        self._core, self._name = core, name

    def __enter__(self) -> None:
        self._outer = self._core.set_stage(self._name)

    def __exit__(self, *_error: object) -> None:
        self._core.set_stage(self._outer)
