# SPDX-License-Identifier: Apache-2.0
"""What a batch tells about itself without a look at the device: samples, tokens, lengths, images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flopmeter.config import say

_MOST_PARTS = 16  # of a batch that is a list: the first of them that is a tensor tells

class Batch(NamedTuple):
    """The arguments of the monitor's begin_step and micro_batch, in their order."""

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
    """Real tokens of each row and the padded length, which is 0 where only the shape tells them.

    Only the shape of a mask is used that lies on a device, has a row for each query, or is added to scores.
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
    except (TypeError, ValueError, IndexError, RuntimeError):
        say(f"an attention_mask of type {type(mask).__name__} is not used: expected a tensor or rows of 0 and 1")
        return [], 0


def describe(
    samples: int | None = None,
    tokens: int | None = None,
    attention_mask: Any = None,
    input_ids: Any = None,
    image_grid_thw: Any = None,
    seq_lens: Any = None,
    flops: int | None = None,
) -> Batch:
    """A batch from what is known of it; what lies on a device is not waited for, only its shape is used."""
    lengths: list[int] = []
    padded = 0
    if seq_lens is not None:
        lengths = [int(n) for n in _rows(seq_lens)]
    elif attention_mask is not None:
        lengths, padded = _lengths_if_known(attention_mask)
        if not padded and (input_ids is not None or tokens is not None):
            lengths = []  # these tell more than the shape of a mask, which may serve all rows
    if not lengths and input_ids is not None and tokens is None:
        shape = tuple(getattr(input_ids, "shape", ()))
        if len(shape) >= 2:
            lengths = [int(shape[1])] * int(shape[0])
        elif len(shape) == 1:
            lengths = [int(shape[0])]
    images: list[tuple[int, int, int]] = []
    if image_grid_thw is not None and _on_host(image_grid_thw):
        images = [(int(t), int(h), int(w)) for t, h, w in _rows(image_grid_thw)]
    return Batch(samples, tokens, lengths, padded, images, None, None if flops is None else int(flops))


def look_at(batch: Any) -> Batch | None:
    """What can be seen of a loader's batch: a mapping with the usual names, or tensors whose first extent counts samples."""
    try:
        return _look_at(batch)
    except Exception:  # somebody's own class, which only looks like one of these
        return None


def _between(marks: list[int]) -> list[int]:
    return [end - begin for begin, end in zip(marks, marks[1:])]


def _documents(get: Any) -> list[int] | None:
    """Lengths of the documents that are packed into the rows, where something on the host tells them."""
    ends = get("cu_seq_lens_q")
    if ends is not None and _on_host(ends):
        return _between(_rows(ends))
    positions = get("position_ids")
    if len(getattr(positions, "shape", ())) != 2 or get("attention_mask") is not None or not _on_host(positions):
        return None
    flat = positions.reshape(-1)
    starts = [*_rows((flat == 0).nonzero().reshape(-1)), len(flat)]
    return _between(starts) if starts[0] == 0 else None


def _tensor(tensor: Any) -> Batch | None:
    shape = tensor.shape
    if len(shape) == 0:
        return None
    integers = getattr(getattr(tensor, "dtype", None), "is_floating_point", True) is False
    if integers and len(shape) == 2:  # token ids
        return Batch(lengths=[int(shape[1])] * int(shape[0]))
    return Batch(samples=int(shape[0]))


def _look_at(batch: Any) -> Batch | None:
    if hasattr(batch, "shape"):
        return _tensor(batch)
    if isinstance(batch, (list, tuple)):
        return next((seen for each in batch[:_MOST_PARTS] if (seen := _look_at(each)) is not None), None)
    if not isinstance(batch, Mapping) and not isinstance(getattr(batch, "data", None), Mapping):
        return None
    get = batch.get
    ids = get("input_ids")
    if ids is None and len(getattr(get("labels"), "shape", ())) == 2:  # a label for each token
        ids = get("labels")
    if ids is None:
        return _look_at(list(batch.values()))
    grid = get("image_grid_thw")
    return describe(attention_mask=get("attention_mask"), input_ids=ids, image_grid_thw=grid, seq_lens=_documents(get))
