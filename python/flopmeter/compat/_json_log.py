# SPDX-License-Identifier: Apache-2.0
"""A JSON array in a file that is valid after each entry: each write replaces the closing bracket in one call.

The file, locked during a write, is the only state: a restarted program appends to it, and several writers can share it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flopmeter.compat._language import log_line


_END = b"\n]\n"
_LOCK_TRIES = 100  # one millisecond each: the training does not wait for a blocked writer


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JsonLog:
    """Appends entries; a write error is logged once, and the training continues."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._owner = os.getpid()
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            self._open()
            with self._locked():
                self._prepare()
        except OSError as error:
            self._give_up(error)

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:
                break  # some shared file systems do not support locks
        else:
            raise OSError(errno.EBUSY, "another program holds its lock")
        try:
            yield
        finally:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError:
                pass

    def _prepare(self) -> None:
        """Completes the end of the file; renames a file without a JSON array."""
        text = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        try:
            entries = json.loads(text) if text.strip() else []
        except ValueError:
            entries = None
        if not isinstance(entries, list):
            renamed = self._path + ".old"
            os.replace(self._path, renamed)
            log_line(f"{self._path} contained no JSON array and was renamed to {renamed}", f"{self._path} 中没有JSON数组，已重命名为 {renamed}")
            os.close(self._fd)
            self._open()
            text, entries = b"", []
        if not entries:
            os.pwrite(self._fd, b"[" + _END, 0)
            os.ftruncate(self._fd, 1 + len(_END))
            return
        log_line(
            f"{self._path} holds {len(entries)} entries of an earlier run; new ones follow them",
            f"{self._path} 含有先前运行的 {len(entries)} 条记录，新记录追加在其后",
        )
        if not text.endswith(_END):
            kept = len(text[: text.rindex(b"]")].rstrip())
            os.pwrite(self._fd, _END, kept)
            os.ftruncate(self._fd, kept + len(_END))

    def append(self, entry: dict[str, Any]) -> None:
        """Add an entry."""
        if self._fd < 0 or os.getpid() != self._owner:
            return
        text = json.dumps({name: _plain(value) for name, value in entry.items()}, allow_nan=False).encode()
        end = -1
        try:
            with self._locked():
                end = os.fstat(self._fd).st_size - len(_END)
                is_first = os.pread(self._fd, 1, end - 1) == b"["
                data = (b"\n" if is_first else b",\n") + text + _END
                if os.pwrite(self._fd, data, end) != len(data):
                    raise OSError(f"cannot append to the file: {self._path}")
        except OSError as error:
            self._give_up(error, end)

    def _give_up(self, error: OSError, end: int = -1) -> None:
        log_line(f"{self._path} is not written: {error.strerror or error}", f"不写入 {self._path}：{error.strerror or error}")
        if end >= 0:
            try:
                os.pwrite(self._fd, _END, end)
                os.ftruncate(self._fd, end + len(_END))
            except OSError:
                pass
        self.close()

    def close(self) -> None:
        """End the log."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
