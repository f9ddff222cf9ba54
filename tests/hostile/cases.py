# SPDX-License-Identifier: Apache-2.0
"""Training loops with unusual inputs, outputs, modules, optimizers, and programs.

Each case is a function in CASES that prints its losses. It must behave the same with and without flopmeter.
"""

import collections
import contextlib
import copy
import ctypes
import dataclasses
import enum
import gc
import io
import os
import pickle
import signal
import sys
import threading
import types
import warnings
import weakref

import numpy
import torch
from torch import nn

WIDTH = 8
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Model(nn.Module):
    """A linear layer between two conversions."""

    def __init__(self, take=lambda batch: batch, give=lambda output: output):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.take, self.give = take, give

    def forward(self, *args, **kwargs):
        return self.give(self.layer(self.take(*args, **kwargs)))


def train(model, make_batch=lambda x: x, loss_of=lambda output: output.sum(), optimizer=None, steps=4):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        batch = make_batch(torch.randn(2, WIDTH))
        loss = loss_of(model(batch))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


def with_batch(make, take):
    return lambda: train(Model(take=take), make)


def with_output(make, take):
    return lambda: train(Model(give=make), loss_of=take)


# Inputs


class RaisingShape:
    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def shape(self):
        raise ValueError("no shape")


class ArrayShape(RaisingShape):
    shape = property(lambda self: numpy.array([2, WIDTH]))


class EndlessShape(RaisingShape):
    shape = property(lambda self: iter(int, 1))


class ExitingShape(RaisingShape):
    @property
    def shape(self):
        raise SystemExit(3)


class Interrupting(RaisingShape):
    def __getattribute__(self, name):
        if name in ("tensor", "__class__", "__dict__"):
            return object.__getattribute__(self, name)
        raise KeyboardInterrupt


class NoTruth:
    def __init__(self, tensor):
        self.tensor = tensor

    def __bool__(self):
        raise TypeError("no truth")

    __len__ = __eq__ = __iter__ = __bool__
    __hash__ = None


class EffectMapping(dict):
    """A mapping that draws a random number whenever it is read."""

    def values(self):
        torch.rand(1)
        return super().values()

    def items(self):
        torch.rand(1)
        return super().items()

    def __iter__(self):
        torch.rand(1)
        return super().__iter__()

    def get(self, key, default=None):
        torch.rand(1)
        return super().get(key, default)


class ReadOnce(dict):
    def values(self):
        raise RuntimeError("read already")

    get = items = keys = __getitem__ = __iter__ = values


class LyingTensor(torch.Tensor):
    """A tensor whose attributes raise when Python code reads them."""

    @property
    def shape(self):
        raise RuntimeError("no shape")

    @property
    def device(self):
        raise RuntimeError("no device")


class StrictTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("size", "numel", "dim", "__get__") and sys._getframe(1).f_code.co_filename.count("flopmeter"):
            raise RuntimeError("not for a monitor")
        return super().__torch_function__(func, types, args, kwargs or {})


@dataclasses.dataclass
class Example:
    x: torch.Tensor
    label: int = 0


class Slots:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


class Kind(enum.Enum):
    TRAIN = 1


def cyclic(x):
    batch = {"x": x}
    batch["self"] = batch
    return batch


def cyclic_list(x):
    batch = [x]
    batch.append(batch)
    return batch


def deep(x, depth=900):
    for _ in range(depth):
        x = [x]
    return x


def unpack(x, depth=900):
    for _ in range(depth):
        x = x[0]
    return x


