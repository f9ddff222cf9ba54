# SPDX-License-Identifier: Apache-2.0
"""No object or action of a program can make the monitor end, change, or hang it."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import threading

import flopmeter
import pytest
import torch
from flopmeter import log
from flopmeter.launcher import attach
from flopmeter.torch.hooks import TorchHooks
from run_records import records
from torch import nn

WIDTH = 8
LOADER = torch.utils.data.dataloader._BaseDataLoaderIter

pytestmark = pytest.mark.torch2("hooks for optimizers")


@pytest.fixture(autouse=True)
def log_lines_again():
    log._logged.clear()


class Linear(nn.Module):
    """Accepts and returns any type."""

    def __init__(self, take=lambda batch: batch, give=lambda output: output):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.take, self.give = take, give

    def forward(self, *args, **kwargs):
        return self.give(self.layer(self.take(*args, **kwargs)))


def make_monitor(model, automatic, directory, monkeypatch):
    if not automatic:
        return flopmeter.Monitor(directory, model=model, console=False, profile_freq=0)
    monkeypatch.setenv("FLOPMETER_DIRECTORY", str(directory))
    monkeypatch.setenv("FLOPMETER_CONSOLE", "false")
    return attach.start(model, lambda: None)


def train(model, batches, loss_of=lambda output: output.sum(), monitor=None):
    """Losses of a loop, with steps that are marked if a monitor wants them."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for batch in batches:
        with contextlib.nullcontext() if monitor is None or monitor.automatic else monitor.step():
            loss = loss_of(model(batch))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    return losses


class RaisingShape:
    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def shape(self):
        raise ValueError("not now")


class ArrayShape(RaisingShape):
    @property
    def shape(self):
        import numpy

        return numpy.array([2, WIDTH])


class StrictOutput:
    def __init__(self, tensor):
        object.__setattr__(self, "tensor", tensor)

    def __getattr__(self, name):
        raise KeyError(name)


class ReadOnce(dict):
    """A mapping whose every look at it changes the run."""

    def values(self):
        torch.rand(1)
        raise RuntimeError("read already")

    get = items = keys = __getitem__ = __iter__ = values


BATCHES = {
    "shape that raises": (RaisingShape, lambda batch: batch.tensor),
    "shape that is an array": (ArrayShape, lambda batch: batch.tensor),
    "nested tensor": (lambda x: torch.nested.nested_tensor([x, x]), lambda batch: batch.unbind()[0]),
    "mapping that changes the run": (lambda x: ReadOnce(x=x), lambda batch: dict.__getitem__(batch, "x")),
    "None": (lambda x: None, lambda batch: torch.ones(2, WIDTH)),
}
OUTPUTS = {
    "strict attributes": (StrictOutput, lambda output: output.tensor.sum()),
    "mapping that changes the run": (lambda x: ReadOnce(x=x), lambda output: dict.__getitem__(output, "x").sum()),
    "generator": (lambda x: iter([x]), lambda output: next(output).sum()),
}


def compare(model, batches, loss_of, automatic, directory, monkeypatch):
    state = {name: value.clone() for name, value in model.state_dict().items()}
    expected = train(model, batches(), loss_of), torch.get_rng_state().tolist()
    model.load_state_dict(state)
    monitor = make_monitor(model, automatic, directory, monkeypatch)
    assert (train(model, batches(), loss_of, monitor), torch.get_rng_state().tolist()) == expected
    monitor.finish()
    assert len(records(directory)) == 4


@pytest.mark.parametrize("automatic", [False, True], ids=["marked", "automatic"])
@pytest.mark.parametrize("kind", BATCHES)
def test_a_batch_of_any_type_leaves_the_run_as_it_is(kind, automatic, tmp_path, monkeypatch):
    wrap, take = BATCHES[kind]
    compare(
        Linear(take), lambda: [wrap(torch.ones(2, WIDTH)) for _ in range(4)], torch.sum, automatic, tmp_path / "run", monkeypatch
    )


