# SPDX-License-Identifier: Apache-2.0
"""Reads each file of the monitor with the tool that users read it with."""

import json
import re
import subprocess

import pytest
from conftest import ROOT, load_events, only


def test_pandas_reads_the_record_stream(run_directory):
    pd = pytest.importorskip("pandas")
    frame = pd.read_json(only(run_directory, "records_*.jsonl"), lines=True)
    assert len(frame) == 100
    assert list(frame["step"]) == list(range(1, 101))
    assert (frame["mfu"] > 0).all()
    assert frame["model_flops"].iloc[0] == 3 * 2 * 96**3


def test_pandas_reads_the_csv(run_directory):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(only(run_directory, "records_*.csv"))
    assert len(frame) == 100
    assert frame["phases.data"].between(0.002, 1).all()
    assert frame["mfu"].notna().all()


def test_the_sample_of_flagscale_runs_on_the_summary(run_directory, monkeypatch):
    pd = pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with open(only(run_directory, "perf_summary_*.json")) as f:
        data = json.load(f)
    df = pd.DataFrame(data["iteration_logs"])
    plt.figure(figsize=(10, 6))
    plt.plot(df["iteration"], df["TFLOPS_per_GPU"])
    plt.xlabel("Iteration")
    plt.ylabel("TFLOPS per GPU")
    plt.title("Training Performance")
    plt.show()
    assert f"Average TFLOPS: {df['TFLOPS_per_GPU'].mean():.2f}" != "Average TFLOPS: nan"
    assert df["tokens_per_sec"].mean() > 0
    assert list(df["iteration"]) == list(range(10, 101, 10))
    assert data["session_info"]["total_iterations"] == 100
    statistics = data["final_statistics"]
    assert statistics["min_tflops_per_gpu"] <= statistics["avg_tflops_per_gpu"] <= statistics["max_tflops_per_gpu"]


def test_the_text_log_has_one_row_per_interval(run_directory):
    text = only(run_directory, "perf_metrics_*.log").read_text()
    rows = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  (\d+) ", text, re.M)
    assert rows == [str(i) for i in range(10, 101, 10)]
    assert "    data " in text  # --perf-breakdown
    assert (run_directory / "perf_realtime.log").read_text().count("\n") == 5 + 10


def test_the_training_log_is_an_array_of_steps(run_directory):
    log = json.loads((run_directory / "training_log.json").read_text())
    assert len(log) == 100
    assert {"step", "epoch", "loss", "grad_norm", "learning_rate", "perf"} <= set(log[0])
    assert {"mfu", "mfu_percent", "step_time", "steps_per_second", "tokens_per_second", "samples_per_second"} == set(log[0]["perf"])


def test_tensorboard_loads_all_tags(run_directory):
    events = load_events(run_directory / "tensorboard")
    tags = set(events.Tags()["scalars"])
    wanted = {"performance/" + name for name in ("tflops_per_gpu", "tflops_total", "samples_per_second", "tokens_per_second")}
    wanted |= {"memory/current_gb", "memory/peak_gb", "phases/data", "phases/forward", "phases/backward"}
    wanted |= {"perf/" + name for name in ("mfu", "mfu_percent", "step_time", "steps_per_second", "tokens_per_second", "samples_per_second")}
    assert wanted <= tags
    assert [e.step for e in events.Scalars("perf/mfu")] == list(range(10, 101, 10))
    assert "custom_scalars__config__" in events.Tags()["tensors"]
    layout = pytest.importorskip("tensorboard.plugins.custom_scalar.layout_pb2")
    parsed = layout.Layout()
    parsed.ParseFromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    assert parsed.category[0].title == "flopmeter"


def test_tensorboard_loads_a_killed_run(example, tmp_path):
    done = example(tmp_path, "--tensorboard", "--steps", 200, "--milliseconds", 2, "--kill-after", 150, check=False)
    assert done.returncode == -9
    events = load_events(tmp_path / "tensorboard")
    assert len(events.Scalars("performance/tflops_per_gpu")) >= 10


def test_promtool_accepts_the_metrics(run_directory):
    text = (run_directory / "metrics.prom").read_bytes()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert b"flopmeter_steps_total" in text


def test_the_field_reference_lists_every_tag_and_metric(run_directory):
    page = (ROOT / "docs" / "reference" / "fields.md").read_text()
    tags = load_events(run_directory / "tensorboard").Tags()["scalars"]
    metrics = re.findall(r"(?m)^# TYPE (\S+)", (run_directory / "metrics.prom").read_text())
    assert len(tags) > 20 and len(metrics) > 20
    assert [name for name in (*tags, *metrics) if not re.search(rf"\| {name}(?:{{[^}}]*}})? \|", page)] == []


def test_hostile_names_stay_text_for_every_reader(example, tmp_path):
    name = 'a\nb"c\\d\x1b[2J</script>{{x}}\udcff' + 1000 * "x"  # \udcff: a byte that is not UTF-8
    outputs = ["--perf-breakdown", "--tensorboard", "--perf-csv", "--perf-sink", "training_log"]
    done = example(
        tmp_path, "--steps", 30, *outputs, "--perf-prometheus-file", tmp_path / "metrics.prom", "--perf-run-id", name,
        environment={"FLOPMETER_MODEL": name},
    )  # fmt: skip
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stderr)
    metrics = (tmp_path / "metrics.prom").read_bytes()
    checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = name.replace("\udcff", "\ufffd")
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == shown
    summary = json.loads(only(tmp_path, "perf_summary_*.json").read_text())
    assert summary["session_info"]["model"] == shown
    assert len(json.loads((tmp_path / "training_log.json").read_text())) == 30
    assert len([json.loads(line) for line in only(tmp_path, "records_*.jsonl").read_text().splitlines()]) == 30
    assert len(load_events(tmp_path / "tensorboard").Scalars("perf/mfu")) == 3
    for path in tmp_path.glob("*.*"):
        if path.suffix in (".json", ".jsonl", ".log", ".csv"):
            assert b"\x1b" not in path.read_bytes() and b"</script>" not in path.read_bytes(), path


def test_wrong_use_is_one_line_and_exit_2(example, tmp_path):
    done = example(tmp_path, "--perf-log-intervall", 3, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "did you mean --perf-log-interval" in done.stderr
