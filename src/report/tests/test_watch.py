# SPDX-License-Identifier: Apache-2.0
"""`flopmeter watch` in a real terminal: tmux draws it, resizes it and presses its keys."""
import json
import os
import shutil
import signal as signal_module
import subprocess
import time
import uuid

import pytest

import synthetic_runs


class Terminal:
    def __init__(self, command, columns=80, rows=30):
        self.socket = f"flopmeter-test-{uuid.uuid4().hex}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "sh")
        self.send(f"{command}; echo ended with $?", "Enter")

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-L", self.socket, *arguments], check=True, capture_output=True, text=True, timeout=30,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}).stdout

    def send(self, *keys):
        self.tmux("send-keys", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait_for(self, *words, seconds=30):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            shown = self.screen()
            if all(word in shown for word in words):
                return shown
            time.sleep(0.1)
        raise AssertionError(f"{words} did not come up on:\n{shown}")

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, timeout=30, check=False)


@pytest.fixture
def directory(tmp_path):
    synthetic_runs.describe(tmp_path, 4)
    for rank in range(4):
        synthetic_runs.write_stream(synthetic_runs.stream(tmp_path, rank), (synthetic_runs.noisy(step, rank) for step in range(50)))
    return tmp_path


@pytest.fixture
def terminal(program, directory):
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    opened = Terminal(f"'{program}' watch '{directory}' --interval 0.2")
    yield opened
    opened.close()


def grow(directory, step):
    for rank in range(4):
        with open(synthetic_runs.stream(directory, rank), "a") as file:
            file.write(json.dumps(synthetic_runs.record(step, rank)) + "\n")


def test_follows_the_run_and_leaves_the_screen_as_it_was(terminal, directory):
    shown = terminal.wait_for("MFU 4", "step 49", "4 ranks")
    assert "ended with" not in shown
    for part in ("llama-3-8b", "backward", "%"):
        assert part in shown
    grow(directory, 1234)
    terminal.wait_for("step 1,234")
    terminal.send("q")
    terminal.wait_for("ended with 0")
    assert "4 ranks" not in terminal.screen()
    assert terminal.tmux("display-message", "-p", "#{cursor_flag}#{alternate_on}").strip() == "10"


def test_redraws_for_every_size(terminal, directory):
    terminal.wait_for("step 49", "4 ranks")
    for columns, rows in ((120, 40), (40, 20), (60, 12)):
        terminal.tmux("resize-window", "-x", str(columns), "-y", str(rows))
        grow(directory, columns * 10)
        lines = terminal.wait_for(f"step {columns * 10:,}").split("\n")
        assert max(map(len, lines)) <= columns
        assert sum("llama-3-8b" in line for line in lines) == 1  # nothing of the old frame is left


@pytest.mark.parametrize("signal", ["INT", "TERM"])
def test_a_signal_ends_it_properly(terminal, directory, signal):
    terminal.wait_for("step 49")
    if signal == "INT":
        terminal.send("C-c")
    else:
        shell = terminal.tmux("display-message", "-p", "#{pane_pid}").strip()
        child = subprocess.run(["ps", "-o", "pid=", "--ppid", shell], check=True, capture_output=True, text=True, timeout=10)
        os.kill(int(child.stdout), signal_module.SIGTERM)
    terminal.wait_for("ended with 0")
    terminal.send("stty -a", "Enter")
    assert " echo " in terminal.wait_for("icanon").replace("\n", " ")


def test_can_be_stopped_and_continued(terminal):
    terminal.wait_for("step 49")
    terminal.send("C-z")
    terminal.wait_for("topped")
    terminal.send("fg", "Enter")
    terminal.wait_for("step 49", "4 ranks")


def test_once_prints_one_frame_without_any_code(flopmeter, directory):
    frame = flopmeter("watch", directory, "--once", env={"COLUMNS": "60"}).stdout
    assert "\x1b" not in frame
    assert max(map(len, frame.split("\n"))) <= 60
    assert "step 49" in frame
    assert "step 49" in flopmeter("watch", directory).stdout  # no terminal: as with --once


def test_names_what_is_found(flopmeter, tmp_path):
    synthetic_runs.describe(tmp_path)
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path), (synthetic_runs.starved(step) for step in range(400)))
    found = json.loads(flopmeter("watch", tmp_path, "--json").stdout)["findings"]
    frame = flopmeter("watch", tmp_path, "--once", env={"COLUMNS": "200"}).stdout
    assert found[0]["summary"] in frame and found[0]["recommendation"][:60] in frame


def test_json_has_the_latest_figures(flopmeter, directory):
    figures = json.loads(flopmeter("watch", directory, "--json").stdout)
    assert figures["step"] == 49 and figures["ranks"] == 4
    assert figures["mfu"] == pytest.approx(0.43, abs=0.05)


def test_the_mfu_of_a_resumed_run_covers_all_starts(flopmeter, tmp_path):
    synthetic_runs.describe(tmp_path)
    for stamp, steps in (("20231114_221320", range(100)), ("20231115_080000", range(80, 200))):
        synthetic_runs.write_stream(synthetic_runs.stream(tmp_path, stamp=stamp), (synthetic_runs.noisy(step) for step in steps))
    mfu = json.loads(flopmeter("diagnose", tmp_path, "--json").stdout)["mfu"]
    assert json.loads(flopmeter("watch", tmp_path, "--json").stdout)["mfu_run"] == mfu
    assert f"run MFU {100 * mfu:.1f} %" in flopmeter("watch", tmp_path, "--once").stdout


def test_a_path_that_is_not_a_run_directory_is_one_line(flopmeter):
    done = flopmeter("watch", "/nowhere/at/all", check=False)
    assert done.returncode == 1
    assert "cannot read the run directory" in done.stderr and done.stderr.count("\n") == 1


def test_a_run_that_has_not_begun_is_waited_for(program, tmp_path):
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    directory = tmp_path / "run"
    terminal = Terminal(f"'{program}' watch '{directory}' --interval 0.2")
    try:
        terminal.wait_for("waiting for a run")
        synthetic_runs.describe(directory)
        synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.noisy(step) for step in range(20)))
        terminal.wait_for("llama-3-8b", "MFU 4")
    finally:
        terminal.close()
