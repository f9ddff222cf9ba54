# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT through flopmeter.Monitor with injected faults.

The test knows the kind and the size of a fault; flopmeter sees only the run directory. The load of the machine changes
from second to second, so trainings that are compared alternate: each is stopped and resumed every few steps, and
flopmeter reads each as one run.
"""

from __future__ import annotations

import dataclasses
import gc
import io
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset

import flopmeter

VOCABULARY = 512


@dataclasses.dataclass
class Plan:
    """One run: its sizes and its faults (0 or False: not injected)."""

    width: int = 192
    heads: int = 6
    layers: int = 3
    length: int = 64
    batch: int = 8
    seed: int = 0
    sleep: float = 0.0  # seconds that the loader sleeps per batch
    cpu: float = 0.0  # seconds of CPU time that the loader uses per batch
    workers: int = 0  # loader processes
    padding: float = 0.0  # share of padding tokens
    recompute: bool = False
    per_head: bool = False  # eager attention, one head at a time
    save_every: int = 0  # steps between checkpoints
    save_sleep: float = 0.0  # seconds that a slow disk adds to each checkpoint
    fp64: bool = False
    autocast: bool = False  # linear layers in bf16


def real_tokens(plan: Plan) -> int:
    """Tokens of a sequence that are not padding."""
    return round(plan.length * (1 - plan.padding))


@dataclasses.dataclass
class Outcome:
    """Times measured by the run itself; `seconds` and `steps` are without the first steps of each start."""

    data_seconds: float = 0.0
    save_seconds: float = 0.0
    seconds: float = 0.0
    steps: int = 0
    last: float = 0.0  # seconds per step since the last resume

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


class Attention(nn.Module):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.heads, self.per_head, self.autocast = plan.heads, plan.per_head, plan.autocast
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
        elif self.autocast:  # fused attention backward is slower in bf16 than in fp32 on a CPU
            with torch.autocast("cpu", enabled=False):
                y = F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True)
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
    """Uses CPU time, independent of the load of the machine."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


class Batches(Dataset):
    """Random tokens; sleeps and computes as specified by the plan."""

    def __init__(self, plan: Plan, steps: int) -> None:
        self.plan, self.steps = plan, steps

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index):
        time.sleep(self.plan.sleep)
        burn(self.plan.cpu)
        return torch.randint(0, VOCABULARY, (self.plan.batch, self.plan.length + 1))


class Loader:
    """Loads the batches and measures the time."""

    def __init__(self, plan: Plan, steps: int, outcome: Outcome) -> None:
        self.plan, self.steps, self.outcome = plan, steps, outcome

    def __iter__(self):
        batches = iter(DataLoader(Batches(self.plan, self.steps), batch_size=None, num_workers=self.plan.workers))
        for _ in range(self.steps):
            begin = time.perf_counter()
            batch = next(batches)
            self.outcome.data_seconds += time.perf_counter() - begin
            yield batch


WARMING_UP = 3  # steps per start that are slower than the others


class Training:
    """A training in a run directory that can be stopped and resumed."""

    def __init__(self, directory, plan: Plan) -> None:
        torch.manual_seed(plan.seed)
        self.directory, self.plan = directory, plan
        self.outcome = Outcome()
        self.step = 0
        self.model = Gpt(plan)
        if plan.fp64:
            self.model.double()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3, fused=True)
        self.mask = torch.zeros(plan.batch, plan.length, dtype=torch.long)
        self.mask[:, : real_tokens(plan)] = 1

    def resume(self, steps: int) -> None:
        """Resumes for a number of steps."""
        gc.collect()  # a collection of all that pytest holds would take as long as many steps
        monitor = flopmeter.Monitor(
            str(self.directory), model=self.model, console=False, peak_tflops="measured", max_log_files=1000
        )
        begin = time.perf_counter()
        for number, batch in enumerate(monitor.wrap(Loader(self.plan, steps, self.outcome))):
            if number == WARMING_UP:
                begin = time.perf_counter()
            self.step += 1
            with monitor.step(step=self.step, attention_mask=self.mask):
                with torch.autocast("cpu", torch.bfloat16, enabled=self.plan.autocast):
                    loss = self.model(batch[:, :-1], batch[:, 1:])
                loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
            if self.plan.save_every and self.step % self.plan.save_every == 0:
                self.save(monitor)
        seconds = time.perf_counter() - begin
        self.outcome.last = seconds / (steps - WARMING_UP)
        self.outcome.seconds += seconds
        self.outcome.steps += steps - WARMING_UP
        monitor.finish()

    def save(self, monitor) -> None:
        begin = time.perf_counter()
        with monitor.phase("checkpoint"):
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, io.BytesIO())
            time.sleep(self.plan.save_sleep)
        self.outcome.save_seconds += time.perf_counter() - begin


def train(directory, plan: Plan, steps: int = 40) -> Outcome:
    """Runs the plan in the run directory."""
    training = Training(directory, plan)
    training.resume(steps)
    return training.outcome


def spread(ratios: list[float]) -> float:
    """Standard error of the mean."""
    return statistics.stdev(ratios) / len(ratios) ** 0.5


def take_turns(training: Training, others: list[Training], within: float, most: int = 16, steps: int = 14) -> None:
    """Resumes all trainings in turn, in alternating order, so that the load of the machine affects all of them.

    Stops when the standard error is below a third of `within` of the difference, or of one MFU point.
    """
    ratios: list[list[float]] = [[] for _ in others]
    everyone = [training, *others]
    for number in range(most):
        for each in everyone if number % 2 == 0 else reversed(everyone):
            each.resume(steps)
        for row, other in zip(ratios, others, strict=True):
            row.append(training.outcome.last / other.outcome.last)
        if number >= 5 and all(is_settled(row, within) for row in ratios):
            return


def is_settled(ratios: list[float], within: float) -> bool:
    slower = statistics.mean(ratios)
    return spread(ratios) / slower < max(within * abs(1 - 1 / slower), 0.015) / 3
