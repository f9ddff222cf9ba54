# SPDX-License-Identifier: Apache-2.0
"""The build of the torch adapter on first use: one build for many processes, a safe cache, and one line if it fails.

The compiler is a script that creates its output; tests/install compiles the real adapter.
"""

import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys, types
from pathlib import Path
torch = types.ModuleType("torch")
torch.__file__, torch.__version__ = "/nowhere/torch/__init__.py", "9.9"
torch.version = types.SimpleNamespace(git_version="abc")
torch._C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=os.environ.get("ABI", "1") == "1")
distributed = types.ModuleType("torch.distributed")
distributed.is_available = lambda: False
sys.modules["torch"], sys.modules["torch.distributed"] = torch, distributed
sys.path.insert(0, {folder!r})
import build
build.SOURCES = Path({sources!r})
build._shared_folder = lambda: Path({shared!r})
build._ABANDONED_SECONDS = 3.0
build._LONGEST_SECONDS = float(os.environ.get("LONGEST", "900"))
try:
    print(build.compiled(torch, lambda text: print(text, file=sys.stderr), for_all_users="FOR_ALL" in os.environ))
except build.CannotCompile as error:
    sys.exit(str(error))
"""
COMPILER = """#!/bin/sh
echo $$ >>{log}
sleep {seconds}
printf 'not \\377 UTF-8'
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo library >"$2"; shift; done
exit {code}
"""


class Build:
    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.log = folder / "compiler.log"
        self.shared = folder / "environment" / "share"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(folder)}
        sources = folder / "sources" / "src"
        sources.mkdir(parents=True)
        for name in ("typed_ops.cpp", "other.cpp"):
            (sources / name).write_text("")
        folders = {"folder": ROOT / "python" / "flopmeter" / "torch", "sources": sources.parent, "shared": self.shared}
        self.program = PROGRAM.format(**{name: str(path) for name, path in folders.items()})
        self.use_compiler()

    @property
    def cache(self):
        return self.home / ".cache" / "flopmeter" / "adapters"

    @property
    def compiler_runs(self):
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def use_compiler(self, seconds=0, code=0):
        script = self.folder / "compiler"
        script.write_text(COMPILER.format(log=self.log, seconds=seconds, code=code))
        script.chmod(0o755)
        self.environment["CXX"] = str(script)

    def start(self, **more):
        command = [sys.executable, "-c", self.program]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=self.environment, cwd=self.folder, text=True, **pipes, **more)

    def run(self, **more):
        process = self.start(**more)
        out, error = process.communicate(timeout=120)
        return process.returncode, out.strip(), error.strip()


@pytest.fixture
def build(tmp_path):
    return Build(tmp_path)


def test_the_second_process_finds_the_library_in_the_cache(build):
    code, path, error = build.run()
    assert code == 0 and "building the torch adapter for torch 9.9" in error
    assert Path(path).parent == build.cache and Path(path).read_bytes().startswith(b"library\n")
    assert build.run() == (0, path, "")
    assert build.compiler_runs == 3  # two sources and the link


def test_eight_processes_that_start_at_once_build_once(build):
    build.use_compiler(seconds=1)
    processes = [build.start() for _ in range(8)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, results
    assert build.compiler_runs == 3
    assert len(list(build.cache.iterdir())) == 1  # no lock and no partial file is left


def test_eight_processes_build_on_files_without_locks_and_with_late_names(build):
    shim = build.folder / "shim.so"
    source = Path(__file__).parent / "slow_network_files.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", shim, source, "-ldl"], check=True)
    build.environment["LD_PRELOAD"] = str(shim)
    build.use_compiler(seconds=1)
    processes = [build.start() for _ in range(8)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, results
    (path,) = {out.strip() for out, _ in results}
    assert Path(path).read_bytes().startswith(b"library\n")
    assert 3 <= build.compiler_runs <= 3 * 8  # one build, or duplicates that do no harm
    assert [file.name for file in build.cache.iterdir()] == [Path(path).name]


def test_a_failed_build_is_one_line_with_the_log_for_all_that_wait(build):
    build.use_compiler(seconds=1, code=1)
    processes = [build.start() for _ in range(3)]
    errors = [process.communicate(timeout=120)[1].strip().splitlines()[-1] for process in processes]
    assert {process.returncode for process in processes} == {1}
    assert len(set(errors)) == 1 and errors[0].startswith("building the torch adapter failed; see "), errors
    assert str(build.folder / "compiler") in Path(errors[0].split("see ")[1]).read_text()
    assert build.compiler_runs == 2


def test_an_abandoned_lock_does_not_stop_the_build(build):
    code, path, _ = build.run()
    Path(path).unlink()
    Path(path).with_suffix(".lock").mkdir()
    assert build.run()[:2] == (0, path)


def test_without_a_compiler_the_reason_is_one_line(build):
    build.environment.update(CXX="", PATH=str(build.folder))
    code, _, error = build.run()
    assert code == 1 and error == "the torch adapter needs a C++ compiler, and none is installed; install g++ or set CXX"


def test_the_cache_belongs_to_the_user_alone(build):
    build.run()
    assert stat.S_IMODE(build.cache.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["writable by others", "in a directory writable by others", "a link", "of another user"])
def test_a_cache_that_others_can_change_is_not_used(build, damage):
    if damage == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can create it")
        build.cache.mkdir(parents=True)
        os.chown(build.cache, 65534, 65534)
    elif damage == "a link":
        build.cache.parent.mkdir(parents=True)
        (build.folder / "elsewhere").mkdir()
        build.cache.symlink_to(build.folder / "elsewhere")
    else:
        build.cache.mkdir(parents=True)
        (build.cache.parent if damage.startswith("in") else build.cache).chmod(0o777)
    code, path, error = build.run()
    assert code == 0 and Path(path).parent == build.folder / f"flopmeter-{os.geteuid()}"
    assert error.count("cannot be used") == 1


@pytest.mark.parametrize("damage", ["writable by others", "truncated"])
def test_a_library_that_cannot_be_trusted_is_built_again(build, damage):
    _, path, _ = build.run()
    if damage == "truncated":
        os.truncate(path, 20)
    else:
        Path(path).chmod(0o777)
    assert build.run()[0] == 0
    assert build.compiler_runs == 6 and stat.S_IMODE(os.stat(path).st_mode) == 0o755


def test_a_missing_home_is_one_line(build):
    build.home.write_text("not a directory")
    code, path, error = build.run()
    assert code == 0 and Path(path).is_relative_to(build.folder)
    assert error.count("cannot be used") == 1


def test_without_a_home_directory_the_working_directory_stays_clean(build):
    build.environment["HOME"] = "relative"
    before = set(os.listdir(build.folder))
    code, path, error = build.run()
    assert code == 0 and Path(path).parent == build.folder / f"flopmeter-{os.geteuid()}"
    assert error.count("this user has no home directory") == 1
    assert set(os.listdir(build.folder)) - before == {f"flopmeter-{os.geteuid()}", "compiler.log"}


def test_a_full_disk_is_one_line_and_does_not_hide_an_adapter_that_is_there(build):
    def without_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    _, path, _ = build.run()
    assert build.run(preexec_fn=without_room) == (0, path, "")
    Path(path).unlink()
    code, path, error = build.run(preexec_fn=without_room)
    assert code == 0 and Path(path).parent == build.folder / f"flopmeter-{os.geteuid()}"
    assert error.count("cannot be used (File too large)") == 1


def test_an_adapter_for_all_users_is_found_by_every_user(build):
    build.environment["FOR_ALL"] = "1"
    _, path, error = build.run(umask=0o077)
    assert Path(path).parent == build.shared and path in error
    assert [stat.S_IMODE(os.stat(part).st_mode) for part in (path, build.shared, build.shared.parent)] == [0o755] * 3
    del build.environment["FOR_ALL"]
    build.environment["HOME"] = str(build.folder / "another")
    assert build.run() == (0, path, "")


def test_builds_of_torch_with_different_abis_have_their_own_adapters(build):
    one = build.run()[1]
    build.environment["ABI"] = "0"
    assert build.run()[1] not in ("", one)


def test_a_compiler_that_does_not_exist_is_one_line(build):
    build.environment["CXX"] = "/nowhere/c++"
    code, _, error = build.run()
    assert code == 1 and error.splitlines()[1:] == ["the torch adapter cannot be built: [Errno 2] No such file or directory: '/nowhere/c++'"]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("ending", ["time limit", "interrupt"])
def test_a_compiler_that_hangs_is_ended(build, ending):
    build.use_compiler(seconds=1000)
    build.environment["LONGEST"] = "2" if ending == "time limit" else "900"
    process = build.start()
    while build.compiler_runs < 2 and process.poll() is None:
        time.sleep(0.05)
    if ending == "interrupt":
        process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode != 0 and not any(map(is_running, build.log.read_text().split()))
    assert not list(build.cache.glob("*.lock"))
    if ending == "time limit":
        assert error.splitlines()[-1].startswith("the compiler of the torch adapter did not end within 0.0333333 minutes; see ")
