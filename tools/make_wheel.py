#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds self-contained wheels in build/wheel/dist.

    tools/make_wheel.py [--python PROGRAM ...]    manylinux_2_28, by default for every Python 3.9 to 3.13 on this machine
    tools/make_wheel.py --from BUILD              of a finished build, for the Python that it was built with and this machine

zig, from PyPI, compiles for glibc 2.28 and links its C++ library statically. The third-party libraries are compiled the same
way from the source packages of Debian or Ubuntu, whose package lists stay in build/wheel: no root, no change of the system.
The library and the CLI are built once; only the binding differs between Pythons.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "wheel"
PREFIX = WORK / "prefix"
PLATFORM = "manylinux_2_28_x86_64"
TARGET = "x86_64-linux-gnu.2.28"
C_LIBRARY = {f"lib{name}" for name in ("c.so.6", "m.so.6", "dl.so.2", "pthread.so.0", "rt.so.1")} | {"ld-linux-x86-64.so.2"}
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
# Source packages that CMake builds, with options.
CMAKE_SOURCES = {
    "yaml-cpp": ["-DYAML_CPP_BUILD_TESTS=OFF", "-DYAML_CPP_BUILD_TOOLS=OFF"],
    "simdjson": ["-DSIMDJSON_DEVELOPER_MODE=OFF"],
}
# Source packages that make builds, with the library and the headers.
MAKE_SOURCES = {"libdeflate": ("libdeflate.a", "libdeflate.h"), "zlib": ("libz.a", "zlib.h", "zconf.h")}
HEADERS = ("boost", "CLI", "nlohmann")  # of /usr/include
# Packages of Debian and Ubuntu whose work is inside the wheel: their notices go with it.
NOTICES = (
    "libboost-dev libcli11-dev libdeflate-dev libjs-dygraphs libsimdjson-dev libyaml-cpp-dev nlohmann-json3-dev zlib1g-dev"
).split()


def run(*command, **more):
    subprocess.run([str(word) for word in command], check=True, **more)


def write_program(name, text):
    path = WORK / "zig" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:  # its time is part of the compile cache's key
        path.write_text(text)
        path.chmod(0o755)
    return path


def zig_tools():
    """CMake's options for a build with zig."""
    import ziglang

    zig = Path(ziglang.__file__).parent / "zig"
    start = f'#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR="{WORK}/zig/cache"\nexec "{zig}"'
    # The headers of this machine's C library must not be found: /usr/include becomes the folder of third-party headers.
    start_bash = start.replace("/bin/sh", "/bin/bash")
    arguments = f'-target {TARGET} -fno-sanitize=all -D_LIBCPP_ENABLE_CXX20_REMOVED_TYPE_TRAITS "${{@/%\\/usr\\/include/{PREFIX}/include}}"\n'
    return [
        f"-DCMAKE_C_COMPILER={write_program('cc', f'{start_bash} cc {arguments}')}",
        f"-DCMAKE_CXX_COMPILER={write_program('c++', f'{start_bash} c++ {arguments}')}",
        f"-DCMAKE_AR={write_program('ar', f'{start} ar {chr(34)}$@{chr(34)}{chr(10)}')}",
        f"-DCMAKE_RANLIB={write_program('ranlib', f'{start} ranlib {chr(34)}$@{chr(34)}{chr(10)}')}",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        f"-DCMAKE_PREFIX_PATH={PREFIX}",
        "-GNinja",
    ]


def fetch_sources(folder):
    """Unpacks the source packages that this machine's package lists offer."""
    lists = folder / "sources.list.d"
    lists.mkdir(parents=True, exist_ok=True)
    configured = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for file in filter(Path.is_file, configured):
        text = re.sub(r"^Types:.*$", "Types: deb-src", file.read_text(), flags=re.M)
        (lists / file.name).write_text(re.sub(r"^deb\s", "deb-src ", text, flags=re.M))
    apt = ["apt-get", "-qq"]
    places = {"Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": lists, "Dir::State::lists": folder / "lists", "Dir::Cache": folder}
    for name, value in places.items():
        apt += ["-o", f"{name}={value}"]
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    subprocess.run([*apt, "update"], stderr=subprocess.DEVNULL)  # a list that fails is not one of those needed, or the next line fails
    run(*apt, "source", *CMAKE_SOURCES, *MAKE_SOURCES, cwd=folder, stdout=subprocess.DEVNULL)


def unpacked(sources, name):
    (folder,) = (path for path in sources.glob(f"{name}-*") if path.is_dir())
    return folder


def build_third_party(tools):
    done = PREFIX / "complete"
    if done.is_file():
        return
    sources = WORK / "third_party"
    fetch_sources(sources)
    (PREFIX / "include").mkdir(parents=True, exist_ok=True)
    for name, options in CMAKE_SOURCES.items():
        build = sources / "build" / name
        common = ["-DBUILD_SHARED_LIBS=OFF", "-DBUILD_TESTING=OFF", f"-DCMAKE_INSTALL_PREFIX={PREFIX}", "-DCMAKE_INSTALL_LIBDIR=lib"]
        run("cmake", "-S", unpacked(sources, name), "-B", build, *tools, *common, *options, "-Wno-dev", stdout=subprocess.DEVNULL)
        run("cmake", "--build", build, "--target", "install", stdout=subprocess.DEVNULL)
    for name, (library, *headers) in MAKE_SOURCES.items():
        source = unpacked(sources, name)
        programs = {"CC": str(WORK / "zig" / "cc"), "AR": str(WORK / "zig" / "ar"), "CFLAGS": "-O2 -fPIC -w"}
        if (source / "configure").is_file():
            run("./configure", "--static", cwd=source, env={**os.environ, **programs}, stdout=subprocess.DEVNULL)
        run("make", *(f"{key}={value}" for key, value in programs.items()), library, cwd=source, stdout=subprocess.DEVNULL)
        shutil.copy(source / library, PREFIX / "lib")
        for header in headers:
            shutil.copy(source / header, PREFIX / "include")
    for name in HEADERS:
        link = PREFIX / "include" / name
        if not link.is_symlink():
            link.symlink_to(f"/usr/include/{name}")
    done.touch()


