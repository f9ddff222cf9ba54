# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that counting adds to one operator, with callgrind, independent of the machine's load.

    python benchmarks/bench_torch_instructions.py [build/release/benchmarks/torch/mm_loop]
"""

import re
import subprocess
import sys
import tempfile

CALLS = 2000


def instructions(program, op, mode, count):
    with tempfile.NamedTemporaryFile() as out:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", program, op, mode, str(count)],
            capture_output=True,
            text=True,
            check=True,
        )
    return int(re.search(r"Collected : (\d+)", run.stderr).group(1))


def per_call(program, op, mode):
    return (instructions(program, op, mode, 2 * CALLS) - instructions(program, op, mode, CALLS)) / CALLS


def main(program):
    for op in ("mm", "add"):
        plain, off, counted = (per_call(program, op, mode) for mode in ("plain", "off", "counted"))
        print(
            f"{op:4} 8x8: {plain:.1f} instructions without a counter, {off - plain:+.1f} after one was closed, "
            f"{counted - plain:+.1f} with an active one"
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "build/release/benchmarks/torch/mm_loop")
