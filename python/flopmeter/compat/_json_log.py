# SPDX-License-Identifier: Apache-2.0
"""A JSON array in a file that is valid after every entry: each write replaces the closing bracket, in one call."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from flopmeter._setup import say


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JsonLog:
    """Appends entries; what cannot be written is said once, and training goes on."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._end = 1  # where the closing bracket's line begins
        self._first = True
        self._fd = -1
        self._owner = os.getpid()
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            os.pwrite(self._fd, b"[\n]\n", 0)
        except OSError as error:
            self._give_up(error)

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry."""
        if self._fd < 0 or os.getpid() != self._owner:
            return
        text = json.dumps({name: _plain(value) for name, value in entry.items()}, allow_nan=False)
        body = ("\n" if self._first else ",\n") + text
        data = (body + "\n]\n").encode()
        try:
            if os.pwrite(self._fd, data, self._end) != len(data):
                raise OSError(f"the file takes no more: {self._path}")
        except OSError as error:
            self._give_up(error)
            return
        self._end += len(body.encode())
        self._first = False

    def _give_up(self, error: OSError) -> None:
        say(f"{self._path} is not written: {error.strerror or error}")
        if self._fd >= 0:
            try:
                os.pwrite(self._fd, b"\n]\n", self._end)
                os.ftruncate(self._fd, self._end + 3)
            except OSError:
                pass
        self.close()

    def close(self) -> None:
        """No more entries."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
