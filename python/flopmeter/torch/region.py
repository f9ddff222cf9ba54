# SPDX-License-Identifier: Apache-2.0
"""Work that is captured once and replayed without its operators (CUDA graphs)."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from flopmeter.torch.adapter import torch_adapter


class Region:
    """A region of work. Operators inside are counted as usual; ``replayed(n)`` adds the region n more times."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._region: Any = None

    def __enter__(self) -> Region:
        self._region = torch_adapter().Region()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._region.stop()

    def replayed(self, times: int = 1) -> None:
        """Add ``times`` invisible runs of the region."""
        if self._region is None:
            raise RuntimeError(f"flopmeter.region({self.name!r}): nothing was captured yet; use it in a with statement")
        self._region.replayed(times)

    @property
    def hardware_flops(self) -> int:
        """FLOPs of one run of the region."""
        return self._region.counts()["hardware_flops"]


def region(name: str) -> Region:
    """Mark work that will be replayed: ``with flopmeter.region("graph") as r: ...``, then ``r.replayed(n)``."""
    return Region(name)
