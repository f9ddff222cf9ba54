# SPDX-License-Identifier: Apache-2.0
"""Compiles the torch adapter of an installed package for the torch that is here: once, kept in the user's cache."""

from __future__ import annotations

import fcntl
import hashlib
import importlib
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flopmeter import _flopmeter

PACKAGE = Path(__file__).resolve().parent
SOURCES = PACKAGE / "_adapter_source"
# Small, and not made to stand in one file with others; the rest read torch's headers once, together.
_ALONE = ("op_counter", "op_table", "snapshot", "counters")


class CannotCompile(Exception):
    """Why not, in one line."""


def available() -> bool:
    """Whether this package carries the sources: installed by pip it does."""
    return SOURCES.is_dir()


def _folder(torch: Any) -> Path:
    """Where the adapter for this package, Python and torch is kept."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*.*")):
        digest.update(file.read_bytes())
    digest.update(f"{PACKAGE} {sysconfig.get_config_var('SOABI')} {torch.__version__} {torch.__file__}".encode())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "flopmeter" / f"adapter-{_flopmeter.__version__}-torch-{torch.__version__}-{digest.hexdigest()[:12]}"


def _compiler() -> list[str]:
    given = os.environ.get("CXX")
    if given:
        return shlex.split(given)
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise CannotCompile("no C++ compiler is here to build the torch adapter with; install g++, or set CXX")


def _flags(torch: Any) -> list[str]:
    headers = sysconfig.get_path("include")
    if not os.path.exists(os.path.join(headers, "Python.h")):
        raise CannotCompile(f"the torch adapter needs {headers}/Python.h to be built; install python3-dev")
    root = Path(torch.__file__).parent
    includes = [SOURCES / "include", SOURCES / "src"]
    systems = [root / "include", root / "include" / "torch" / "csrc" / "api" / "include", headers]
    abi = int(torch._C._GLIBCXX_USE_CXX11_ABI)
    flags = ["-std=c++20", "-O2", "-fPIC", "-fno-semantic-interposition", "-fno-plt", "-w", "-DNDEBUG"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={abi}")
    distributed = importlib.import_module("torch.distributed")
    if distributed.is_available():  # as torch's own CMake package says to whoever links it
        flags += ["-DUSE_DISTRIBUTED", *(["-DUSE_C10D_GLOO"] if distributed.is_gloo_available() else [])]
    return [*flags, *(f"-I{each}" for each in includes), *(f"-isystem{each}" for each in systems)]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["it said nothing"]
        raise CannotCompile(f"building the torch adapter failed: {errors[0]}")


def _compile(torch: Any, target: Path, work: Path) -> None:
    compiler, flags = _compiler(), _flags(torch)
    together = [file for file in sorted(SOURCES.glob("src/*.cpp")) if file.stem not in (*_ALONE, "_torch")]
    unity = work / "together.cpp"
    unity.write_text("".join(f'#include "{file}"\n' for file in together))
    units = [unity, *(SOURCES / "src" / f"{name}.cpp" for name in (*_ALONE, "_torch"))]
    objects = [work / f"{unit.stem}.o" for unit in units]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = [[*compiler, *flags, "-c", str(unit), "-o", str(made)] for unit, made in zip(units, objects)]
        list(pool.map(_run, commands))
    libraries = Path(torch.__file__).parent / "lib"
    paths = [f"-Wl,-rpath,{PACKAGE}", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
    linked = [str(PACKAGE / "libflopmeter.so.0"), "-ltorch", "-ltorch_cpu", "-lc10"]
    # Registered kernels must outlive every dlclose.
    _run([*compiler, "-shared", "-Wl,-z,nodelete", *map(str, objects), *paths, *linked, "-o", str(work / "_torch.so")])
    os.replace(work / "_torch.so", target)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Only one process builds; the others wait."""
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compiled(torch: Any, say: Any) -> Path:
    """The adapter's file for this torch, built now if it is not there yet."""
    try:
        folder = _folder(torch)
        target = folder / "_torch.so"
        if target.exists():
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if not target.exists():
                _compiler()
                for left in folder.glob("tmp*"):  # by a build that was killed
                    shutil.rmtree(left, ignore_errors=True)
                say(f"building the torch adapter for torch {torch.__version__}, once; this takes a minute or two")
                with tempfile.TemporaryDirectory(dir=folder) as work:
                    _compile(torch, target, Path(work))
        return target
    except OSError as error:
        raise CannotCompile(f"the torch adapter cannot be built: {error}") from None
