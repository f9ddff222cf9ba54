# SPDX-License-Identifier: Apache-2.0
"""The guard around every entry from the user's program: public methods, callbacks, and patched functions.

An error inside flopmeter is logged once, detaches the monitor, and never reaches the program.  KeyboardInterrupt,
SystemExit, and GeneratorExit pass: they are the program's own.  The hooks of ``python/src/hooks.cpp`` have the same guard.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from flopmeter.log import log_once

Entry = TypeVar("Entry", bound=Callable[..., Any])
_PASS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def describe_error(error: object) -> str:
    """Type and first line of an error; its text may be what fails."""
    try:
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    except Exception:
        return type(error).__name__


def log_failure(error: object) -> None:
    """The one line about a monitor that is detached."""
    log_once(f"the run continues without the monitor, which failed: {describe_error(error)}")


def guarded(entry: Entry) -> Entry:
    """Guard a method of an object that has ``detach()``, which must not raise; after a failure the result is None."""

    @functools.wraps(entry)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return entry(self, *args, **kwargs)
        except _PASS:
            raise
        except BaseException as error:
            log_failure(error)
            self.detach()
            return None

    return run  # type: ignore[return-value]
