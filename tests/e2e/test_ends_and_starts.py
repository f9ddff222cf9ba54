# SPDX-License-Identifier: Apache-2.0
"""``flopmeter run`` preserves the startup and the exit status of a command."""

import json
import sys

import pytest
from conftest import PROGRAM, SCRIPTS

EXITS = {"exit": 3, "_exit": 4, "raise": 1, "SIGTERM": -15, "SIGINT": -2}
NOTHING = "flopmeter: nothing was recorded: no training step of torch was seen\n"
FAST = ("exit", "SIGTERM")


@pytest.mark.torch2("hooks for optimizers")
@pytest.mark.parametrize("ending", [pytest.param(end, marks=() if end in FAST else pytest.mark.long) for end in EXITS])
def test_the_exit_status_is_unchanged_and_the_records_are_readable(folder, ending):
    alone = folder.start(sys.executable, SCRIPTS / "plain_loop.py", 20, ending, run_options=None)
    _, errors, code = folder.python("plain_loop.py", 20, ending)
    alone.communicate(timeout=240)
    assert code == alone.returncode == EXITS[ending], errors
    assert [row["step"] for row in folder.records()] == list(range(1, 21))


@pytest.mark.torch2("hooks for optimizers")
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_cannot_be_written_changes_nothing(folder, redirection):
    program = [sys.executable, SCRIPTS / "plain_loop.py", 3]
    alone = folder.start(*program, run_options=None)
    shell = ["bash", "-c", f'exec "$0" "$@" {redirection}']
    options = ["run", "--dir", folder.logs, "--no-console", "--"]
    output, _, code = folder.run(*shell, PROGRAM, *options, *program, run_options=None)
    expected, _ = alone.communicate(timeout=240)
    assert (code, output) == (0, expected)
    assert len(folder.records()) == 3


def test_an_existing_sitecustomize_still_runs(folder):
    (folder.path / "own").mkdir()
    (folder.path / "own" / "sitecustomize.py").write_text("import sys\nsys.flag_of_the_site = 'set'\n")
    code = "import sys, sitecustomize; print(sys.flag_of_the_site, sitecustomize.__file__, [p for p in sys.path if 'startup' in p])"
    output, errors, exit_code = folder.run(sys.executable, "-c", code, PYTHONPATH=str(folder.path / "own"))
    assert (exit_code, errors) == (0, NOTHING)
    assert output.split() == ["set", str(folder.path / "own" / "sitecustomize.py"), "[]"]


@pytest.mark.parametrize("flag", ["-I", "-S", "-BE"])
def test_isolated_mode_runs_without_monitoring_and_logs_one_line(folder, flag):
    code = "import os; print(sorted(k for k in os.environ if k.startswith(('FLOPMETER', 'PYTHONPATH'))))"
    output, errors, exit_code = folder.run(sys.executable, flag, "-c", code)
    assert (output, exit_code) == ("[]\n", 0)
    assert errors.count("\n") == 1 and f"{flag}' ignores sitecustomize: running without monitoring" in errors


def test_a_flag_in_the_shebang_line_is_detected(folder):
    script = folder.path / "script"
    script.write_text(f"#!{sys.executable} -I\nprint(1)\n")
    script.chmod(0o755)
    output, errors, _ = folder.run(script)
    assert output == "1\n" and "without monitoring" in errors


@pytest.mark.torch2("hooks for optimizers")
def test_find_spec_before_the_import_of_torch_does_not_prevent_monitoring(folder):
    script = folder.path / "find_spec.py"  # as libraries with optional torch support do
    check = "import importlib.util, sys\nassert importlib.util.find_spec('torch').loader and 'torch' not in sys.modules\n"
    script.write_text(check + (SCRIPTS / "plain_loop.py").read_text())
    _, errors, code = folder.run(sys.executable, script, 3, PYTHONPATH=str(SCRIPTS))
    assert code == 0, errors
    assert len(folder.records()) == 3


@pytest.mark.torch2("hooks for optimizers")
def test_a_command_without_steps_logs_that_once_and_writes_no_files(folder):
    code = (
        "import torch, subprocess, sys\n"
        "model = torch.nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters())\n"
        "model.eval(); model(torch.ones(1, 2)).sum().backward()\n"
        "subprocess.run([sys.executable, '-m', 'pip', '--version'], check=True)\n"
        "assert torch.__spec__.loader is torch.__loader__ and 'importlib' in type(torch.__loader__).__module__\n"
    )
    _, errors, exit_code = folder.run(sys.executable, "-c", code)
    assert (exit_code, errors) == (0, NOTHING)
    assert not folder.logs.exists()


