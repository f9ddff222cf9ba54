# SPDX-License-Identifier: Apache-2.0
"""Unusual ways to start and end a program behave the same under `flopmeter run`: exit status and output."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAM = os.environ.get("FLOPMETER_BIN", str(HERE.parents[1] / "build" / "flopmeter"))
pytestmark = [pytest.mark.long, pytest.mark.torch2("hooks for optimizers")]

START = "import sys; sys.path.insert(0, {here!r})\nimport torch; torch.manual_seed(1)\nfrom case_table import Model, train\n"
PROGRAMS = {
    "loop": "train(Model())\n",
    "ends_with_a_daemon_thread": """
import threading
train(Model(), steps=2)
other = Model()
threading.Thread(target=lambda: [other(torch.ones(2, 8)).sum().backward() for _ in iter(int, 1)], daemon=True).start()
""",
    "ends_in_a_thread": "import threading, os\nthreading.Thread(target=train, args=(Model(),)).start()\n",
    "ends_with_raising_handlers": "import atexit\natexit.register(lambda: 1 / 0)\ntrain(Model(), steps=2)\nsys.exit(3)\n",
    "ends_with_a_text": "train(Model(), steps=2)\nsys.exit('no more')\n",
    "ends_by_an_error": "train(Model(), steps=2)\nraise LookupError('the end')\n",
    "ends_while_hooks_are_freed": "model = Model()\nmodel.loop = model\ntrain(model, steps=2)\nsys.modules.clear()\n",
    "interrupts_itself": "import signal\ntrain(Model(), steps=2)\nsignal.raise_signal(signal.SIGINT)\n",
    "becomes_another": "import os\ntrain(Model(), steps=2)\nsys.stdout.flush()\nos.execv(sys.executable, [sys.executable, '-c', 'print(5)'])\n",
    "spawns_workers": """
from torch.utils.data import DataLoader
if __name__ == "__main__":
    for context in ("spawn", "forkserver"):
        train(Model(), steps=1)
        print(sum(x.sum().item() for x in DataLoader(range(8), batch_size=2, num_workers=1, multiprocessing_context=context)))
""",
}
PLAIN = ("{python}", "{script}")
STARTS = {
    "optimized": ({}, ("{python}", "-OO", "{script}")),
    "optimized_by_the_environment": ({"PYTHONOPTIMIZE": "2"}, PLAIN),
    "import_times": ({}, ("{python}", "-X", "importtime", "{script}")),
    "developer_mode": ({}, ("{python}", "-X", "dev", "{script}")),
    "fault_handler": ({}, ("{python}", "-X", "faulthandler", "-X", "tracemalloc", "{script}")),
    "isolated": ({}, ("{python}", "-I", "{script}")),
    "without_the_environment": ({}, ("{python}", "-E", "-s", "{script}")),
    "unbuffered": ({}, ("{python}", "-u", "-B", "{script}")),
    "locale_c": ({"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, PLAIN),
    "memory_debugger": ({"PYTHONMALLOC": "debug"}, PLAIN),
    "profiled": ({}, ("{python}", "-m", "cProfile", "-o", "/dev/null", "{script}")),
    "debugged": ({}, ("sh", "-c", "{python} -m pdb -c continue -c quit {script} </dev/null | grep -v -e Pdb -e '^The program' -e '^>'")),
    "from_stdin": ({}, ("sh", "-c", "{python} - <{script}")),
    "in_a_pipe": ({}, ("sh", "-c", "{python} {script} | cat")),
    "without_stdin": ({}, ("sh", "-c", "exec {python} {script} <&-")),
    "without_stderr": ({}, ("sh", "-c", "exec {python} {script} 2>&-")),
    "with_full_stderr": ({}, ("sh", "-c", "exec {python} {script} 2>/dev/full")),
    "with_few_files": ({}, ("sh", "-c", "ulimit -n 40; exec {python} {script}")),
    "without_core_and_stack": ({}, ("sh", "-c", "ulimit -c 0; ulimit -s 1024; exec {python} {script}")),
    "without_a_home": ({"HOME": "/nonexistent", "XDG_CACHE_HOME": "/dev/null/x", "TMPDIR": "/nonexistent"}, PLAIN),
    "huge_environment": ({f"V{i}": "x" * 100_000 for i in range(10)}, PLAIN),
    "empty_environment": ({}, ("env", "-i", *PLAIN)),
    "in_a_deleted_directory": ({}, ("sh", "-c", "mkdir gone && cd gone && rmdir ../gone && exec {python} {script}")),
    "in_the_background": ({}, ("sh", "-c", "{python} {script} & wait $!")),
    "in_a_new_session": ({}, ("setsid", "-w", *PLAIN)),
    "nice": ({}, ("nice", "-n", "19", *PLAIN)),
}
DIRECTORIES = {"device": "/dev/full", "file": "{folder}/file", "kernel": "/proc/run", "long_name": "x" * 300, "line": "{folder}/a\nb"}


def write(folder, name):
    script = folder / "program.py"
    script.write_text(START.format(here=str(HERE)) + PROGRAMS[name])
    return script


def run(folder, command, environment=None, prefix=()):
    words = {"python": sys.executable, "script": str(folder / "program.py")}
    command = [*prefix, *(word.format(**words) for word in command)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, timeout=300)
    return done.returncode, done.stdout


def monitored(folder, command, environment=None, target=None):
    return run(folder, command, environment, (PROGRAM, "run", "--dir", target or str(folder / "run"), "--no-console", "--"))


@functools.cache
def plain_result(folder, name):
    write(folder, name)
    return run(folder, PLAIN)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return functools.partial(plain_result, tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_it_does_without_flopmeter(plain, tmp_path, name):
    write(tmp_path, name)
    assert monitored(tmp_path, PLAIN) == plain(name)


@pytest.mark.parametrize("name", STARTS)
def test_a_program_starts_as_it_does_without_flopmeter(tmp_path, name):
    write(tmp_path, "loop")
    environment, command = STARTS[name]
    assert monitored(tmp_path, command, environment) == run(tmp_path, command, environment)


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_run_directory_that_cannot_be_made_changes_nothing(plain, tmp_path, name):
    write(tmp_path, "loop")
    (tmp_path / "file").write_text("")
    assert monitored(tmp_path, PLAIN, target=DIRECTORIES[name].format(folder=tmp_path)) == plain("loop")
