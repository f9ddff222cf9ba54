# SPDX-License-Identifier: Apache-2.0
"""The dashboard at scale: 200 runs of 10^4 records, one run of 10^7 steps at its disk limit, and one of 10^4 ranks.

Prints the time of the first index, the time of each view, the memory, and the CPU time while ten runs grow.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src" / "report" / "tests"))
import synthetic_runs  # noqa: E402

PROGRAM = pathlib.Path(os.environ.get("FLOPMETER_PROGRAM", ROOT / "build" / "flopmeter"))
RUNS, RECORDS = 200, 10_000
LONG_STEPS, LONG_BYTES = 10_000_000, 256 << 20
RANKS, RECORDS_PER_RANK = 10_000, 100
GROWING = 10


def write_long_run(directory, count=None):
    """Writes so many records, or as many as the disk limit allows, of LONG_STEPS steps."""
    synthetic_runs.describe(directory)
    lines = [json.dumps(synthetic_runs.noisy(step), separators=(",", ":")) for step in range(1000)]
    count = count or LONG_BYTES // (sum(map(len, lines)) // 1000 + 8)
    stride = LONG_STEPS // count
    with open(synthetic_runs.stream(directory), "w") as file:
        for i in range(count):
            step = i * stride
            line = lines[i % 1000].split('"time_unix":', 1)
            file.write(f'{{"v":2,"step":{step},"process_step":{step},"rank":0,"devices":1,"micro_batches":1,"time_unix":{1.7e9 + 0.5 * step}'
                       + line[1][line[1].index(","):] + "\n")
    return count


def write_ranks(directory):
    synthetic_runs.describe(directory, RANKS)
    text = "".join(json.dumps(synthetic_runs.noisy(step, data_parallel=RANKS), separators=(",", ":")) + "\n" for step in range(RECORDS_PER_RANK))
    for rank in range(RANKS):
        synthetic_runs.stream(directory, rank).write_text(text.replace('"rank":0', f'"rank":{rank}'))


def write_dataset(root):
    first = root / "run-000"
    synthetic_runs.describe(first)
    synthetic_runs.write_long(synthetic_runs.stream(first), RECORDS, {})
    synthetic_runs.write_op_profile(first)
    for i in range(1, RUNS):
        directory = root / f"run-{i:03}"
        synthetic_runs.describe(directory)
        for file in first.iterdir():
            if file.suffix == ".jsonl":
                os.link(file, directory / file.name)
    records = write_long_run(root / "long")
    write_ranks(root / "ranks")
    return records


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(process, name="VmHWM"):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split(name + ":")[1].split()[0]) / 1024


def get(address):
    begin = time.monotonic()
    with urllib.request.urlopen(address, timeout=60) as answer:
        size = len(answer.read())
    return 1000 * (time.monotonic() - begin), size


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="flopmeter_serve_"))
    try:
        records = write_dataset(root)
        print(f"dataset: {RUNS} runs x {RECORDS} records; {LONG_STEPS} steps in {records} records; {RANKS} ranks x {RECORDS_PER_RANK} records")
        with subprocess.Popen([PROGRAM, "serve", root, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
            try:
                measure(process, root)
            finally:
                process.terminate()
    finally:
        shutil.rmtree(root)


def measure(process, root):
    address = process.stdout.readline().split()[1]
    begin = time.monotonic()
    while True:
        answer = json.load(urllib.request.urlopen(address + "api/runs", timeout=60))
        if len(answer["runs"]) == RUNS + 2 and all(run["state"] == "done" for run in answer["runs"]):
            break
        time.sleep(0.2)
    print(f"first index: {time.monotonic() - begin:.1f} s, {cpu_seconds(process):.1f} s of CPU time")
    ids = {run["name"]: run["id"] for run in answer["runs"]}
    views = {"list": "api/runs", "run": f"api/run/{ids['run-007']}", "10^7 steps": f"api/run/{ids['long']}", "10^4 ranks": f"api/run/{ids['ranks']}",
             "heat map": f"api/run/{ids['ranks']}/ranks?first=100&count=200", "one rank": f"api/run/{ids['ranks']}/rank/77",
             "CSV": f"api/run/{ids['long']}/curves.csv", "saved page": f"api/run/{ids['run-007']}/page.html"}
    for name, path in views.items():
        used = cpu_seconds(process)
        taken = sorted(get(address + path) for _ in range(11))
        used = 1000 * (cpu_seconds(process) - used) / len(taken)
        print(f"view {name:12}: median {taken[5][0]:6.1f} ms, worst {taken[-1][0]:6.1f} ms, CPU time {used:5.1f} ms, {taken[5][1] / 1024:.0f} KiB")
    print(f"memory: {memory_mb(process, 'VmRSS'):.0f} MB now, {memory_mb(process):.0f} MB at most")
    now = time.time()
    streams = []
    for i in range(GROWING):
        directory = root / f"live-{i}"
        synthetic_runs.describe(directory)
        streams.append(open(synthetic_runs.stream(directory), "w"))
    time.sleep(5)
    used, begin, step = cpu_seconds(process), time.monotonic(), 0
    while time.monotonic() - begin < 20:
        for stream in streams:  # two records per second and run
            stream.write(json.dumps(synthetic_runs.record(step, start=now)) + "\n")
            stream.flush()
        step += 1
        time.sleep(0.5)
    share = (cpu_seconds(process) - used) / (time.monotonic() - begin)
    print(f"{GROWING} live runs, no page open: {100 * share:.2f} % of a core")


if __name__ == "__main__":
    main()