@pytest.mark.torch2("hooks for optimizers")
def test_an_unsupported_torch_is_logged_once_and_the_command_runs(folder):
    code = (
        "import torch; torch.__version__ = '1.0'\n"
        "model = torch.nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(3): model(torch.ones(1, 2)).sum().backward(); optimizer.step()\n"
    )
    _, errors, exit_code = folder.run(sys.executable, "-c", code, XDG_CACHE_HOME=str(folder.path))
    assert exit_code == 0
    assert sum("FLOPs are not counted" in line and "torch 1.0" in line for line in errors.splitlines()) == 1
    assert all(row["model_flops"] is None for row in folder.records())


@pytest.mark.torch2("hooks for optimizers")
def test_options_reach_the_monitor(folder):
    config = folder.path / "monitor.yaml"
    config.write_text("flopmeter:\n  log_interval: 7\n  console: true\n")
    options = ["--config", config, "--no-console", "--peak", "2.5", "--csv"]
    output, errors, code = folder.python("plain_loop.py", 5, run_options=options)
    assert code == 0, errors
    assert all(line.split()[0] in "evaluation 0 1 2 3 4" for line in output.splitlines())
    row = folder.records()[-1]
    assert row["mfu"] == pytest.approx(row["model_flops"] / row["step_seconds"] / 2.5e12)
    assert json.loads((folder.logs / "run.json").read_text())["log_interval"] == 7
    assert list(folder.logs.glob("*.csv"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "the command is missing"),
        (["--dri", "x", "--", "true"], 2, "--dri"),
        (["--mode", "often", "--", "true"], 2, "--mode is 'often' but must be auto, estimate, profiler, smart, or hybrid"),
        (["--peak", "-1", "--", "true"], 2, "positive"),
        (["--", "no-such-program-here"], 127, "no-such-program-here"),
        (["--", str(SCRIPTS)], 126, "ermission denied"),
        (["true", "--help"], 0, ""),
    ],
)
def test_a_usage_error_prints_one_line(folder, arguments, code, message):
    _, errors, exit_code = folder.run(PROGRAM, "run", *arguments, run_options=None)
    assert exit_code == code
    assert message in errors and errors.count("\n") == (1 if message else 0)


def test_another_finder_that_calls_all_finders_is_not_an_endless_loop(folder):
    code = """
import sys
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        others = [each for each in sys.meta_path if each is not cls and hasattr(each, "find_spec")] if name == "torch" else []
        return next((spec for each in others if (spec := each.find_spec(name, path, target)) is not None), None)
sys.meta_path.insert(0, Finder)
import torch
print(torch.ones(2).sum().item())
"""
    output, errors, exit_code = folder.run(sys.executable, "-c", code)
    assert (output, errors, exit_code) == ("2.0\n", NOTHING, 0)


@pytest.mark.torch2("hooks for optimizers")
def test_a_program_of_the_same_name_runs_once_and_unmonitored(folder):
    script = folder.path / "flopmeter.py"
    script.write_text("print('runs')\n" + (SCRIPTS / "plain_loop.py").read_text())
    output, errors, code = folder.run(sys.executable, script, 3, PYTHONPATH=str(SCRIPTS))
    assert code == 0 and output.count("runs") == 1
    assert f"the program has another module of that name: {script}" in errors
    assert not folder.logs.exists()


@pytest.mark.torch2("hooks for optimizers")
def test_a_folder_of_the_same_name_does_not_hide_the_package(folder):
    (folder.path / "flopmeter").mkdir()
    installed = "[path for path in sys.path if not os.path.exists(path + '/flopmeter/__init__.py')]"
    code = f"import os, sys; sys.path = [{str(folder.path)!r}, *{installed}]\n" + (SCRIPTS / "plain_loop.py").read_text()
    _, errors, code = folder.run(sys.executable, "-c", code, 3, PYTHONPATH=str(SCRIPTS))
    assert code == 0, errors
    assert len(folder.records()) == 3


@pytest.mark.torch2("hooks for optimizers")
def test_a_warning_that_is_shown_once_is_shown_once(folder):
    code = """
import warnings
import torch
for _ in range(3):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(40):
        warnings.warn("shown once")
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
"""
    _, errors, exit_code = folder.run(sys.executable, "-c", code)
    assert exit_code == 0 and errors.count("shown once") == 1, errors
