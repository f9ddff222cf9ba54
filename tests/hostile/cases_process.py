# SPDX-License-Identifier: Apache-2.0
"""Programs that change the process or the interpreter around a usual loop."""

import asyncio
import atexit
import builtins
import cProfile
import faulthandler
import gc
import json
import logging
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
from unittest import mock

import torch
from case_table import Model, WIDTH, case, train


# Ends


@case
def program_exits_in_a_forward_hook():
    model = Model()
    train(model, steps=2)
    model.register_forward_hook(lambda *_: sys.exit(5))
    train(model)


@case
def program_exits_in_a_backward_hook():
    model = Model()
    train(model, steps=2)
    model.layer.weight.register_hook(lambda gradient: sys.exit(6))
    train(model)


@case
def program_ends_at_once():
    train(Model(), steps=2)
    sys.stdout.flush()
    os._exit(9)


@case
def program_aborts():
    train(Model(), steps=2)
    sys.stdout.flush()
    os.abort()


@case
def program_is_killed():
    train(Model(), steps=2)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


@case
def program_is_terminated():
    train(Model(), steps=2)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGTERM)


@case
def program_becomes_another():
    train(Model(), steps=2)
    sys.stdout.flush()
    os.execv("/bin/echo", ["echo", "another program"])


@case
def program_interrupted_in_backward():
    model = Model()
    calls = []

    def hook(gradient):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    model.layer.weight.register_hook(hook)
    try:
        train(model)
    except KeyboardInterrupt:
        print("interrupted")
    train(model, steps=2)


@case
def program_clears_atexit():
    train(Model(), steps=2)
    atexit._clear()


# Processes and threads


@case
def program_forks_and_both_train():
    model = Model()
    train(model, steps=2)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        train(model, steps=2)
        sys.stdout.flush()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    train(model, steps=2)


@case
def program_forks_in_a_hook():
    model = Model()

    def hook(*_):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    model.register_forward_hook(hook)
    train(model, steps=3)


@case
def program_with_a_pool():
    import multiprocessing

    train(Model(), steps=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(abs, [-1, -2, -3]))
    train(Model(), steps=2)


@case
def program_passes_functions_to_processes():
    train(Model(), steps=2)
    for function in (torch.save, torch.autograd.backward):
        print(pickle.loads(pickle.dumps(function)) is function)


@case
def program_starts_programs():
    train(Model(), steps=2)
    print(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout)
    train(Model(), steps=2)


@case
def program_trains_in_two_threads():
    losses = {}

    def loop(number, model):
        generator = torch.Generator().manual_seed(number)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(5):
            loss = model(torch.randn(2, WIDTH, generator=generator)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.setdefault(number, []).append(f"{loss.item():.9g}")

    threads = [threading.Thread(target=loop, args=(i, Model())) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sorted(losses.items()))


@case
def program_alternates_threads():
    model = Model()
    for _ in range(3):
        thread = threading.Thread(target=train, args=(model,), kwargs={"steps": 1})
        thread.start()
        thread.join()
        train(model, steps=1)


@case
def program_with_asyncio():
    async def loop():
        model = Model()
        for _ in range(3):
            await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, lambda: train(model, steps=1))
            train(model, steps=1)

    asyncio.run(loop())


@case
def program_switches_threads_often():
    sys.setswitchinterval(1e-6)
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)], daemon=True)
    thread.start()
    train(Model())
    stop.set()


# Files and limits


@case
def program_closes_all_files():
    """A daemon closes everything; later files get the numbers of those that were open."""
    model = Model()
    train(model, steps=3)
    time.sleep(0.3)  # the writer opens its files
    os.closerange(3, 800)
    with tempfile.TemporaryDirectory() as folder:
        files = [open(f"{folder}/{i}", "w+b", buffering=0) for i in range(20)]
        train(model, steps=3)
        time.sleep(1.3)
        print([file.seek(0, os.SEEK_END) for file in files])


@case
def program_in_a_deleted_directory():
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    train(Model())


@case
def program_deletes_the_run_directory():
    model = Model()
    train(model, steps=2)
    if folder := os.environ.get("FLOPMETER_DIR"):
        shutil.rmtree(folder, ignore_errors=True)
    train(model, steps=2)


