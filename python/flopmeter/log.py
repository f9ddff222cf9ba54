# SPDX-License-Identifier: Apache-2.0
"""Messages for the user: one line each, once, on stderr.  Never raises and never writes to stdout."""

from __future__ import annotations

import contextlib
import os
import sys

_MOST_LINES = 1000  # after which nothing is logged, so that no loop fills the memory
_LONGEST = 1000  # characters of a line
_logged: set[str] = set()


def log_once(text: str) -> None:
    """Log a line.  Control characters in names become spaces.  A stderr that is closed, full, or gone is ignored."""
    text = "".join(each if each.isprintable() else " " for each in text[:_LONGEST])
    if text in _logged or len(_logged) >= _MOST_LINES:
        return
    _logged.add(text)
    with contextlib.suppress(Exception):
        _write(f"flopmeter: {text}\n")


def _write(line: str) -> None:
    if sys.stderr is None:  # closed before Python started: its number may belong to another file now
        return
    bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
    with bars.external_write_mode(file=sys.stderr) if bars else contextlib.nullcontext():
        if _is_file_2():  # unbuffered: text that cannot be written would change the exit code
            if os.get_inheritable(2):  # else it is a file of the program, opened after stderr was closed
                os.write(2, line.encode(errors="replace"))
        else:
            sys.stderr.write(line)


def _is_file_2() -> bool:
    try:
        return sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False
