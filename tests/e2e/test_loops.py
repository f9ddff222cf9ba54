# SPDX-License-Identifier: Apache-2.0
"""Unmodified training programs under ``flopmeter run``: FLOPs equal the estimate to the integer."""

import json
import sys

import pytest
from conftest import SCRIPTS
from tiny_gpt import LENGTH

pytestmark = pytest.mark.torch2("hooks for optimizers")


def check(rows, estimated, steps, sequences, micro_batches):
    expected = estimated(sequences)
    counted = [row["hardware_flops"] for row in rows]
    print(f"counted {counted[0]}, estimated {expected}")
    assert counted == [expected] * steps
    for row in rows:
        assert (row["samples"], row["tokens"], row["micro_batches"]) == (sequences, sequences * LENGTH, micro_batches)
        assert {"forward", "backward", "optimizer"} <= set(row["phases"])
        assert sum(row["phases"].values()) == pytest.approx(row["step_seconds"], rel=1e-6)


def test_a_plain_loop_has_bit_identical_losses_and_the_estimated_flops(folder, estimated):
    alone = folder.start(sys.executable, SCRIPTS / "plain_loop.py", 200, run_options=None)
    output, errors, code = folder.python("plain_loop.py", 200)
    expected, _ = alone.communicate(timeout=240)
    assert code == alone.returncode == 0, errors
    assert [line for line in output.splitlines() if not line.startswith("flopmeter")] == expected.splitlines()
    assert len(expected.splitlines()) == 204
    check(folder.records(), estimated, 200, sequences=8, micro_batches=2)
    assert [row["step"] for row in folder.records()] == list(range(1, 201))
    assert len(folder.records(tag="evaluation")) == 3  # the first one ran before the loop was detected
    assert "monitoring Gpt" in errors


def test_a_hugging_face_trainer(folder, estimated):
    _, errors, code = folder.python("hf_trainer.py", folder.path / "out")
    assert code == 0, errors
    check(folder.records(), estimated, 6, sequences=4, micro_batches=2)
    assert [row["step"] for row in folder.records() if "data" in row["phases"]] == [2, 3, 4, 5, 6]  # the first fetch of an epoch is outside the step
    assert json.loads((folder.logs / "run.json").read_text())["total_steps"] == 6
    assert len(list(folder.logs.glob("records_*"))) == 1, "a forked loader worker wrote a file"


@pytest.mark.long
def test_a_callback_in_the_program_takes_precedence(folder, estimated):
    _, errors, code = folder.python("hf_trainer.py", folder.path / "out", "callback")
    assert code == 0, errors
    check(folder.records(), estimated, 6, sequences=4, micro_batches=2)
    assert "monitoring" not in errors
    assert not list((folder.path / "out").glob("**/records_*"))


@pytest.mark.long
def test_a_lightning_trainer(folder, estimated):
    _, errors, code = folder.python("lightning_fit.py", folder.path / "out")
    assert code == 0, errors
    check(folder.records(), estimated, 8, sequences=4, micro_batches=2)
    assert len(folder.records(tag="evaluation")) == 2


@pytest.mark.long
def test_accelerate_launch(folder, estimated):
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", 1, "--num_machines", 1]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    _, errors, code = folder.run(*launch, SCRIPTS / "accelerate_loop.py")
    assert code == 0, errors
    check(folder.records(), estimated, 4, sequences=8, micro_batches=2)


@pytest.mark.long
def test_deepspeed_with_two_ranks(folder):
    pytest.importorskip("deepspeed")
    launch = [sys.executable, "-m", "deepspeed.launcher.runner", "--num_gpus", 2]
    _, errors, code = folder.run(*launch, SCRIPTS / "deepspeed_loop.py", DS_ACCELERATOR="cpu")
    assert code == 0, errors
    matmul = 2 * 4 * 16 * 32  # two in forward; three in backward, without the gradient of the input
    for rank in (0, 1):
        rows = folder.records(rank)
        assert [(row["micro_batches"], row["samples"], row["hardware_flops"]) for row in rows] == [(2, 8, 2 * 5 * matmul)] * 5


def test_torchrun_with_two_ranks(folder, estimated):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", 2, "--standalone"]
    _, errors, code = folder.run(*torchrun, SCRIPTS / "ddp_loop.py")
    assert code == 0, errors
    for rank in (0, 1):
        check(folder.records(rank), estimated, 10, sequences=4, micro_batches=1)
    assert len(list(folder.logs.glob("records_*"))) == 2, "the launcher or a spawned worker wrote a file"
    assert errors.count("monitoring") == 1


@pytest.mark.long
def test_two_optimizers_per_step_and_then_another_model(folder):
    _, errors, code = folder.python("odd_loops.py")
    assert code == 0 and "Warning" not in errors, errors
    first, second = (
        [json.loads(line) for line in file.read_text().splitlines()] for file in sorted(folder.logs.glob("records_*"))
    )
    layer = 2 * 4 * 8 * 8
    assert [(row["step"], row["hardware_flops"]) for row in first] == [(i, 5 * layer) for i in range(1, 7)]
    assert {row["hardware_flops"] for row in second} == {2 * 2 * 3 * 16 * 16}
    assert 20 <= len(second) <= 40  # detection of the other model starts after some steps without the first
