# SPDX-License-Identifier: Apache-2.0
"""Run directories of any length and number of ranks, in the form the monitor writes."""
import json
import math
import random

PEAK = 312e12
BYTES = 24 << 30


def record(step, rank=0, mfu=0.41, start=1.7e9, seconds=0.5, tag="train", **more):
    flops = int(mfu * seconds * PEAK)
    data = more.pop("data_share", 0.06)
    shares = {"data": data, "forward": 0.29, "backward": 0.52 - data, "optimizer": 0.07, "communication": 0.1, "other": 0.02}
    return {"v": 2, "step": step, "process_step": step, "epoch": 0, "rank": rank, "devices": 1, "micro_batches": 1,
            "time_unix": start + 0.5 * (step + 1), "step_seconds": seconds, "tag": tag, "mfu": mfu, "hfu": mfu * 1.1,
            "goodput": 0.97, "run_seconds": 0.5 * (step + 1) + 1,
            "productive_seconds": 0.48 * (step + 1), "model_flops": flops, "hardware_flops": int(flops * 1.1),
            "recompute_flops": int(flops * 0.1), "flops_source": "counted", "attention_pairs": "exact",
            "convention": "model-v1", "unsupported_op_calls": 0, "samples": 8, "tokens": 16384,
            "phases": {name: share * seconds for name, share in shares.items()},
            "memory_bytes": {"rss": 3 << 30, "rss_peak": 3 << 30, "device": BYTES, "device_peak": BYTES + (4 << 30),
                             "device_reserved": BYTES + (6 << 30)},
            "hardware_flops_by_dtype": {"bf16": int(flops * 1.05), "fp32": flops // 20}, "loss": 2.0,
            "monitor_seconds": 3e-6, "dropped_records": 0, "failed_writes": 0, "stride": 1, **more}


def describe(directory, ranks=1, **more):
    run = {"schema": "flopmeter.run/2", "run_id": "00c0ffee00c0ffee", "stamp": "20231114_221320", "model": "llama-3-8b",
           "convention": "model-v1", "mode": "auto",
           "device": {"name": "NVIDIA A100 SXM 80GB", "source": "catalog: NVIDIA A100 datasheet",
                      "peak_flops_per_second": {"bf16": PEAK, "fp32": 19.5e12}, "memory_bytes_per_second": 2.039e12},
           "world": {"size": ranks, "data_parallel": ranks, "devices_per_rank": 1}, "log_interval": 10, **more}
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(json.dumps(run, indent=2))


def stream(directory, rank=0, stamp="20231114_221320"):
    return directory / f"records_{stamp}.rank{rank}.jsonl"


def write_stream(path, records):
    with open(path, "w") as file:
        for one in records:
            file.write(json.dumps(one, separators=(",", ":")) + "\n")


def noisy(step, rank=0, seed=7, **more):
    """A believable step: some noise, a slow drift, an occasional stall of the loader."""
    chance = random.Random(step * 100_003 + rank + seed)
    stalled = chance.random() < 0.004
    mfu = 0.43 + 0.02 * math.sin(step / 400) + chance.gauss(0, 0.008) - (0.25 if stalled else 0)
    return record(step, rank, max(0.02, mfu), seconds=0.5 * (1.03 if rank == 3 else 1) * (1 + (1.2 if stalled else 0)),
                  data_share=0.4 if stalled else 0.06, **more)


def starved(step):
    """Waits for data two fifths of the time from step 200 on."""
    waiting = step >= 200
    seconds = 0.75 if waiting else 0.43
    work = {"forward": 0.13, "backward": 0.26, "optimizer": 0.03, "other": 0.005}
    one = record(step, mfu=0.2 / seconds, seconds=seconds, start=1.7e9 + (0.3 * (step - 200) if waiting else 0))
    one["hardware_flops_by_dtype"] = {"bf16": one["hardware_flops"]}
    one["phases"] = {"data": seconds - sum(work.values()), **work}
    return one


def product(m, n, k, seconds, calls=24):
    return {"name": "aten::mm", "kind": "compute", "phase": "forward", "backward": False, "elements": m * k, "calls": calls,
            "self_seconds": seconds, "shape": f"[{m},{k}] [{k},{n}]", "flops": 2 * m * n * k * calls,
            "bytes": 2 * (m * k + k * n + m * n) * calls}


def write_op_profile(directory, step=100, rank=0, stamp="20231114_221320"):
    """One profiled step: products large, long and thin, and operators that only move data."""
    rows = [product(8192, 4096, 4096, 0.045), product(8192, 14336, 4096, 0.13), product(8192, 4096, 14336, 0.14),
            product(1, 4096, 4096, 0.004), product(64, 64, 8192, 0.006),
            {"name": "aten::add", "kind": "memory", "phase": "forward", "backward": False, "elements": 1 << 25, "calls": 60,
             "self_seconds": 0.04}]
    profile = {"v": 1, "step": step, "time_unix": 1.7e9 + 0.5 * step, "wall_seconds": 0.5, "busy_seconds": 0.365,
              "calls": 180, "on_device": False, "rows": rows,
              "timeline": {"seconds": 0.5, "omitted": 12, "names": ["forward", "backward", "aten::linear", "aten::add"], "lanes": [
                  {"name": "phase", "kind": "phases", "spans": [[0.05, 0.15, 0], [0.2, 0.25, 1]]},
                  {"name": "compute", "kind": "compute", "spans": [[0.05, 0.1, 2], [0.2, 0.25, 2]]},
                  {"name": "other operators", "kind": "operators", "spans": [[0.15, 0.05, 3]]}]}}
    (directory / f"op_profile_{stamp}.rank{rank}.jsonl").write_text(json.dumps(profile) + "\n")


def write_long(path, steps, spikes):
    """Many records quickly: one line, with the numbers that change put in by hand."""
    line = json.dumps(record(0), separators=(",", ":"))
    head, rest = line.split('"step":0,"process_step":0,', 1)
    before_time, rest = rest.split('"time_unix":', 1)
    rest = rest[rest.index(","):]
    before_mfu, rest = rest.split('"mfu":', 1)
    rest = rest[rest.index(","):]
    with open(path, "w") as file:
        for step in range(steps):
            mfu = spikes.get(step, 0.40 + 0.01 * (step % 7))
            file.write(f'{head}"step":{step},"process_step":{step},{before_time}"time_unix":{1.7e9 + 0.5 * step}'
                       f'{before_mfu}"mfu":{mfu}{rest}\n')
