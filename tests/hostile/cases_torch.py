# SPDX-License-Identifier: Apache-2.0
"""Lifetime of what a program makes, unusual modules, tensor subclasses, and modes of torch."""

import copy
import gc
import inspect
import pickle
import weakref
from unittest import mock

import torch
from case_table import Model, WIDTH, case, train
from torch import nn
from torch.utils.data import DataLoader


# Lifetime: a monitor must not keep alive what the program frees


@case
def model_is_freed_with_its_last_reference():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    train(model, optimizer=optimizer)
    weights = [weakref.ref(p) for p in model.parameters()]
    seen = weakref.ref(model), weakref.ref(optimizer)
    del model, optimizer
    gc.collect()
    print([reference() is None for reference in seen], [reference() is None for reference in weights])


@case
def model_is_replaced_and_freed():
    first = Model()
    train(first)
    seen = weakref.ref(first)
    second = Model()
    train(second)
    del first
    gc.collect()
    print(seen() is None)


@case
def batch_output_and_loss_are_freed_at_once():
    gc.disable()
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(4):
        batch = torch.randn(2, WIDTH)
        output = model(batch)
        loss = output.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen = [weakref.ref(each) for each in (batch, output, loss)]
        print(f"{loss.item():.9g}")
        del batch, output, loss
        print([reference() is None for reference in seen])


@case
def model_behind_a_weak_proxy():
    model = Model()
    train(weakref.proxy(model), optimizer=torch.optim.SGD(model.parameters(), lr=0.01))


@case
def model_stays_what_it_was():
    model = Model()
    model.take, model.give = abs, abs
    train(model)
    print(model, list(model.state_dict()), sorted(vars(model)), inspect.signature(model.forward), type(model).__mro__)
    print(b"flopmeter" in pickle.dumps(model), inspect.signature(torch.optim.SGD.step), inspect.signature(DataLoader.__init__))
    print(list(model.named_buffers()), model.training, [p.requires_grad for p in model.parameters()])


@case
def optimizer_stays_what_it_was():
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    train(model, optimizer=optimizer)
    data = pickle.dumps(optimizer)
    print(b"flopmeter" in data, sorted(optimizer.state_dict()), optimizer.__class__.__name__)
    again = copy.deepcopy(optimizer)
    again.load_state_dict(optimizer.state_dict())
    train(model, optimizer=optimizer)


@case
def tensors_have_no_attributes_of_others():
    model = Model()
    batch = torch.randn(2, WIDTH)
    output = model(batch)
    output.sum().backward()
    print(vars(batch), vars(output), batch._backward_hooks, batch.grad_fn, type(output.grad_fn).__name__)


# Modules


@case
def module_whose_getattr_returns_mocks():
    class Obliging(Model):
        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return mock.MagicMock(name=name)

    train(Obliging())


@case
def module_that_compares_badly():
    class Odd(Model):
        def __eq__(self, other):
            raise RuntimeError("not comparable")

        __hash__ = nn.Module.__hash__

        def __len__(self):
            return 0

        def __bool__(self):
            raise RuntimeError("no truth")

    train(Odd())


@case
def module_traced():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    train(torch.jit.trace(model, torch.randn(2, WIDTH)))


@case
def module_traced_after_training():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())
    train(model)
    print(torch.fx.symbolic_trace(model).code)
    print(torch.jit.trace(model, torch.ones(1, WIDTH)).code)
    torch.jit.script(model)


@case
def module_in_data_parallel():
    train(nn.DataParallel(Model()))


@case
def module_called_in_its_backward():
    model = Model()
    inner = torch.ones(1, WIDTH)

    def hook(gradient):
        with torch.no_grad():
            model.layer(inner)

    model.layer.weight.register_hook(hook)
    train(model)


@case
def module_with_a_generator_forward():
    class Yields(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            yield self.layer(x)

    train(Yields(), loss_of=lambda output: next(output).sum())


@case
def module_with_frozen_parts():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH).requires_grad_(False), nn.Linear(WIDTH, WIDTH))
    train(model, optimizer=torch.optim.SGD(model[1].parameters(), lr=0.01))


@case
def module_pruned_and_parametrized():
    from torch.nn.utils import parametrizations, prune

    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH)), nn.Linear(WIDTH, WIDTH))
    train(model)
    prune.l1_unstructured(model[1], "weight", amount=0.5)
    train(model)


@case
def module_averaged():
    model = Model()
    averaged = torch.optim.swa_utils.AveragedModel(nn.Sequential(model.layer))
    train(model)
    averaged.update_parameters(nn.Sequential(model.layer))
    train(averaged)


# Tensor subclasses and modes


class Counted(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})


@case
def input_counts_its_functions():
    Counted.calls.clear()
    train(Model(), lambda x: x.as_subclass(Counted), loss_of=lambda o: o.as_subclass(torch.Tensor).sum())
    print(Counted.calls)


@case
def parameters_count_their_functions():
    Counted.calls.clear()
    model = Model()
    model.layer.weight = nn.Parameter(model.layer.weight.detach().as_subclass(Counted))
    train(model, loss_of=lambda o: o.as_subclass(torch.Tensor).sum())
    print(Counted.calls)


class Wrapper(torch.Tensor):
    """A tensor that holds another one and logs the operators it runs."""

    operators = []

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.operators.append(str(func))
        inner = torch.utils._pytree.tree_map(lambda x: x.inner if isinstance(x, cls) else x, (args, kwargs or {}))
        out = func(*inner[0], **inner[1])
        return torch.utils._pytree.tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, out)


@case
def input_is_a_wrapper():
    Wrapper.operators.clear()
    model = Model(give=lambda o: o.inner if isinstance(o, Wrapper) else o)
    with torch.no_grad():
        for _ in range(3):
            print(model(Wrapper(torch.ones(2, WIDTH))).sum().item())
    print(Wrapper.operators)
    train(model)


@case
def program_with_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            loss = model(torch.randn(2, WIDTH)).sum()
            loss.backward()
            optimizer.step()
            print(type(loss).__name__, loss.shape)
    train(Model())


@case
def program_on_the_meta_device():
    torch.set_default_device("meta")
    model = Model()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        loss.backward()
        optimizer.step()
        print(loss.shape, loss.device)
    torch.set_default_device(None)
    train(Model())


@case
def program_with_deterministic_algorithms():
    torch.use_deterministic_algorithms(True)
    train(Model())


@case
def program_with_default_dtype_float64():
    torch.set_default_dtype(torch.float64)
    train(Model())


@case
def program_with_inference_between_steps():
    model = Model()
    for _ in range(3):
        train(model, steps=1)
        with torch.inference_mode():
            print(f"{model(torch.ones(1, WIDTH)).sum().item():.9g}")
        with torch.no_grad():
            model.eval()(torch.ones(1, WIDTH))
            model.train()


@case
def program_with_a_function_mode():
    from torch.overrides import TorchFunctionMode

    names = []

    class Logs(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))

    with Logs():
        train(Model())
    print(names)


@case
def program_with_a_dispatch_mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    names = []

    class Logs(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with Logs():
        train(Model())
    print(names)


@case
def program_with_autocast():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(2, WIDTH)).float().sum()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.9g}")
