# SPDX-License-Identifier: Apache-2.0
"""Ranks that stop, die, slow down, or never start are reported and do not affect the others."""

import signal
import statistics

from conftest import ranks_of, start, step_times

WORLD, STEPS, SECONDS = 7, 120, 0.02
STOPPED, KILLED, CRAWLING, IDLE = 2, 3, 4, 5


def test_bad_ranks_are_reported_and_the_others_are_unaffected(tmp_path):
    ranks = {}
    try:
        for rank in range(WORLD):
            ranks[rank] = start(tmp_path, rank, WORLD, 0 if rank == IDLE else STEPS, SECONDS, 10 if rank == CRAWLING else 1)
        for process in ranks.values():
            assert process.stdout.readline() == "ready\n"
        while len(step_times(tmp_path, STOPPED)) < 20 or len(step_times(tmp_path, KILLED)) < 20:
            pass
        ranks[STOPPED].send_signal(signal.SIGSTOP)
        ranks[KILLED].kill()
        for rank in (0, 1, 6):
            assert ranks[rank].wait(60) == 0
        merged = ranks_of(tmp_path)
    finally:
        for process in ranks.values():
            process.kill()
            process.wait()
            process.stdout.close()
    verdicts = {rank["rank"]: rank["verdict"] for rank in merged["ranks"]}
    assert verdicts == {0: "normal", 1: "normal", 2: "behind", 3: "behind", 4: "behind", 5: "missing", 6: "normal"}
    assert merged["missing"] == [IDLE]
    crawling = merged["ranks"][CRAWLING]
    assert crawling["relative_speed"] is None or crawling["relative_speed"] < 0.3
    for rank in (0, 1, 6):  # before and after the others stopped
        times = step_times(tmp_path, rank)
        assert statistics.median(times[-40:]) < 1.5 * statistics.median(times[:20])
