# SPDX-License-Identifier: Apache-2.0
"""Unusual modules and optimizers."""

import contextlib
import copy
import gc
import io
import pickle
import sys
import types
import warnings

import torch
from case_table import Model, WIDTH, case, train
from torch import nn


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


def hook_of_the_program(module, args, *_):
    return None


@case
def module_with_hooks_saved_and_loaded_in_another_process():
    model = Model()
    model.take = model.give = abs
    model.register_forward_hook(hook_of_the_program)
    model.register_forward_pre_hook(hook_of_the_program)
    train(model)
    data = pickle.dumps(model)
    print(b"flopmeter" in data)
    loaded = pickle.loads(data)
    torch.utils.hooks.RemovableHandle.next_id = 10  # as in a process that has registered few hooks
    for _ in range(100):
        loaded.register_forward_pre_hook(lambda module, args: None)
        loaded.register_forward_hook(lambda module, args, output: None)
    train(loaded)


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
