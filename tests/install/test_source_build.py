# SPDX-License-Identifier: Apache-2.0
"""A source build on a machine without the development packages."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def configure(folder, *options, **environment):
    command = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **environment})


def the_line(done):
    (line,) = [line.strip() for line in done.stderr.splitlines() if "flopmeter:" in line]
    return line


def test_one_line_names_all_missing_packages_and_the_command(tmp_path):
    hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("simdjson", "yaml-cpp")]
    done = configure(tmp_path, *hidden)
    assert done.returncode != 0
    assert the_line(done).endswith("on Debian and Ubuntu run: apt-get install libyaml-cpp-dev libsimdjson-dev")


def test_a_missing_compiler_is_one_of_them(tmp_path):
    done = configure(tmp_path, CXX="/nowhere/c++")
    assert done.returncode != 0 and "apt-get install g++" in the_line(done)
