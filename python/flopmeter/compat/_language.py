# SPDX-License-Identifier: Apache-2.0
"""The printed lines, in English, or in Chinese if FLOPMETER_LANG=zh or a Chinese locale is set."""

from __future__ import annotations

import os

from flopmeter.log import log_once


def is_chinese() -> bool:
    """As the environment states it; the first variable that is set decides, as for a locale."""
    names = ("FLOPMETER_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    return next((os.environ[name] for name in names if os.environ.get(name)), "").lower().startswith("zh")


def print_line(english: str, chinese: str) -> None:
    """Print a line."""
    print(chinese if is_chinese() else english)


def log_line(english: str, chinese: str) -> None:
    """Log a line to stderr, once."""
    log_once(chinese if is_chinese() else english)
