# SPDX-License-Identifier: Apache-2.0
"""Runs examples/deploy on a Prometheus server that scrapes four ranks: one slow, one missing."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parents[1] / "examples" / "deploy"
WORLD, SLOW = 4, 2  # rank 3 is missing


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_rank(directory, rank, port):
    command = [sys.executable, str(HERE.parent / "ranks" / "loop.py"), str(directory), "100000", "0.02", "3" if rank == SLOW else "1"]
    environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(WORLD), FLOPMETER_METRICS_ADDRESS=f"127.0.0.1:{port}")
    environment["FLOPMETER_TENSOR_PARALLEL"] = "2"
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


class Server:
    """Prometheus server that scrapes every second; ``fast`` replaces the minutes in the rules by seconds."""

    def __init__(self, folder, targets, fast=False):
        shutil.copytree(DEPLOY / "prometheus", folder / "prometheus")
        config = folder / "prometheus" / "prometheus.yml"
        config.write_text(config.read_text().replace("15s", "1s"))
        for file in (folder / "prometheus").glob("flopmeter.*") if fast else ():
            text = re.sub(r"for: \d+m", "for: 3s", file.read_text())
            file.write_text(text.replace("[1m]", "[5s]").replace("[5m]", "[20s]").replace("[6h]", "[60s]").replace("> 300", "> 5"))
        (folder / "prometheus" / "targets").mkdir()
        (folder / "prometheus" / "targets" / "run.json").write_text(json.dumps([{"targets": targets}]))
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={self.address}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def get(self, path, **parameters):
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def series(self, expression):
        return self.get("query", query=expression)["result"]

    def wait_for(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = self.series(expression)
            except OSError:
                found = []
            if found:
                return found
            time.sleep(0.5)
        return []


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("prometheus") is None:
        pytest.skip("Debian package prometheus is not installed")
    folder = tmp_path_factory.mktemp("fleet")
    ports = [free_port() for _ in range(WORLD - 1)]
    processes = [start_rank(folder / "run", rank, port) for rank, port in enumerate(ports)]
    try:
        running = Server(folder, [f"127.0.0.1:{port}" for port in ports])
        processes.append(running.process)
        assert running.wait_for("count(rank:flopmeter_speed:ratio) == 3 and count(run:flopmeter_goodput:ratio) == 1")
        yield running
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rules(name):
    return [rule for group in yaml.safe_load((DEPLOY / "prometheus" / name).read_text())["groups"] for rule in group["rules"]]


def test_all_rules_have_a_series(server):
    for rule in rules("flopmeter.rules.yml"):
        assert server.wait_for(rule["expr"], 10), rule
        assert server.wait_for(rule["record"], 10), rule


def test_all_panels_have_a_series(server):
    dashboard = json.loads((DEPLOY / "grafana" / "flopmeter.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 10
    for expression in expressions:
        assert server.wait_for(expression.replace("$run", ".*"), 10), expression
    assert server.series("flopmeter_run_info"), "no runs listed"


def test_all_alerts_have_a_series_and_two_report_the_injected_faults(server):
    for rule in rules("flopmeter.alerts.yml"):
        always = re.sub(r" ([<>]) ", r" \1 bool ", rule["expr"])  # 0 or 1 instead of a filter
        assert server.wait_for(always, 10), rule
    pending = {}
    end = time.monotonic() + 20
    while len(pending) < 2 and time.monotonic() < end:
        pending = {alert["labels"]["alertname"]: alert for alert in server.get("alerts")["alerts"]}
        time.sleep(0.5)
    assert pending.keys() == {"FlopmeterRankSlow", "FlopmeterRankMissing"}
    assert pending["FlopmeterRankSlow"]["labels"]["rank"] == str(SLOW)
    assert float(pending["FlopmeterRankMissing"]["value"]) == WORLD - 1


def test_samples_that_two_ranks_share_are_counted_once(server):
    rule = next(rule for rule in rules("flopmeter.rules.yml") if rule["record"] == "run:flopmeter_tokens:rate1m")
    (share,) = server.series(f"({rule['expr']}) / sum by (run) (rate(flopmeter_tokens_total[1m]))")
    assert float(share["value"][1]) == pytest.approx(0.5)


FAULTS = {
    "stalled": "FlopmeterRankStalled",
    "slower": "FlopmeterMfuDropped",
    "idle": "FlopmeterGoodputLow",
    "full": "FlopmeterRecordsLost",
}


@pytest.mark.long
def test_each_alert_fires_once_on_a_run_with_its_fault(tmp_path):
    ports = [free_port() for _ in range(WORLD - 1 + len(FAULTS))]
    processes = [start_rank(tmp_path / "ranks", rank, port) for rank, port in enumerate(ports[: WORLD - 1])]
    for fault, port in zip(FAULTS, ports[WORLD - 1 :], strict=True):
        command = [sys.executable, str(HERE / "faulty.py"), str(tmp_path / fault), fault]
        processes.append(subprocess.Popen(command, env=dict(os.environ, FLOPMETER_METRICS_ADDRESS=f"127.0.0.1:{port}")))
    expected = {"FlopmeterRankSlow", "FlopmeterRankMissing", *FAULTS.values()}
    try:
        server = Server(tmp_path, [f"127.0.0.1:{port}" for port in ports], fast=True)
        processes.append(server.process)
        fired = f'count(count by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[2m]))) == {len(expected)}'
        assert server.wait_for(fired, 90), server.series("ALERTS")
        seen = [each["metric"] for each in server.series('max_over_time(ALERTS{alertstate="firing"}[2m])')]
        runs = {each["metric"]["instance"]: each["metric"]["run"] for each in server.series("flopmeter_world_size")}
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert sorted(each["alertname"] for each in seen) == sorted(expected), seen  # each alert once
    faulty = {alert: runs[f"127.0.0.1:{port}"] for alert, port in zip(FAULTS.values(), ports[WORLD - 1 :], strict=True)}
    for each in seen:
        assert each["run"] == faulty.get(each["alertname"], runs[f"127.0.0.1:{ports[0]}"]), each


def test_each_alert_fires_on_its_injected_fault():
    if shutil.which("promtool") is None:
        pytest.skip("Debian package prometheus is not installed")
    done = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=HERE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = (HERE / "alerts_test.yml").read_text()
    for rule in rules("flopmeter.alerts.yml"):
        assert rule["alert"] in tested, f"no injected fault for {rule['alert']}"
