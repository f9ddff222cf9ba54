# SPDX-License-Identifier: Apache-2.0
"""Device memory of any backend.  The devices are fakes: none can run here."""

from types import SimpleNamespace

import pytest
from flopmeter.torch import device

STATS = {"memory_allocated": 10, "max_memory_allocated": 30, "memory_reserved": 40}


def fake_torch(kind, stats, **backends):
    read = {name: (lambda _device, value=value: value) for name, value in STATS.items()}
    accelerator = SimpleNamespace(current_accelerator=lambda: SimpleNamespace(type=kind), memory_stats=lambda _device: stats, **read)
    return SimpleNamespace(accelerator=accelerator, **{name: SimpleNamespace(**{each: (lambda _d: 7) for each in STATS}) for name in backends})


@pytest.mark.parametrize(
    ("torch", "where", "expected"),
    [
        (fake_torch("musa", {"allocated_bytes.all.current": 10}), "musa:1", (10, 30, 40)),
        (fake_torch("mlu", {}, mlu=1), "mlu:0", (7, 7, 7)),
        (fake_torch("maca", {}), "maca:0", (-1, -1, -1)),  # its allocator reports nothing
        (fake_torch("xpu", {}), "hpu:0", None),  # not the accelerator of this torch
        (fake_torch("cuda", {}), "cpu", None),
        (SimpleNamespace(), "npu:0", None),
        (None, "cuda:0", None),
    ],
)
def test_memory_comes_from_the_backend_or_from_the_accelerator(monkeypatch, torch, where, expected):
    monkeypatch.setattr(device, "loaded_torch", lambda: torch)
    assert device.has_own_memory(where) == (expected is not None)
    assert device.memory_bytes(where) == (expected or (-1, -1, -1))
