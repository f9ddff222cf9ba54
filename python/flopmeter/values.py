# SPDX-License-Identifier: Apache-2.0
"""Numbers from a training loop, in any type."""

from __future__ import annotations

from typing import Any

from flopmeter.log import log_once


def as_float(value: Any) -> float | None:
    """The value as a float; None if it is not a number, or if reading it would wait for a device."""
    try:
        if value is None or type(value) in (int, float):
            return None if value is None else float(value)
        if getattr(getattr(value, "device", None), "type", "cpu") != "cpu":
            log_once("a loss on a device is not recorded, because reading it would wait; pass loss.item() if you have it anyway")
            return None
        return float(value.item() if hasattr(value, "item") else value)
    except Exception:  # code of the user's type
        return None


def as_count(value: Any) -> int | None:
    """A number of steps that a framework states; None if it states none, such as -1 or infinity."""
    try:
        return int(value) if 0 < value < 2**31 else None
    except Exception:  # not a number
        return None
