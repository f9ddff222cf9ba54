# SPDX-License-Identifier: Apache-2.0
"""The seven FlagScale flags: each one changes the output."""

import json

from conftest import load_events, only


def summary(directory):
    return json.loads(only(directory, "perf_summary_*.json").read_text())


def text_log(directory):
    return only(directory, "perf_metrics_*.log").read_text()


def test_enable_perf_monitor_turns_everything_on_or_off(example, tmp_path):
    example(tmp_path / "off", "--steps", 10, "--no-enable-perf-monitor")
    example(tmp_path / "on", "--steps", 10, "--enable-perf-monitor")
    assert not (tmp_path / "off").exists()
    assert {path.name.split("_2")[0] for path in (tmp_path / "on").glob("perf_*")} == {"perf_metrics", "perf_summary", "perf_realtime.log"}


def test_perf_log_interval_is_the_interval_of_rows(example, tmp_path):
    for interval in (5, 10):
        directory = tmp_path / str(interval)
        done = example(directory, "--steps", 20, "--perf-log-interval", interval, "--perf-console-output")
        steps = list(range(interval, 21, interval))
        assert [row["iteration"] for row in summary(directory)["iteration_logs"]] == steps
        rows = [line for line in text_log(directory).splitlines()[5:] if not line.startswith("#")]  # a finding about a busy machine
        assert [int(line.split()[2]) for line in rows] == steps
        assert done.stderr.count("MFU ") == 1  # the summary: the run takes less than ten seconds


def test_perf_log_dir_is_where_the_files_are(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example("here/below", "--steps", 10)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert only(tmp_path / "here" / "below", "perf_summary_*.json")


def test_perf_console_output_is_lines_with_one_prefix(example, tmp_path):
    assert example(tmp_path, "--steps", 10, "--no-perf-console-output").stderr == ""
    shown = example(tmp_path, "--steps", 10, "--perf-console-output").stderr
    assert all(line.startswith("flopmeter  ") for line in shown.splitlines())
    assert "records in" in shown.splitlines()[0] and "MFU " in shown
    assert "\x1b" not in shown  # color only on a terminal


def test_perf_memory_tracking_fills_the_column_and_the_tags(example, tmp_path):
    for flag, tracked in (("--perf-memory-tracking", True), ("--no-perf-memory-tracking", False)):
        directory = tmp_path / flag
        example(directory, "--steps", 10, "--tensorboard", flag)
        assert (summary(directory)["final_statistics"]["peak_memory_gb"] is not None) == tracked
        assert (text_log(directory).splitlines()[5].split()[8] != "n/a") == tracked
        tags = load_events(directory / "tensorboard").Tags()["scalars"]
        assert ({"memory/current_gb", "memory/peak_gb"} <= set(tags)) == tracked


def test_perf_breakdown_shows_phases_in_text_console_and_tensorboard(example, tmp_path):
    for flag, shown in (("--perf-breakdown", True), ("--no-perf-breakdown", False)):
        directory = tmp_path / flag
        console = example(directory, "--steps", 10, "--perf-console-output", "--tensorboard", flag).stderr
        for text in (console, text_log(directory), (directory / "perf_realtime.log").read_text()):
            assert ("forward " in text and "backward " in text) == shown
        tags = load_events(directory / "tensorboard").Tags()["scalars"]
        assert ("phases/forward" in tags and "phases/backward" in tags) == shown


def test_perf_max_log_files_keeps_the_newest(example, tmp_path):
    for stamp in ("20200101_000000", "20200102_000000", "20200103_000000"):
        (tmp_path / f"perf_metrics_{stamp}.log").write_text("old")
    example(tmp_path, "--steps", 10, "--perf-max-log-files", 2)
    kept = sorted(path.name for path in tmp_path.glob("perf_metrics_*.log"))
    assert len(kept) == 2 and kept[0] == "perf_metrics_20200103_000000.log"
