#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries a wheel of flopmeter with a release of torch from PyPI.

    tools/try_torch.py WHEEL VERSION [TEST ...]      by default all count tests in python/tests

Installs both into a fresh environment in build/torch/VERSION, which stays for the next run, compiles the adapter, runs the count
tests, and monitors the example of `flopmeter run`. The wheels of torch on PyPI are CUDA builds. They run here on the CPU: each
CUDA library that torch needs is replaced by a stub, in which every function returns 0, so that the other gigabytes of packages
are not needed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Packages that torch and the tests need at run time, without the CUDA packages and Triton.
PACKAGES = ("filelock", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "numpy", "setuptools")
TEST_PACKAGES = ("pytest", "hypothesis", "PyYAML")
CUDA_NAME = re.compile(r"_*(cu|nccl|nvml|nvrtc|nvtx|nvshmem|nvJitLink)[A-Za-z_]")
NO_DEVICE = """
.globl cudaGetDeviceCount
.type cudaGetDeviceCount, @function
cudaGetDeviceCount: movl $0, (%rdi); movl $100, %eax; ret
"""


def output_of(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def wanted_symbols(libraries):
    """{library: {version: names}} of the missing libraries, and the names without a version that no library here defines."""
    present = {file.name for file in libraries}
    missing, by_version, plain = {}, {}, set()
    for file in libraries:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-Wd", file)):
            if name not in present and re.match(r"lib(cu|nv|nccl)", name):
                missing.setdefault(name, {})
        library = None
        for line in output_of("readelf", "-WV", file).splitlines():
            if found := re.search(r"File: (\S+)", line):
                library = found[1]
            elif (found := re.search(r"Name: (\S+)  Flags", line)) and library in missing:
                by_version[found[1]] = library
        for name, version in re.findall(r" UND ([^\s@]+)(?:@(\S+))?", output_of("readelf", "-W", "--dyn-syms", file)):
            if version in by_version:
                missing[by_version[version]].setdefault(version, set()).add(name)
            elif not version and CUDA_NAME.match(name):
                plain.add(name)
    return missing, plain


def write_stubs(folder):
    """Libraries with all names that those in the folder need of CUDA; returns how many."""
    missing, plain = wanted_symbols(sorted(folder.glob("*.so*")))
    for library, versions in missing.items():
        names = set().union(plain, *versions.values())
        special = NO_DEVICE if "cudaGetDeviceCount" in names else ""
        functions = "".join(
            f".globl {name}\n.type {name}, @function\n{name}: xorl %eax, %eax; ret\n" for name in sorted(names) if name != "cudaGetDeviceCount"
        )
        script = "".join(f'"{version}" {{ global: {"; ".join(sorted(names))}; }};\n' for version, names in versions.items())
        with tempfile.TemporaryDirectory() as work:
            (Path(work) / "stub.s").write_text(f".text\n{special}{functions}.section .note.GNU-stack,\"\"\n")
            (Path(work) / "versions").write_text(script)
            link = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", *([f"-Wl,--version-script={work}/versions"] if versions else [])]
            output_of(*link, "-o", folder / library, f"{work}/stub.s")
    return len(missing)


class Environment:
    def __init__(self, version):
        self.folder = ROOT / "build" / "torch" / version
        self.python = self.folder / "bin" / "python"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPMETER_", "PYTHON"))}
        self.variables = {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.folder / "cache")}

    def install(self, *arguments):
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*map(str, pip), *map(str, arguments)], check=True)

    def create(self, version, wheel):
        if not (self.folder / "complete").is_file():
            shutil.rmtree(self.folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder], check=True)
            self.install("--no-deps", f"torch=={version}")
            self.install(*PACKAGES, *(["numpy<2"] if tuple(map(int, version.split(".")[:2])) < (2, 3) else []), *TEST_PACKAGES)
            (lib,) = self.folder.glob("lib/python*/site-packages/torch/lib")
            print(f"try: torch {version} installed with {write_stubs(lib)} stubs", flush=True)
            (self.folder / "complete").touch()
        self.install("--no-deps", "--force-reinstall", wheel)

    def run(self, *command, **more):
        begin = time.monotonic()
        done = subprocess.run([str(word) for word in command], env=self.variables, **more)
        return done, time.monotonic() - begin


def try_run(environment):
    """Steps of the example under `flopmeter run`, and the sources of their FLOPs."""
    with tempfile.TemporaryDirectory() as folder:
        example = ROOT / "examples" / "run" / "train.py"
        done, seconds = environment.run("flopmeter", "run", "--dir", folder, "--", environment.python, example, capture_output=True, text=True)
        records = [json.loads(line) for file in Path(folder).glob("records_*") for line in file.read_text().splitlines()]
    if done.returncode != 0:
        sys.exit(f"try: flopmeter run failed:\n{done.stdout}{done.stderr}")
    flops = {(record["flops_source"], record["model_flops"]) for record in records}
    print(f"try: flopmeter run recorded {len(records)} steps in {seconds:.0f} s: {sorted(flops, key=str)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("version")
    parser.add_argument("test", nargs="*")
    args = parser.parse_args()
    environment = Environment(args.version)
    environment.create(args.version, args.wheel.resolve())
    done, seconds = environment.run("flopmeter", "setup-torch")
    print(f"try: setup-torch took {seconds:.0f} s", flush=True)
    if done.returncode != 0:
        return 1
    try_run(environment)
    tests = args.test or sorted(map(str, (ROOT / "python" / "tests").glob("test_count_*.py")))
    done, seconds = environment.run(environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests, cwd=ROOT)
    print(f"try: count tests took {seconds:.0f} s, exit status {done.returncode}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
