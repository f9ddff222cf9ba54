# SPDX-License-Identifier: Apache-2.0
"""Unusual programs around a usual loop."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
import tempfile
import threading
import warnings

import torch
from case_table import Model, WIDTH, case, train
from torch import nn


# Programs


@case
def program_exits_in_a_step():
    model = Model()
    train(model, steps=2)
    model(torch.randn(2, WIDTH)).sum().backward()
    sys.exit(7)


@case
def program_raises_in_a_step():
    train(Model(), steps=2)
    raise LookupError("the end")


@case
def program_exits_in_atexit():
    import atexit

    atexit.register(lambda: print("last words"))
    train(Model(), steps=2)


@case
def program_replaces_standard_streams():
    train(Model(), steps=2)
    sys.stderr = None
    train(Model(), steps=2)


@case
def program_with_closed_stderr():
    os.close(2)
    train(Model())


@case
def program_whose_file_gets_the_number_of_stderr():
    os.close(2)
    with tempfile.TemporaryFile("w+") as file:
        print(file.fileno())
        train(Model())
        print(file.seek(0, os.SEEK_END))


@case
def program_with_full_stderr():
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 2)
    train(Model())


@case
def program_traces_itself():
    frames = []
    sys.setprofile(lambda frame, event, argument: frames.append(1) if "case_table.py" in frame.f_code.co_filename else None)
    train(Model(), steps=2)
    sys.setprofile(None)
    print(len(frames) > 0)


@case
def program_without_garbage_collection():
    gc.disable()
    train(Model())


@case
def program_with_signals():
    got = []
    signal.signal(signal.SIGALRM, lambda *_: got.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    train(Model(), steps=30)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(len(got) > 0)


@case
def program_interrupted():
    model = Model()
    with contextlib.suppress(KeyboardInterrupt):
        train(model, lambda x: (os.kill(os.getpid(), signal.SIGINT), x)[1])
    train(model, steps=2)


@case
def program_trains_in_a_thread():
    thread = threading.Thread(target=train, args=(Model(),))
    thread.start()
    thread.join()
    train(Model(), steps=2)


@case
def program_forks_in_a_step():
    model = Model()
    train(model, steps=2)
    child = os.fork()
    if child == 0:
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    train(model, steps=2)


@case
def program_900_frames_deep():
    def down(depth):
        return train(Model(), steps=2) if depth == 0 else down(depth - 1)

    sys.setrecursionlimit(2000)
    down(850)


@case
def program_patches_torch():
    call = nn.Module.__call__
    step = torch.optim.SGD.step
    calls = []
    nn.Module.__call__ = lambda self, *a, **k: (calls.append(1), call(self, *a, **k))[1]
    torch.optim.SGD.step = lambda self, *a, **k: (calls.append(1), step(self, *a, **k))[1]
    train(Model())
    nn.Module.__call__, torch.optim.SGD.step = call, step
    print(len(calls))


@case
def program_patches_the_loader():
    loader = torch.utils.data.DataLoader([torch.ones(WIDTH)] * 6, batch_size=2)
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    before, calls = iterator.__next__, []
    iterator.__next__ = lambda self: (calls.append(1), before(self))[1]
    for batch in loader:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")
    print(len(calls))


@case
def program_with_other_dispatch_modes():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        train(Model())
    print(counter.get_total_flops())


@case
def program_with_the_profiler():
    with torch.profiler.profile() as profile:
        train(Model())
    print(len(profile.events()) > 0)


@case
def program_checks_anomalies():
    with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        train(Model())


@case
def program_changes_directory_and_environment():
    train(Model(), steps=2)
    os.chdir("/")
    os.environ.clear()
    train(Model(), steps=2)


@case
def program_limits_files():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    train(Model())


@case
def program_changes_the_locale():
    import locale

    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
    train(Model())


@case
def program_calls_c_at_the_end():
    train(Model(), steps=2)
    ctypes.CDLL(None).fflush(None)
