# SPDX-License-Identifier: Apache-2.0
"""Runs the loop of the fixture as Megatron's pretrain_gpt.py does."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # tiny_gpt

from megatron.training.training import pretrain  # noqa: E402

pretrain()
