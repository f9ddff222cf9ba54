# SPDX-License-Identifier: Apache-2.0
"""Document 4: FlagScale's performance monitor."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import flopmeter
import pytest
from flopmeter.integrations import megatron
from flopmeter._flopmeter import Options
from seed_samples import sample

GENERATED = sample("s4_line054.sh")


def files(folder):
    return sorted(re.sub(r"\d{8}_\d{6}", "STAMP", path.name) for path in folder.glob("perf_*"))


FILES = ["perf_metrics_STAMP.log", "perf_realtime.log", "perf_summary_STAMP.json"]


def test_lines_030_and_054_the_launcher_with_arguments_and_the_generated_script(shell, project):
    pytest.importorskip("hydra")
    shell(sample("s4_line030.sh"))
    shell(GENERATED)
    assert files(project / "outputs" / "logs" / "perf_monitor") == FILES
    # FlagScale's own configurations do not have the keys: Hydra then requires a plus sign.
    conf = project / "examples" / "aquila" / "conf" / "train" / "7b.yaml"
    conf.write_text("system: {}\nmodel:" + conf.read_text().partition("model:")[2])
    shutil.rmtree(project / "outputs")
    assert "not in struct" in shell(sample("s4_line030.sh"), check=False).stderr
    shell(sample("s4_line030.sh").replace("train.system.", "+train.system."))
    shell(GENERATED)
    assert files(project / "outputs" / "logs" / "perf_monitor") == FILES


def test_lines_043_and_062_the_launcher_with_a_configuration_file(shell, project):
    pytest.importorskip("hydra")
    conf = project / "examples" / "aquila" / "conf" / "train"
    rest = (conf / "7b.yaml").read_text().partition("model:")
    (conf / "7b_with_perf_monitor.yaml").write_text(sample("s4_line062.yaml") + "model:" + rest[2])
    shell(sample("s4_line043.sh"))
    shell(GENERATED)
    assert files(project / "outputs" / "logs" / "perf_monitor") == FILES


def test_line_062_the_yaml_sets_all_seven_options():
    options = Options.flag_defaults()
    options.apply_yaml(sample("s4_line062.yaml"))
    wanted = {"enabled": "true", "log_interval": "10", "directory": "./outputs/logs/perf_monitor", "console": "false"}
    wanted |= {"memory": "true", "breakdown": "false", "max_log_files": "10"}
    assert {name: options.values()[name] for name in wanted} == wanted


def test_line_092_these_files_are_written(trained):
    shown = [re.sub(r"\d{8}_\d{6}", "STAMP", name) for name in re.findall(r"perf_\w+\.\w+", sample("s4_line092.txt"))]
    assert files(trained) == sorted(shown)


def test_line_102_the_text_log_has_this_layout(trained):
    shown = sample("s4_line102.txt").splitlines()
    written = next(trained.glob("perf_metrics_*.log")).read_text().splitlines()
    for ours, theirs in zip(written[:5], shown[:5], strict=True):  # flopmeter's columns follow those of the sample
        assert re.sub(r"\d", "0", ours).startswith(re.sub(r"\d", "0", theirs).rstrip())
    rows = [line for line in written[5:] if not line.startswith("#")]  # findings are comments
    assert len(rows) == 3
    assert len(rows[0].split()) >= len(shown[5].split())


def test_line_113_the_summary_has_these_keys(trained):
    shown = json.loads(sample("s4_line113.json").replace("[...]", "[]"))
    written = json.loads(next(trained.glob("perf_summary_*.json")).read_text())
    for group, values in shown.items():
        assert group in written
        if isinstance(values, dict):
            assert values.keys() <= written[group].keys()
    assert written["session_info"]["total_iterations"] == 30


def test_line_135_tail_follows_the_realtime_log(trained, shell):
    tail, watch = [line for line in sample("s4_line135.sh").splitlines() if line and not line.startswith("#")]
    followed = shell(f"timeout 1 {tail}", check=False)
    assert followed.returncode == 124  # ended by timeout
    assert len(followed.stdout.splitlines()) >= 3
    if shutil.which("watch"):
        assert shell(f"timeout 2 {watch}", check=False).returncode == 124


def test_line_145_the_analysis_script(execute, trained, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    # open() does not expand patterns, so the file gets the literal name that the sample opens.
    shutil.copy(next(trained.glob("perf_summary_*.json")), trained / "perf_summary_*.json")
    scope = execute("s4_line145.py")
    assert list(scope["df"]["iteration"]) == [10, 20, 30]
    printed = capsys.readouterr().out
    assert re.fullmatch(r"Average TFLOPS: [\d.]+\nPeak TFLOPS: [\d.]+\nThroughput: \d+ tokens/s\n", printed)


def test_line_175_tensorboard_shows_the_run(shell, project):
    pytest.importorskip("tensorboard")
    train, view = sample("s4_line175.sh").split("# 查看 TensorBoard\n")
    shell(train)
    # TensorBoard as in the sample, but on a free port.
    command = f"exec {view.strip()} --port 0 2>&1"
    tags = _scalars_shown(command, project)
    for name in ("tflops_per_gpu", "tflops_total", "samples_per_second", "tokens_per_second"):
        assert f"performance/{name}" in tags
    assert {"memory/current_gb", "memory/peak_gb"} <= tags


def _scalars_shown(command, project):
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    server = subprocess.Popen(["bash", "-c", command], cwd=project, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = None
        for line in server.stdout:
            if found := re.search(r"http://\S+:\d+/", line):
                address = found.group()
                break
        assert address, "tensorboard did not start"
        for _ in range(100):
            with urllib.request.urlopen(address + "data/plugin/scalars/tags") as answer:
                runs = json.load(answer)
            if any(runs.values()):
                return {tag for tags in runs.values() for tag in tags}
            time.sleep(0.1)
        return set()
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_line_199_the_three_test_scripts(shell):
    assert shell(sample("s4_line199.sh")).stdout.count("ok\n") == 2


def test_line_214_all_listed_modules_have_a_counterpart():
    assert {"hooks.py", "arguments.py", "integration.py"} <= set(re.findall(r"\w+\.py", sample("s4_line214.txt")))
    for name in ("add_arguments", "initialize_perf_monitor", "perf_monitor_start_iteration", "model_config"):
        assert callable(getattr(megatron, name))


def test_line_230_a_new_model_is_added(execute):
    edits = {
        "seq_length, ...)": "seq_length, hidden, ffn)",
        "attention_flops = ...": "attention_flops = 8 * batch_size * seq_length * hidden**2",
        "ffn_flops = ...": "ffn_flops = 6 * batch_size * seq_length * hidden * ffn",
    }
    theirs = execute("s4_line230.py", edits=edits)["calculate_new_model_flops"](None, 2, 8, 16, 24)
    config = {"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 10}
    flopmeter.register_model("new-model", lambda: config)
    parts = flopmeter.estimate("new-model", seq_len=8, batch=2)["flops"]["components"]
    assert parts["attention_projections"] + parts["mlp"] == theirs