BATCHES = {
    "shape_that_raises": (RaisingShape, lambda b: b.tensor),
    "shape_that_is_an_array": (ArrayShape, lambda b: b.tensor),
    "shape_without_end": (EndlessShape, lambda b: b.tensor),
    "shape_that_exits": (ExitingShape, lambda b: b.tensor),
    "attributes_that_interrupt": (Interrupting, lambda b: b.tensor),
    "object_without_truth": (NoTruth, lambda b: b.tensor),
    "mapping_with_effects": (lambda x: EffectMapping(x=x), lambda b: dict.__getitem__(b, "x")),
    "mapping_read_once": (lambda x: ReadOnce(x=x), lambda b: dict.__getitem__(b, "x")),
    "cyclic_mapping": (cyclic, lambda b: b["x"]),
    "cyclic_list": (cyclic_list, lambda b: b[0]),
    "nesting_of_900_lists": (deep, unpack),
    "tensor_with_raising_attributes": (lambda x: x.as_subclass(LyingTensor), lambda b: b.as_subclass(torch.Tensor)),
    "tensor_that_refuses_a_monitor": (lambda x: x.as_subclass(StrictTensor), lambda b: b.as_subclass(torch.Tensor)),
    "nested_tensor": (lambda x: torch.nested.nested_tensor([x, x]), lambda b: b.unbind()[0]),
    "jagged_tensor": (lambda x: torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged), lambda b: b.unbind()[0]),
    "sparse_tensor": (lambda x: x.to_sparse(), lambda b: b.to_dense()),
    "meta_and_real": (lambda x: (torch.empty(2, device="meta"), x), lambda b: b[1]),
    "complex_tensor": (lambda x: torch.complex(x, x), lambda b: b.real),
    "scalar_tensor": (lambda x: (torch.tensor(3), x), lambda b: b[1]),
    "empty_tensor": (lambda x: (torch.empty(0, WIDTH), x), lambda b: b[1]),
    "numpy_array": (lambda x: x.numpy(), torch.from_numpy),
    "numpy_objects": (lambda x: (numpy.array([None, object()], dtype=object), x), lambda b: b[1]),
    "dataclass": (Example, lambda b: b.x),
    "slots": (Slots, lambda b: b.x),
    "namespace": (lambda x: types.SimpleNamespace(x=x), lambda b: b.x),
    "generator": (lambda x: iter([x]), next),
    "closure": (lambda x: lambda: x, lambda b: b()),
    "enum_keys": (lambda x: {Kind.TRAIN: x}, lambda b: b[Kind.TRAIN]),
    "large_integer_keys": (lambda x: {10**400: x}, lambda b: b[10**400]),
    "bytes_and_text": (lambda x: (b"\xff" * 10, "\ud800", x), lambda b: b[2]),
    "attention_mask_of_text": (lambda x: {"attention_mask": "no", "input_ids": None, "x": x}, lambda b: b["x"]),
    "attention_mask_of_nan": (lambda x: {"attention_mask": torch.full((2, 3), float("nan")), "x": x}, lambda b: b["x"]),
    "lengths_of_text": (lambda x: {"lengths": ["a"], "seq_lens": -5, "x": x}, lambda b: b["x"]),
    "none": (lambda x: None, lambda b: torch.ones(2, WIDTH)),
    "weak_reference": (lambda x: (weakref.ref(KEEP.setdefault("x", nn.Linear(1, 1))), x), lambda b: b[1]),
}
KEEP = {}
for name, (make, take) in BATCHES.items():
    CASES[f"input_{name}"] = with_batch(make, take)


@case
def input_by_keyword_only():
    model = Model(take=lambda *, x, **_: x)
    call = model.forward
    model.forward = lambda batch: call(x=batch, y=None)
    train(model)


@case
def input_of_changing_type():
    kinds = iter([lambda x: x, lambda x: {"x": x}, lambda x: [x], Example])
    train(Model(take=lambda b: b if torch.is_tensor(b) else getattr(b, "x", None) if isinstance(b, Example)
                else b["x"] if isinstance(b, dict) else b[0]), lambda x: next(kinds)(x))


# Outputs


class StrictOutput:
    def __init__(self, tensor):
        object.__setattr__(self, "tensor", tensor)

    def __getattr__(self, name):
        raise KeyError(name)


class CountedOutput:
    """Fails at the second look."""

    def __init__(self, tensor):
        self._tensor, self.looks = tensor, 0

    @property
    def tensor(self):
        self.looks += 1
        if self.looks > 1:
            raise RuntimeError("looked at already")
        return self._tensor


