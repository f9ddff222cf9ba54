# SPDX-License-Identifier: Apache-2.0
"""``flopmeter.count()``: exact FLOPs of a code block, in all threads."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from flopmeter.torch.adapter import torch_adapter
from flopmeter.torch.modules import ROOT, ModuleHooks

if TYPE_CHECKING:
    import torch


class Row(NamedTuple):
    """FLOPs of one operator or module."""

    name: str
    dtype: str
    phase: str  # forward, backward, or recompute
    calls: int
    hardware_flops: int
    model_flops: int


class UnsupportedOp(NamedTuple):
    """An operator, function, or compiled model that ran without a known FLOP cost."""

    op: str
    calls: int
    seconds: float | None  # known after a profiled step


class PassFlops(NamedTuple):
    """Executed FLOPs of one module by pass."""

    forward: int
    backward: int
    recompute: int

    @property
    def hardware_flops(self) -> int:
        """Sum over the passes."""
        return self.forward + self.backward + self.recompute


class Count:
    """FLOPs of a ``with flopmeter.count() as c:`` block; readable inside and after the block."""

    def __init__(self, modules: torch.nn.Module | Mapping[str, torch.nn.Module] | None = None) -> None:
        self._modules = modules
        self._hooks: ModuleHooks | None = None
        self._counter: Any = None
        self._final: dict[str, Any] | None = None

    def __enter__(self) -> Count:
        if self._counter is not None:
            raise RuntimeError("flopmeter.count(): a count can be used only once; create a new one")
        adapter = torch_adapter()
        if self._modules is not None:
            self._hooks = ModuleHooks(adapter, self._modules)
        self._counter = adapter.OpCounter(modules=self._modules is not None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counter.stop()
        if self._hooks is not None:
            self._hooks.remove()
        self._final = self._counter.counts()

    def _counts(self) -> dict[str, Any]:
        if self._counter is None:
            raise RuntimeError("flopmeter.count(): nothing was counted yet; use it in a with statement")
        if self._final is None:
            return self._counter.counts()
        if self._final["bounded_flops"]:  # lengths on a device, which may be known by now
            self._final = self._counter.counts()
        return self._final

    @property
    def model_flops(self) -> int:
        """Numerator of MFU: forward and backward without recomputation."""
        return self._counts()["model_flops"]

    @property
    def hardware_flops(self) -> int:
        """Numerator of HFU: all executed FLOPs, including recomputation."""
        return self._counts()["hardware_flops"]

    @property
    def forward(self) -> int:
        """Executed FLOPs outside backward passes."""
        return self._counts()["forward"]

    @property
    def backward(self) -> int:
        """Executed FLOPs of gradients."""
        return self._counts()["backward"]

    @property
    def recompute(self) -> int:
        """Executed FLOPs of recomputed activations."""
        return self._counts()["recompute"]

    @property
    def calls(self) -> int:
        """Number of counted operator calls."""
        return self._counts()["calls"]

    @property
    def attention_pairs(self) -> str:
        """How exact the (query, key) pairs of attention are: exact, full, unknown, or none without attention."""
        return self._counts()["attention_pairs"]

    @property
    def unsupported(self) -> list[UnsupportedOp]:
        """Work that ran and has no FLOP cost: the count is too low by it."""
        return [UnsupportedOp(op, calls, None) for op, calls in self._counts()["unsupported"].items()]

    @property
    def coverage(self) -> float | None:
        """1.0 if everything that ran has a FLOP cost, else None: only a profiled step measures the time of the rest."""
        return None if self._counts()["unsupported"] else 1.0

    @property
    def bounded_flops(self) -> int:
        """The part of ``model_flops`` that is an upper bound: lengths or masks on the device decide."""
        return self._counts()["bounded_flops"]

    @property
    def by_dtype(self) -> dict[str, int]:
        """Executed FLOPs by compute dtype."""
        return self._counts()["by_dtype"]

    @property
    def rows(self) -> list[Row]:
        """FLOPs by operator, dtype, and pass."""
        return [Row(*row) for row in self._counts()["op_rows"]]

    @property
    def by_op(self) -> dict[str, int]:
        """Executed FLOPs by operator."""
        sums: dict[str, int] = {}
        for row in self.rows:
            sums[row.name] = sums.get(row.name, 0) + row.hardware_flops
        return sums

    @property
    def by_module(self) -> dict[str, PassFlops]:
        """Executed FLOPs of each module without its children; see ``count(modules=)``."""
        return {("" if name == ROOT else name): flops for name, flops in self._by_module().items() if name}

    @property
    def unattributed(self) -> PassFlops:
        """Executed FLOPs that belong to no module."""
        return self._by_module().get("", PassFlops(0, 0, 0))

    def _by_module(self) -> dict[str, PassFlops]:
        sums: dict[str, PassFlops] = {}
        for row in (Row(*row) for row in self._counts()["module_rows"]):
            flops = sums.get(row.name, PassFlops(0, 0, 0))
            sums[row.name] = flops._replace(**{row.phase: getattr(flops, row.phase) + row.hardware_flops})
        return sums

    def __repr__(self) -> str:
        if self._counter is None:
            return "<flopmeter.Count, not started>"
        return (
            f"<flopmeter.Count model_flops={self.model_flops} hardware_flops={self.hardware_flops} "
            f"forward={self.forward} backward={self.backward} recompute={self.recompute}>"
        )


def count(modules: torch.nn.Module | Mapping[str, torch.nn.Module] | None = None) -> Count:
    """Count the FLOPs of ``with flopmeter.count() as c:``, in all threads.

    ``modules``: a model (or several by name) to attribute the FLOPs to, in ``c.by_module``.
    """
    return Count(modules)
