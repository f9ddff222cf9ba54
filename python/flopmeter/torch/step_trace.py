# SPDX-License-Identifier: Apache-2.0
"""Records one step with the PyTorch profiler (Kineto), for the option ``kineto_step``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from flopmeter.guard import describe_error
from flopmeter.log import log_once
from flopmeter.torch import loaded_torch
from flopmeter.torch.patch import Patch


class StepTrace:
    """Called by the C++ monitor on the training thread.  No method raises."""

    def __init__(self, limit_mib: int) -> None:
        self.path = ""
        self._limit_bytes = limit_mib << 20
        self._profiler: Any = None
        self._step: Any = None
        self._patches: list[Patch] = []

    def begin(self, step: int) -> bool:
        """Start to record; False while another profiler is active or a CUDA graph is captured."""
        torch = loaded_torch()
        if torch is None or not self.path or self._profiler is not None:
            return False
        try:
            captures = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
            if captures or torch._C._autograd._profiler_enabled():
                return False
            profiler = torch.profiler.profile(record_shapes=True)
            profiler.start()
            self._profiler = profiler
            self._step = torch.profiler.record_function(f"ProfilerStep#{step}")
            self._step.__enter__()
            # Torch allows one profiler at a time: one that the program starts during the step takes precedence.
            owner = torch.autograd.profiler
            self._patches = [Patch(owner, name, self._give_way) for name in ("_prepare_profiler", "_enable_profiler")]
            return True
        except Exception as error:
            self._fail(error)
            return False

    def end(self, keep: bool) -> None:
        """Stop, and store the trace if ``keep``."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            return
        try:
            while self._patches:
                self._patches.pop().remove()
            self._step.__exit__(None, None, None)
            profiler.stop()
            if keep:
                self._store(profiler)
        except Exception as error:
            self._fail(error)

    def _store(self, profiler: Any) -> None:
        unfinished = f"{self.path}.unfinished"
        profiler.export_chrome_trace(unfinished)
        if os.path.getsize(unfinished) > self._limit_bytes:
            os.unlink(unfinished)
            log_once("the trace of kineto_step is larger than disk_limit_mib and was deleted")
        else:
            os.replace(unfinished, self.path)
        self.path = ""

    def _give_way(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(*args: Any, **kwargs: Any) -> Any:
            self.end(keep=False)
            return original(*args, **kwargs)

        return start

    def _fail(self, error: Exception) -> None:
        self.path = ""
        while self._patches:
            self._patches.pop().remove()
        if self._profiler is not None:
            with contextlib.suppress(Exception):
                self._profiler.stop()
            self._profiler = None
        log_once(f"kineto_step recorded nothing: {describe_error(error)}")
