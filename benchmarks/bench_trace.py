#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `flopmeter trace` with HolisticTraceAnalysis (HTA) on the same files: CPU seconds, peak memory, GB/s.

HTA loads the trace and computes its temporal breakdown, communication overlap, kernel breakdown, and idle time. It runs
in its own environment below build/ because it does not work with pandas 3. The traces are a real one, repeated with
shifted times and ids (FLOPMETER_TRACES names its folder), or a synthetic one if there is none.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = Path(os.environ.get("FLOPMETER_TRACES", ROOT.parent / "shared/data/traces"))
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
"""


LARGEST_GZIP = 100  # MB of JSON; larger traces are mostly plain


def base_trace():
    sample = SAMPLES / "hta_ns_resolution.json.gz"
    if sample.is_file():
        return json.loads(gzip.decompress(sample.read_bytes()))
    sys.path.insert(0, str(ROOT / "tests/trace"))
    from eras import ERAS, write  # noqa: PLC0415

    return json.loads(write(ERAS[-1]))


def write_repeated(path, size):
    """The events again and again, later each time and with new ids, one per line as Kineto writes them."""
    trace = base_trace()
    events = trace.pop("traceEvents")
    start = min(event["ts"] for event in events if event.get("ph") == "X")
    span = max(event["ts"] + event.get("dur", 0) for event in events if event.get("ph") == "X") - start + 1000
    with open(path, "w") as out:
        out.write(json.dumps(trace)[:-1] + ',\n"traceEvents": [')
        separator, copy = "\n  ", 0
        while out.tell() < size:
            for event in events:
                event = dict(event, ts=round(event["ts"] - start + copy * span, 3))
                args = event.get("args")
                if isinstance(args, dict):
                    event["args"] = args = dict(args)
                    for key in ("correlation", "External id", "Ev Idx"):
                        if isinstance(args.get(key), int) and args[key] > 0:
                            args[key] += copy * 10_000_000
                out.write(separator + json.dumps(event))
                separator = ",\n  "
            copy += 1
        out.write("\n]}\n")


def hta_python():
    venv = ROOT / "build" / "hta-venv"
    python = venv / "bin/python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        wanted = ["HolisticTraceAnalysis==0.5.0", "pandas<3"]
        subprocess.run([venv / "bin/pip", "-q", "install", *wanted], check=True, stderr=subprocess.DEVNULL)
    return python


def measure(command):
    """CPU seconds and peak memory of a program."""
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *map(str, command)], capture_output=True, text=True, check=True)
    code, seconds, kilobytes = done.stdout.split()
    return (float(seconds), int(kilobytes) / 1024) if int(code) == 0 else None


def best(command, times):
    runs = [run for run in (measure(command) for _ in range(times)) if run]
    return min(runs) if runs else None


def memory_limit(command, path):
    """The goal in MB: the file, 64 MB, and 100 bytes for each event."""
    report = json.loads(subprocess.run([*map(str, command), str(path)], capture_output=True, text=True, check=True).stdout)
    return path.stat().st_size / 2**20 + 64 + 100 * report["ranks"][0]["events"] / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="*", default=[30, 90, 1000], help="sizes of the plain JSON")
    parser.add_argument("--growth", type=int, nargs="*", default=[10, 100, 500, 2000], help="sizes for flopmeter alone, on one thread")
    parser.add_argument("--no-hta", action="store_true")
    arguments = parser.parse_args()
    folder = ROOT / "build" / "bench-trace"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        python = None if arguments.no_hta else hta_python()
    except subprocess.CalledProcessError:
        python = None
        print("HTA is not available: only flopmeter is measured")
    print(f"{'file':>22} {'program':>18} {'CPU s':>8} {'GB/s':>6} {'MB':>6} {'limit':>6} {'x HTA':>6}")
    ours = [ROOT / "build/flopmeter", "trace", "--json"]
    one_thread = ["taskset", "-c", "0", *ours]
    for size in sorted({*arguments.megabytes, *arguments.growth}):
        plain = folder / f"{size}mb.json"
        write_repeated(plain, size * 10**6)
        gigabytes, paths = plain.stat().st_size / 1e9, [plain]
        if size in arguments.megabytes and size <= LARGEST_GZIP:
            paths.append(folder / f"{size}mb.json.gz")
            paths[1].write_bytes(gzip.compress(plain.read_bytes(), 6))
        for path in paths:
            compared = size in arguments.megabytes
            peer = best([python, "-c", HTA, path], 1) if python and compared else None
            limit = memory_limit(ours, path)
            for program, run in (
                ("HTA 0.5.0", peer),
                ("flopmeter", best([*ours, path], 5) if compared else None),
                ("on one processor", best([*one_thread, path], 3)),
            ):
                if run:
                    ratio = f"{peer[0] / run[0]:6.0f}" if peer else ""
                    print(f"{path.name:>22} {program:>18} {run[0]:8.3f} {gigabytes / run[0]:6.2f} {run[1]:6.0f} {limit:6.0f} {ratio}")
            path.unlink()


if __name__ == "__main__":
    main()
