# SPDX-License-Identifier: Apache-2.0
"""A small GPT trained for real through flopmeter.Monitor, with faults planted in it.

A fault's kind and size are known here and to the test; the tool sees the run directory alone.
"""

from __future__ import annotations

import dataclasses
import io
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import flopmeter

VOCABULARY = 512


@dataclasses.dataclass
class Plan:
    """One run: its sizes, and the faults in it (0 or False: not planted)."""

    width: int = 192
    heads: int = 6
    layers: int = 3
    length: int = 64
    batch: int = 8
    steps: int = 40
    seed: int = 0
    sleep: float = 0.0  # seconds that the loader sleeps for each batch
    cpu: float = 0.0  # seconds of processor time that it takes for each batch
    padding: float = 0.0  # share of the tokens that is padding
    recompute: bool = False
    per_head: bool = False  # eager attention, one head after the other
    save_every: int = 0  # steps between two checkpoints
    save_sleep: float = 0.0  # seconds that a slow disk adds to each


@dataclasses.dataclass
class Outcome:
    """What really happened, by the run's own clock."""

    data_seconds: float = 0.0
    save_seconds: float = 0.0
    step_seconds: float = 0.0  # of all but the first steps, a step
    steps: int = 0
    flops: int = 0


class Attention(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.heads, self.per_head = plan.heads, plan.per_head
        self.qkv = nn.Linear(plan.width, 3 * plan.width)
        self.out = nn.Linear(plan.width, plan.width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(x).split(d, 2))
        if self.per_head:
            mask = torch.ones(t, t, dtype=torch.bool).tril()
            parts = []
            for head in range(self.heads):
                scores = q[:, head] @ k[:, head].transpose(1, 2) / (d // self.heads) ** 0.5
                weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
                parts.append(weights @ v[:, head])
            y = torch.stack(parts, 1)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(plan.width), nn.LayerNorm(plan.width)
        self.attention = Attention(plan)
        self.mlp = nn.Sequential(nn.Linear(plan.width, 4 * plan.width), nn.GELU(), nn.Linear(4 * plan.width, plan.width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.recompute = plan.recompute
        self.tokens = nn.Embedding(VOCABULARY, plan.width)
        self.places = nn.Embedding(plan.length, plan.width)
        self.blocks = nn.ModuleList(Block(plan) for _ in range(plan.layers))
        self.norm = nn.LayerNorm(plan.width)
        self.head = nn.Linear(plan.width, VOCABULARY)

    def forward(self, x, y):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if self.recompute else block(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


def burn(seconds: float) -> None:
    """Processor time, however busy the machine is."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


class Loader:
    """Random tokens; sleeps and computes as the plan says, and keeps the time."""

    def __init__(self, plan: Plan, outcome: Outcome) -> None:
        self.plan, self.outcome = plan, outcome

    def __iter__(self):
        plan = self.plan
        for step in range(plan.steps):
            begin = time.perf_counter()
            if plan.sleep:
                time.sleep(plan.sleep)
            if plan.cpu:
                burn(plan.cpu)
            batch = torch.randint(0, VOCABULARY, (plan.batch, plan.length + 1))
            if step >= WARMING_UP:
                self.outcome.data_seconds += time.perf_counter() - begin
            yield batch


WARMING_UP = 3  # steps that the diagnosis leaves out


def measured_peak(seconds: float = 0.4) -> float:
    """FLOP/s of a large product here and now, the best of several."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best, end = 0.0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2 * 1024**3 / (time.perf_counter() - begin))
    return best


def train(directory, plan: Plan, peak: float) -> Outcome:
    """Runs the plan into the run directory."""
    torch.manual_seed(plan.seed)
    outcome = Outcome()
    model = Gpt(plan)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    monitor = flopmeter.Monitor(str(directory), model=model, console=False, peak_tflops=peak / 1e12)
    real = round(plan.length * (1 - plan.padding))
    mask = torch.zeros(plan.batch, plan.length, dtype=torch.long)
    mask[:, :real] = 1
    begin = time.perf_counter()
    for step, batch in enumerate(monitor.wrap(Loader(plan, outcome))):
        with monitor.step(attention_mask=mask):
            loss = model(batch[:, :-1], batch[:, 1:])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        if plan.save_every and step % plan.save_every == plan.save_every - 1:
            before = time.perf_counter()
            with monitor.phase("checkpoint"):
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
                time.sleep(plan.save_sleep)
            if step >= WARMING_UP:
                outcome.save_seconds += time.perf_counter() - before
        if step == WARMING_UP - 1:
            begin = time.perf_counter()
    outcome.steps = plan.steps - WARMING_UP
    outcome.step_seconds = (time.perf_counter() - begin) / outcome.steps
    monitor.finish()
    return outcome
