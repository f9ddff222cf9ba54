# SPDX-License-Identifier: Apache-2.0
"""What a flood of the /metrics endpoint costs the training that serves it.

    python benchmarks/bench_metrics_flood.py [--rounds N] [--seconds S] [--add-to FILE]

A round is one run of the C++ example, which computes all the time, and turns of four kinds in random order: negative,
negative again, asked (one client asks for /metrics as fast as it is answered) and flooded (by 200 more, which send a byte of
their request now and then and come again when they are dropped).  All clients share one processor, the last, where the
training thread does not run and which also has something to do while it is negative: what clients take from the training is
not the server's doing.  Compared are the 99th percentiles of the example's steps (1.5 ms) and of ten of them together, which is more like a
training's step, and the median; the ratio is the median over rounds with a bootstrap 95 % interval.  What *negative again*
shows is noise.  ``--add-to``: rounds are kept in FILE, and the figures are those of all rounds in it.
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
SIDES = ("negative", "negative again", "asked", "flooded")
TURNS = 3  # of each side in a round
SETTLE = 1.0  # seconds at the start of a turn that are left out
TOGETHER = 10  # steps
SLOW_CLIENTS = 200
FIGURES = ("p99", f"p99 of {TOGETHER} together", "median")


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


def keep_busy() -> None:
    """Whatever else wants the last processor has it at once."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        pass


def turn(side: str, port: int, seconds: float) -> tuple[float, float, int]:
    """From when to when to look at the steps, and how many requests were answered meanwhile."""
    begin = time.time()
    if side.startswith("negative"):
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


def p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def one_round(seconds: float, folder: Path, generator: random.Random) -> dict[str, list[float]]:
    """99th percentiles and median of each side's step times."""
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
        os.sched_setaffinity(process.pid, sorted(os.sched_getaffinity(0))[:-1])  # its training thread alone
        turns = [(side, *turn(side, port, seconds)) for side in generator.sample(SIDES * TURNS, len(SIDES) * TURNS)]
        assert all(answered for side, _, _, answered in turns if side == "asked"), "no request was answered"
        time.sleep(1.5)  # until the last steps are on disk
        assert process.poll() is None and busy.poll() is None, "the run has ended"
    finally:
        for each in (process, busy):
            each.kill()
            each.wait()
    steps = step_ends(folder)
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    together: dict[str, list[float]] = {side: [] for side in SIDES}
    for side, begin, end, _ in turns:
        seen = [length for at, length in steps if begin < at < end]
        times[side] += seen
        together[side] += [sum(seen[i : i + TOGETHER]) for i in range(0, len(seen) - TOGETHER, TOGETHER)]
    assert min(map(len, together.values())) > 200, "too few steps: give it more --seconds"
    return {side: [p99(times[side]), p99(together[side]), statistics.median(times[side])] for side in SIDES}


def show(rounds: list[dict[str, list[float]]]) -> None:
    for side in SIDES[1:]:
        words = []
        for index, name in enumerate(FIGURES):
            ratios = [each[side][index] / each["negative"][index] for each in rounds]
            low, high = interval(ratios)
            words.append(f"{name} x {statistics.median(ratios):.4f} (95 %: {low:.4f} to {high:.4f})")
        print(f"{side:12} step time: {', '.join(words)}")
    negative = [1000 * statistics.median(each["negative"][index] for each in rounds) for index in range(len(FIGURES))]
    words = [f"{name} {milliseconds:.3f} ms" for name, milliseconds in zip(FIGURES, negative, strict=True)]
    print(f"{len(rounds)} rounds; negative: {', '.join(words)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6, help="of a turn")
    parser.add_argument("--add-to", type=Path, metavar="FILE")
    parser.add_argument("--keep-busy", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--flood", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.keep_busy:
        keep_busy()
    if arguments.flood:
        flood(*arguments.flood, arguments.seconds)
        return
    show(take_rounds(arguments.rounds, arguments.add_to, lambda *where: one_round(arguments.seconds, *where)))


if __name__ == "__main__":
    main()
