# SPDX-License-Identifier: Apache-2.0
"""Runs each case in a forked process and writes exit status and standard output of all as JSON.

Usage: driver.py RESULT [CASE...]
"""

import atexit
import contextlib
import fcntl
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time

import numpy
import torch
import torch._dynamo  # optimizers import it: once here instead of once per case
from cases import CASES

DEADLINE = 60


def thread_names():
    names = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # the thread ends at this moment
            names.add(open(f"/proc/self/task/{task}/comm").read().strip())
    return names


def run_here(function, output, monitored):
    """In the child: the case as a separate program. Ends the process without freeing torch, which takes a second."""
    for stream, number in ((output, 1), (open(os.devnull, "wb"), 2)):
        os.dup2(stream.fileno(), number)
    for seed in (random.seed, numpy.random.seed, torch.manual_seed):
        seed(1)
    status = 0
    try:
        function()
        print("random state", torch.rand(1).item())
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        status = 1
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # a case may have limited them
    os.write(monitored, b"1" if "flopmeter" in thread_names() else b"0")
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


def status_of(child):
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def main():
    target, *names = sys.argv[1:]
    results = {}
    for name in names or CASES:
        with tempfile.TemporaryFile() as output:
            answer, pipe = os.pipe()
            monitored = fcntl.fcntl(pipe, fcntl.F_DUPFD, 900)  # a case may close the lower ones
            os.close(pipe)
            child = os.fork()
            if child == 0:
                run_here(CASES[name], output, monitored)
            os.close(monitored)
            status = status_of(child)
            output.seek(0)
            text = output.read().decode(errors="replace")
            results[name] = {"status": status, "output": text, "monitored": os.read(answer, 1) == b"1"}
            os.close(answer)
    with open(target, "w") as file:
        json.dump(results, file, indent=1)


main()
