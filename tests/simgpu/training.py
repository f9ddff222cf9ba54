# SPDX-License-Identifier: Apache-2.0
"""The one training loop behind all of loops.py, with marks where phases begin."""

import contextlib
import io
import os
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from simgpu import COLLECTIVES, NAME, mark
from torch.utils.data import DataLoader, Dataset

from model import GPT, loss_of


@dataclass
class Options:
    """The plain loop; loops.py changes one thing or two."""

    layers: int = 4
    width: int = 1536
    heads: int = 12
    vocabulary: int = 8192
    rows: int = 4
    length: int = 1024
    dtype: str = "bfloat16"
    fused: bool = True
    loss_outside: bool = False  # the model returns logits
    item_every: int = 0
    read: str = "item"  # how the loss is read then: "item", "list", "cpu", "print", "check", "synchronize"
    read_early: bool = False  # before backward
    clip: str = ""  # "item": reads the norm on the host; "device": does not
    loop_seconds: float = 0.0  # of the loop's own code
    loader_seconds: float = 0.0  # that loading a batch takes on the training thread
    workers: int = 0
    worker_cpu_seconds: float = 0.0
    features: str = ""  # large inputs: "pageable", "pinned", "prefetch" (pinned, on a side stream)
    accumulate: int = 1
    split: bool = False  # micro-batches are parts of one batch
    sync_each: bool = True  # DDP reduces the gradients of every micro-batch
    amp: bool = False  # autocast and GradScaler
    ema: bool = False  # a moving average of the parameters
    optimizers: int = 1
    optimizer: str = ""  # AdamW with "fused" kernels, one kernel per tensor ("single"), "capturable"; or "SGD"
    padding: float = 0.0  # share of each row
    evaluate_every: int = 0
    checkpoint_every: int = 0
    ddp: bool = False
    fsdp: bool = False  # each block and the model are sharded
    reduce: str = ""  # gradients without DDP: "wait" for each collective, or "overlap" them
    graph: bool = False
    compile: str = ""
    skip: int = 0  # batches at the start that are not trained on


class Batches(Dataset):
    """Random tokens; the same for the same index."""

    def __init__(self, options, count):
        self.options, self.count = options, count
        self.features = None
        if options.features:
            self.features = torch.zeros(
                options.rows, options.length, options.width, dtype=getattr(torch, options.dtype)
            )
            if options.features != "pageable":
                self.features = self.features.pin_memory()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        o = self.options
        if o.loader_seconds:
            time.sleep(o.loader_seconds)
        end = time.thread_time() + o.worker_cpu_seconds
        while time.thread_time() < end:
            pass
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(o.vocabulary, (o.rows, o.length + 1), generator=generator)
        batch = {"input_ids": ids[:, :-1].contiguous(), "labels": ids[:, 1:].contiguous()}
        if o.padding:
            real = round(o.length * (1 - o.padding))
            batch["attention_mask"] = torch.ones(o.rows, o.length, dtype=torch.long)
            batch["attention_mask"][:, real:] = 0
            batch["labels"][:, real:] = -100
        if self.features is not None:
            batch["features"] = self.features
        return batch


def to_device(batch, device):
    return {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}


class Prefetcher:
    """Copies the next batch on a side stream while the current one is computed."""

    def __init__(self, batches, device):
        self.batches, self.device, self.side = batches, device, torch.Stream(device)
        self.ready = None
        self.copied = torch.Event(device)
        self.load()

    def load(self):
        batch = next(self.batches, None)
        with self.side:
            self.ready = batch and to_device(batch, self.device)
            self.copied.record(self.side)

    def __next__(self):
        torch.accelerator.current_stream().wait_event(self.copied)
        batch = self.ready
        self.load()
        return batch