Pair = collections.namedtuple("Pair", "loss logits")
OUTPUTS = {
    "strict_attributes": (StrictOutput, lambda o: o.tensor.sum()),
    "read_once": (CountedOutput, lambda o: o.tensor.sum()),
    "mapping_with_effects": (lambda x: EffectMapping(x=x), lambda o: dict.__getitem__(o, "x").sum()),
    "mapping_read_once": (lambda x: ReadOnce(x=x), lambda o: dict.__getitem__(o, "x").sum()),
    "generator": (lambda x: iter([x]), lambda o: next(o).sum()),
    "closure": (lambda x: lambda: x, lambda o: o().sum()),
    "named_tuple": (lambda x: Pair(x.sum(), x), lambda o: o.loss),
    "dataclass": (Example, lambda o: o.x.sum()),
    "cyclic_mapping": (cyclic, lambda o: o["x"].sum()),
    "deep_nesting": (deep, lambda o: unpack(o).sum()),
    "no_truth": (NoTruth, lambda o: o.tensor.sum()),
    "python_float_beside": (lambda x: (x.sum(), float("nan")), lambda o: o[0]),
    "view_changed_in_place": (lambda x: x.view(-1), lambda o: o.mul_(2).sum()),
    "detached_and_attached": (lambda x: (x.detach(), x), lambda o: o[1].sum()),
    "lying_tensor": (lambda x: x.as_subclass(LyingTensor), lambda o: o.as_subclass(torch.Tensor).sum()),
    "large_dictionary": (lambda x: {i: x[0, 0] for i in range(5000)}, lambda o: o[7] + o[8]),
    "exit_on_look": (ExitingShape, lambda o: o.tensor.sum()),
}
for name, (make, take) in OUTPUTS.items():
    CASES[f"output_{name}"] = with_output(make, take)


# Modules


@case
def module_that_is_its_own_module():
    model = Model()
    type(model).module = property(lambda self: self)
    try:
        train(model)
    finally:
        del type(model).module


@case
def module_with_strict_getattr():
    class Strict(Model):
        def __getattr__(self, name):
            if name in ("config", "module", "name_or_path", "no_sync", "_orig_mod"):
                raise KeyError(name)
            return super().__getattr__(name)

    train(Strict())


@case
def module_whose_config_raises():
    class Configured(Model):
        @property
        def config(self):
            raise OSError("no configuration here")

    train(Configured())


@case
def module_whose_config_lies():
    model = Model()
    model.config = types.SimpleNamespace(model_type=5, hidden_size="big", to_dict=lambda: {1: object()})
    train(model)


@case
def module_whose_repr_raises():
    class NoName(Model):
        def __repr__(self):
            raise ValueError("no text")

    train(NoName())


@case
def module_with_raising_parameters_once():
    class Once(Model):
        looked = False

        def named_modules(self, *args, **kwargs):
            if sys._getframe(1).f_code.co_filename.count("flopmeter"):
                raise RuntimeError("not now")
            return super().named_modules(*args, **kwargs)

    train(Once())


@case
def module_with_a_raising_pre_hook():
    model = Model()
    calls = []

    def hook(module, args):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("second batch refused")

    model.register_forward_pre_hook(hook)
    with contextlib.suppress(ValueError):
        train(model)
    train(model)


@case
def module_that_raises_in_forward():
    model = Model(take=lambda b: b)
    failing = iter([False, True, False, False, False])
    model.give = lambda o: (_ for _ in ()).throw(ZeroDivisionError) if next(failing) else o
    for _ in range(3):
        with contextlib.suppress(ZeroDivisionError):
            train(model, steps=1)


@case
def module_150_deep():
    model = nn.Linear(WIDTH, WIDTH)
    for _ in range(150):
        model = nn.Sequential(model)
    train(model)


@case
def module_of_3000_parts():
    model = Model()
    model.rest = nn.ModuleList(nn.Identity() for _ in range(3000))
    train(model)


@case
def module_that_calls_itself():
    class Recursive(Model):
        def forward(self, x, depth=5):
            return self.layer(x) if depth == 0 else self(x, depth - 1)

    train(Recursive())


@case
def module_copied_pickled_saved():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH))
    train(model)
    train(copy.deepcopy(model))
    train(pickle.loads(pickle.dumps(model)))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    train(torch.load(buffer, weights_only=False))


