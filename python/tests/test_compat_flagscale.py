# SPDX-License-Identifier: Apache-2.0
"""The names of FlagScale's performance monitor."""

import importlib
import json
import sys
from argparse import Namespace

import flopmeter
import pytest
from flopmeter import compat, log
from flopmeter.integrations import megatron
from megatron_formula import SMALL
from run_records import records

PACKAGE = "flagscale.train.perf_monitor"
NAMES = {
    "": (
        "FLOPSMeasurementCallback PerformanceMonitor get_perf_monitor initialize_perf_monitor perf_monitor_start_iteration "
        "perf_monitor_end_iteration perf_monitor_end_training"
    ),
    ".hooks": "initialize_perf_monitor get_perf_monitor perf_monitor_start_iteration perf_monitor_end_iteration perf_monitor_end_training",
    ".perf_metrics": "TFLOPSMetrics ModelFLOPSCalculator PerformanceMonitor FLOPSMeasurementCallback get_num_microbatches",
    ".perf_logger": "PerfMonitorLogger",
    ".flops_calculator": "FLOPSFormulas",
}


class Writer:
    """Takes scalars as TensorBoard's writer, and rows as W&B."""

    def __init__(self):
        self.rows = []

    def add_scalar(self, name, value, step):
        self.rows.append((step, name, value))

    def log(self, values, step):
        self.rows += [(step, name, value) for name, value in values.items()]


@pytest.fixture
def flagscale():
    """Imports a module of the package."""
    log._logged.clear()
    before = set(sys.modules)
    compat.install()
    yield lambda name: importlib.import_module(PACKAGE + name)
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_Names"]
    for name in set(sys.modules) - before:
        if name.startswith("flagscale"):
            del sys.modules[name]


def arguments(tmp_path, **more):
    flags = {"enable_perf_monitor": True, "perf_log_interval": 2, "perf_log_dir": str(tmp_path), "perf_console_output": False}
    return Namespace(**{**SMALL, **flags, "micro_batch_size": 2, "num_micro_batches": 1, **more})


@pytest.mark.parametrize("module", NAMES)
def test_every_module_has_its_names(flagscale, module):
    for name in NAMES[module].split():
        assert callable(getattr(flagscale(module), name))


def run(flagscale, args, steps):
    hooks = flagscale(".hooks")
    assert hooks._perf_monitor_callback is None
    assert hooks.initialize_perf_monitor(args) is hooks._perf_monitor_callback is not None
    for iteration in range(steps):
        hooks.perf_monitor_start_iteration(iteration)
        hooks.perf_monitor_end_iteration(iteration)
    hooks.perf_monitor_end_training()


def summary(tmp_path):
    (file,) = tmp_path.glob("perf_summary_*.json")
    return json.loads(file.read_text())


def test_the_hooks_write_flagscales_statistics_and_a_row_for_the_first_step(flagscale, tmp_path):
    run(flagscale, arguments(tmp_path), 5)
    written = summary(tmp_path)
    assert written["session_info"]["total_iterations"] == 5
    wanted = {"avg_tflops_per_gpu", "avg_tflops_total", "avg_step_time_ms", "min_step_time_ms", "max_step_time_ms", "peak_memory_gb"}
    assert wanted <= written["final_statistics"].keys()
    assert [row["iteration"] for row in written["iteration_logs"]] == [1, 2, 4, 5]
    assert {"memory_GB", "peak_memory_GB", "TFLOPS_total", "samples_per_sec", "step_time_ms"} <= written["iteration_logs"][0].keys()


@pytest.mark.parametrize(
    ("log_format", "files"),
    [("text", {"perf_metrics", "perf_realtime"}), ("json", {"perf_summary"}), ("both", {"perf_metrics", "perf_realtime", "perf_summary"})],
)
def test_the_format_selects_the_files(flagscale, tmp_path, log_format, files):
    run(flagscale, arguments(tmp_path, perf_log_format=log_format), 2)
    assert {"_".join(path.stem.split("_")[:2]) for path in tmp_path.glob("perf_*")} == files