def limit_files(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@case
def program_with_few_files():
    limit_files(len(os.listdir("/proc/self/fd")) + 1)
    train(Model())


@case
def program_with_no_file_left():
    limit_files(3)
    train(Model())


@case
def program_with_little_memory():
    model = Model()
    train(model, steps=1)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
    train(model)


@case
def program_with_full_stdout():
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 1)
    train(Model())


@case
def program_with_a_huge_environment():
    os.environ.update({f"VARIABLE_{i}": "x" * 10_000 for i in range(200)})
    train(Model())


# Interpreter


@case
def program_under_settrace():
    lines = []
    sys.settrace(lambda frame, event, argument: lines.append(1) if "case_table.py" in frame.f_code.co_filename else None)
    train(Model(), steps=2)
    sys.settrace(None)
    print(len(lines) > 0)


@case
def program_under_cprofile():
    profile = cProfile.Profile()
    profile.runcall(train, Model())
    print(len(profile.getstats()) > 0)


@case
def program_under_tracemalloc():
    tracemalloc.start()
    train(Model())
    tracemalloc.stop()


@case
def program_with_a_fault_handler():
    faulthandler.enable()
    faulthandler.dump_traceback_later(0.01, repeat=True)
    train(Model(), steps=20)
    faulthandler.cancel_dump_traceback_later()


@case
def program_with_warnings_as_errors():
    warnings.simplefilter("error")
    train(Model())


@case
def program_near_the_recursion_limit():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def down(depth):
        return train(model, optimizer=optimizer, steps=1) if depth == 0 else down(depth - 1)

    frame, used = sys._getframe(), 0
    while frame:
        frame, used = frame.f_back, used + 1
    train(model, optimizer=optimizer, steps=1)
    for depth in range(900, 1000, 3):  # finds the deepest that works
        try:
            down(depth - used)
        except RecursionError:
            break
    train(model, optimizer=optimizer, steps=1)


@case
def program_with_raising_gc_callbacks():
    gc.callbacks.insert(0, lambda *_: 1 / 0)
    train(Model(), steps=2)
    gc.collect()
    train(Model(), steps=2)


@case
def program_empties_gc_callbacks():
    train(Model(), steps=2)
    gc.callbacks.clear()
    gc.collect()
    train(Model(), steps=2)


@case
def program_replaces_builtins():
    refuse = mock.Mock(side_effect=RuntimeError("not allowed"))
    model = Model()
    train(model, steps=1)
    with mock.patch.multiple(builtins, open=refuse, eval=refuse, sorted=refuse):
        train(model)


@case
def program_replaces_modules():
    refuse = mock.Mock(side_effect=RuntimeError("not allowed"))
    model = Model()
    with mock.patch.object(json, "dumps", refuse), mock.patch.object(json, "loads", refuse), mock.patch.object(
        os.path, "exists", refuse
    ), mock.patch.object(threading, "Thread", refuse):
        train(model)


@case
def program_stops_time():
    model = Model()
    with mock.patch.object(time, "perf_counter", lambda: 0.0), mock.patch.object(time, "monotonic", lambda: "late"), mock.patch.object(
        time, "time", lambda: -1.0
    ), mock.patch.object(time, "perf_counter_ns", lambda: 1 / 0):
        train(model)


@case
def program_unloads_modules():
    train(Model(), steps=2)
    for name in [name for name in sys.modules if name.startswith("flopmeter")]:
        del sys.modules[name]
    train(Model(), steps=2)


@case
def program_without_import_paths():
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_hooks.clear()
    train(Model())


@case
def program_with_raising_logging():
    class Raises(logging.Handler):
        def emit(self, record):
            raise RuntimeError("no log")

    logging.raiseExceptions = True
    logging.getLogger().addHandler(Raises())
    logging.getLogger().setLevel(1)
    train(Model())


@case
def program_with_raising_exception_hooks():
    sys.excepthook = sys.unraisablehook = threading.excepthook = lambda *_: 1 / 0
    train(Model())


@case
def program_without_stdio_objects():
    model = Model()
    saved = sys.stdout
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sys.stdout = sys.stderr = sys.stdin = None
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        loss.backward()
        optimizer.step()
    sys.stdout = saved
    print(f"{loss.item():.9g}")
