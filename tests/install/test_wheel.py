# SPDX-License-Identifier: Apache-2.0
"""The wheel of the finished build, in a fresh environment without torch and without a compiler."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "fuzz" / "corpus" / "trace_fuzz" / "torch-2.13.json"
LOOP = """
import time, flopmeter
monitor = flopmeter.Monitor("logs", model="gpt2", device="cpu", peak_tflops=1.0)
for step in range(5):
    with monitor.step(tokens=64, samples=1):
        time.sleep(0.01)
monitor.finish()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    command = [sys.executable, ROOT / "tools" / "make_wheel.py", "--from", ROOT / "build" / "release", "--dist", tmp_path_factory.mktemp("dist")]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


@pytest.fixture(scope="module")
def run(wheel, tmp_path_factory):
    """Runs a command of the fresh environment; returns its output."""
    folder = tmp_path_factory.mktemp("fresh")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, wheel], check=True)

    def run_in(program, *arguments):
        environment = {"PATH": str(venv / "bin"), "HOME": str(folder), "LANG": "C.UTF-8"}
        command = [str(venv / "bin" / program), *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_in


def test_the_wheel_contains_the_notices_of_what_is_inside(wheel):
    names = [Path(name).name for name in zipfile.ZipFile(wheel).namelist() if "/licenses/" in name]
    for name in ("LICENSE", "libjs-dygraphs.txt", "libboost-dev.txt", "libyaml-cpp-dev.txt", "pybind11.txt"):
        assert name in names


def test_the_wheel_contains_one_library_and_the_sources_of_the_adapter(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if "libflopmeter" in name] == ["flopmeter/libflopmeter.so.0"]
    sources = {path.name for path in (ROOT / "src" / "adapters" / "torch" / "src").iterdir()}
    assert {Path(name).name for name in names if name.startswith("flopmeter/_adapter_source/src/")} == sources


def make_wheel():
    spec = importlib.util.spec_from_file_location("make_wheel", ROOT / "tools" / "make_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_that_needs_more_than_the_c_library_is_refused(wheel):
    with pytest.raises(SystemExit, match=r"does not conform to manylinux_2_28_x86_64: it needs .*GLIBCXX_.*libstdc\+\+\.so\.6"):
        make_wheel().check(wheel)


@pytest.mark.long
def test_the_self_contained_wheel_needs_only_the_c_library(tmp_path):
    pytest.importorskip("ziglang", reason="make wheel installs it")
    command = [sys.executable, ROOT / "tools" / "make_wheel.py", "--python", sys.executable, "--dist", tmp_path]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.endswith("-manylinux_2_28_x86_64.whl")
    libraries, versions = make_wheel().needs(wheel)
    assert libraries <= make_wheel().C_LIBRARY and all(version.startswith("GLIBC_2.") for version in versions)


def test_the_cli_works_without_torch_and_without_a_compiler(run):
    assert "8.03 B" in run("flopmeter", "estimate", "llama-3-8b")
    run("flopmeter", "published")
    assert run("flopmeter", "trace", TRACE)


def test_a_monitored_loop_without_torch_can_be_diagnosed_and_reported(run):
    run("python", "-c", LOOP)
    run("flopmeter", "diagnose", "logs")
    run("flopmeter", "report", "logs", "-o", "run.html")
