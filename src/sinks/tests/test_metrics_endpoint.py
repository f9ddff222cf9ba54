# SPDX-License-Identifier: Apache-2.0
"""The live /metrics endpoint with curl, promtool, and a flood of clients that never finish."""

import os
import re
import socket
import subprocess
import time

import pytest
from conftest import find_example


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(directory, *arguments):
    command = [find_example(), "--perf-log-dir", directory, "--steps", 1_000_000, "--milliseconds", 5, *arguments]
    return subprocess.Popen([*map(str, command), "--no-perf-console-output"])


def curl(port, *arguments, path="/metrics"):
    """Status, headers, and body of one response."""
    command = ["curl", "-s", "-i", "--max-time", "10", "--path-as-is", *arguments, f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True)
    head, _, body = done.stdout.decode().partition("\r\n\r\n")
    status = re.match(r"HTTP/1.1 (\d+)", head)
    return int(status[1]) if status else 0, head, body


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    number = free_port()
    process = start(tmp_path_factory.mktemp("run"), "--perf-metrics-address", f"127.0.0.1:{number}")
    try:
        deadline = time.time() + 30
        while curl(number)[0] != 200 or "flopmeter_steps_total" not in curl(number)[2]:
            assert process.poll() is None and time.time() < deadline
            time.sleep(0.05)
        yield number
    finally:
        process.kill()
        process.wait()


def steps(text):
    return int(re.search(r"^flopmeter_steps_total\{.*\} (\d+)$", text, re.M)[1])


def test_promtool_accepts_the_live_metrics(port):
    status, head, body = curl(port)
    assert status == 200
    assert "text/plain; version=0.0.4" in head
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    first = steps(body)
    deadline = time.time() + 20
    while steps(curl(port)[2]) <= first:
        assert time.time() < deadline, "the figures do not move on"
        time.sleep(0.1)


@pytest.mark.parametrize(
    "status, path, arguments",
    [
        (200, "/metrics", []),
        (200, "/metrics", ["-H", "Host: localhost:9095"]),
        (403, "/metrics", ["-H", "Host: evil.example"]),
        (403, "/metrics", ["-H", "Host: 127.0.0.1.evil.example"]),
        (405, "/metrics", ["-X", "DELETE"]),
        (405, "/metrics", ["-X", "OPTIONS", "-H", "Origin: http://evil.example"]),
        (413, "/metrics", ["-X", "GET", "-d", "body"]),
        (431, "/metrics", ["-H", "X-Long: " + "x" * 9000]),
        (404, "/../../etc/passwd", []),
        (404, "/%2e%2e/%2e%2e/etc/passwd", []),
        (404, "//etc/passwd", []),
    ],
)
def test_only_harmless_requests_are_answered(port, status, path, arguments):
    found, head, body = curl(port, *arguments, path=path)
    assert found == status, head
    assert "access-control-allow" not in head.lower()
    assert "root:" not in body


def test_headers_keep_a_browser_safe(port):
    _, head, _ = curl(port, "-H", "Origin: http://evil.example")
    for wanted in ("X-Content-Type-Options: nosniff", "Content-Security-Policy: default-src 'none'", "Referrer-Policy"):
        assert wanted.lower() in head.lower()
    assert curl(port, "-I")[0] == 200  # HEAD


def test_the_server_is_off_by_default(tmp_path):
    process = start(tmp_path)
    try:
        while not list(tmp_path.glob("records_*")):
            time.sleep(0.05)
        links = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")]
        assert not [link for link in links if link.startswith("socket")]
    finally:
        process.kill()
        process.wait()


def test_addresses_beyond_loopback_need_a_token(example, tmp_path):
    done = example(tmp_path, "--steps", 3, "--perf-metrics-address", "0.0.0.0:0", check=False)
    assert done.returncode == 2 and "token" in done.stderr
    number = free_port()
    process = subprocess.Popen(
        [str(find_example()), "--perf-log-dir", str(tmp_path), "--steps", "1000000", "--milliseconds", "5", "--no-perf-console-output"],
        env={**os.environ, "FLOPMETER_METRICS_ADDRESS": f"0.0.0.0:{number}", "FLOPMETER_METRICS_TOKEN": "secret"},
    )
    try:
        deadline = time.time() + 30
        while (found := curl(number)[0]) != 401:
            assert found == 0 and time.time() < deadline
            time.sleep(0.05)
        assert curl(number, "-H", "Authorization: Bearer wrong!")[0] == 401
        assert curl(number, "-H", "Authorization: Bearer secret")[0] == 200
    finally:
        process.kill()
        process.wait()


def test_a_port_in_use_is_reported_and_the_run_continues(example, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = example(tmp_path, "--steps", 3, "--no-perf-console-output", "--perf-metrics-address", f"127.0.0.1:{taken.getsockname()[1]}")
    assert "metrics" in done.stderr
    assert len(next(tmp_path.glob("records_*.jsonl")).read_text().splitlines()) == 3


def status_of(pid, key):
    return int(re.search(rf"^{key}:\s+(\d+)", open(f"/proc/{pid}/status").read(), re.M)[1])


def test_a_flood_of_slow_clients_is_harmless(tmp_path):
    number = free_port()
    process = start(tmp_path, "--perf-metrics-address", f"127.0.0.1:{number}")
    clients = []
    try:
        deadline = time.time() + 30
        while curl(number)[0] != 200:
            assert time.time() < deadline
            time.sleep(0.05)
        before = status_of(process.pid, "VmRSS")
        for _ in range(200):
            client = socket.create_connection(("127.0.0.1", number), timeout=5)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
            clients.append(client)
        for _ in range(6):
            time.sleep(0.5)
            for client in clients:
                try:
                    client.send(b"x")
                except OSError:
                    pass  # dropped, as intended
        assert status_of(process.pid, "VmRSS") - before <= 4096  # KiB
        assert status_of(process.pid, "Threads") == 3  # training, writer, server
        deadline = time.time() + 30
        while curl(number)[0] != 200:  # after a while the slow clients are gone
            assert time.time() < deadline
            time.sleep(0.2)
        first = steps(curl(number)[2])
        time.sleep(1.5)
        assert steps(curl(number)[2]) > first + 20
        assert process.poll() is None
    finally:
        for client in clients:
            client.close()
        process.kill()
        process.wait()


def test_the_endpoint_is_closed_when_the_monitor_finishes(tmp_path):
    flopmeter = pytest.importorskip("flopmeter")
    number = free_port()
    for run in ("a", "b"):  # the second one needs the port of the first
        monitor = flopmeter.Monitor(tmp_path / run, console=False, metrics_address=f"127.0.0.1:{number}")
        with monitor.step(tokens=1):
            pass
        deadline = time.time() + 20
        while curl(number)[0] != 200:
            assert time.time() < deadline
            time.sleep(0.05)
        monitor.finish()
        assert curl(number)[0] == 0
