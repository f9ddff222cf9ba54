# SPDX-License-Identifier: Apache-2.0
"""The package type-checks, and the stubs name the members of the compiled modules."""

import os
import re
import subprocess
import sys
from pathlib import Path

import flopmeter
import pytest

PACKAGE = Path(flopmeter.__file__).parent


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_the_stub_names_what_the_module_holds():
    compiled = flopmeter._flopmeter
    stub = (PACKAGE / "_flopmeter.pyi").read_text()
    assert public(vars(compiled)) == public(re.findall(r"^(?:def |class )?(\w+)[(:]", stub, re.M))
    for name, members in re.findall(r"^class (\w+):\n((?:    .*\n)+)", stub, re.M):
        defined = public(re.findall(r"^    (?:def )?(\w+)[(:]", members, re.M))
        assert defined == public(vars(getattr(compiled, name))), name


def test_the_package_type_checks(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), "--ignore-missing-imports", "--follow-imports=skip"]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    done = subprocess.run([*command, "-p", "flopmeter"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