@pytest.mark.parametrize("automatic", [False, True], ids=["marked", "automatic"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_an_output_of_any_type_leaves_the_run_as_it_is(kind, automatic, tmp_path, monkeypatch):
    give, loss_of = OUTPUTS[kind]
    compare(
        Linear(give=give), lambda: [torch.ones(2, WIDTH) for _ in range(4)], loss_of, automatic, tmp_path / "run", monkeypatch
    )


class Itself(Linear):
    """A common pattern to use the same code with and without DDP."""

    @property
    def module(self):
        return self


def test_a_model_that_is_its_own_module_is_monitored(tmp_path):
    model = Itself()
    monitor = flopmeter.Monitor(tmp_path, model=model, console=False)
    train(model, [torch.ones(2, WIDTH)], monitor=monitor)
    monitor.finish()
    assert len(records(tmp_path)) == 1


WRONG = [
    lambda m: m.log(loss=10**400),
    lambda m: m.log(loss=object()),
    lambda m: m.log(loss=StrictOutput(1)),
    lambda m: m.step(epoch=math.nan).__enter__(),
    lambda m: m.step(epoch=math.inf).__enter__(),
    lambda m: m.step(tokens=1.5).__enter__(),
    lambda m: m.step(step="one").__enter__(),
    lambda m: m.step(seq_lens=[math.nan]).__enter__(),
    lambda m: m.step(flops=1e30).__enter__(),
    lambda m: m.step(flops=2**64).__enter__(),
    lambda m: m.step(samples=object()).__enter__(),
    lambda m: m.step(attention_mask=object()).__enter__(),
    lambda m: m.step(tag="trian").__enter__(),
    lambda m: m.step(unknown=1).__enter__(),
    lambda m: m.micro_batch(tokens="many"),
    lambda m: m.phase(7).__enter__(),
    lambda m: m.stage(object()).__enter__(),
    lambda m: m.set_training_phase(None),
    lambda m: m.emit("no_event"),
    lambda m: m.emit("batch_end", unknown=1),
    lambda m: m.emit("batch_end", loss="low"),
    lambda m: m.subscribe("all"),
]


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
def test_a_wrong_value_is_dropped_and_counted(call, tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    call(monitor)
    status = monitor.status
    assert status["dropped_values"] + status["misuse"] >= 1 or log._logged
    monitor.abandon_step()
    with monitor.step(tokens=2):
        pass
    monitor.finish()
    assert records(tmp_path)[-1]["tokens"] == 2


def raising(name, error):
    def fail(*_args):
        raise error

    return type("Raising", (), {name: fail})()


def deep(levels):
    nested = []
    for _ in range(levels):
        nested = [nested]
    return nested


HOSTILE = [
    *(True, -1, 2**63, -(2**63), 10**400, 0.5, 1e300, math.nan, -math.inf, 1j),
    *("", "\0", "\udc80", "\x1b[31m", "x" * 100_000, b"x", object(), object, print, sys),
    *([], [math.nan], [2**70], [None], deep(100_000), (), (1, 2, 3), {}, {"a": 1}, set(), range(10**12), iter([1])),
    *(torch.ones(2, 2), torch.ones(0), torch.ones(1, device="meta"), torch.sparse_coo_tensor([[0]], [1.0], (2,)), torch.tensor(1j)),
    *(raising(f"__{name}__", ValueError) for name in "float index len iter bool eq hash str repr getattr array".split()),
    *(raising(name, RuntimeError) for name in ("item", "device", "shape", "__getattribute__")),
]
BATCH = ("tokens", "samples", "attention_mask", "input_ids", "seq_lens", "image_grid_thw", "flops", "unknown")
STEP = ("step", "epoch", "tag", "loss", "grad_norm", "learning_rate")
FACTS = ("batch", "step", "epoch", "loss", "policy", "gradients", "unknown")


def call_all(monitor, value):
    """Every public method, with the value as each of its arguments."""
    for name in BATCH + STEP:
        with monitor.step(**{name: value}):
            monitor.micro_batch(**{name: value})
        monitor.begin_step(**{name: value})
        monitor.abandon_step()
    for name in ("loss", "grad_norm", "learning_rate", "batch"):
        monitor.begin_step()
        monitor.end_step(**{name: value})
    with monitor.phase(value), monitor.stage(value):
        monitor.log(loss=value, grad_norm=value, learning_rate=value)
    monitor.emit(value)
    for name in FACTS:
        for event in ("fetch_end", "batch_begin", "batch_end", "loop_end"):
            monitor.emit(event, **{name: value})
    monitor.set_training_phase(value)
    monitor.subscribe(value)


def test_no_value_makes_a_method_raise(tmp_path, capsys):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    for value in HOSTILE:
        call_all(monitor, value)
    assert "without the monitor" not in capsys.readouterr().err
    monitor.abandon_step()
    with monitor.step(tokens=2):
        pass
    monitor.finish()
    assert records(tmp_path)[-1]["tokens"] == 2


def test_no_value_makes_a_subscription_raise_or_wait_for_a_closed_run(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    subscription = monitor.subscribe()
    monitor.finish()
    assert [subscription.next(value) for value in HOSTILE] == [None] * len(HOSTILE)


def test_waiting_for_a_record_can_be_interrupted(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    subscription = monitor.subscribe()
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        subscription.next(1e300)
    monitor.finish()


def test_an_exit_of_the_program_inside_a_value_is_not_lost(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    with pytest.raises(SystemExit):
        monitor.step(tokens=raising("__index__", SystemExit(3)))
        for _ in range(100):
            len(())
    monitor.finish()


def test_a_huge_queue_is_limited(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    assert monitor.subscribe(10**12).dropped == 0
    monitor.finish()


class Broken(nn.Module):
    """Its mode cannot be read after the first steps."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.calls = 0

    def forward(self, batch):
        self.calls += 1
        return self.layer(batch)

    def __getattribute__(self, name):
        if name == "training" and self.__dict__.get("calls", 0) > 2 and sys._getframe(1).f_code.co_name in ("_call_impl", "inner"):
            raise RuntimeError("no mode")
        return super().__getattribute__(name)


def test_a_failure_inside_a_hook_detaches_the_monitor_and_is_logged_once(tmp_path, capsys):
    model = Broken()
    monitor = flopmeter.Monitor(tmp_path, model=model, console=False)
    optimizers = len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks)
    train(model, [torch.ones(2, WIDTH)] * 8)
    assert capsys.readouterr().err.count("the run continues without the monitor") == 1
    assert not model._forward_hooks and not model._forward_pre_hooks
    assert len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks) == optimizers - 1
    monitor.finish()


def test_the_keyboard_interrupt_of_the_user_passes(tmp_path):
    class Interrupting:
        def __float__(self):
            raise KeyboardInterrupt

    monitor = flopmeter.Monitor(tmp_path, console=False)
    with pytest.raises(KeyboardInterrupt):
        monitor.log(loss=Interrupting())
    monitor.finish()


def test_a_patch_of_the_program_survives_ours(tmp_path, monkeypatch):
    original = LOADER.__next__
    monitor = make_monitor(Linear(), True, tmp_path, monkeypatch)
    ours = LOADER.__next__
    assert ours is not original

    def own(iterator):
        return ours(iterator)

    LOADER.__next__ = own
    try:
        monitor.finish()
        assert LOADER.__next__ is own
        assert len(list(torch.utils.data.DataLoader(list(range(4)), batch_size=2))) == 2
    finally:
        LOADER.__next__ = original


def test_an_error_of_the_data_set_reaches_the_program(tmp_path, monkeypatch):
    class Failing(torch.utils.data.Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise KeyError(index)

    monitor = make_monitor(Linear(), True, tmp_path, monkeypatch)
    with pytest.raises(KeyError):
        list(torch.utils.data.DataLoader(Failing()))
    monitor.finish()


PROGRAM = """
import sys, threading, torch, flopmeter
monitor = flopmeter.Monitor(sys.argv[1], console=False)
with monitor.step(attention_mask=object()):
    monitor.log(loss=torch.ones(1, device="meta"))
monitor.phase("unknown")
monitor.finish()
print("done")
"""


@pytest.mark.parametrize("stderr", ["/dev/full", "closed", "broken pipe"])
def test_a_stderr_that_cannot_be_written_changes_nothing(stderr, tmp_path):
    redirect = {"/dev/full": "2>/dev/full", "closed": "2>&-", "broken pipe": "2>&3"}[stderr]
    read, write = os.pipe()
    os.close(read)
    command = f'exec "$0" -c "$1" "$2" {redirect}'.replace("&3", f"&{write}")
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True, pass_fds=[write], timeout=120
    )
    os.close(write)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert len(records(tmp_path)) == 1


def test_a_message_is_one_short_line_without_control_characters(capsys):
    log.log_once("model \x1b[2J\n\x9b\u202e\ud800" + "x" * 10_000_000)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("flopmeter: model  [2J    xxx") and len(line) < 2000 and line.isprintable()


def test_hooks_of_other_threads_do_not_disturb(tmp_path):
    model = Linear()
    monitor = flopmeter.Monitor(tmp_path, model=model, console=False)
    with monitor.step():
        thread = threading.Thread(target=lambda: model(torch.ones(2, WIDTH)).sum().backward())
        thread.start()
        thread.join()
        train(model, [torch.ones(2, WIDTH)])
    monitor.finish()
    (row,) = records(tmp_path)
    assert row["samples"] == 2 and monitor.status["misuse"] == 0


def test_a_hook_that_a_copy_carries_does_nothing(tmp_path):
    monitor = flopmeter.Monitor(tmp_path, console=False)
    hooks = TorchHooks(monitor, (), False, False, None)
    hook = hooks.callables.forward_pre()
    import copy
    import pickle

    for other in (copy.deepcopy(hook), pickle.loads(pickle.dumps(hook))):
        assert other(None, (), {}) is None
    monitor.finish()
