# SPDX-License-Identifier: Apache-2.0
"""Healthy ranks raise no alarm in long runs, and a bad rank does not slow down the others (alternating pairs of runs)."""

import signal
import statistics

import pytest
from conftest import ranks_of, start, step_times

pytestmark = pytest.mark.long
WINDOW, WINDOWS = 5, 200  # steps per window: the log interval of loop.py
STEPS, SECONDS, PAIRS = 40, 0.02, 7


def finish(processes):
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_200_clean_windows_of_unequal_work_raise_no_alarm(tmp_path):
    run, seen = tmp_path / "run", tmp_path / "seen"
    ranks = [start(run, rank, 4, WINDOW * WINDOWS, 0.05) for rank in range(4)]
    try:
        assert [process.wait(300) for process in ranks] == [0] * 4
    finally:
        finish(ranks)
    seen.mkdir()
    (seen / "run.json").write_bytes((run / "run.json").read_bytes())
    files = {file.name: file.read_text().splitlines(keepends=True) for file in run.glob("records_*")}
    alarms = []
    for window in range(1, WINDOWS + 1):  # as a reader sees it after each window
        for name, lines in files.items():
            (seen / name).write_text("".join(lines[: WINDOW * window]))
        alarms += [(window, rank) for rank in ranks_of(seen)["ranks"] if rank["verdict"] != "normal"]
    assert alarms == []


def median_step(directory, fault):
    """Step time of rank 0 with a rank 1 that has this fault, after the fault starts."""
    ranks = [
        start(directory, 0, 2, STEPS, SECONDS),
        start(directory, 1, 2, 0 if fault == "idle" else STEPS, SECONDS, 10 if fault == "slow" else 1),
    ]
    try:
        for process in ranks:
            assert process.stdout.readline() == "ready\n"
        if fault == "stopped":
            ranks[1].send_signal(signal.SIGSTOP)
        if fault == "killed":
            ranks[1].kill()
        assert ranks[0].wait(60) == 0
    finally:
        finish(ranks)
    return statistics.median(step_times(directory, 0)[10:])


@pytest.mark.parametrize("fault", ["stopped", "killed", "slow", "idle"])
def test_a_bad_rank_does_not_slow_down_the_others(fault, tmp_path):
    ratios = [median_step(tmp_path / f"bad{i}", fault) / median_step(tmp_path / f"clean{i}", None) for i in range(PAIRS)]
    ratio = statistics.median(ratios)
    print(f"step time with a {fault} rank / with a healthy rank: {ratio:.4f} (pairs {min(ratios):.4f} to {max(ratios):.4f})")
    assert ratio < 1.02
