# SPDX-License-Identifier: Apache-2.0
"""Tests of the project's own checks: each test writes an offense into a small tree and expects the check to report it."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def run(tool, *arguments):
    done = subprocess.run([sys.executable, TOOLS / tool, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def tree(tmp_path):
    """A tree whose includes and link lines all point down."""
    write(tmp_path, "src/core/include/flopmeter/core/units.h", "#pragma once\n")
    write(tmp_path, "src/http/include/flopmeter/http/server.h", "#pragma once\n")
    write(tmp_path, "src/catalog/include/flopmeter/catalog/ops.h", "#include <flopmeter/core/units.h>\n")
    write(tmp_path, "src/telemetry/src/cpu.cpp", "#include <vector>\n#include <flopmeter/core/units.h>\n")
    write(tmp_path, "src/report/src/page.cpp", "#include <flopmeter/http/server.h>\n")
    write(tmp_path, "src/adapters/torch/include/flopmeter/torch/op_counter.h", "#include <flopmeter/core/units.h>\n")
    write(tmp_path, "src/catalog/CMakeLists.txt", "flopmeter_module(catalog\n  DEPENDS flopmeter::core)\n")
    write(tmp_path, "src/catalog/src/ops.cpp", '#include "cost.h"\n#include <flopmeter/catalog/ops.h>\n')
    write(tmp_path, "src/catalog/src/cost.h", "#pragma once\n")
    write(tmp_path, "tests/end_to_end.cpp", "#include <flopmeter/torch/op_counter.h>\n")
    write(tmp_path, "python/flopmeter/__init__.py", "from flopmeter import compat\n")
    write(tmp_path, "python/flopmeter/compat/flags.py", "from flopmeter.integrations import megatron\n")
    return tmp_path


def test_layers_accept_includes_that_point_down(tree):
    assert run("check_layers.py", tree) == (0, "layers: every include, link line, and import points down\n")


@pytest.mark.parametrize("path, include, message", [
    ("src/core/src/units.cpp", "<flopmeter/catalog/ops.h>", "which is above it"),
    ("src/telemetry/src/gpu.cpp", "<flopmeter/catalog/ops.h>", "a module of the same layer"),
    ("src/http/src/server.cpp", "<flopmeter/core/units.h>", "a module of the same layer"),
    ("src/monitor/src/ring.cpp", "<flopmeter/http/server.h>", "serves only sinks and report"),
    ("src/monitor/src/ring.cpp", "<flopmeter/torch/op_counter.h>", "which is above it"),
    ("src/core/src/units.cpp", '"../../catalog/include/flopmeter/catalog/ops.h"', "which is above it"),
    ("src/core/tests/units_test.cpp", "<flopmeter/catalog/ops.h>", "which is above it"),
    ("src/core/src/units.cpp", "<flopmeter/nowhere/x.h>", "no module owns this header"),
    ("src/sinks/src/csv.cpp", '"../../catalog/src/cost.h"', "a header of src/catalog by its path"),
    ("src/sinks/tests/csv_test.cpp", '"../../catalog/src/cost.h"', "a header of src/catalog by its path"),
])
def test_layers_report_the_line_of_an_upward_include(tree, path, include, message):
    write(tree, path, f"#include <vector>\n#include {include}\n")
    code, out = run("check_layers.py", tree)
    assert code == 1
    assert out.startswith(f"{path}:2: ") and message in out


@pytest.mark.parametrize("link, message", [
    ("flopmeter_module(sinks SOURCES a.cpp\n  DEPENDS flopmeter_core)", "bare target flopmeter_core; link flopmeter::core"),
    ("target_link_libraries(flopmeter_sinks\n  PRIVATE flopmeter_monitor)", "bare target flopmeter_monitor"),
    ("flopmeter_module(sinks SOURCES a.cpp\n  DEPENDS flopmeter::nowhere)", "no module is called nowhere"),
    ("flopmeter_module(sinks SOURCES a.cpp\n  PRIVATE flopmeter::monitor)", "which is above it"),
])
def test_layers_report_the_line_of_a_wrong_link(tree, link, message):
    write(tree, "src/sinks/CMakeLists.txt", link + "\n")
    code, out = run("check_layers.py", tree)
    assert code == 1
    assert out.startswith("src/sinks/CMakeLists.txt:2: ") and message in out


def test_layers_report_a_folder_that_is_not_a_module(tree):
    write(tree, "src/extra/CMakeLists.txt", "flopmeter_module(extra SOURCES a.cpp)\n")
    code, out = run("check_layers.py", tree)
    assert code == 1 and out.startswith("src/extra/CMakeLists.txt:1: src/extra is not a module of LAYERS")


@pytest.mark.parametrize("path, statement", [
    ("monitor.py", "from flopmeter.launcher import attach"),
    ("monitor.py", "import flopmeter.compat"),
    ("torch/hooks.py", "from flopmeter import integrations"),
    ("integrations/hf.py", 'importlib.import_module("flopmeter.compat.flags")'),
    ("launcher/attach.py", "from flopmeter.integrations.hf import Callback"),
])
def test_layers_report_the_line_of_an_upward_import(tree, path, statement):
    write(tree, f"python/flopmeter/{path}", f"import importlib\n\n\ndef f():\n    {statement}\n")
    code, out = run("check_layers.py", tree)
    assert code == 1 and out.startswith(f"python/flopmeter/{path}:5: ")


def test_layers_report_the_line_of_an_upward_link(tree):
    write(tree, "src/core/CMakeLists.txt", "flopmeter_module(core  # flopmeter::catalog is above\n  DEPENDS flopmeter::catalog)\n")
    code, out = run("check_layers.py", tree)
    assert code == 1
    assert out.startswith("src/core/CMakeLists.txt:2: src/core (layer 0) uses src/catalog (layer 1)")


@pytest.fixture
def repository(tmp_path):
    write(tmp_path, "README.md", "# flopmeter\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def add_all(repository):
    subprocess.run(["git", "add", "-A"], cwd=repository, check=True)


@pytest.mark.parametrize("path, text, message", [
    ("page.md", "see /" + "home/alice/notes\n", "page.md:1: machine-specific path"),
    ("module/a.cpp", "int a;\n// TO" + "DO: more\n", "module/a.cpp:2: unfinished note"),
    ("module/a.cpp", "\n" * 501, "module/a.cpp:501: more than 500 lines"),
    ("README.md", "\n" * 141, "README.md:141: more than 140 lines"),
    ("page.md", "one\nThe user is to" + "ld why.\n", "page.md:2: banned phrase 'to" + "ld'"),
    ("module/a.py", "to" + "ld_user = 1\n", "module/a.py:1: banned phrase 'to" + "ld'"),
    ("module/a.h", "/// Wha" + "t a step costs.\n", "module/a.h:1: banned phrase '/// Wha" + "t'"),
])
def test_text_reports_the_place_of_an_offense(repository, path, text, message):
    write(repository, path, text)
    add_all(repository)
    code, out = run("check_text.py", repository)
    assert code == 1 and message in out


def test_text_accepts_a_clean_tree_and_ignores_untracked_files(repository):
    add_all(repository)
    write(repository, "module/a.cpp", "// TO" + "DO\n")
    assert run("check_text.py", repository) == (0, "text: 1 tracked files are in order\n")


def test_text_counts_banned_phrases_per_folder(repository):
    write(repository, "module/a.py", "to" + "ld = 1  # to" + "ld\n")
    add_all(repository)
    assert run("check_text.py", "--count", repository) == (0, "     2  module\n     2  total\n")


PAGE = "# Title\n\nTakes 5 ms; see `make test` and [more](README.md).\n\n```\nmake test  # all\n```\n"


@pytest.mark.parametrize("translation, message", [
    (PAGE.replace("Title", "标题").replace("# all", "# 全部"), None),
    (PAGE + "\n## Another\n", "headings differ"),
    (PAGE.replace("5 ms", "6 ms"), "number differs"),
    (PAGE.replace("`make test`", "`make quick`"), "inline code differs"),
    (PAGE.replace("make test  #", "make quick  #"), "code block differs"),
    (PAGE.replace("[more](README.md)", "more"), "link differs"),
])
def test_docs_compare_a_translation_with_the_english_page(repository, translation, message):
    write(repository, "page.md", PAGE)
    write(repository, "page.zh-CN.md", translation)
    add_all(repository)
    code, out = run("check_docs.py", repository)
    assert (code == 0) if message is None else (code == 1 and message in out), out


def test_docs_report_paths_and_commands_that_do_not_exist(repository):
    write(repository, "docs/reference/cli.md", "# CLI\n\n## flopmeter run\n")
    write(repository, "page.md", "`docs/reference`, `docs/*/cli.md`, `tools/none.py`, `none_test.cpp`, `flopmeter run`\n\n```\n$ flopmeter walk\n```\n")
    add_all(repository)
    assert run("check_docs.py", repository) == (
        1, "page.md: tools/none.py does not exist\npage.md: test none_test.cpp does not exist\npage.md: flopmeter walk does not exist\n")


def test_docs_report_a_broken_link(repository):
    write(repository, "page.md", "[one](missing.md), [two](README.md#top), [three](https://example.org/x)\n")
    add_all(repository)
    assert run("check_docs.py", repository) == (1, "page.md: broken link: missing.md\n")