@case
def module_replaced_and_collected():
    for _ in range(3):
        train(Model(), steps=2)
        gc.collect()


@case
def module_scripted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(torch.jit.script(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())))


@case
def module_functional_call():
    model = Model()
    parameters = {k: v.detach().clone().requires_grad_() for k, v in model.named_parameters()}
    for _ in range(3):
        loss = torch.func.functional_call(model, parameters, torch.randn(2, WIDTH)).sum()
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        parameters = {k: (v - 0.01 * g).detach().requires_grad_() for (k, v), g in zip(parameters.items(), gradients)}
        print(f"{loss.item():.9g}")


@case
def module_with_changed_call():
    class Called(Model):
        def __call__(self, *args, **kwargs):
            return self.forward(*args, **kwargs)

    train(Called())


@case
def module_hooks_cleared_in_training():
    model = Model()
    train(model, steps=2)
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
        module._backward_hooks.clear()
    train(model, steps=2)


@case
def module_with_lazy_layers():
    train(nn.Sequential(nn.LazyLinear(WIDTH), nn.ReLU(), nn.LazyLinear(2)))


@case
def module_moved_to_float64():
    model = Model()
    train(model, steps=2)
    train(model.double(), lambda x: x.double(), steps=2)


# Optimizers


@case
def optimizer_lbfgs():
    model = Model()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
    x = torch.randn(4, WIDTH)

    def closure():
        optimizer.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        print(f"{optimizer.step(closure).item():.9g}")


@case
def optimizer_two_at_once():
    model, other = Model(), Model()
    both = [torch.optim.SGD(model.parameters(), lr=0.01), torch.optim.Adam(other.parameters())]
    for _ in range(3):
        loss = other(model(torch.randn(2, WIDTH))).sum()
        loss.backward()
        for optimizer in both:
            optimizer.step()
            optimizer.zero_grad()
        print(f"{loss.item():.9g}")


@case
def optimizer_of_foreign_parameters():
    free = torch.zeros(3, requires_grad=True)
    foreign = torch.optim.SGD([free], lr=0.1)
    free.sum().backward()
    foreign.step()
    train(Model())


@case
def optimizer_whose_hook_raises():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    calls = iter([False, True, False, False])

    def hook(*_):
        if next(calls):
            raise ValueError("no step")

    optimizer.register_step_pre_hook(hook)
    for _ in range(2):
        with contextlib.suppress(ValueError):
            train(model, optimizer=optimizer, steps=2)


@case
def optimizer_of_the_program():
    class Plain:
        def __init__(self, parameters):
            self.parameters = list(parameters)

        def step(self):
            with torch.no_grad():
                for p in self.parameters:
                    p -= 0.01 * p.grad

        def zero_grad(self):
            for p in self.parameters:
                p.grad = None

    model = Model()
    train(model, optimizer=Plain(model.parameters()))


@case
def optimizer_that_overrides_step():
    class Skips(torch.optim.SGD):
        calls = 0

        def step(self, closure=None):
            self.calls += 1
            return super().step(closure) if self.calls % 2 else None

    model = Model()
    train(model, optimizer=Skips(model.parameters(), lr=0.01))


@case
def optimizer_without_zero_grad():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")


@case
def optimizer_with_grad_scaler():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    for _ in range(4):
        loss = model(torch.randn(2, WIDTH)).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


@case
def optimizer_inside_backward():
    model = Model()
    for p in model.parameters():
        optimizer = torch.optim.SGD([p], lr=0.01)

        def hook(_, optimizer=optimizer):
            optimizer.step()
            optimizer.zero_grad()

        p.register_post_accumulate_grad_hook(hook)
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        loss.backward()
        print(f"{loss.item():.9g}")


@case
def optimizer_learning_rate_of_nan():
    train(Model(), optimizer=torch.optim.SGD(Model().parameters(), lr=float("nan")))


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
def program_with_full_stderr():
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, 2)
    train(Model())


@case
def program_traces_itself():
    frames = []
    sys.setprofile(lambda frame, event, argument: frames.append(1) if "cases.py" in frame.f_code.co_filename else None)
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
