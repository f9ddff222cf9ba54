#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one loop of loops.py as a plain training script.

    python tests/simgpu/run_loop.py item10 --steps 30 --truth truth.json [--fixed] [--set network_gbs=4 ...]
    torchrun --nproc-per-node 2 tests/simgpu/run_loop.py ddp_slow --truth truth{rank}.json
"""

import argparse
import json
import os

from loops import ALL_LOOPS, RANKS, run


def pair(text):
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*ALL_LOOPS, *RANKS], metavar="NAME", help=", ".join([*ALL_LOOPS, *RANKS]))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--truth", help="write the truth to this JSON file; {rank} is replaced")
    parser.add_argument("--kernels", action="store_true", help="with every kernel")
    parser.add_argument("--fixed", action="store_true", help="with the cause removed")
    parser.add_argument("--values", action="store_true", help="a tiny model with real values")
    parser.add_argument("--set", type=pair, action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    truth = run(
        arguments.name, arguments.steps, fixed=arguments.fixed, values=arguments.values, **dict(arguments.set)
    )
    if arguments.truth:
        truth.save(arguments.truth.replace("{rank}", os.environ.get("RANK", "0")), arguments.kernels)
    step = truth.mean(skip=min(3, arguments.steps - 1))
    idle = ", ".join(f"{cause} {seconds * 1e3:.2f}" for cause, seconds in sorted(step.idle_by.items()))
    print(
        f"{arguments.name}: step {step.seconds * 1e3:.2f} ms = busy {step.busy * 1e3:.2f}"
        f" + communication {step.communication * 1e3:.2f} + copies {step.copies * 1e3:.2f}"
        f" + idle {step.idle * 1e3:.2f} ({idle}); host {step.host_seconds * 1e3:.2f} ms;"
        f" {step.launches:.0f} launches; utilization {step.utilization:.1%}"
    )
    print("phases: " + ", ".join(f"{name} {seconds * 1e3:.2f}" for name, seconds in step.phases.items()))


if __name__ == "__main__":
    main()
