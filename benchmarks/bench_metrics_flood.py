# SPDX-License-Identifier: Apache-2.0
"""What a flood of the /metrics endpoint costs the training that serves it.

    python benchmarks/bench_metrics_flood.py [--rounds N] [--seconds S] [--add-to FILE]

A round is one run of the C++ example, which computes all the time, and four stretches of it in random order: quiet,
quiet again, asked (one client asks for /metrics as fast as it is answered) and flooded (by 200 more, which send a byte of
their request now and then and come again when they are dropped).  All clients share one processor, the last.  Compared
are the 99th percentiles and medians of the step times; the ratio is the median over rounds with a bootstrap 95 %
interval.  What *quiet again* shows is noise.  ``--add-to``: rounds are kept in FILE, and the figures are those of all
rounds in it.
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
SIDES = ("quiet", "quiet again", "asked", "flooded")
SETTLE = 1.0  # seconds at the start of a stretch that are left out
SLOW_CLIENTS = 200


def connect(port: int) -> socket.socket | None:
    try:
        client = socket.create_connection(("127.0.0.1", port), timeout=1)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        return client
    except OSError:
        return None


def drip(client: socket.socket | None, port: int) -> socket.socket | None:
    """The client after one more byte, or in its place one that comes anew."""
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
    """Says how many requests were answered."""
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


def stretch(side: str, port: int, seconds: float) -> tuple[float, float, int]:
    """From when to when to look at the steps, and how many requests were answered meanwhile."""
    begin = time.time()
    if side.startswith("quiet"):
        time.sleep(seconds)
        return begin + SETTLE, begin + seconds, 0
    slow_clients = SLOW_CLIENTS if side == "flooded" else 0
    command = [sys.executable, __file__, "--flood", str(port), str(slow_clients), "--seconds", str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return begin + SETTLE, begin + seconds, int(done.stdout)


def step_ends(folder: Path) -> list[tuple[float, float]]:
    """When each step ended and how long it was."""
    records = [json.loads(line) for file in folder.glob("records_*") for line in file.read_text().splitlines()]
    return [(record["time_unix"], record["step_seconds"]) for record in records]


def one_round(seconds: float, folder: Path, generator: random.Random) -> dict[str, list[float]]:
    """99th percentile and median of each side's step times."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--perf-log-dir", str(folder), "--no-perf-console-output", "--perf-metrics-address", f"127.0.0.1:{port}"]
    process = subprocess.Popen([str(EXAMPLE), "--steps", "100000000", *options])
    try:
        deadline = time.monotonic() + 30
        while not ask(port):
            assert process.poll() is None and time.monotonic() < deadline, "the example does not serve /metrics"
            time.sleep(0.05)
        stretches = {side: stretch(side, port, seconds) for side in generator.sample(SIDES, len(SIDES))}
        assert stretches["asked"][2] > 0, "no request was answered"
        time.sleep(1.5)  # until the last steps are on disk
        assert process.poll() is None, "the run has ended"
    finally:
        process.kill()
        process.wait()
    steps = step_ends(folder)
    figures = {}
    for side, (begin, end, _) in stretches.items():
        times = [length for at, length in steps if begin < at < end]
        assert len(times) > 200, f"only {len(times)} steps in a stretch: give it more --seconds"
        figures[side] = [statistics.quantiles(times, n=100)[98], statistics.median(times)]
    return figures


def show(rounds: list[dict[str, list[float]]]) -> None:
    for side in SIDES[1:]:
        words = []
        for index, name in enumerate(("p99", "median")):
            ratios = [each[side][index] / each["quiet"][index] for each in rounds]
            low, high = interval(ratios)
            words.append(f"{name} x {statistics.median(ratios):.4f} (95 %: {low:.4f} to {high:.4f})")
        print(f"{side:12} step time: {', '.join(words)}")
    quiet = [statistics.median(each["quiet"][index] for each in rounds) for index in (0, 1)]
    print(f"{len(rounds)} rounds; quiet: p99 {1000 * quiet[0]:.3f} ms, median {1000 * quiet[1]:.3f} ms a step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=5, help="of a stretch")
    parser.add_argument("--add-to", type=Path, metavar="FILE")
    parser.add_argument("--flood", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flood:
        flood(*arguments.flood, arguments.seconds)
        return
    show(take_rounds(arguments.rounds, arguments.add_to, lambda *where: one_round(arguments.seconds, *where)))


if __name__ == "__main__":
    main()
