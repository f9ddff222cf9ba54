# SPDX-License-Identifier: Apache-2.0
"""Compiles the torch adapter of an installed package for the installed torch: once, kept in the user's cache.

Many processes on many nodes may start at once and share one cache directory. The first one builds, the others wait.
The lock is a directory whose time the builder refreshes, because file locks do not work on every network file system. If
the lock fails, two processes build the same file, which does no harm: a finished file appears by one rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "_adapter_source"
# Compiled alone, in parallel with the other sources together: each reads torch's headers, which takes most of the time.
_ALONE = ("typed_ops",)
_REFRESH_SECONDS = 2.0
_ABANDONED_SECONDS = 30.0  # without a refresh


class CannotCompile(Exception):
    """The reason, in one line."""


class NoCompiler(CannotCompile):
    """There is no C++ compiler."""


def compile_flags(torch_root: Path, cxx11_abi: int, distributed: bool, gloo: bool) -> list[str]:
    """Flags for all sources of the adapter; also used to check it against other torch versions."""
    flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-plt", "-w", "-DNDEBUG"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={cxx11_abi}")
    flags += ["-DUSE_DISTRIBUTED"] * distributed + ["-DUSE_C10D_GLOO"] * (distributed and gloo)
    include = torch_root / "include"
    return [*flags, f"-isystem{include}", f"-isystem{include / 'torch' / 'csrc' / 'api' / 'include'}"]


def compiler() -> list[str]:
    """The C++ compiler's command: $CXX, or the first that is found."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise NoCompiler("the torch adapter needs a C++ compiler, and none is installed; install g++ or set CXX")


def write_units(source: Path, folder: Path) -> list[Path]:
    """The files to compile: the sources that are compiled together are included in one."""
    together = folder / "together.cpp"
    others = [file for file in sorted(source.glob("*.cpp")) if file.stem not in _ALONE]
    together.write_text("".join(f'#include "{file}"\n' for file in others))
    return [together, *(source / f"{name}.cpp" for name in _ALONE)]


def _run(command: list[str], log: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    log.append(f"{shlex.join(command)}\n{done.stdout}")
    if done.returncode != 0:
        raise CannotCompile("building the torch adapter failed")


def _compile(torch: Any, folder: Path, log: list[str]) -> Path:
    root = Path(torch.__file__).parent
    distributed = importlib.import_module("torch.distributed")
    available = distributed.is_available()
    flags = compile_flags(root, int(torch._C._GLIBCXX_USE_CXX11_ABI), available, available and distributed.is_gloo_available())
    flags.append(f"-I{SOURCES}")
    units = write_units(SOURCES / "src", folder)
    objects = [folder / f"{unit.stem}.o" for unit in units]
    with ThreadPoolExecutor(len(units)) as pool:
        commands = [[*compiler(), *flags, "-c", str(unit), "-o", str(made)] for unit, made in zip(units, objects)]
        list(pool.map(lambda command: _run(command, log), commands))
    built = folder / "adapter.so"
    # Registered kernels must outlive every dlclose. No run path: torch has loaded its libraries before.
    link = ["-shared", "-Wl,-z,nodelete", *map(str, objects), f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"]
    _run([*compiler(), *link, "-o", str(built)], log)
    return built


def _file_name(torch: Any) -> str:
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*.*")):
        digest.update(file.read_bytes())
    digest.update(f"{platform.machine()} {torch.__version__} {torch.version.git_version}".encode())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}.so"


def _checked(folder: Path) -> Path:
    """The directory, created if needed; OSError unless only this user, or root, can write to it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(handle)
    finally:
        os.close(handle)
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o022:
        raise PermissionError(f"{folder} belongs to another user or others can write to it")
    return folder


def _is_published(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        found = os.fstat(handle)
    finally:
        os.close(handle)
    trusted = found.st_uid in (os.geteuid(), 0) and not stat.S_IMODE(found.st_mode) & 0o022
    return stat.S_ISREG(found.st_mode) and trusted


def _cache_folder(report: Callable[[str], None]) -> Path:
    """$XDG_CACHE_HOME/flopmeter/adapters, or a directory of this user on this node."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    cache = Path(base) / "flopmeter" / "adapters"
    try:
        if os.access(_checked(cache), os.W_OK):
            return cache
        reason = "it is read-only"
    except OSError as error:
        reason = error.strerror or str(error)
    local = _checked(Path(tempfile.gettempdir()) / f"flopmeter-{os.geteuid()}")
    report(f"{cache} cannot be used ({reason}): the torch adapter is kept in {local} on this node")
    return local


@contextlib.contextmanager
def _refreshed(lock: Path) -> Iterator[None]:
    """Holds the lock: refreshes its time until the block ends, then removes it."""
    stop = threading.Event()

    def refresh() -> None:
        while not stop.wait(_REFRESH_SECONDS):
            with contextlib.suppress(OSError):
                os.utime(lock)

    thread = threading.Thread(target=refresh, name="flopmeter-build", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with contextlib.suppress(OSError):
            lock.rmdir()


def _time_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _take_lock(lock: Path, done: Callable[[], bool]) -> bool:
    """True once this process is to build; False once ``done()`` is true. Does not wait for an abandoned lock."""
    last, since = 0, time.monotonic()
    while not done():
        try:
            lock.mkdir(mode=0o700)
            return True
        except FileExistsError:
            pass
        except OSError:
            return True  # without a lock
        now = _time_of(lock)
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > _ABANDONED_SECONDS:
            return True
        time.sleep(0.1)
    return False


def _publish(built: Path, target: Path) -> None:
    """Copies next to the target, then renames: other processes see the whole file or none."""
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as out, open(built, "rb") as data:
            shutil.copyfileobj(data, out)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(partial, 0o700)
        os.replace(partial, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _build(torch: Any, target: Path, log_file: Path, report: Callable[[str], None]) -> None:
    compiler()
    report(f"building the torch adapter for torch {torch.__version__} (once, about a minute)")
    begin, log = time.monotonic(), []  # type: tuple[float, list[str]]
    with tempfile.TemporaryDirectory(prefix="flopmeter-") as work:
        try:
            built = _compile(torch, Path(work), log)
        except CannotCompile:
            log_file.write_text("\n".join(log), encoding="utf-8")
            raise
        _publish(built, target)
    report(f"built the torch adapter in {time.monotonic() - begin:.0f} s")


def compiled(torch: Any, report: Callable[[str], None]) -> Path:
    """The adapter's library for this torch, built now if it is not in the cache."""
    if not SOURCES.is_dir():
        raise CannotCompile("this build of flopmeter has no torch adapter; configure it with -DFLOPMETER_TORCH, or pip install it")
    try:
        folder = _cache_folder(report)
        target = folder / _file_name(torch)
        log_file = target.with_suffix(".log")
        before = _time_of(log_file)

        def failed() -> bool:  # in another process, while this one waited
            return _time_of(log_file) != before

        lock = target.with_suffix(".lock")
        if not _is_published(target) and _take_lock(lock, lambda: _is_published(target) or failed()):
            with _refreshed(lock):
                if not _is_published(target):
                    _build(torch, target, log_file, report)
        if not _is_published(target):
            raise CannotCompile("building the torch adapter failed")
        return target
    except NoCompiler:
        raise
    except CannotCompile as error:
        raise CannotCompile(f"{error}; see {log_file}") from None
    except OSError as error:
        raise CannotCompile(f"the torch adapter cannot be built: {error}") from None
