# SPDX-License-Identifier: Apache-2.0
"""A small GPT with eager attention and the closed form of its step."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class SmallGpt(nn.Module):
    def __init__(self, vocabulary=64, layers=2, width=32, heads=4, length=16):
        super().__init__()
        self.vocabulary, self.width, self.length = vocabulary, width, length
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def step_flops(model, batch):
    """Forward and backward: 3 x (24 T d^2 + 4 T s d per layer, 2 T d V for the head)."""
    tokens = batch * model.length
    layer = 24 * tokens * model.width**2 + 4 * tokens * model.length * model.width
    return 3 * (len(model.blocks) * layer + 2 * tokens * model.width * model.vocabulary)
