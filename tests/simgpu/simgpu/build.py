# SPDX-License-Identifier: Apache-2.0
"""Builds the C++ part once and keeps it; later loads take no time."""

import fcntl
import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import torch

SOURCES = sorted((Path(__file__).parent.parent / "src").glob("*.[ch]*"))


def build_directory():
    """One directory per torch version and state of the sources, in build/simgpu or $SIMGPU_BUILD_DIR."""
    state = hashlib.sha256(torch.__version__.encode() + sys.version.encode())
    for source in SOURCES:
        state.update(source.name.encode() + source.read_bytes())
    root = os.environ.get("SIMGPU_BUILD_DIR") or Path(__file__).parents[3] / "build" / "simgpu"
    return Path(root) / state.hexdigest()[:16]


def load_extension():
    """The extension module `simgpu_C`; the first call for given sources compiles it."""
    directory = build_directory()
    if not (directory / "done").exists():
        directory.mkdir(parents=True, exist_ok=True)
        with open(directory / "in_use", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # one process builds; a killed one leaves no lock behind
            if not (directory / "done").exists():
                _compile(directory)
                (directory / "done").touch()
    spec = importlib.util.spec_from_file_location("simgpu_C", directory / "simgpu_C.so")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compile(directory):
    from torch.utils import cpp_extension

    (directory / "lock").unlink(missing_ok=True)  # torch's own, which a killed build leaves behind
    include = Path(torch.__file__).parent / "include"
    cpp_extension.load(
        "simgpu_C",
        [str(source) for source in SOURCES if source.suffix == ".cpp"],
        extra_cflags=["-O1", "-std=c++20", "-DUSE_KINETO", "-DFMT_HEADER_ONLY=1", f"-I{include / 'kineto'}"],
        build_directory=str(directory),
        is_python_module=False,
        verbose=bool(os.environ.get("SIMGPU_VERBOSE")),
    )
