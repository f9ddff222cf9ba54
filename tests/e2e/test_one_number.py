# SPDX-License-Identifier: Apache-2.0
"""One run has one MFU: on the console, in each command, on the dashboard, in the summary, TensorBoard, and Prometheus."""

import json
import re
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import PROGRAM

LOOP = """
import time, torch, flopmeter
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
monitor = flopmeter.Monitor("logs", model=model, peak_tflops=0.05, tensorboard=True, log_interval=5,
                             prometheus_file="metrics.prom")
def batches():
    for _ in range(40):
        time.sleep(0.01)
        yield torch.randn(64, 256)
for batch in monitor.wrap(batches()):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
monitor.finish()
"""


def ask(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def run(folder):
    (folder.path / "loop.py").write_text(LOOP)
    _, console, code = folder.run(sys.executable, "loop.py", run_options=None)
    assert code == 0, console
    return folder.logs, console


def tensorboard_mfu(directory):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = events.EventAccumulator(str(directory / "tensorboard"), size_guidance={"scalars": 0})
    accumulator.Reload()
    return accumulator.Scalars("perf/mfu_run")[-1].value


def served_mfu(directory):
    """On the list of runs and on the page of the run."""
    with subprocess.Popen([PROGRAM, "serve", directory, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split()[1]
            get = lambda path: json.load(urllib.request.urlopen(address + path, timeout=20))  # noqa: E731
            while not (runs := get("api/runs")["runs"]):
                time.sleep(0.1)
            return runs[0]["mfu"], get("api/run/" + runs[0]["id"])["mfu"]
        finally:
            server.terminate()


def test_all_outputs_show_the_same_mfu(run):
    directory, console = run
    diagnosis = json.loads(ask("diagnose", directory, "--json"))
    mfu = diagnosis["mfu"]
    assert 0 < mfu < 1
    assert json.loads(ask("report", directory, "--json"))["mfu"] == pytest.approx(mfu, rel=1e-9)
    compared = json.loads(ask("compare", directory, directory, "--json"))
    assert compared["mfu_before"] == compared["mfu_after"] == mfu
    (summary,) = directory.glob("perf_summary_*.json")
    assert json.loads(summary.read_text())["final_statistics"]["mfu"] == pytest.approx(mfu, rel=1e-9)
    assert tensorboard_mfu(directory) == pytest.approx(mfu, rel=1e-6)
    assert json.loads(ask("ranks", directory, "--json"))["totals"]["mfu"] == pytest.approx(mfu, rel=1e-9)
    assert json.loads(ask("watch", directory, "--json"))["mfu_run"] == pytest.approx(mfu, rel=1e-9)
    assert served_mfu(directory) == pytest.approx((mfu, mfu), rel=1e-9)
    metrics = (directory.parent / "metrics.prom").read_text()
    assert float(re.search(r"^flopmeter_run_mfu_ratio\{.*\} (.*)$", metrics, re.MULTILINE)[1]) == pytest.approx(mfu, rel=1e-9)
    shown = f"MFU {100 * mfu:.1f} %"
    assert re.search(rf"^flopmeter  {re.escape(shown)}", console, re.MULTILINE), console
    assert shown in ask("diagnose", directory).splitlines()[0]
    assert f"run MFU {100 * mfu:.1f} %" in ask("watch", directory, "--once")
    assert re.search(rf"MFU +{100 * mfu:.1f} %", ask("ranks", directory))


def test_shares_sum_to_one_and_useful_is_mfu(run):
    directory, _ = run
    diagnosis = json.loads(ask("diagnose", directory, "--json"))
    shares = {line["cause"]: line["share"] for line in diagnosis["budget"]}
    assert sum(shares.values()) == pytest.approx(1, abs=1e-6)
    assert all(share >= 0 for share in shares.values())
    assert shares["useful"] == pytest.approx(diagnosis["mfu"], abs=1e-6)
    table = ask("diagnose", directory).split("where the time went")[1].split("what would help")[0].splitlines()[1:]
    printed = [float(share) for line in table for share in re.findall(r" (\d+\.\d+) %", line)]
    assert printed[-1] == 100.0 and sum(printed[:-1]) == pytest.approx(100, abs=0.01), table


def test_the_last_lines_on_the_console_have_the_findings_of_the_diagnosis(run):
    directory, console = run
    largest = json.loads(ask("diagnose", directory, "--json"))["findings"][0]
    summary = console[console.rindex("flopmeter  MFU ") :]
    assert f"flopmeter  {largest['rule']}, saves {100 * largest['share']:.1f} %: {largest['summary']}" in summary, console


ODD_LOOP = """
import os, signal, sys, time, torch, flopmeter
from torch.utils.checkpoint import checkpoint
first, last, kill = map(int, sys.argv[1:])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
monitor = flopmeter.Monitor("logs", model=model, peak_tflops=0.05)
for step in range(first, last):
    with monitor.step(step=step, input_ids=torch.zeros(4, 16), attention_mask=torch.arange(16).expand(4, 16) < 11):
        x = torch.randn(64, 256, requires_grad=True)
        checkpoint(model, x, use_reentrant=False).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if step % 10 == 9:
        with monitor.phase("evaluation"), torch.no_grad():
            model.eval()(x)
            model.train()
        with monitor.phase("checkpoint"):
            torch.save(model.state_dict(), "model.pt")
if kill:
    time.sleep(1)  # the records are written
    os.kill(os.getpid(), signal.SIGKILL)
monitor.finish()
"""


def numbers(value, path=""):
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f"{path}/{key}")
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each, path)
    elif isinstance(value, (int, float)):
        yield path, value


def test_a_killed_and_resumed_run_with_padding_recomputation_and_evaluations_has_one_mfu(folder):
    (folder.path / "loop.py").write_text(ODD_LOOP)
    assert folder.run(sys.executable, "loop.py", 0, 30, 1, run_options=None)[2] == -9
    _, console, code = folder.run(sys.executable, "loop.py", 20, 50, 0, run_options=None)
    assert code == 0, console
    diagnosis, report = (json.loads(ask(command, folder.logs, "--json")) for command in ("diagnose", "report"))
    compared = json.loads(ask("compare", folder.logs, folder.logs, "--json"))["after"]
    mfu = diagnosis["mfu"]
    figures = [report["mfu"], report["headline"]["mfu"], compared["mfu"], *served_mfu(folder.logs)]
    figures += [json.loads(ask("ranks", folder.logs, "--json"))["totals"]["mfu"], json.loads(ask("watch", folder.logs, "--json"))["mfu_run"]]
    assert figures == pytest.approx([mfu] * len(figures), rel=1e-9)
    assert diagnosis["budget"] == report["budget"]
    assert [line["share"] for line in compared["budget"]] == [line["share"] for line in diagnosis["budget"]]
    shares = {line["cause"]: line["share"] for line in diagnosis["budget"]}
    assert sum(shares.values()) == pytest.approx(1) and shares["useful"] == pytest.approx(mfu, abs=1e-6)
    assert {"padding", "recompute"} <= shares.keys()
    assert not [each for document in (diagnosis, report) for each in numbers(document) if each[1] < 0]
