# SPDX-License-Identifier: Apache-2.0
"""Megatron's loop: the batch as it grows, the writers it hands over, and what is taken otherwise than it is."""

import argparse
import json
import subprocess
import sys
import types
from pathlib import Path

import flopmeter
import pytest
from flopmeter import log
from flopmeter.integrations import megatron
from megatron_formula import LATENT, SMALL
from run_records import records

BASE = {**SMALL, "enable_perf_monitor": True, "bf16": True, "perf_log_interval": 2}


@pytest.fixture(autouse=True)
def log_lines_again():
    log._logged.clear()


@pytest.fixture
def start(tmp_path):
    def start(**more):
        options = {name: more.pop(name) for name in ("wandb", "convention") if name in more}
        args = argparse.Namespace(**{**BASE, "perf_log_dir": str(tmp_path), **more})
        return megatron.initialize_perf_monitor(args, device="b200", **options)

    yield start
    megatron.perf_monitor_end_training()


def iterate(numbers, *writers):
    for iteration in numbers:
        megatron.perf_monitor_start_iteration(iteration)
        megatron.perf_monitor_end_iteration(iteration, *writers)


def run(start, tmp_path, **more):
    start(**more)
    iterate([1])
    megatron.perf_monitor_end_training()
    return records(tmp_path)[-1]


class Wandb:
    """Takes rows as wandb.log() does."""

    def __init__(self):
        self.rows = []

    def log(self, values, step):
        self.rows.append((step, values))


def test_the_batch_follows_megatrons_own_calculator(start, tmp_path, monkeypatch):
    counts = [2, 2, 4, 8]
    calculator = types.ModuleType("megatron.core.num_microbatches_calculator")
    calculator.get_num_microbatches = lambda: counts[0]
    monkeypatch.setitem(sys.modules, calculator.__name__, calculator)
    start(global_batch_size=32, micro_batch_size=2, world_size=4, tensor_model_parallel_size=2)
    for iteration in range(1, 5):
        iterate([iteration])
        counts.pop(0)
    megatron.perf_monitor_end_training()
    one = flopmeter.estimate(megatron.model_config(argparse.Namespace(**BASE)), seq_len=32)["flops"]["model"]
    rows = [(row["samples"], row["tokens"], row["micro_batches"], row["model_flops"]) for row in records(tmp_path)]
    assert rows == [(2 * n, 64 * n, n, 2 * n * one // 2) for n in (2, 2, 4, 8)]


def test_a_calculator_that_is_not_made_yet_leaves_it_to_the_arguments(start, tmp_path, monkeypatch):
    calculator = types.ModuleType("megatron.core.num_microbatches_calculator")
    calculator.get_num_microbatches = lambda: None.get()
    monkeypatch.setitem(sys.modules, calculator.__name__, calculator)
    row = run(start, tmp_path, global_batch_size=20, micro_batch_size=2, world_size=4)
    assert (row["samples"], row["micro_batches"]) == (4, 2)  # a fifth sample would be half a micro-batch
    row = run(start, tmp_path, global_batch_size=20, micro_batch_size=2, world_size=4, num_micro_batches=3)
    assert (row["samples"], row["micro_batches"]) == (6, 3)


def test_prediction_layers_count_if_megatron_trains_them(start, tmp_path):
    without, with_one = (run(start, tmp_path, **LATENT, mtp_num_layers=n)["model_flops"] for n in (None, 1))
    config = megatron.model_config(argparse.Namespace(**BASE, **LATENT, mtp_num_layers=1))
    assert with_one == flopmeter.estimate(config, seq_len=32, mtp=True)["flops"]["model"] > without
    program = Path(flopmeter.__file__).parents[2] / "flopmeter"
    command = [program, "recount", tmp_path, "--convention", "model-v1", "--json"]
    again = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert again["steps"][-1]["recounted"]["model_flops"] == with_one


def test_the_wandb_that_is_handed_over_gets_rows_at_the_log_interval(start):
    start(rank=1, world_size=2)
    wandb = Wandb()
    iterate(range(1, 6), None, wandb)
    assert {step for step, _ in wandb.rows} <= {2, 4}
    megatron.perf_monitor_end_training(None, wandb)
    assert wandb.rows[-1][0] == 5  # the remaining rows
    assert {"perf/mfu", "perf/step_time", "perf/tokens_per_second"} <= set(wandb.rows[-1][1])


def test_rank_0_has_its_own_rows_and_none_twice(start, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", types.ModuleType("wandb"))
    for more in ({"rank": 0}, {"rank": 1, "wandb": False}):
        start(world_size=2, **more)
        wandb = Wandb()
        iterate(range(1, 5), None, wandb)
        megatron.perf_monitor_end_training(None, wandb)
        assert wandb.rows == []


def test_a_writer_that_fails_ends_no_run(start, tmp_path, capsys):
    start(rank=1, world_size=2)
    iterate(range(1, 4), None, object())
    megatron.perf_monitor_end_training(None, object())
    assert "W&B did not accept a row: AttributeError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "recomputed", "expected"),
    [
        ({"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}, "all", ""),
        ({"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 4}, "all", ""),
        ({"recompute_granularity": "full", "recompute_method": "block", "recompute_num_layers": 1}, "all", "taken as every layer"),
        ({"recompute_granularity": "selective"}, "core", ""),
        ({"recompute_granularity": "selective", "recompute_modules": ["layernorm"]}, "none", ""),
        ({"recompute_granularity": "selective", "recompute_modules": ["core_attn", "mlp"]}, "core", "recompute_modules mlp are ignored"),
    ],
)
def test_recompute_is_known_or_a_line_is_logged(start, tmp_path, capsys, more, recomputed, expected):
    recompute = run(start, tmp_path, **more)["recompute_flops"]
    core = 4 * 4 * 64 * 32 * 33 // 2
    assert recompute == {"none": 0, "core": core}.get(recomputed, recompute) and (recomputed != "all" or recompute > 2 * core)
    logged = capsys.readouterr().err
    assert expected in logged and bool(expected) == bool(logged)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"reset_attention_mask": True}, "reset_attention_mask: attention is counted over whole sequences"),
        ({"fp8": "hybrid", "fp8_wgrad": False}, "gradients of the weights count as fp8"),
        ({"fp8": "hybrid", "fp8_output_proj": True}, "the LM head counts as bf16"),
        ({"sft": True}, "sft: attention is counted over whole sequences"),
        ({"perf_model_type": "llama"}, "--perf-model-type has no effect"),
    ],
)
def test_a_replaced_value_is_logged_and_counted(start, tmp_path, capsys, more, expected):
    assert run(start, tmp_path, **more)["model_flops"] is not None
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["num_layers", "hidden_size", "num_attention_heads", "seq_length"])
def test_a_size_that_is_missing_costs_the_flops_and_nothing_else(start, tmp_path, capsys, missing):
    row = run(start, tmp_path, **{missing: None})
    assert (row["samples"], row["model_flops"], row["mfu"]) == (1, None, None)
    assert f"Megatron's arguments have no {missing}; FLOPs and MFU are empty" in capsys.readouterr().err


def test_sizes_that_make_no_model_cost_the_flops_and_nothing_else(start, tmp_path, capsys):
    assert run(start, tmp_path, num_attention_heads=128)["model_flops"] is None
    assert "FLOPs and MFU are empty" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "dtype"), [({"fp4": "e2m1"}, "fp4"), ({"fp8": "hybrid"}, "fp8"), ({}, "bf16")])
