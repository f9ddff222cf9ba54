# SPDX-License-Identifier: Apache-2.0
"""The samples' texts."""

from pathlib import Path

HERE = Path(__file__).parent


def sample(name):
    """A sample's text as the document has it."""
    return (HERE / "samples" / name).read_text(encoding="utf-8")