class EagerStep:
    """Forward and backward of one micro-batch, launch by launch."""

    def __init__(self, model, options, scaler=None):
        self.model, self.options, self.scaler = model, options, scaler

    def __call__(self, batch):
        mark("forward")
        with torch.autocast(NAME, torch.bfloat16) if self.scaler else contextlib.nullcontext():
            if self.options.loss_outside:
                loss = loss_of(self.model(batch["input_ids"]), batch["labels"])
            else:
                loss = self.model(**batch)
        if self.options.read_early:
            read_loss(loss, self.options.read)
        mark("backward")
        scaled = loss / self.options.accumulate if self.options.accumulate > 1 else loss
        (self.scaler.scale(scaled) if self.scaler else scaled).backward()
        return loss.detach()


class GraphStep:
    """Forward and backward captured into a graph: inputs are copied into its buffers, one launch replays it."""

    def __init__(self, model, batch):
        self.inputs = {name: tensor.clone() for name, tensor in batch.items()}
        device = torch.get_device_module(NAME)
        side = device.Stream()
        side.wait_stream(device.current_stream())
        with side:  # gradients get their memory
            model(**self.inputs).backward()
        device.current_stream().wait_stream(side)
        for parameter in model.parameters():
            parameter.grad.zero_()
        self.graph = device.CUDAGraph()
        with device.graph(self.graph):
            for parameter in model.parameters():
                parameter.grad.zero_()
            self.loss = model(**self.inputs)
            self.loss.backward()

    def __call__(self, batch):
        mark("replay")
        for name, tensor in batch.items():
            self.inputs[name].copy_(tensor)
        self.graph.replay()
        return self.loss.detach().clone()


def make_model(options, device):
    torch.manual_seed(0)
    with torch.device(device):
        model = GPT(
            options.layers, options.width, options.heads, options.vocabulary, options.length, options.fused
        ).to(getattr(torch, options.dtype))
    if options.compile:
        model = torch.compile(model, backend=options.compile)
    return model


@contextlib.contextmanager
def data_parallel(model, options):
    """The model in DistributedDataParallel, in the group that torchrun describes or in one of this process alone."""
    if not options.ddp and not options.reduce and not options.fsdp:
        yield model
        return
    alone = {} if "WORLD_SIZE" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    dist.init_process_group(f"cpu:gloo,{NAME}:{COLLECTIVES}", **alone)
    if options.fsdp:
        mesh = dist.device_mesh.init_device_mesh(NAME, (dist.get_world_size(),))
        for part in (*model.blocks, model):
            dist.fsdp.fully_shard(part, mesh=mesh)
    try:
        yield torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if options.ddp else model
    finally:
        dist.destroy_process_group()


def reduce_gradients(model, how):
    """One collective for the gradients of each block."""
    flat = [torch.cat([each.grad.flatten() for each in block.parameters()]) for block in model.blocks]
    works = [dist.all_reduce(gradients, async_op=how == "overlap") for gradients in flat]
    for work in works:
        if work is not None:
            work.wait()
    for block, gradients in zip(model.blocks, flat):
        sizes = [each.numel() for each in block.parameters()]
        for parameter, gradient in zip(block.parameters(), gradients.split(sizes)):
            parameter.grad.copy_(gradient.view_as(parameter))


def clip(model, how):
    mark("clip")
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if how == "item":
        norm.item()


def read_loss(loss, how):
    if how == "item":
        loss.item()
    elif how == "list":
        loss.flatten().tolist()
    elif how == "cpu":
        loss.cpu()
    elif how == "print":
        print(loss, file=io.StringIO())
    elif how == "check":
        assert not torch.isnan(loss)
    elif how == "synchronize":
        torch.accelerator.synchronize()


def make_optimizer(parameters, kind):
    if kind == "SGD":
        return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)
    how = {"single": {"foreach": False}, "": {}}.get(kind, {kind: True})
    return torch.optim.AdamW(parameters, lr=1e-3, **how)


