# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of `flopmeter serve`: a running server, and runs for it."""
import http.client
import json
import pathlib
import signal
import subprocess
import time

import pytest

import synthetic_runs

EVIL = '</script><script>document.title = "taken"; throw 1</script><img src=x onerror=alert(1)>\n\x1b[31m\u202eback'


class Server:
    """A running `flopmeter serve`."""

    def __init__(self, program, *arguments, port=0):
        self.process = subprocess.Popen([program, "serve", *map(str, arguments), "--port", str(port)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("Dashboard: http"), line + self.process.stderr.read()
        self.address = line.split()[1]
        self.port = int(self.address.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=10) == 0

    def request(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body=body, headers={"Host": "localhost", **headers})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def json(self, path):
        return json.loads(self.request(path).text)

    def runs(self, count=1, ready=lambda run: run["state"] != "reading"):
        """Waits for the runs; returns them by name."""
        end = time.monotonic() + 60
        while True:
            runs = self.json("/api/runs")["runs"]
            if len(runs) >= count and all(map(ready, runs)):
                return {run["name"]: run for run in runs}
            assert time.monotonic() < end, runs
            time.sleep(0.1)

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs: one that waits for data, one of eight ranks in a subfolder, and one full of markup."""
    root = tmp_path_factory.mktemp("runs")
    synthetic_runs.describe(root / "starved")
    synthetic_runs.write_stream(synthetic_runs.stream(root / "starved"), (synthetic_runs.starved(step) for step in range(400)))
    synthetic_runs.write_op_profile(root / "starved")
    synthetic_runs.describe(root / "group" / "eight", 8)
    for rank in range(8):
        synthetic_runs.write_stream(synthetic_runs.stream(root / "group" / "eight", rank), (synthetic_runs.noisy(step, rank, data_parallel=8) for step in range(100 if rank != 5 else 30)))
    synthetic_runs.describe(root / "<b>evil", model=EVIL, run_id=EVIL, device={"name": EVIL, "source": EVIL, "peak_flops_per_second": {"bf16": 1e14}})
    synthetic_runs.write_stream(synthetic_runs.stream(root / "<b>evil"), (synthetic_runs.noisy(step) for step in range(20)))
    (root / "latest").symlink_to("starved")
    return root


@pytest.fixture(scope="module")
def server(program, runs):
    with Server(program, runs) as running:
        running.runs(3)
        yield running


def open_page(browser, server, path="", **options):
    return browser.open(server.address + path, **options)


def shown(page):
    return page.evaluate("document.body.innerText")
