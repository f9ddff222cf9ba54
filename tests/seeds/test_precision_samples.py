# SPDX-License-Identifier: Apache-2.0
"""Document 2: precision against cost."""

import inspect
import multiprocessing

import flopmeter
import pytest
import torch
from flopmeter import compat
from flopmeter._flopmeter import Options
from seed_samples import sample


def test_line_013_the_frequency_measures_the_same_steps(execute, tmp_path):
    due = [
        step
        for step in range(1501)
        if execute("s2_line013.py", {"flops_profiled": step > 0, "effective_step": step})["should_measure_flops"]
    ]
    monitor = compat.TrainingMonitor(str(tmp_path))
    assert due == [step for step in range(1501) if monitor._due(step)] == [0, 500, 1000, 1500]
    monitor.finish()


def test_line_053_the_signatures_match(execute):
    theirs = execute("s2_line053.py")["calculate_precise_mfu"]
    assert inspect.signature(theirs).parameters.keys() == inspect.signature(compat.calculate_precise_mfu).parameters.keys()
    for name in ("measurement_mode", "actual_flops"):
        assert inspect.signature(theirs).parameters[name].default == inspect.signature(compat.calculate_precise_mfu).parameters[name].default
    model = torch.nn.Linear(8, 8)
    for mode in ("smart", "profiler", "estimate", "hybrid"):
        assert mode in theirs.__doc__
        assert compat.calculate_precise_mfu(model, 2, 4, 0.1, mode) > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("s2_line095.yaml", {"mode": "smart", "measure_frequency": "500", "initial_profiling": "true", "calibration": "true", "recalibration_frequency": "1000"}),
        ("s2_line113.yaml", {"mode": "profiler", "measure_frequency": "50"}),
        ("s2_line127.yaml", {"mode": "estimate", "measure_frequency": "0"}),
        ("s2_line141.yaml", {"mode": "hybrid", "hardware_counters": "true", "fallback_to_profiler": "true"}),
    ],
)  # fmt: skip
def test_lines_095_113_127_141_the_yaml_starts_a_monitor(name, expected, tmp_path):
    options = Options()
    options.apply_yaml(sample(name))
    assert {key: options.values()[key] for key in expected} == expected
    monitor = flopmeter.Monitor(tmp_path, config=sample(name), console=False)
    with monitor.step():
        torch.ones(2, 3) @ torch.ones(3, 4)
    monitor.finish()
    assert monitor.status["steps"] == 1


@pytest.mark.parametrize("phase", ["warmup", "main", "finetune"])
def test_line_159_training_phases_have_these_frequencies(execute, phase, tmp_path):
    frequency = execute("s2_line159.py", {"training_phase": phase})["measure_freq"]
    assert Options().values()[f"{phase}_frequency"] == str(frequency)
    monitor = flopmeter.Monitor(tmp_path, mode="profiler", console=False)
    monitor.set_training_phase(phase)
    for _ in range(2 * frequency + 1):
        monitor.begin_step()
        monitor.end_step()
    monitor.finish()
    assert monitor.status["measurements"] == 3


def _rank(rank, folder, results):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4, bias=False))
    flops_tensor = torch.zeros(1, dtype=torch.float64)

    def measure_with_profiler():  # fills the tensor that the sample broadcasts
        flops_tensor[0] = compat._measure_flops_with_profiler(model, 2, 3)
        return flops_tensor.item()

    scope = {"dist": dist, "flops_tensor": flops_tensor, "measure_with_profiler": measure_with_profiler}
    exec(compile(sample("s2_line171.py"), "s2_line171.py", "exec"), scope)
    results.put((rank, scope["flops"]))
    dist.destroy_process_group()


def test_line_171_rank_0_measures_and_the_other_receives(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=_rank, args=(rank, tmp_path, results)) for rank in range(2)]
    for process in ranks:
        process.start()
    received = sorted(results.get(timeout=90) for _ in ranks)
    for process in ranks:
        process.join(30)
    flops = 2 * 2 * (2 * 3) * 8 * 4  # forward and weight gradient
    assert received == [(0, flops), (1, flops)]


def test_line_183_the_profiler_memory_is_freed(execute):
    edits = {"torch.profiler.profile(...)": "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])"}
    assert "prof" not in execute("s2_line183.py", {"torch": torch}, edits)
