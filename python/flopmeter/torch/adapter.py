# SPDX-License-Identifier: Apache-2.0
"""Loads the torch adapter when it is first needed, or says in one line why it cannot."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from types import ModuleType

_NAME = "flopmeter._torch"
_REMEDY = 'build with -DFLOPMETER_TORCH="$(python -c \'import torch; print(torch.utils.cmake_prefix_path)\')", or pip install .'


class AdapterUnavailable(ImportError):
    """Torch, or the adapter built for it, is not here."""


def torch_adapter() -> ModuleType:
    """The compiled adapter."""
    if _NAME in sys.modules:
        return sys.modules[_NAME]
    # torch first: the adapter binds to the libraries that it loads.
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise AdapterUnavailable(
            f"flopmeter: counting needs PyTorch, and 'import torch' failed ({error}); install torch"
        ) from None
    try:
        built_for = importlib.import_module("flopmeter._torch_build").TORCH_VERSION
    except ImportError:
        return _compiled(torch)
    if _release(torch.__version__) != _release(built_for):
        raise AdapterUnavailable(
            f"flopmeter: the torch adapter was built for torch {built_for}, but torch {torch.__version__} runs here; "
            "build it again for this torch"
        )
    try:
        return importlib.import_module(_NAME)
    except ImportError as error:
        raise AdapterUnavailable(f"flopmeter: the torch adapter does not load: {error}") from None


def ready_adapter() -> ModuleType | None:
    """The adapter, where nothing has to be compiled for it."""
    if importlib.util.find_spec("flopmeter._torch_build") is None and _NAME not in sys.modules:
        return None
    try:
        return torch_adapter()
    except AdapterUnavailable:
        return None


def _release(version: str) -> str:
    """The numbers of a version, without what a distribution writes behind them ("1.13.0a0", "2.13.0+cpu")."""
    return re.match(r"[\d.]*", version).group().rstrip(".")  # type: ignore[union-attr]


def _compiled(torch: ModuleType) -> ModuleType:
    """Of a package that was built without torch: compiled for this one, the first time it is needed."""
    from flopmeter.torch import build
    from flopmeter.log import log_once

    if not build.available():
        raise AdapterUnavailable(f"flopmeter: this build has no torch adapter; {_REMEDY}")
    try:
        spec = importlib.util.spec_from_file_location(_NAME, build.compiled(torch, log_once))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (build.CannotCompile, ImportError) as error:
        raise AdapterUnavailable(f"flopmeter: {error}") from None
    sys.modules[_NAME] = module
    return module