def test_without_the_key_nothing_starts(flagscale, tmp_path):
    assert flagscale(".hooks").initialize_perf_monitor(arguments(tmp_path, enable_perf_monitor=False)) is None


def test_arguments_that_cannot_be_read_leave_the_run(flagscale, tmp_path, capfd):
    assert flagscale(".hooks").initialize_perf_monitor(arguments(tmp_path, perf_log_interval="often")) is None
    assert "the run continues without the monitor" in capfd.readouterr().err


def test_the_callback_records_steps_and_passes_metrics_on(flagscale, tmp_path):
    callback = flagscale("").FLOPSMeasurementCallback(arguments(tmp_path), log_interval=2)
    writer, wandb = Writer(), Writer()
    for iteration in range(1, 5):
        callback.on_train_batch_start(iteration)
        callback.on_train_batch_end(iteration, writer, wandb)
    callback.on_train_end()
    assert [row["step"] for row in records(tmp_path)] == [1, 2, 3, 4]
    assert writer.rows == wandb.rows and {row[0] for row in writer.rows} == {1, 2, 4}
    assert {row[1] for row in writer.rows} == {
        *(f"performance/{name}" for name in ("tflops_per_gpu", "tflops_total", "avg_step_time_ms", "samples_per_second", "tokens_per_second")),
        "memory/current_gb",
        "memory/peak_gb",
    }
    assert callback.monitor.metrics.model_flops == records(tmp_path)[0]["model_flops"]
    assert callback.monitor.current_memory_gb > 0


def test_the_calculator_counts_the_model_of_the_arguments(flagscale, tmp_path):
    args = arguments(tmp_path)
    calculator = flagscale(".perf_metrics").ModelFLOPSCalculator(args)
    assert calculator._get_batch_size() == 2
    assert calculator.calculate_total_flops() == flopmeter.estimate(megatron.model_config(args), seq_len=32, batch=2)["flops"]["model"]
    assert sum(calculator.get_flops_breakdown()[name] for name in ("forward", "backward")) == calculator.calculate_total_flops()


def test_the_formulas_are_the_matmuls_of_a_layer(flagscale):
    formulas = flagscale(".flops_calculator").FLOPSFormulas
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    parts = flopmeter.estimate({**config, "intermediate_size": 96, "vocab_size": 10}, seq_len=8, forward_only=True)["flops"]["components"]
    assert formulas.gqa_attention_flops(1, 8, 64, 4, 2) == parts["attention_projections"] + 4 * 8 * 8 * 64
    assert formulas.ffn_flops(1, 8, 64, 96, use_swiglu=True) == parts["mlp"]
    assert formulas.attention_flops(1, 8, 64, 4) == formulas.gqa_attention_flops(1, 8, 64, 4, 4)
    assert formulas.moe_flops(1, 8, 64, 96, 4, 2) == 2 * formulas.ffn_flops(1, 8, 64, 96) + 2 * 8 * 64 * 4


def test_the_logger_writes_rows_of_the_caller(flagscale, tmp_path):
    logger = flagscale(".perf_logger").PerfMonitorLogger(log_dir=str(tmp_path / "logs"))
    logger.log_metrics(1, {"TFLOPS_per_GPU": 1.5})
    logger.log_breakdown(1, {"forward": 1e12})
    logger.save_summary({"avg_tflops_per_gpu": 1.5}, total_iterations=1)
    written = summary(tmp_path / "logs")
    assert written["iteration_logs"][0]["TFLOPS_per_GPU"] == 1.5 and written["session_info"]["total_iterations"] == 1
    assert "Estimated FLOPS Breakdown (Iteration 1):" in next((tmp_path / "logs").glob("perf_metrics_*.log")).read_text()
