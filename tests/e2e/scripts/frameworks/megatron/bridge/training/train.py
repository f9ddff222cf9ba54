# SPDX-License-Identifier: Apache-2.0
"""The function of Megatron-Bridge's loop that saves a checkpoint: several files, and one callback when all are written."""

import io

import torch


def save_checkpoint_and_time(state, model):
    for parameter in model[0].parameters():
        torch.save(parameter, io.BytesIO())
