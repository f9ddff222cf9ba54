# SPDX-License-Identifier: Apache-2.0
"""Measures the effect of load on /metrics on the step time of the training that serves it.

    python benchmarks/bench_metrics_flood.py [--rounds N] [--seconds S] [--add-to FILE]

A round is one run of the C++ example, which computes continuously, with turns of four kinds in random order: idle, idle
again, requested (one client sends requests as fast as they are answered), and flooded (200 more clients that send single
bytes of their requests and reconnect when they are disconnected). All clients share the last processor, where the
training thread does not run; a busy loop occupies it in idle turns, so that the clients themselves make no difference.
The benchmark compares the 99th percentile of the step times (1.5 ms), the 99th percentile of sums of ten steps, and the
median. Ratios are medians over the rounds with a bootstrap 95 % interval. *Idle again* shows the noise. ``--add-to``
stores the rounds in FILE and reports all rounds in it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench_run_pairs import ROOT, interval, take_rounds

EXAMPLE = ROOT / "build" / "release" / "examples" / "cpp_no_torch" / "monitor_example"
VARIANTS = ("idle", "idle again", "requested", "flooded")
TURNS = 3  # per variant and round
SETTLE = 1.0  # seconds excluded at the start of a turn
GROUP = 10  # steps
SLOW_CLIENTS = 200
FIGURES = ("p99", f"p99 of {GROUP} steps", "median")


def connect(port: int) -> socket.socket | None:
    try:
        client = socket.create_connection(("127.0.0.1", port), timeout=1)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        return client
    except OSError:
        return None


def drip(client: socket.socket | None, port: int) -> socket.socket | None:
    """Sends one byte; reconnects if the connection is closed."""
    try:
        if client is not None:
            client.send(b"x")
            return client
    except OSError:
        client.close()
    return connect(port)


def ask(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().startswith(b"# HELP")
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def flood(port: int, slow_clients: int, seconds: float) -> None:
    """Prints the number of answered requests."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    clients: list[socket.socket | None] = [None] * slow_clients
    answered = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        clients = [drip(client, port) for client in clients]
        until = time.monotonic() + 0.25
        while time.monotonic() < until:
            answered += ask(port)
    print(answered)


def keep_busy() -> None:
    """Occupies the last processor at idle priority."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


def turn(variant: str, port: int, seconds: float) -> tuple[float, float, int]:
    """Start and end of the measured time, and the number of answered requests."""
    begin = time.time()
    if variant.startswith("idle"):
        time.sleep(seconds)
        return begin + SETTLE, begin + seconds, 0
    slow_clients = SLOW_CLIENTS if variant == "flooded" else 0
    command = [sys.executable, __file__, "--flood", str(port), str(slow_clients), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return begin + SETTLE, begin + seconds, int(done.stdout)


def step_ends(folder: Path) -> list[tuple[float, float]]:
    """End and duration of each step."""
    records = [json.loads(line) for file in folder.glob("records_*") for line in file.read_text().splitlines()]
    return [(record["time_unix"], record["step_seconds"]) for record in records]


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def one_round(seconds: float, folder: Path, generator: random.Random) -> dict[str, list[float]]:
    """99th percentiles and median of the step times of each variant."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--perf-log-dir", str(folder), "--no-perf-console-output", "--perf-metrics-address", f"127.0.0.1:{port}"]
    busy = subprocess.Popen([sys.executable, __file__, "--keep-busy"])
    process = subprocess.Popen([str(EXAMPLE), "--steps", "100000000", *options])
    try:
        deadline = time.monotonic() + 30
        while not ask(port):
            assert process.poll() is None and time.monotonic() < deadline, "the example does not serve /metrics"
            time.sleep(0.05)
        os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:-1])  # affects only the training thread
        turns = [(variant, *turn(variant, port, seconds)) for variant in generator.sample(VARIANTS * TURNS, len(VARIANTS) * TURNS)]
        assert all(answered for variant, _, _, answered in turns if variant == "requested"), "no request was answered"
        time.sleep(1.5)  # until the last steps are written
        assert process.poll() is None and busy.poll() is None, "the run has ended"
    finally:
        for each in (process, busy):
            each.kill()
            each.wait()
    steps = step_ends(folder)
    times: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    grouped: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for variant, begin, end, _ in turns:
        seen = [length for at, length in steps if begin < at < end]
        times[variant] += seen
        grouped[variant] += [sum(seen[i : i + GROUP]) for i in range(0, len(seen) - GROUP, GROUP)]
    assert min(map(len, grouped.values())) > 200, "too few steps; increase --seconds"
    return {each: [p99(times[each]), p99(grouped[each]), statistics.median(times[each])] for each in VARIANTS}


def show(rounds: list[dict[str, list[float]]]) -> None:
    for variant in VARIANTS[1:]:
        words = []
        for index, name in enumerate(FIGURES):
            ratios = [each[variant][index] / each["idle"][index] for each in rounds]
            low, high = interval(ratios)
            words.append(f"{name} x {statistics.median(ratios):.4f} (95 %: {low:.4f} to {high:.4f})")
        print(f"{variant:12} step time: {', '.join(words)}")
    idle = [1000 * statistics.median(each["idle"][index] for each in rounds) for index in range(len(FIGURES))]
    words = [f"{name} {milliseconds:.3f} ms" for name, milliseconds in zip(FIGURES, idle, strict=True)]
    print(f"{len(rounds)} rounds; idle: {', '.join(words)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6, help="duration of a turn")
    parser.add_argument("--add-to", type=Path, metavar="FILE")
    parser.add_argument("--keep-busy", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flood", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.keep_busy:
        keep_busy()
    if arguments.flood:
        flood(*arguments.flood, arguments.seconds)
        return
    show(take_rounds(arguments.rounds, arguments.add_to, lambda *setup: one_round(arguments.seconds, *setup)))


if __name__ == "__main__":
    main()
