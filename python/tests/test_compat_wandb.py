# SPDX-License-Identifier: Apache-2.0
"""flopmeter.compat.TrainingMonitor together with the W&B rows of the loop, offline: no row is lost."""

import pytest
from flopmeter.compat import TrainingMonitor
from wandb_file import read_run

pytest.importorskip("wandb")
STEPS = 6


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("order", ["before", "after", "every third", "never"])
@pytest.mark.parametrize("accumulated", [1, 2])
def test_all_rows_are_kept(run, tmp_path, order, numbered, accumulated):
    monitor = TrainingMonitor(str(tmp_path / "out"), {"gradient_accumulation_steps": accumulated})

    def log(step):
        if order != "every third" or step % 3 == 0:
            run.log({"user/x": step}, step=step if numbered else None)

    for step in range(STEPS):
        if order == "before":
            log(step)
        for micro in range(accumulated):
            monitor.log_step(accumulated * step + micro, 0, 1.0, 1.0, 1e-3)
        if order in ("after", "every third"):
            log(step)
    monitor.finish()
    run.finish()
    rows, _ = read_run(tmp_path / "wandb")
    users = {"never": [], "every third": [0, 3]}.get(order, list(range(STEPS)))
    assert [row["user/x"] for row in rows if "user/x" in row] == users
    ours = [row["flopmeter/step"] for row in rows if "perf/step_time" in row]
    assert ours == [accumulated * (step + 1) - 1 for step in range(STEPS)]
