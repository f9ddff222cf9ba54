#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of `flopmeter run` beyond time: added resident memory, and bytes on disk per 1,000 steps and per hour.

Both programs run the same loop, with and without it, several times in turn; the medians are compared.  Bytes are those of
all files in the run directory after two lengths of the loop, so that files of constant size do not count.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOP = """
import json, resource, sys, time, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
optimizer = torch.optim.AdamW(model.parameters())
begin = time.monotonic()
for _ in range(int(sys.argv[1])):
    model(torch.randn(64, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(json.dumps({"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "seconds": time.monotonic() - begin}))
"""


def run(steps, directory=None):
    """Peak memory and time of the loop, and the bytes that it left."""
    monitored = [ROOT / "build" / "flopmeter", "run", "--dir", directory, "--no-console", "--"] if directory else []
    command = [*monitored, sys.executable, "-c", LOOP, str(steps)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    files = Path(directory).rglob("*") if directory else ()
    return {**json.loads(done.stdout.splitlines()[-1]), "bytes": sum(file.stat().st_size for file in files if file.is_file())}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain, monitored, short = [], [], []
        for number in range(options.rounds):
            plain.append(run(options.steps))
            monitored.append(run(options.steps, f"{folder}/{number}"))
            short.append(run(options.steps // 4, f"{folder}/short{number}"))
    median = lambda rows, name: statistics.median(row[name] for row in rows)  # noqa: E731
    memory = median(monitored, "memory") - median(plain, "memory")
    per_thousand = (median(monitored, "bytes") - median(short, "bytes")) / (options.steps - options.steps // 4) * 1000
    print(f"memory: plain {median(plain, 'memory') / 1e6:.0f} MB, added {memory / 1e6:.1f} MB")
    print(f"disk: {per_thousand / 1e6:.2f} MB per 1,000 steps; at 10 steps per second {per_thousand * 36 / 1e6:.0f} MB per hour")


if __name__ == "__main__":
    main()
