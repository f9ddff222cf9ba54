# SPDX-License-Identifier: Apache-2.0
"""``flopmeter run`` changes neither how a command ends nor how it starts."""

import json
import sys

import pytest
from conftest import PROGRAM, SCRIPTS

ENDS = {"exit": 3, "_exit": 4, "raise": 1, "SIGTERM": -15, "SIGINT": -2}


QUICK = ("exit", "SIGTERM")


@pytest.mark.torch2("hooks for optimizers")
@pytest.mark.parametrize("ending", [pytest.param(end, marks=() if end in QUICK else pytest.mark.long) for end in ENDS])
def test_a_run_ends_as_it_would_alone_and_its_records_can_be_read(folder, ending):
    alone = folder.start(sys.executable, SCRIPTS / "plain_loop.py", 20, ending, watched=None)
    _, errors, code = folder.python("plain_loop.py", 20, ending)
    alone.communicate(timeout=240)
    assert code == alone.returncode == ENDS[ending], errors
    assert [row["step"] for row in folder.records()] == list(range(1, 21))


def test_a_sitecustomize_that_was_there_still_runs(folder):
    (folder.path / "own").mkdir()
    (folder.path / "own" / "sitecustomize.py").write_text("import sys\nsys.flag_of_the_site = 'set'\n")
    code = "import sys, sitecustomize; print(sys.flag_of_the_site, sitecustomize.__file__, [p for p in sys.path if 'startup' in p])"
    output, errors, exit_code = folder.run(sys.executable, "-c", code, PYTHONPATH=str(folder.path / "own"))
    assert (exit_code, errors) == (0, "")
    assert output.split() == ["set", str(folder.path / "own" / "sitecustomize.py"), "[]"]


@pytest.mark.parametrize("flag", ["-I", "-S", "-BE"])
def test_a_python_that_takes_no_hook_runs_untouched_and_it_is_said(folder, flag):
    code = "import os; print(sorted(k for k in os.environ if k.startswith(('FLOPMETER', 'PYTHONPATH'))))"
    output, errors, exit_code = folder.run(sys.executable, flag, "-c", code)
    assert (output, exit_code) == ("[]\n", 0)
    assert errors.count("\n") == 1 and f"{flag}' takes no start-up hook: the command runs unwatched" in errors


def test_a_flag_in_the_first_line_of_a_script_is_seen(folder):
    script = folder.path / "script"
    script.write_text(f"#!{sys.executable} -I\nprint(1)\n")
    script.chmod(0o755)
    output, errors, _ = folder.run(script)
    assert output == "1\n" and "unwatched" in errors


@pytest.mark.torch2("hooks for optimizers")
def test_who_asks_for_torch_before_it_is_imported_is_watched_all_the_same(folder):
    script = folder.path / "asks.py"  # as libraries do that work with torch and without
    asks = "import importlib.util, sys\nassert importlib.util.find_spec('torch').loader and 'torch' not in sys.modules\n"
    script.write_text(asks + (SCRIPTS / "plain_loop.py").read_text())
    _, errors, code = folder.run(sys.executable, script, 3, PYTHONPATH=str(SCRIPTS))
    assert code == 0, errors
    assert len(folder.records()) == 3


@pytest.mark.torch2("hooks for optimizers")
def test_processes_that_never_step_leave_no_file(folder):
    code = (
        "import torch, subprocess, sys\n"
        "model = torch.nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters())\n"
        "model.eval(); model(torch.ones(1, 2)).sum().backward()\n"
        "subprocess.run([sys.executable, '-m', 'pip', '--version'], check=True)\n"
        "assert torch.__spec__.loader is torch.__loader__ and 'importlib' in type(torch.__loader__).__module__\n"
    )
    _, errors, exit_code = folder.run(sys.executable, "-c", code)
    assert (exit_code, errors) == (0, "")
    assert not folder.logs.exists()


@pytest.mark.torch2("hooks for optimizers")
def test_another_torch_is_said_once_and_the_command_runs(folder):
    code = (
        "import torch; torch.__version__ = '1.0'\n"
        "model = torch.nn.Linear(2, 2); optimizer = torch.optim.SGD(model.parameters())\n"
        "for _ in range(3): model(torch.ones(1, 2)).sum().backward(); optimizer.step()\n"
    )
    _, errors, exit_code = folder.run(sys.executable, "-c", code, XDG_CACHE_HOME=str(folder.path))
    assert exit_code == 0
    assert errors.count("\n") == 1 and "unwatched" in errors and "1.0" in errors
    assert not folder.logs.exists()


@pytest.mark.torch2("hooks for optimizers")
def test_options_reach_the_monitor(folder):
    config = folder.path / "monitor.yaml"
    config.write_text("flopmeter:\n  log_interval: 7\n  console: true\n")
    options = ["--config", config, "--no-console", "--peak", "2.5", "--csv"]
    output, errors, code = folder.python("plain_loop.py", 5, watched=options)
    assert code == 0, errors
    assert all(line.split()[0] in "evaluation 0 1 2 3 4" for line in output.splitlines())
    row = folder.records()[-1]
    assert row["mfu"] == pytest.approx(row["model_flops"] / row["step_seconds"] / 2.5e12)
    assert json.loads((folder.logs / "run.json").read_text())["log_interval"] == 7
    assert list(folder.logs.glob("*.csv"))


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "give a command"),
        (["--dri", "x", "--", "true"], 2, "--dri"),
        (["--mode", "often", "--", "true"], 2, "auto, estimate, profiler, smart or hybrid"),
        (["--peak", "-1", "--", "true"], 2, "positive"),
        (["--", "no-such-program-here"], 127, "no-such-program-here"),
        (["--", str(SCRIPTS)], 126, "ermission denied"),
        (["true", "--help"], 0, ""),
    ],
)
def test_wrong_use_is_one_line(folder, words, code, says):
    _, errors, exit_code = folder.run(PROGRAM, "run", *words, watched=None)
    assert exit_code == code
    assert says in errors and errors.count("\n") == (1 if says else 0)
