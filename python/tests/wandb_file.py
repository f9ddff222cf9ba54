# SPDX-License-Identifier: Apache-2.0
"""Reads the history of a .wandb file: LevelDB log blocks of protocol buffers."""

import json
import struct
import time
from pathlib import Path

_BLOCK, _HEADER, _FILE_HEADER = 32768, 7, 7
_FULL, _LAST = 1, 4


def _messages(data):
    position, message = _FILE_HEADER, b""
    while position + _HEADER <= len(data):
        left = _BLOCK - position % _BLOCK
        if left < _HEADER:
            position += left
            continue
        _crc, length, kind = struct.unpack_from("<IHB", data, position)
        if position + _HEADER + length > len(data):
            return  # still being written
        message += data[position + _HEADER : position + _HEADER + length]
        position += _HEADER + length
        if kind in (_FULL, _LAST):
            yield message
            message = b""


def _key(item):
    return item.key or ".".join(item.nested_key)


def _records(folder):
    from wandb.proto import wandb_internal_pb2

    (file,) = Path(folder).rglob("*.wandb")
    return [wandb_internal_pb2.Record.FromString(message) for message in _messages(file.read_bytes())]


def read_run(folder):
    """History rows (without wandb's keys) and metric definitions of the one finished run in a folder."""
    records = _records(folder)
    deadline = time.monotonic() + 30
    while not any(record.WhichOneof("record_type") == "exit" for record in records):  # the file is written later
        assert time.monotonic() < deadline, "the file of the run is incomplete"
        time.sleep(0.05)
        records = _records(folder)
    rows, metrics = [], {}
    for record in records:
        if record.WhichOneof("record_type") == "history":
            values = {_key(item): json.loads(item.value_json) for item in record.history.item}
            rows.append({name: value for name, value in values.items() if not name.startswith("_")})
        elif record.WhichOneof("record_type") == "metric":
            metrics[record.metric.name or record.metric.glob_name] = record.metric
    return rows, metrics
