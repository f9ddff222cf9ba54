# SPDX-License-Identifier: Apache-2.0
"""What ``monitor.step()`` and ``monitor.phase()`` return for a with statement."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from flopmeter import _flopmeter

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor


class Step:
    """An open step; ``monitor.step()`` returns it for a with statement."""

    __slots__ = ("_monitor",)

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def __enter__(self) -> Monitor:
        self._monitor._mark = False
        return self._monitor

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self._monitor.end_step()
        else:
            self._monitor.abandon_step()


class Phase:
    """A phase for a with statement."""

    __slots__ = ("_begin", "_end", "_phase")

    def __init__(self, core: _flopmeter.Monitor, phase: int) -> None:
        self._begin, self._end, self._phase = core.begin_phase, core.end_phase, phase

    def __enter__(self) -> None:
        self._begin(self._phase)

    def __exit__(self, *_error: object) -> None:
        self._end(self._phase)


class Aside(Phase):
    """An evaluation or a checkpoint: between steps it is a record of its own."""

    __slots__ = ("_monitor",)

    def __init__(self, monitor: Monitor, phase: int) -> None:
        super().__init__(monitor._core, phase)
        self._monitor = monitor

    def __enter__(self) -> None:
        self._monitor._leave_step()
        self._monitor._aside = True
        super().__enter__()

    def __exit__(self, *_error: object) -> None:
        super().__exit__()
        self._monitor._aside = False
