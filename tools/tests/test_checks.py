# SPDX-License-Identifier: Apache-2.0
"""The project's own checks must see an offence: each test plants one in a small tree and looks for its line."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run(tool, root):
    done = subprocess.run([sys.executable, TOOLS / tool, root], capture_output=True, text=True)
    return done.returncode, done.stdout


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """Two layers that are in order: catalog uses core, viewer uses http."""
    write(tmp_path, "src/core/include/flopmeter/core/units.h", "#pragma once\n")
    write(tmp_path, "http/include/flopmeter/http/server.h", "#pragma once\n")
    write(tmp_path, "src/catalog/include/flopmeter/catalog/ops.h", "#include <flopmeter/core/units.h>\n")
    write(tmp_path, "src/sinks/src/text.cpp", "#include <vector>\n#include <flopmeter/core/units.h>\n")
    write(tmp_path, "viewer/src/page.cpp", "#include <flopmeter/http/server.h>\n")
    write(tmp_path, "adapters/torch/include/flopmeter/torch/op_counter.h", "#include <flopmeter/core/units.h>\n")
    write(tmp_path, "src/catalog/CMakeLists.txt", "flopmeter_module(catalog\n  DEPENDS flopmeter::core)\n")
    write(tmp_path, "tests/end_to_end.cpp", "#include <flopmeter/torch/op_counter.h>\n")
    return tmp_path


def test_layers_accept_includes_that_point_down(tree):
    assert run("check_layers.py", tree) == (0, "layers: every include and link line points down\n")


@pytest.mark.parametrize("path, include, told", [
    ("src/core/src/units.cpp", "<flopmeter/catalog/ops.h>", "which is above it"),
    ("src/sinks/src/csv.cpp", "<flopmeter/catalog/ops.h>", "a module of the same layer"),
    ("http/src/server.cpp", "<flopmeter/core/units.h>", "a module of the same layer"),
    ("monitor/src/ring.cpp", "<flopmeter/http/server.h>", "serves only sinks and viewer"),
    ("monitor/src/ring.cpp", "<flopmeter/torch/op_counter.h>", "which is above it"),
    ("src/core/src/units.cpp", '"../../catalog/include/flopmeter/catalog/ops.h"', "which is above it"),
    ("src/core/tests/units_test.cpp", "<flopmeter/catalog/ops.h>", "which is above it"),
    ("src/core/src/units.cpp", "<flopmeter/nowhere/x.h>", "no module owns this header"),
])
def test_layers_name_the_line_of_an_offending_include(tree, path, include, told):
    write(tree, path, f"#include <vector>\n#include {include}\n")
    code, out = run("check_layers.py", tree)
    assert code == 1
    assert out.startswith(f"{path}:2: ") and told in out


def test_layers_name_the_line_of_an_offending_link(tree):
    write(tree, "src/core/CMakeLists.txt", "flopmeter_module(core  # flopmeter::catalog is above\n  DEPENDS flopmeter::catalog)\n")
    code, out = run("check_layers.py", tree)
    assert code == 1
    assert out.startswith("src/core/CMakeLists.txt:2: core (layer 0) uses catalog (layer 1)")


@pytest.fixture
def repository(tmp_path):
    write(tmp_path, "README.md", "# flopmeter\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("path, text, told", [
    ("docs/a.md", "see /" + "home/somebody/notes\n", "docs/a.md:1: a path of one machine"),
    ("src/core/a.cpp", "int a;\n// TO" + "DO: more\n", "src/core/a.cpp:2: an unfinished note"),
    ("src/core/a.cpp", "\n" * 401, "src/core/a.cpp:401: longer than 400 lines"),
    ("README.md", "\n" * 120, "README.md:120: longer than 119 lines"),
])
def test_text_names_the_place_of_an_offence(repository, path, text, told):
    write(repository, path, text)
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    code, out = run("check_text.py", repository)
    assert code == 1 and told in out


def test_text_accepts_what_is_in_order_and_ignores_untracked_files(repository):
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)
    write(repository, "src/core/a.cpp", "// TO" + "DO\n")
    assert run("check_text.py", repository) == (0, "text: 1 tracked files are in order\n")