class Optimizers:
    """One optimizer or two, with a GradScaler or without, and a moving average of the parameters on request."""

    def __init__(self, model, options):
        parameters = list(model.parameters())
        groups = [parameters[part :: options.optimizers] for part in range(options.optimizers)]
        self.all = [make_optimizer(group, options.optimizer) for group in groups]
        self.scaler = torch.amp.GradScaler(NAME) if options.amp else None
        if self.scaler:
            self.all[0].register_step_pre_hook(lambda *_: mark("optimizer"))
        self.parameters = parameters
        self.averages = [each.detach().clone() for each in parameters] if options.ema else []

    def step(self):
        for optimizer in self.all:
            if self.scaler:
                self.scaler.step(optimizer)
            else:
                optimizer.step()
        if self.scaler:
            self.scaler.update()

    def zero_grad(self):
        for optimizer in self.all:
            optimizer.zero_grad()
        if self.averages:
            with torch.no_grad():
                torch._foreach_lerp_(self.averages, self.parameters, 0.01)


def evaluate(model, batch):
    mark("evaluation")
    model.eval()
    with torch.no_grad():
        total = sum(model(**batch) for _ in range(4))
    total.item()
    model.train()


class SlowDisk:
    """A file whose first write takes 50 ms; what is written is gone."""

    def __init__(self):
        self.size = 0

    def write(self, content):
        if self.size == 0:
            time.sleep(0.05)
        size = memoryview(content).nbytes
        self.size += size
        return size

    def flush(self):
        pass


def save_checkpoint(model):
    """Writes the first block; writing takes host time, and copying waits for the device."""
    mark("checkpoint")
    part = next(module for name, module in model.named_modules() if name.endswith("blocks.0"))
    torch.save(part.state_dict(), SlowDisk())


def micro_batches(options, batches, device):
    """The micro-batches of one step, on the device if nothing else copies them."""
    whole = None
    for part in range(options.accumulate):
        if whole is None or not options.split:
            mark("data")
            whole = next(batches)
            if options.features != "prefetch":
                mark("copy")
                whole = to_device(whole, device)
        if options.split:
            yield {name: tensor.chunk(options.accumulate)[part] for name, tensor in whole.items()}
        else:
            yield whole


def update(model, optimizer, options):
    """Reductions, clipping, and the optimizer step, after the backward passes."""
    if options.reduce:
        reduce_gradients(model, options.reduce)
    if options.clip:
        clip(model, options.clip)
    if optimizer.scaler:
        mark("clip")  # the scaler divides the gradients and reads whether they are finite
    else:
        mark("optimizer")
    optimizer.step()
    mark("loop")
    if not options.graph:  # the graph clears its gradients itself
        optimizer.zero_grad()


def train(options, steps, wrap=None, device=NAME, in_step=contextlib.nullcontext):
    """Trains and returns the losses as tensors of the device.  Each step runs in `with in_step():`."""
    base = make_model(options, device)
    with data_parallel(base, options) as model:
        optimizer = Optimizers(base, options)
        loader = DataLoader(
            Batches(options, 2 + options.skip + steps * options.accumulate), batch_size=None, num_workers=options.workers
        )
        batches = iter(wrap(model, optimizer.all[0], loader) if wrap else loader)
        for _ in range(options.skip):
            next(batches)
        run_step = EagerStep(model, options, optimizer.scaler)
        if options.graph:
            run_step = GraphStep(model, to_device(next(batches), device))
        if options.features == "prefetch":
            batches = Prefetcher(batches, device)
        losses = []
        for step in range(1, steps + 1):
            mark("step")
            with in_step():
                for part, batch in enumerate(micro_batches(options, batches, device), start=1):
                    waits = options.ddp and not options.sync_each and part < options.accumulate
                    with model.no_sync() if waits else contextlib.nullcontext():
                        loss = run_step(batch)
                update(base, optimizer, options)
                losses.append(loss)
                if options.item_every and step % options.item_every == 0 and not options.read_early:
                    read_loss(loss, options.read)
                if options.loop_seconds:
                    time.sleep(options.loop_seconds)
            if options.evaluate_every and step % options.evaluate_every == 0:
                evaluate(model, batch)
            if options.checkpoint_every and step % options.checkpoint_every == 0:
                save_checkpoint(base)
        mark("end")
        return losses
