# SPDX-License-Identifier: Apache-2.0
"""Reads the records of a monitor."""

import json
from pathlib import Path


def records(directory, tag=None):
    """Records of the newest start in a run directory, in order; with ``tag``, only those.

    A profiled step counts as a training step.
    """
    files = sorted(Path(directory).glob("records_*.rank*.jsonl"))
    assert files, f"no records in {directory}"
    rows = [json.loads(line) for line in files[-1].read_text().splitlines()]
    return [row for row in rows if tag in (None, row["tag"].replace("profile", "train"))]
