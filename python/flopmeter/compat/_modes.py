# SPDX-License-Identifier: Apache-2.0
"""The four modes: measured, estimated, or (smart) an estimate calibrated by a measurement."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from flopmeter.compat import _measure
from flopmeter.compat._estimate import as_number, estimated_flops
from flopmeter.compat._language import print_line

RECALIBRATION_FREQUENCY = 1000  # calls between two measurements of a shape


class Calibration:
    """Calibrates the estimate of one model, separately for each batch size and length.

    New shapes are measured, too. If shapes keep changing, the k-th measurement is followed by k² calls without one, in which
    a new shape uses the factor of the nearest length. A model with other trainable parameters restarts the calibration.
    """

    def __init__(self, frequency: int = RECALIBRATION_FREQUENCY, initial: bool = True, again: bool = True) -> None:
        self._frequency = frequency
        self._initial = initial
        self._again = again
        self._calls = 0
        self._forget(b"")

    def _forget(self, trained: bytes) -> None:
        self._trained = trained
        self._factors: dict[tuple[int, int], tuple[float, int]] = {}  # factor, and the call that measured it
        self._rounds = self._last = 0

    def _due(self, shape: tuple[int, int]) -> bool:
        if not self._rounds:
            return self._initial or self._calls >= self._frequency
        if not self._again:
            return False
        if (known := self._factors.get(shape)) is not None:
            return 0 < self._frequency <= self._calls - known[1]
        return self._calls - self._last >= self._rounds**2

    def flops(self, model: Any, batch_size: int, seq_length: int) -> tuple[float, bool]:
        """FLOPs of forward and backward, and whether this call measured them."""
        shape = (batch_size, seq_length)
        trained = bytes(parameter.requires_grad for parameter in model.parameters())
        if trained != self._trained:
            self._forget(trained)
        estimated = estimated_flops(model, *shape)
        measured = 0.0
        if self._due(shape):
            measured = _measure._measure_flops_with_profiler(model, *shape)
            # A model that cannot be measured is not measured in each call.
            factor = measured / estimated if measured and estimated else 1.0
            self._factors[shape] = (factor, self._calls)
            self._rounds += 1
            self._last = self._calls
        self._calls += 1
        if not self._factors:
            return estimated, False
        nearest = shape if shape in self._factors else min(self._factors, key=lambda known: abs(known[1] - seq_length))
        return estimated * self._factors[nearest][0], measured > 0


_of_models: weakref.WeakKeyDictionary[Any, Calibration] = weakref.WeakKeyDictionary()


def smart_flops(model: Any, batch_size: int, seq_length: int) -> float:
    """FLOPs by the calibration that all calls for this model share."""
    return _of_models.setdefault(model, Calibration()).flops(model, batch_size, seq_length)[0]


def _estimate(model: Any, batch_size: int, seq_length: int) -> float:
    flops = estimated_flops(model, batch_size, seq_length)
    if flops <= 0:
        print_line(
            f"MFU is 0: no FLOPs by estimate of a batch of {batch_size!r} by {seq_length!r} tokens",
            f"MFU为0：批次 {batch_size!r} × {seq_length!r} token 的FLOPs估算为0",
        )
    return max(flops, 0.0)


def _measured(model: Any, batch_size: int, seq_length: int) -> float:
    return _measure._measure_flops_with_profiler(model, batch_size, seq_length)


_MODES: dict[str, Callable[[Any, int, int], float]] = {
    "smart": smart_flops,
    "profiler": _measured,
    "estimate": _estimate,
    # A device counter also sees other work than the model; a single call cannot distinguish them.
    "hybrid": _measured,
}


def _given(flops: Any) -> float:
    number = as_number(flops)
    if number is None or number <= 0:
        print_line(
            f"MFU is 0, because actual_flops is {flops!r} and must be a number above 0",
            f"MFU为0：actual_flops 是 {flops!r}，必须是大于0的数",
        )
        return 0.0
    return number


def calculate_precise_mfu(
    model: Any,
    batch_size: int,
    seq_length: int,
    step_time: float,
    measurement_mode: str = "smart",
    actual_flops: float | None = None,
) -> float:
    """MFU in one of four modes; ``actual_flops`` is used unchanged.

    "smart" measures once and calibrates the estimate, "profiler" measures in each call, "estimate" never measures, "hybrid"
    reads hardware counters if available, else measures.
    """
    if actual_flops is not None:
        return _measure.mfu_of(model, step_time, lambda: _given(actual_flops))
    work = _MODES.get(measurement_mode)
    if work is None:
        print_line(
            f"measurement_mode '{measurement_mode}': expected smart, profiler, estimate, or hybrid; MFU is 0",
            f"measurement_mode '{measurement_mode}'：应为 smart、profiler、estimate 或 hybrid；MFU为0",
        )
        return 0.0
    return _measure.mfu_of(model, step_time, lambda: work(model, batch_size, seq_length))
