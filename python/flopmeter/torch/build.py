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
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "_adapter_source"
# Compiled alone, in parallel with the other sources together: each reads torch's headers, which takes most of the time.
_ALONE = ("typed_ops",)
_REFRESH_SECONDS = 2.0
_ABANDONED_SECONDS = 30.0  # without a refresh
_LONGEST_SECONDS = 900.0  # of the compiler
_DIGEST_BYTES = 32  # SHA-256, after the library's last byte
_ROOM_BYTES = 8 << 20  # more than the adapter takes


class CannotCompile(Exception):
    """The reason, in one line."""


def _prefix(torch_root: Path) -> Path:
    """The directory of torch's headers and libraries: conda-forge keeps them in the environment's."""
    return torch_root if (torch_root / "include" / "ATen").is_dir() else Path(sys.prefix)


def compile_flags(torch_root: Path, cxx11_abi: int, distributed: bool, gloo: bool) -> list[str]:
    """Flags for all sources of the adapter; also used to check it against other torch versions."""
    flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-plt", "-w", "-DNDEBUG"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={cxx11_abi}")
    flags += ["-DUSE_DISTRIBUTED"] * distributed + ["-DUSE_C10D_GLOO"] * (distributed and gloo)
    include = _prefix(torch_root) / "include"
    return [*flags, f"-isystem{include}", f"-isystem{include / 'torch' / 'csrc' / 'api' / 'include'}"]


def compiler() -> list[str]:
    """The C++ compiler's command: $CXX, or the first that is found."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise CannotCompile("the torch adapter needs a C++ compiler, and none is installed; install g++ or set CXX")


def write_units(source: Path, folder: Path) -> list[Path]:
    """The files to compile: the sources that are compiled together are included in one."""
    together = folder / "together.cpp"
    others = [file for file in sorted(source.glob("*.cpp")) if file.stem not in _ALONE]
    together.write_bytes(b"".join(b'#include "%s"\n' % os.fsencode(file) for file in others))
    return [together, *(source / f"{name}.cpp" for name in _ALONE)]


def _run(commands: list[list[str]], folder: Path, log: list[str]) -> None:
    """Runs the commands at once, each in its own session, so that all its processes can be ended."""
    running: list[tuple[list[str], Path, subprocess.Popen[bytes]]] = []
    end = time.monotonic() + _LONGEST_SECONDS
    try:
        for command in commands:
            output = folder / f"output-{len(log) + len(running)}"
            with open(output, "wb") as out:
                environment = {**os.environ, "TMPDIR": str(folder)}
                process = subprocess.Popen(
                    command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
                )
            running.append((command, output, process))
        failed = any([process.wait(max(0.0, end - time.monotonic())) for _, _, process in running])
    except subprocess.TimeoutExpired:
        raise CannotCompile(f"the compiler of the torch adapter did not end within {_LONGEST_SECONDS / 60:g} minutes") from None
    finally:
        for command, output, process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.append(f"{shlex.join(command)}\n{output.read_text(encoding='utf-8', errors='replace')}")
    if failed:
        raise CannotCompile("building the torch adapter failed")


def _features(torch: Any) -> tuple[int, bool, bool]:
    """Features that the flags depend on: C++ ABI, distributed package, Gloo."""
    distributed = importlib.import_module("torch.distributed")
    available = distributed.is_available()
    return int(torch._C._GLIBCXX_USE_CXX11_ABI), available, available and distributed.is_gloo_available()


def _compile(torch: Any, folder: Path, log: list[str]) -> Path:
    root = Path(torch.__file__).parent
    flags = [*compile_flags(root, *_features(torch)), f"-I{SOURCES}"]
    units = write_units(SOURCES / "src", folder)
    objects = [folder / f"{unit.stem}.o" for unit in units]
    _run([[*compiler(), *flags, "-c", str(unit), "-o", str(made)] for unit, made in zip(units, objects)], folder, log)
    built = folder / "adapter.so"
    # Registered kernels must outlive every dlclose. No run path: torch has loaded its libraries before.
    link = ["-shared", "-Wl,-z,nodelete", *map(str, objects), f"-L{_prefix(root) / 'lib'}", "-ltorch_cpu", "-lc10"]
    _run([[*compiler(), *link, "-o", str(built)]], folder, log)
    return built


def _file_name(torch: Any) -> str:
    """One file per torch build and C library: containers of different systems may share a cache."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*.*")):
        digest.update(file.read_bytes())
    system = f"{platform.machine()} {'-'.join(platform.libc_ver())}"
    digest.update(f"{system} {torch.__version__} {torch.version.git_version} {_features(torch)}".encode())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:16]}.so"


