# SPDX-License-Identifier: Apache-2.0
"""The build of the torch adapter on first use: one build for many processes, a safe cache, and one line if it fails.

The compiler is a script that creates its output; tests/install compiles the real adapter.
"""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys, types
from pathlib import Path
torch = types.ModuleType("torch")
torch.__file__, torch.__version__ = "/nowhere/torch/__init__.py", "9.9"
torch.version = types.SimpleNamespace(git_version="abc")
torch._C = types.SimpleNamespace(_GLIBCXX_USE_CXX11_ABI=True)
distributed = types.ModuleType("torch.distributed")
distributed.is_available = lambda: False
sys.modules["torch"], sys.modules["torch.distributed"] = torch, distributed
sys.path.insert(0, {folder!r})
import build
build.SOURCES = Path({sources!r})
build._ABANDONED_SECONDS = 3.0
try:
    print(build.compiled(torch, lambda text: print(text, file=sys.stderr)))
except build.CannotCompile as error:
    sys.exit(str(error))
"""
COMPILER = """#!/bin/sh
echo run >>{log}
sleep {seconds}
while [ $# -gt 1 ]; do [ "$1" = -o ] && echo library >"$2"; shift; done
exit {code}
"""


class Build:
    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.log = folder / "compiler.log"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(folder)}
        sources = folder / "sources" / "src"
        sources.mkdir(parents=True)
        for name in ("typed_ops.cpp", "other.cpp"):
            (sources / name).write_text("")
        self.program = PROGRAM.format(folder=str(ROOT / "python" / "flopmeter" / "torch"), sources=str(sources.parent))
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

    def start(self):
        command = [sys.executable, "-c", self.program]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self):
        process = self.start()
        out, error = process.communicate(timeout=120)
        return process.returncode, out.strip(), error.strip()


@pytest.fixture
def build(tmp_path):
    return Build(tmp_path)


def test_the_second_process_finds_the_library_in_the_cache(build):
    code, path, error = build.run()
    assert code == 0 and "building the torch adapter for torch 9.9" in error
    assert Path(path).parent == build.cache and Path(path).read_text() == "library\n"
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
    assert Path(path).read_text() == "library\n"
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


@pytest.mark.parametrize("damage", ["writable by others", "a link"])
def test_a_cache_that_others_can_change_is_not_used(build, damage):
    if damage == "a link":
        build.cache.parent.mkdir(parents=True)
        (build.folder / "elsewhere").mkdir()
        build.cache.symlink_to(build.folder / "elsewhere")
    else:
        build.cache.mkdir(parents=True)
        build.cache.chmod(0o777)
    code, path, error = build.run()
    assert code == 0 and Path(path).parent == build.folder / f"flopmeter-{os.geteuid()}"
    assert error.count("cannot be used") == 1


def test_a_library_that_others_can_change_is_built_again(build):
    _, path, _ = build.run()
    Path(path).chmod(0o777)
    assert build.run()[0] == 0
    assert build.compiler_runs == 6 and stat.S_IMODE(os.stat(path).st_mode) == 0o700


def test_a_missing_home_is_one_line(build):
    build.home.write_text("not a directory")
    code, path, error = build.run()
    assert code == 0 and Path(path).is_relative_to(build.folder)
    assert error.count("cannot be used") == 1