def test_recipes_for_few_bits_apply_to_the_weights_of_the_layers(start, tmp_path, more, dtype):
    row = run(start, tmp_path, **more)
    parts = flopmeter.estimate(megatron.model_config(argparse.Namespace(**BASE)), seq_len=32)["flops"]["components"]
    wide = parts["attention_core"] + parts["lm_head"]
    narrow = parts["attention_projections"] + parts["mlp"]
    assert row["model_flops_by_dtype"] == ({"bf16": wide, dtype: narrow} if more else {"bf16": wide + narrow})
    assert row["hardware_flops_by_dtype"][dtype] >= narrow and sum(row["hardware_flops_by_dtype"].values()) == row["hardware_flops"]


@pytest.mark.parametrize(("first", "last", "wide"), [(None, None, 2), (1, 0, 1), (3, 1, 4), (9, 9, 4)])
def test_layers_that_a_recipe_leaves_in_bf16_count_there(start, tmp_path, first, last, wide):
    layers = {"num_layers_at_start_in_bf16": first, "num_layers_at_end_in_bf16": last}
    row = run(start, tmp_path, fp8="hybrid", first_last_layers_bf16=True, **layers)
    parts = flopmeter.estimate(megatron.model_config(argparse.Namespace(**BASE)), seq_len=32)["flops"]
    narrow = (parts["components"]["attention_projections"] + parts["components"]["mlp"]) * (4 - wide) // 4
    expected = {"bf16": parts["model"] - narrow, "fp8": narrow}
    assert row["model_flops_by_dtype"] == {dtype: flops for dtype, flops in expected.items() if flops}
    assert sum(row["hardware_flops_by_dtype"].values()) == row["hardware_flops"]


def test_a_second_start_finishes_the_first_monitor(start, tmp_path):
    first = start()
    iterate([1, 2])
    second = start(perf_log_dir=str(tmp_path / "second"))
    assert not first.enabled and second.enabled and megatron.get_perf_monitor() is second
    assert [row["step"] for row in records(tmp_path)] == [1, 2]


def test_iterations_that_were_skipped_inside_a_step_are_not_its_time(start, tmp_path, capsys):
    start()
    for begun, ended in ((4, 4), (5, 8), (9, 10)):  # the last is a loop that counts before it calls
        megatron.perf_monitor_start_iteration(begun)
        megatron.perf_monitor_end_iteration(ended)
    megatron.perf_monitor_end_training()
    assert [row["step"] for row in records(tmp_path)] == [4, 9]
    assert "iteration 5 ended as 8" in capsys.readouterr().err


def test_hooks_without_a_monitor_log_why_nothing_is_recorded(monkeypatch, capsys):
    monkeypatch.setattr(megatron, "_initialized", False)
    iterate([1, 2])
    assert capsys.readouterr().err.count("initialize_perf_monitor(args)") == 1
    megatron.initialize_perf_monitor(argparse.Namespace(enable_perf_monitor=False))
    log._logged.clear()
    iterate([1, 2])
    assert capsys.readouterr().err == ""
