# SPDX-License-Identifier: Apache-2.0
"""Access to the samples."""

from pathlib import Path

HERE = Path(__file__).parent


def sample(name):
    """Text of a sample as in the document."""
    return (HERE / "samples" / name).read_text(encoding="utf-8")
