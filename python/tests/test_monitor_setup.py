# SPDX-License-Identifier: Apache-2.0
"""How a monitor is set up: options, model, device and peak, ranks, outputs, and what stays harmless."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import flopmeter
import pytest
import torch
from flopmeter import peaks
from run_records import records
from tiny_llama import LLAMA
from torch.utils.data import DataLoader


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run_of(monitor):
    return json.loads(open(f"{monitor.directory}/run.json").read())


def test_an_unknown_option_names_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="unknown option 'log_intervall'.*log_interval"):
        flopmeter.Monitor(tmp_path, log_intervall=3)
    for wrong, message in (
        ({"convention": "palme"}, "palme"),
        ({"devices": 0}, "devices is 0"),
        ({"rank": 3, "world_size": 2}, "rank is 3"),
        ({"peak_tflops": "fast"}, "'fast' but must be the TFLOP/s"),
    ):
        with pytest.raises(ValueError, match=message):
            flopmeter.Monitor(tmp_path, **wrong)
    with pytest.raises(ValueError, match="mode= is 'fast' but must be auto"):
        flopmeter.Monitor(tmp_path, mode="fast")


def test_options_come_from_yaml_dict_and_keywords_in_that_order(tmp_path, monkeypatch):
    monkeypatch.setenv("FLOPMETER_LOG_INTERVAL", "3")
    monkeypatch.setenv("FLOPMETER_MAX_LOG_FILES", "4")
    file = tmp_path / "monitor.yaml"
    file.write_text("monitoring:\n  mfu_calculation_mode: smart\n  performance_monitoring:\n    measure_flops_frequency: 70\n")
    for config in (file, file.read_text(), {"monitoring": {"mfu_calculation_mode": "smart", "flops_profile_freq": 70}}):
        monitor = flopmeter.Monitor(tmp_path / "run", config=config, console=False, max_log_files=5)
        values = monitor.options
        monitor.finish()
        assert (values["mode"], values["measure_frequency"]) == ("smart", "70")
        assert (values["log_interval"], values["max_log_files"]) == ("3", "5")


@pytest.mark.parametrize("model", [LLAMA, "name", "path", "config", "module"])
def test_estimate_mode_knows_the_model_in_any_form(tmp_path, model):
    expected = flopmeter.estimate(LLAMA, seq_lens=[6, 6], dtype="fp32")["flops"]["model"]
    if model == "name":
        flopmeter.register_model("tiny-llama", lambda: LLAMA)
        model = "tiny-llama"
    elif model == "path":
        (tmp_path / "config.json").write_text(json.dumps(LLAMA))
        model = tmp_path
    elif model in ("config", "module"):
        transformers = pytest.importorskip("transformers")
        config = transformers.LlamaConfig(**LLAMA)
        model = config if model == "config" else transformers.LlamaForCausalLM(config)
    monitor = flopmeter.Monitor(tmp_path / "run", model=model, mode="estimate", console=False)
    with monitor.step(samples=2, tokens=12):
        pass
    monitor.finish()
    (row,) = records(tmp_path / "run")
    assert (row["model_flops"], row["flops_source"]) == (expected, "estimate")


def test_counts_equal_the_estimate_for_a_hugging_face_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA, attn_implementation="sdpa"))
    monitor = flopmeter.Monitor(tmp_path / "run", model=model, console=False)
    ids = torch.randint(50, (2, 6))
    for _ in range(2):
        with monitor.step():
            model(input_ids=ids, labels=ids).loss.backward()
    monitor.finish()
    for row in records(tmp_path / "run"):
        assert (row["tokens"], row["samples"]) == (12, 2)  # seen by the hook on the model
        assert row["estimated_flops"] == flopmeter.estimate(LLAMA, seq_lens=[6, 6])["flops"]["model"]
        assert row["model_flops"] == row["estimated_flops"]


def test_the_peak_is_the_users_else_measured_else_the_catalogs_else_a_formula(tmp_path, monkeypatch):
    formula = peaks.find_peaks()
    assert formula.source.startswith(("formula", "none"))
    assert peaks.find_peaks("h100").source.startswith("catalog")
    user = peaks.find_peaks("h100", peak_tflops=2)
    assert (user.source, user.peaks["bf16"]) == ("user", 2e12)
    with pytest.raises(ValueError, match="run: flopmeter peak"):
        peaks.find_peaks(peak_tflops="measured")
    with pytest.raises(ValueError, match="h1000"):
        peaks.find_peaks("h1000")
    with open("/proc/cpuinfo") as file:
        name = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), None)
    if name is None:
        pytest.skip("this processor has no model name")
    cache = tmp_path / "cache" / "flopmeter" / "peaks.json"
    cache.parent.mkdir(parents=True)
    machine = {"processor": name, "threads": torch.get_num_threads(), "torch": "2", "peaks": {"fp32": {"flops_per_second": 5e10}},
               "memory_bytes_per_second": 2e10}
    cache.write_text(json.dumps({"schema": "flopmeter.peaks/1", "machines": [machine]}))
    for table in (peaks.find_peaks(), peaks.find_peaks(peak_tflops="measured")):
        assert table.source.startswith("measured")
        assert table.peaks == {"fp32": 5e10}
    monitor = flopmeter.Monitor(tmp_path / "run", console=False)
    run = run_of(monitor)
    monitor.finish()
    assert run["device"]["memory_bytes_per_second"] == 2e10


def test_run_json_states_model_and_peak(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, model=LLAMA, device="h100", dtype="bf16", console=False)
    run = run_of(monitor)
    monitor.finish()
    assert run["model_source"]["family"] == "llama"
    assert run["model_source"]["dtype"] == "bf16"


def test_a_registered_sink_gets_every_record_in_its_own_thread(tmp_path):
    seen = []
    flopmeter.register_sink("collect", lambda record: seen.append((record["step"], threading.current_thread().name)))
    flopmeter.register_sink("broken", lambda record: 1 / 0)
    monitor = flopmeter.Monitor(tmp_path, sinks=["collect", "broken"], console=False)
    for _ in range(5):
        with monitor.step():
            pass
    monitor.finish()
    assert seen == [(step, "flopmeter-records") for step in range(1, 6)]


def test_ranks_come_from_the_launcher(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    monitor = flopmeter.Monitor(tmp_path, console=False)
    with monitor.step():
        pass
    monitor.finish()
    assert list(tmp_path.glob("records_*.rank2.jsonl"))
    assert not list(tmp_path.glob("perf_metrics_*"))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_loader_workers_are_harmless(tmp_path, method):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    loader = DataLoader(list(range(16)), batch_size=4, num_workers=4, multiprocessing_context=method)
    assert len(monitor.wrap(loader)) == 4
    for _ in monitor.wrap(loader):
        with monitor.step(samples=4):
            pass
    monitor.finish()
    assert len(records(tmp_path)) == 4
    assert monitor.status["misuse"] == 0


def test_the_process_is_left_as_it_was(tmp_path):
    def state():
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)]
        return (
            torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_rng_state().tolist(), random.getstate(),
            torch.cuda.is_initialized(), handlers, dict(os.environ),
        )  # fmt: skip

    model, tokens = torch.nn.Linear(4, 4), torch.ones(2, 4)
    before = state()
    with flopmeter.Monitor(tmp_path, model=model, tensorboard=True, console=False) as monitor:
        for _ in range(60):  # two of them profiled
            with monitor.step(samples=2):
                model(tokens).sum().backward()
    assert state() == before


def test_a_program_that_forgets_to_finish_leaves_its_records(tmp_path):
    code = f"import flopmeter\nm = flopmeter.Monitor({str(tmp_path)!r}, console=False)\nwith m.step(tokens=3): pass"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert records(tmp_path)[0]["tokens"] == 3


def test_the_step_call_is_cheap(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False, mode="estimate")

    def microseconds():
        start = time.thread_time()
        for _ in range(500):
            with monitor.step(tokens=100, samples=2):
                pass
        return (time.thread_time() - start) / 500 * 1e6

    best = min(microseconds() for _ in range(40))
    monitor.finish()
    assert best < 5
