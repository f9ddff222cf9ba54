# SPDX-License-Identifier: Apache-2.0
"""The monitors of this process: they finish at exit, and an automatic one yields to one that the program creates."""

from __future__ import annotations

import atexit
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flopmeter.monitor import Monitor

_alive: weakref.WeakSet[Monitor] = weakref.WeakSet()
_kept: set[Monitor] = set()  # automatic ones, to which the program has no reference


def finish_at_exit(monitor: Monitor) -> None:
    """Finish the monitor when the program ends, if it still exists."""
    if not _alive:
        atexit.register(_finish_all)
    _alive.add(monitor)
    if monitor.automatic:
        _kept.add(monitor)


def finished(monitor: Monitor) -> None:
    """The monitor has finished: nothing is left to do at exit."""
    _alive.discard(monitor)
    _kept.discard(monitor)
    if not _alive:
        atexit.unregister(_finish_all)


def _finish_all() -> None:
    for monitor in list(_alive):
        monitor.finish()


def active_monitors() -> list[Monitor]:
    """Monitors that are running now."""
    return [monitor for monitor in _alive if monitor.enabled]


def finish_automatic() -> None:
    """End the monitors that ``flopmeter run`` started."""
    for monitor in active_monitors():
        if monitor.automatic:
            monitor.finish()
