# SPDX-License-Identifier: Apache-2.0
"""``pip install .`` in a fresh environment without and with torch: package, CLI, adapter on first use."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
COUNT = """
import torch, flopmeter
with flopmeter.count() as c:
    torch.ones(2, 3) @ torch.ones(3, 4)
print(c.hardware_flops, torch.__version__)
"""


class Environment:
    """A virtual environment and commands in it."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "venv" / "bin"
        self.cache = folder / "cache"

    def run(self, *command, check=True, **more):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPMETER_", "PYTHON"))}
        environment = {**kept, "XDG_CACHE_HOME": str(self.cache), "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", **more}
        done = subprocess.run(list(map(str, command)), cwd=self.folder, env=environment, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def python(self, code, **more):
        return self.run(self.bin / "python", "-c", code, **more)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    environment = Environment(tmp_path_factory.mktemp("fresh"))
    subprocess.run([sys.executable, "-m", "venv", environment.folder / "venv"], check=True)
    environment.run(environment.bin / "pip", "install", ROOT)
    return environment


@pytest.fixture(scope="module")
def with_torch(fresh):
    """The same environment with access to the packages of this one."""
    pytest.importorskip("torch")
    here = Path(fresh.python("import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    (here / "torch-from-outside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return fresh


def test_without_torch_estimate_works_and_count_explains_what_is_missing(fresh):
    assert fresh.python("import flopmeter; print(flopmeter.estimate('gpt2', seq_len=8)['flops']['model'] > 0)").stdout == "True\n"
    done = fresh.python("import flopmeter; flopmeter.count().__enter__()", check=False)
    assert "counting needs PyTorch" in done.stderr.splitlines()[-1]


def test_the_cli_is_installed(fresh):
    version = fresh.python("import flopmeter; print(flopmeter.__version__)").stdout.strip()
    assert fresh.run("flopmeter", "--version").stdout.strip() == version
    assert "MFU" in fresh.run("flopmeter", "estimate", "gpt2", "--seq-len", 8, "--device", "a100", "--step-time", 1).stdout
    assert fresh.run("flopmeter", "run", "--", "python", "-c", "print(7)").stdout == "7\n"


def test_type_stubs_are_installed(fresh):
    assert fresh.python("import flopmeter, os; print(os.listdir(flopmeter.__path__[0]))").stdout.count("py.typed") == 1


def test_a_missing_compiler_prints_one_line(with_torch):
    done = with_torch.python(COUNT, check=False, PATH=str(with_torch.folder), CXX="")
    assert "needs a C++ compiler" in done.stderr.splitlines()[-1]


def test_the_adapter_is_built_once_for_the_installed_torch(with_torch):
    first = with_torch.python(COUNT)
    assert first.stdout.split()[0] == "48"
    assert first.stderr.count("building the torch adapter") == 1
    again = with_torch.python(COUNT)
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_the_installed_cli_monitors_a_run(with_torch):
    with_torch.run("flopmeter", "run", "--dir", "logs", "--", "python", ROOT / "examples" / "run" / "train.py")
    (records,) = (with_torch.folder / "logs").glob("records_*")
    assert len(records.read_text().splitlines()) == 32
