# SPDX-License-Identifier: Apache-2.0
"""Unusual inputs and outputs of a model."""

import collections
import dataclasses
import enum
import sys
import types
import weakref

import numpy
import torch
from case_table import CASES, Model, WIDTH, case, train, with_batch, with_output
from torch import nn


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
    "python_float_in_a_tuple": (lambda x: (x.sum(), float("nan")), lambda o: o[0]),
    "view_changed_in_place": (lambda x: x.view(-1), lambda o: o.mul_(2).sum()),
    "detached_and_attached": (lambda x: (x.detach(), x), lambda o: o[1].sum()),
    "lying_tensor": (lambda x: x.as_subclass(LyingTensor), lambda o: o.as_subclass(torch.Tensor).sum()),
    "large_dictionary": (lambda x: {i: x[0, 0] for i in range(5000)}, lambda o: o[7] + o[8]),
    "exit_on_look": (ExitingShape, lambda o: o.tensor.sum()),
}
for name, (make, take) in OUTPUTS.items():
    CASES[f"output_{name}"] = with_output(make, take)
