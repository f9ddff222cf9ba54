# SPDX-License-Identifier: Apache-2.0
"""Samples, tokens, lengths, and images of a batch, read without waiting for a device.

``inspect()`` runs no code of the user's program: it reads only containers and tensors of exactly known types.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from flopmeter.log import log_once

_MOST_PARTS = 16  # of a batch that is a list: the first of them that is a tensor counts
_BY_VALUE = ("attention_mask", "position_ids", "cu_seq_lens_q", "image_grid_thw")  # their values matter, not only their shape
_HUGGING_FACE = {"BatchEncoding", "BatchFeature"}


class Batch(NamedTuple):
    """Known properties of a batch."""

    samples: int | None = None
    tokens: int | None = None
    lengths: list[int] = []
    padded_length: int = 0
    images: list[tuple[int, int, int]] = []
    visual_tokens: int | None = None
    flops: int | None = None


def _on_host(tensor: Any) -> bool:
    device = getattr(tensor, "device", None)
    return device is None or getattr(device, "type", "cpu") == "cpu"


def _rows(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _lengths(mask: Any) -> tuple[list[int], int]:
    """Real tokens of each row and the padded length, which is 0 if only the shape is known.

    Of a mask that is on a device, has a row per query, or is added to scores, only the shape is used.
    """
    shape = getattr(mask, "shape", None)
    if shape is None:
        if isinstance(mask, (str, bytes, Mapping)):
            raise TypeError("expected rows of 0 and 1")
        rows = list(mask)
        rows = [list(row) for row in rows] if rows and hasattr(rows[0], "__len__") else [rows] if rows else []
        return [int(sum(map(bool, row))) for row in rows], max(map(len, rows), default=0)
    sequences, length = int(shape[0]) if len(shape) > 1 else 1, int(shape[-1])
    if len(shape) > 2 or not _on_host(mask) or bool((mask < 0).any()):
        return [length] * sequences, 0
    return [int(n) for n in (mask != 0).reshape(sequences, length).sum(1).tolist()], length


def _lengths_if_known(mask: Any) -> tuple[list[int], int]:
    try:
        return _lengths(mask)
    except Exception:
        log_once(f"an attention_mask of type {type(mask).__name__} is not used: expected a tensor or rows of 0 and 1")
        return [], 0


def describe(
    samples: Any = None,
    tokens: Any = None,
    attention_mask: Any = None,
    input_ids: Any = None,
    image_grid_thw: Any = None,
    seq_lens: Any = None,
    flops: Any = None,
) -> Batch:
    """A batch from known properties; of a tensor on a device only the shape is used.  May raise for values of a wrong type."""
    lengths: list[int] = []
    padded = 0
    if seq_lens is not None:
        lengths = [int(n) for n in _rows(seq_lens)]
    elif attention_mask is not None:
        lengths, padded = _lengths_if_known(attention_mask)
        if not padded and (input_ids is not None or tokens is not None):
            lengths = []  # these are more exact than the shape of a mask, which may serve all rows
    if not lengths and input_ids is not None and tokens is None:
        shape = tuple(getattr(input_ids, "shape", ()))
        if len(shape) >= 2:
            lengths = [int(shape[1])] * int(shape[0])
        elif len(shape) == 1:
            lengths = [int(shape[0])]
    images: list[tuple[int, int, int]] = []
    if image_grid_thw is not None and _on_host(image_grid_thw):
        images = [(int(t), int(h), int(w)) for t, h, w in _rows(image_grid_thw)]
    return Batch(samples, tokens, lengths, padded, images, None, flops)


def inspect(batch: Any, is_only_source: bool = True) -> tuple[Batch | None, bool]:
    """The description of a batch, if there is one, and whether batches of the same shapes and names share it.

    ``is_only_source``: nothing else can describe the step's batch.
    """
    if type(batch) is Batch:
        return batch, False
    try:
        found, by_shape = _inspect(batch)
    except Exception:  # for example a nested tensor, which has no shape
        found, by_shape = None, False
    if found is None and is_only_source:
        log_once("samples and tokens of the batches are not known, so their rates stay empty")
    return found, by_shape


def _inspect(batch: Any) -> tuple[Batch | None, bool]:
    if _is_tensor(batch):
        return _from_tensor(batch), True
    if type(batch) in (list, tuple) or _is_named_tuple(batch):
        by_shape = True
        for part in batch[:_MOST_PARTS]:
            found, part_by_shape = _inspect(part)
            by_shape = by_shape and part_by_shape
            if found is not None:
                return found, by_shape
        return None, by_shape
    fields = _fields(batch)
    if fields is None:
        return None, True
    known = {name: value for name, value in fields.items() if _is_tensor(value) or type(value) is list}
    get = known.get
    ids = get("input_ids")
    if ids is None and len(getattr(get("labels"), "shape", ())) == 2:  # a label for each token
        ids = get("labels")
    if ids is None:
        return _inspect(list(fields.values()))
    found = describe(
        attention_mask=get("attention_mask"), input_ids=ids, image_grid_thw=get("image_grid_thw"), seq_lens=_documents(get)
    )
    return found, not any(name in known for name in _BY_VALUE)


def _is_tensor(value: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return type(value) is getattr(torch, "Tensor", None) or type(value) is getattr(numpy, "ndarray", None)


def _is_named_tuple(value: Any) -> bool:
    return type(value).__bases__ == (tuple,) and "_fields" in type(value).__dict__


def _fields(batch: Any) -> dict[str, Any] | None:
    """The mapping in a batch; classes of transformers keep it in their attribute ``data``."""
    kind = type(batch)
    if kind in (dict, OrderedDict):
        return batch
    if kind.__name__ in _HUGGING_FACE and kind.__module__.startswith("transformers."):
        data = vars(batch).get("data")
        return data if type(data) is dict else None
    return None


def _differences(marks: list[int]) -> list[int]:
    return [end - begin for begin, end in zip(marks, marks[1:])]


def _documents(get: Any) -> list[int] | None:
    """Lengths of the documents that are packed into the rows, if a tensor on the host contains them."""
    ends = get("cu_seq_lens_q")
    if ends is not None and _on_host(ends):
        return _differences(_rows(ends))
    positions = get("position_ids")
    if len(getattr(positions, "shape", ())) != 2 or get("attention_mask") is not None or not _on_host(positions):
        return None
    flat = positions.reshape(-1)
    starts = [*_rows((flat == 0).nonzero().reshape(-1)), len(flat)]
    return _differences(starts) if starts[0] == 0 else None


def _from_tensor(tensor: Any) -> Batch | None:
    shape = tensor.shape
    if len(shape) == 0:
        return None
    integers = getattr(getattr(tensor, "dtype", None), "is_floating_point", True) is False
    if integers and len(shape) == 2:  # token ids
        return Batch(lengths=[int(shape[1])] * int(shape[0]))
    return Batch(samples=int(shape[0]))


def combined(batches: list[Batch]) -> Batch:
    """The sum of batches, for a batch that was combined from several loaders."""
    samples = sum(len(each.lengths) if each.samples is None else each.samples for each in batches)
    padded = {each.padded_length for each in batches}
    lengths = [length for each in batches for length in each.lengths]
    images = [image for each in batches for image in each.images]
    return Batch(samples, None, lengths, padded.pop() if len(padded) == 1 else 0, images)
