# SPDX-License-Identifier: Apache-2.0
"""Loads the torch adapter when it is first needed, or reports in one line why it cannot."""

from __future__ import annotations

import importlib
import importlib.util
import re
from types import ModuleType

from flopmeter import _flopmeter

_loaded = False
# These versions run two dot products when torch._dynamo is imported, as the first checkpoint or optimizer does: not work of the
# model, so it is imported before anything is counted.
_TRIES_OPERATORS = ("2.6.", "2.7.", "2.8.")


class AdapterUnavailable(ImportError):
    """Torch, or an adapter for it, is not available."""


def torch_adapter(for_all_users: bool = False) -> ModuleType:
    """The compiled module, with the adapter for the installed torch loaded. ``for_all_users``: an adapter to build is kept for them."""
    global _loaded
    if not _loaded:
        # torch first: the adapter binds to the libraries that it loads.
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            raise AdapterUnavailable(
                f"flopmeter: counting needs PyTorch, and 'import torch' failed ({error}); install torch"
            ) from None
        from flopmeter.torch.build import CannotCompile

        try:
            _flopmeter.load_adapter(_adapter_file(torch, for_all_users))
        except CannotCompile as error:
            _count_in_python(str(error))
        except RuntimeError as error:
            _count_in_python(f"the torch adapter does not load: {error}")
        if _release(torch.__version__).startswith(_TRIES_OPERATORS):
            importlib.import_module("torch._dynamo")
        _loaded = True
        if not _flopmeter.counts_in_python():
            _count_other_entry_points()
    return _flopmeter


def _count_other_entry_points() -> None:
    """Counts work that does not pass the dispatcher."""
    from flopmeter.torch import callables, compiled_graphs, replays, tilelang_kernels, triton_kernels

    for entry_point in (callables, compiled_graphs, replays, tilelang_kernels, triton_kernels):
        entry_point.install()


def ready_adapter() -> ModuleType | None:
    """The same, or None if the adapter would have to be compiled or does not load."""
    if not _loaded and importlib.util.find_spec("flopmeter._torch_build") is None:
        return None
    try:
        return torch_adapter()
    except AdapterUnavailable:
        return None


def _count_in_python(reason: str) -> None:
    from flopmeter.log import log_once
    from flopmeter.torch import fallback

    try:
        fallback.attach()
    except (AttributeError, RuntimeError) as error:  # names of torch that another version lacks
        raise AdapterUnavailable(f"flopmeter: {reason}; nor can FLOPs be counted in Python: {error}") from None
    log_once(f"FLOPs are counted in Python, which is slow: {reason}")


def _release(version: str) -> str:
    """The numbers of a version, without a distribution's suffix ("1.13.0a0", "2.13.0+cpu")."""
    return re.match(r"[\d.]*", version).group().rstrip(".")  # type: ignore[union-attr]


def _adapter_file(torch: ModuleType, for_all_users: bool) -> str:
    """The adapter's library: from the build tree, or compiled for this torch on first use."""
    from flopmeter.log import log_once
    from flopmeter.torch import build

    try:
        built = importlib.import_module("flopmeter._torch_build")
    except ImportError:
        return str(build.compiled(torch, log_once, for_all_users))
    if _release(torch.__version__) != _release(built.TORCH_VERSION):
        raise AdapterUnavailable(
            f"flopmeter: the torch adapter was built for torch {built.TORCH_VERSION}, but torch {torch.__version__} is "
            "installed; build flopmeter for this torch"
        )
    return str(built.ADAPTER)