def found_pythons():
    """The interpreters of the supported versions on this machine."""
    for version in PYTHONS:
        installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        for program in [shutil.which(f"python{version}"), *installed]:
            if program and subprocess.run([program, "-c", "import sysconfig"], capture_output=True).returncode == 0:
                yield str(program)
                break
        else:
            print(f"wheel: no Python {version} on this machine: omitted", file=sys.stderr)


def notices():
    """(name, file) of the notices of everything in the wheel."""
    import pybind11

    for package in NOTICES:
        yield package, Path("/usr/share/doc") / package / "copyright"
    yield "pybind11", next(Path(pybind11.__file__).parent.parent.glob("pybind11-*.dist-info/**/LICENSE*"))


def zig_notices():
    import ziglang

    for name in ("libcxx", "libcxxabi", "libunwind"):
        yield name, Path(ziglang.__file__).parent / "lib" / name / "LICENSE.TXT"


def pack(build, tag, platform, third_party, dist):
    """The wheel of a finished build; returns its path."""
    from scikit_build_core.build import prepare_metadata_for_build_wheel
    from wheel.wheelfile import WheelFile

    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder)
        run("cmake", "--install", build, "--component", "python", "--prefix", stage, "--strip", stdout=subprocess.DEVNULL)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "python" / "flopmeter", stage / "flopmeter", dirs_exist_ok=True, ignore=ignored)
        with contextlib.redirect_stdout(sys.stderr):
            info = stage / prepare_metadata_for_build_wheel(folder)
        record = (info / "WHEEL").read_text()
        (info / "WHEEL").write_text(re.sub(r"^Tag: .*\n", "", record, flags=re.M).rstrip() + f"\nTag: {tag}-{platform}\n")
        (info / "licenses" / "third_party").mkdir(parents=True)
        for name, file in third_party:
            shutil.copy(file, info / "licenses" / "third_party" / f"{name}.txt")
        dist.mkdir(parents=True, exist_ok=True)
        wheel = dist / f"{info.name.removesuffix('.dist-info')}-{tag}-{platform}.whl"
        with WheelFile(wheel, "w") as archive:
            archive.write_files(stage)
    return wheel


def tag_of(python):
    version = subprocess.run([python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])"], capture_output=True, text=True, check=True)
    return f"{version.stdout.strip()}-{version.stdout.strip()}"


def needs(wheel):
    """(libraries, versions of symbols) that the programs and libraries in the wheel need of the system."""
    libraries, versions = set(), set()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        files = [file for file in Path(folder).rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
        for file in files:
            shown = subprocess.run(["readelf", "-dVW", file], capture_output=True, text=True, check=True).stdout
            libraries |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", shown))
            versions |= set(re.findall(r"Name: (\S+)  Flags", shown))
        return libraries - {file.name for file in files}, versions


def check(wheel):
    """Fails if the wheel needs more than the C library of its tag."""
    libraries, versions = needs(wheel)
    newest = tuple(map(int, TARGET.rpartition("gnu.")[2].split(".")))
    found = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)[\d.]*", version) for version in versions]
    refused = [version for version, match in zip(versions, found) if not match or (int(match[1]), int(match[2])) > newest]
    if libraries - C_LIBRARY or refused:
        named = ", ".join(sorted([*(libraries - C_LIBRARY), *refused]))
        sys.exit(f"wheel: {wheel.name} does not conform to {PLATFORM}: it needs {named}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="interpreter to build for")
    parser.add_argument("--from", dest="build", type=Path, help="directory of a finished build")
    parser.add_argument("--dist", type=Path, default=WORK / "dist")
    args = parser.parse_args()
    os.chdir(ROOT)
    if args.build:
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        print(pack(args.build, tag_of(sys.executable), platform, notices(), args.dist))
        return
    import pybind11

    tools = zig_tools()
    build_third_party(tools)
    build = WORK / "build"
    for python in args.python or found_pythons():
        # Link-time optimization would compile zig's C++ library again.
        options = ["-DHAS_FLTO=OFF", "-DHAS_FLTO_AUTO=OFF", "-DHAS_FLTO_THIN=OFF", "-DFLOPMETER_PYTHON=ON", "-DFLOPMETER_TESTS=OFF"]
        options += [f"-Dpybind11_DIR={pybind11.get_cmake_dir()}", f"-DPython_EXECUTABLE={python}"]
        run("cmake", "-S", ROOT, "-B", build, "-U_Python*", "-UPYTHON*", *tools, *options, stdout=subprocess.DEVNULL)
        run("cmake", "--build", build, "--target", "_flopmeter", "flopmeter_cli")
        wheel = pack(build, tag_of(python), PLATFORM, [*notices(), *zig_notices()], args.dist)
        check(wheel)
        print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