def _is_trusted(found: os.stat_result, writable_by: int = 0o022) -> bool:
    """Only this user, root, or the owner of this package, whose code runs anyway, can change it."""
    owners = (os.geteuid(), 0, os.stat(__file__).st_uid)
    return found.st_uid in owners and not stat.S_IMODE(found.st_mode) & writable_by


@contextlib.contextmanager
def _opened(path: Path, flags: int = 0) -> Iterator[int]:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | flags)
    try:
        yield handle
    finally:
        os.close(handle)


def _checked(folder: Path, mode: int = 0o700) -> Path:
    """The directory, created if needed; OSError if others can write to it."""
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            path.chmod(mode)  # regardless of the umask
    if not _is_trusted_folder(folder):
        raise PermissionError(f"{folder} belongs to another user or others can write to it")
    return folder


def _is_trusted_folder(folder: Path) -> bool:
    with _opened(folder, os.O_DIRECTORY) as handle:
        if not _is_trusted(os.fstat(handle)):
            return False
    # Who owns the directory around it could replace it after this check. A umask may let the group write to that one.
    return folder.parent.name != "flopmeter" or _is_trusted(os.stat(folder.parent), 0o002)


def _is_published(file: Path) -> bool:
    """True if the file is there, trusted, and complete: a process that loads a truncated library dies."""
    try:
        with _opened(file) as handle, os.fdopen(os.dup(handle), "rb") as data:
            found = os.fstat(handle)
            if not (stat.S_ISREG(found.st_mode) and _is_trusted(found) and _is_trusted_folder(file.parent)):
                return False
            content = data.read()
    except OSError:
        return False
    return hashlib.sha256(content[:-_DIGEST_BYTES]).digest() == content[-_DIGEST_BYTES:]


def _require_room(folder: Path) -> None:
    """OSError unless an adapter can be written there."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_ROOM_BYTES))
        file.flush()
        os.fsync(file.fileno())


def _shared_folder() -> Path:
    """The directory of this Python environment: for every user of an image or a shared environment."""
    return Path(sysconfig.get_path("data")) / "share" / "flopmeter" / "adapters"


def _user_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "flopmeter" / "adapters"


def _node_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"flopmeter-{os.geteuid()}"


def _folder_to_build_in(report: Callable[[str], None]) -> Path:
    """The user's cache, or a directory of this user on this node."""
    cache = _user_folder()
    try:
        if not cache.is_absolute():  # neither HOME nor an entry of this user
            raise OSError("this user has no home directory")
        _require_room(_checked(cache))
        return cache
    except OSError as error:
        reason = error.strerror or str(error)
    node = _checked(_node_folder())
    report(f"{cache} cannot be used ({reason}): the torch adapter is kept in {node} on this node")
    return node


def _find_folder(name: str, for_all_users: bool, report: Callable[[str], None]) -> Path:
    """The directory that holds the adapter, or in which to build it."""
    if for_all_users:
        with contextlib.suppress(OSError):
            _require_room(_checked(_shared_folder(), 0o755))
            return _shared_folder()
    for find in (_shared_folder, _user_folder, _node_folder):
        if _is_published(find() / name):
            return find()
    return _folder_to_build_in(report)


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
        content = built.read_bytes()
        with os.fdopen(handle, "wb") as out:
            out.write(content + hashlib.sha256(content).digest())
            out.flush()
            os.fsync(out.fileno())
        os.chmod(partial, 0o755)
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
        except CannotCompile as error:
            log_file.write_text("\n".join(log), encoding="utf-8")
            raise CannotCompile(f"{error}; see {log_file}") from None
        _publish(built, target)
    report(f"built the torch adapter in {time.monotonic() - begin:.0f} s: {target}")


def compiled(torch: Any, report: Callable[[str], None], for_all_users: bool = False) -> Path:
    """The adapter's library for this torch, built now if it is not kept. ``for_all_users``: kept in the Python environment if possible."""
    if not SOURCES.is_dir():
        raise CannotCompile("this build of flopmeter has no torch adapter; configure it with -DFLOPMETER_TORCH, or pip install it")
    try:
        name = _file_name(torch)
        target = _find_folder(name, for_all_users, report) / name
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
            raise CannotCompile(f"building the torch adapter failed; see {log_file}")
        return target
    except OSError as error:
        raise CannotCompile(f"the torch adapter cannot be built: {error}") from None
