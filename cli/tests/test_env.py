# SPDX-License-Identifier: Apache-2.0
"""``flopmeter env``: its output goes through ``eval``, so it is exports or nothing."""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FLOPMETER_BIN", str(ROOT / "build" / "flopmeter"))
BARE = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPMETER", "PYTHONPATH"))}
ODD = ["plain", "with space", "quote's", 'double"quote', "$(touch injected)", "`touch injected`", "a;b&c|d", "new\nline", "back\\slash", "-n", "ü"]


def env(*arguments, **more):
    return subprocess.run([PROGRAM, "env", *arguments], capture_output=True, text=True, env={**BARE, **more})


def evaluated(text, folder, shell="sh", **more):
    """The variables of a shell that evaluates the text."""
    script = 'eval "$TEXT"; env -0'
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, cwd=folder, env={**BARE, "TEXT": text, **more}, check=True)
    assert done.stderr == ""
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_value_survives_the_shell(name, shell, tmp_path):
    seen = evaluated(env("--dir", f"/runs/{name}").stdout, tmp_path, shell)
    assert json.loads(seen["FLOPMETER_CONFIG"])["flopmeter"]["directory"] == f"/runs/{name}"
    assert list(tmp_path.iterdir()) == []


def test_the_hook_comes_before_the_nodes_own_python_path(tmp_path):
    text = env().stdout
    hook = evaluated(text, tmp_path)["PYTHONPATH"]
    assert (Path(hook) / "sitecustomize.py").exists()
    assert evaluated(text, tmp_path, PYTHONPATH="/own:/other")["PYTHONPATH"] == f"{hook}:/own:/other"


@pytest.mark.parametrize("arguments", [["--bogus"], ["--log-interval", "0"], ["word"], ["--dir"], ["--convention", "megatronn"]])
def test_wrong_usage_prints_nothing_that_a_shell_would_run(arguments):
    done = env(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("flopmeter: ") and done.stderr.count("\n") == 1


def test_a_directory_is_absolute_and_none_stays_none(tmp_path):
    shell = 'cd "$FOLDER" && eval "$("$PROGRAM" env $OPTIONS)" && printf %s "$FLOPMETER_CONFIG"'

    def config(options):
        variables = {**BARE, "FOLDER": str(tmp_path), "PROGRAM": PROGRAM, "OPTIONS": options}
        return json.loads(subprocess.run(["sh", "-c", shell], capture_output=True, text=True, env=variables, check=True).stdout)["flopmeter"]

    assert config("--dir logs/run")["directory"] == str(tmp_path / "logs" / "run")
    assert "directory" not in config("")


def test_json_has_the_same_variables():
    seen = json.loads(env("--json", "--mode", "smart", PYTHONPATH="/own").stdout)
    assert json.loads(seen["FLOPMETER_CONFIG"])["flopmeter"]["mode"] == "smart"
    assert seen["PYTHONPATH"].endswith("/launcher/startup:/own")


def test_a_second_evaluation_changes_no_option(tmp_path):
    first = evaluated(env("--log-interval", "7").stdout, tmp_path)["FLOPMETER_CONFIG"]
    again = evaluated(env(FLOPMETER_CONFIG=first).stdout, tmp_path)["FLOPMETER_CONFIG"]
    assert again == first


def test_a_missing_file_is_refused_without_output():
    done = env("--config", "missing.yaml")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1
