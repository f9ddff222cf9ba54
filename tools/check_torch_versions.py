#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the torch adapter against the headers of other PyTorch releases.

    tools/check_torch_versions.py            the releases whose headers are in the cache, two at most
    tools/check_torch_versions.py --all      every supported release; fetches missing headers
    tools/check_torch_versions.py 2.4.1 ...  these releases

A wheel is a zip file of up to 2 GB. Range requests read its directory and the headers only (about 10 MB), which stay in
the cache directory $XDG_CACHE_HOME/flopmeter/torch-headers/<version>.
"""

import argparse
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The last patch release of each minor version.
VERSIONS = ("2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.14.1 2.15.0").split()
BLOCK = 4 << 20
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64")


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read in blocks by range requests."""

    def __init__(self, url):
        self._url = url
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
            self._size = int(answer.headers["Content-Length"])
        self._position = 0
        self._blocks = {}

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self._position

    def seek(self, offset, whence=io.SEEK_SET):
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def readinto(self, buffer):
        block, start = divmod(self._position, BLOCK)
        data = self._block(block)[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _block(self, number):
        if number not in self._blocks:
            if len(self._blocks) == 4:
                del self._blocks[next(iter(self._blocks))]
            first, last = number * BLOCK, min((number + 1) * BLOCK, self._size) - 1
            if first > last:
                return b""
            request = urllib.request.Request(self._url, headers={"Range": f"bytes={first}-{last}"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                if answer.status != 206:
                    raise OSError("the server does not support range requests")
                self._blocks[number] = answer.read()
        return self._blocks[number]


def wheel_url(version):
    """The wheel that pip would take, from the index that pip is configured for."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet", "--ignore-installed", "--report", "-"]
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    target = ["--only-binary=:all:", "--python-version", "3.11", *platforms, "--target", str(cache_folder() / "unused")]
    done = subprocess.run([*command, *target, f"torch=={version}"], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return json.loads(done.stdout)["install"][0]["download_info"]["url"]


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "flopmeter" / "torch-headers"


def open_wheel(url, folder):
    """The wheel, read by range requests, or as a whole if the server answers none."""
    try:
        return zipfile.ZipFile(io.BufferedReader(RemoteFile(url), BLOCK))
    except (OSError, zipfile.BadZipFile):
        whole = Path(folder) / "wheel"
        with urllib.request.urlopen(url, timeout=120) as answer, open(whole, "wb") as out:
            shutil.copyfileobj(answer, out, BLOCK)
        return zipfile.ZipFile(whole)


def fetch(version):
    """The directory that replaces site-packages/torch of this version."""
    folder = cache_folder() / version
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f"{version}.partial-{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as temporary, open_wheel(wheel_url(version), temporary) as wheel:
            wanted = [entry for entry in wheel.infolist() if entry.filename.startswith(("torch/include/", "torch/share/cmake/Torch/"))]
            for entry in sorted(wanted, key=lambda entry: entry.header_offset):
                target = partial / entry.filename.removeprefix("torch/")
                if not entry.is_dir():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(wheel.read(entry))
        os.replace(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def load_build_module():
    """flopmeter.torch.build, which holds the flags that users compile with; needs no built package."""
    spec = importlib.util.spec_from_file_location("build", ROOT / "python" / "flopmeter" / "torch" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cxx11_abi(torch_root):
    config = (torch_root / "share" / "cmake" / "Torch" / "TorchConfig.cmake").read_text()
    found = re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])", config)
    return int(found.group(1)) if found else 1


def check(version):
    """Compiles without writing objects. Returns the compiler's output, empty if it succeeded."""
    build, torch_root = load_build_module(), fetch(version)
    flags = build.compile_flags(torch_root, cxx11_abi(torch_root), distributed=True, gloo=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        (stage / "flopmeter").mkdir()  # the only header of the project that the adapter may include
        shutil.copy(ROOT / "src" / "counting" / "include" / "flopmeter" / "adapter_abi.h", stage / "flopmeter")
        output = ""
        for unit in build.write_units(ROOT / "src" / "adapters" / "torch" / "src", stage):
            command = [*build.compiler(), *flags, f"-I{stage}", "-fsyntax-only", str(unit)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            output += done.stdout if done.returncode != 0 else ""
    return output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every supported release")
    parser.add_argument("version", nargs="*")
    args = parser.parse_args()
    cached = [version for version in VERSIONS if (cache_folder() / version).is_dir()]
    versions = args.version or (VERSIONS if args.all else [*cached[:1], *cached[1:][-1:]])
    if not versions:
        print("torch versions: skipped, no headers in the cache; run: tools/check_torch_versions.py --all")
    failed = False
    for version in versions:
        begin = time.monotonic()
        try:
            errors = check(version)
        except OSError as error:
            errors = f"error: cannot fetch the headers: {error}"
        failed = failed or bool(errors)
        print(f"torch {version:8} {'FAILED' if errors else 'compiles'} {time.monotonic() - begin:5.0f} s", flush=True)
        print("\n".join([line for line in errors.splitlines() if "error" in line][:10]), end="\n" if errors else "", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
