# SPDX-License-Identifier: Apache-2.0
"""Unusual backward passes, optimizers, and loaders."""

import contextlib
import inspect

import torch
from case_table import Model, WIDTH, case, train
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, IterableDataset


# Autograd


@case
def backward_with_saved_tensor_hooks():
    packed = []

    def pack(tensor):
        packed.append(tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        train(Model())
    print(packed)
    with torch.autograd.graph.save_on_cpu():
        train(Model())


@case
def backward_with_checkpoints():
    for reentrant in (True, False):
        model = Model()
        call = model.layer
        model.give = lambda o, call=call, reentrant=reentrant: checkpoint(call, o, use_reentrant=reentrant)
        train(model)


@case
def backward_twice():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).pow(2).sum()
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


@case
def backward_of_gradients():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        x = torch.randn(2, WIDTH, requires_grad=True)
        loss = model(x).pow(2).sum()
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        (loss + gradient.pow(2).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


@case
def backward_that_raises():
    model = Model()
    calls = iter([False, True, False, False, False])

    def hook(gradient):
        if next(calls):
            raise ArithmeticError("no gradient")

    model.layer.weight.register_hook(hook)
    for _ in range(2):
        with contextlib.suppress(ArithmeticError):
            train(model, steps=2)


@case
def backward_in_a_function():
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                y = ctx.saved_tensors[0].detach().requires_grad_()
                y.pow(2).sum().backward()  # re-entrant
            return gradient * 2 + 0 * y.grad

    train(Model(give=Inner.apply))


@case
def backward_without_backward():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        for p, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters())):
            p.grad = gradient
        optimizer.step()
        print(f"{loss.item():.9g}")


@case
def backward_of_many_losses():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        losses = [model(torch.randn(2, WIDTH)).sum() for _ in range(4)]
        torch.autograd.backward(losses)
        optimizer.step()
        optimizer.zero_grad()
        print(f"{sum(losses).item():.9g}")


@case
def backward_vectorized():
    model = Model()
    parameters = dict(model.named_parameters())
    loss = lambda p, x: torch.func.functional_call(model, p, x).sum()  # noqa: E731
    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, torch.ones(3, 2, WIDTH))
    print({name: tuple(g.shape) for name, g in gradients.items()})
    train(model)


# Optimizers


@case
def optimizer_with_an_odd_signature():
    class Odd(torch.optim.SGD):
        def step(self, metric, /, *rest, scale, **more):
            super().step()
            return metric, scale

    model = Model()
    optimizer = Odd(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(2, WIDTH)).sum()
        loss.backward()
        print(optimizer.step(1, 2, scale=3, other=4), f"{loss.item():.9g}")


@case
def optimizer_whose_groups_raise():
    class Hidden(torch.optim.SGD):
        ready = False

        @property
        def param_groups(self):
            if self.ready and "flopmeter" in inspect.stack()[1].filename and "hostile" not in inspect.stack()[1].filename:
                raise KeyError("hidden")
            return self.__dict__["groups"]

        @param_groups.setter
        def param_groups(self, value):
            self.__dict__["groups"] = value

    model = Model()
    optimizer = Hidden(model.parameters(), lr=0.01)
    optimizer.ready = True
    train(model, optimizer=optimizer)


@case
def optimizer_with_scheduler_and_patched_step():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    inner = optimizer.step
    optimizer.step = lambda *a, **k: (scheduler.step(), inner(*a, **k))[1]
    train(model, optimizer=optimizer)
    print(scheduler.get_last_lr())


@case
def optimizer_closure_that_raises():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def closure():
        model(torch.randn(2, WIDTH)).sum().backward()
        raise StopIteration("enough")

    for _ in range(2):
        with contextlib.suppress(StopIteration):
            optimizer.step(closure)
    train(model, optimizer=optimizer)


@case
def optimizer_nested():
    class Outer(torch.optim.Optimizer):
        def __init__(self, parameters):
            parameters = list(parameters)
            super().__init__(parameters, {})
            self.inner = torch.optim.SGD(parameters, lr=0.01)

        def step(self, closure=None):
            self.inner.step()
            return self.inner.step()

    model = Model()
    train(model, optimizer=Outer(model.parameters()))


@case
def optimizer_replaced_every_step():
    model = Model()
    for _ in range(5):
        train(model, optimizer=torch.optim.Adam(model.parameters()), steps=1)


# Loaders


class Numbers(Dataset):
    def __init__(self, fail_at=None):
        self.fail_at = fail_at

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == self.fail_at:
            raise LookupError("no such item")
        return torch.full((WIDTH,), float(index))


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.rand(WIDTH)


def train_on(batches, steps=None):
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for i, batch in enumerate(batches):
        if i == steps:
            break
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{loss.item():.9g}")


@case
def loader_with_workers():
    train_on(DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork"))


@case
def loader_that_raises():
    for workers in (0, 1):
        with contextlib.suppress(LookupError):
            train_on(DataLoader(Numbers(fail_at=7), batch_size=2, num_workers=workers))
    train_on(DataLoader(Numbers(), batch_size=3))


@case
def loader_without_end():
    train_on(DataLoader(Endless(), batch_size=2), steps=5)
    train_on(DataLoader(Endless(), batch_size=2, num_workers=1, persistent_workers=True), steps=5)


@case
def loader_is_a_generator():
    def batches():
        try:
            while True:
                yield torch.randn(2, WIDTH)
        finally:
            print("closed")

    train_on(batches(), steps=4)


@case
def loader_in_a_loader():
    class Nested(IterableDataset):
        def __iter__(self):
            return iter(DataLoader(Numbers(), batch_size=None))

    train_on(DataLoader(Nested(), batch_size=3))


@case
def loader_subclassed():
    class Loader(DataLoader):
        def __iter__(self):
            for batch in super().__iter__():
                yield batch + 1

        def __len__(self):
            raise TypeError("no length")

    train_on(Loader(Numbers(), batch_size=4))


@case
def loader_left_and_used_again():
    loader = DataLoader(Numbers(), batch_size=2, shuffle=True)
    for _ in range(3):
        train_on(loader, steps=2)
    iterator = iter(loader)
    next(iterator)
    del iterator
    train_on(loader)


@case
def loader_iterators_copied():
    iterator = iter(DataLoader(Numbers(), batch_size=2))
    print(type(iterator).__name__, len(iterator), hasattr(iterator, "_next_data"))
    train_on(iterator)
    with contextlib.suppress(StopIteration):
        next(iterator)
