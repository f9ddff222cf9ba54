# SPDX-License-Identifier: Apache-2.0
"""`diagnose` and `report` on a run of 10^6 records and on one of 10^4 ranks: time, memory, time per GB."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from bench_serve import PROGRAM, RANKS, RECORDS_PER_RANK, write_long_run, write_ranks

RECORDS = 1_000_000


def measure(name, directory):
    size = sum(file.stat().st_size for file in directory.iterdir()) / 1e9
    for command in (["diagnose", directory], ["report", directory, "-o", directory.parent / "page.html"]):
        begin = time.monotonic()
        process = subprocess.Popen([PROGRAM, *command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, f"{command} failed"
        seconds = time.monotonic() - begin
        print(f"{name}, {size:.2f} GB: {command[0]:8} {seconds:6.2f} s, CPU time {usage.ru_utime + usage.ru_stime:.2f} s, "
              f"{seconds / size:.1f} s/GB, {usage.ru_maxrss / 1024:.0f} MB")


def main():
    root = pathlib.Path(tempfile.mkdtemp(prefix="flopmeter_readers_"))
    try:
        write_long_run(root / "long", RECORDS)
        measure(f"{RECORDS} records", root / "long")
        write_ranks(root / "ranks")
        measure(f"{RANKS} ranks x {RECORDS_PER_RANK} records", root / "ranks")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
