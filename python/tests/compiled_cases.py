# SPDX-License-Identifier: Apache-2.0
"""Runs one model eagerly and compiled, and prints the counts; started by test_count_compiled.py."""

import contextlib
import json
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

BATCH, LENGTH, WIDTH, HEADS = 4, 16, 32, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        return x + self.down(torch.relu(self.up(x)))


class GPT(nn.Module):
    def __init__(self, checkpointed=False):
        super().__init__()
        self.checkpointed = checkpointed
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, 8)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        return self.head(x)


def gpt_forward(tokens=BATCH * LENGTH, length=LENGTH):
    pairs = tokens // length * length * (length + 1) // 2
    return 2 * (2 * tokens * WIDTH * 7 * WIDTH + 2 * pairs * 2 * WIDTH) + 2 * tokens * WIDTH * 8


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), torch.randn(16, 32), 2 * 16 * (32 * 64 + 64 * 8)


def gpt(checkpointed=False):
    return GPT(checkpointed), torch.randn(BATCH, LENGTH, WIDTH), gpt_forward()


def conv():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 12 * 12, 10))
    work = 2 * 2 * (14 * 14 * 8 * 27 + 12 * 12 * 4 * 72 + 4 * 144 * 10)
    return model, torch.randn(2, 3, 16, 16), work


class Flex(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(64, 192)

    def forward(self, x):
        from torch.nn.attention.flex_attention import flex_attention

        q, k, v = self.qkv(x).view(2, 64, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return flex_attention(q, k, v)


def flex():
    return Flex(), torch.randn(2, 64, 64), 2 * 128 * 64 * 192 + 2 * 2 * 64 * 64 * 4 * 32


PAIRS = 2 * 16 * 17 // 2  # of two causal sequences


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    layer = 2 * 32 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96) + 2 * PAIRS * 4 * (16 + 16)
    return LlamaForCausalLM(config), torch.randint(0, 128, (2, 16)), 2 * layer + 2 * 32 * 64 * 128


def moe():
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        num_experts_per_tok=2,
    )
    experts = 2 * 32 * (32 * 4 + 2 * 3 * 32 * 48)  # the router, and two of the experts for each token
    layer = 2 * 32 * (2 * 32 * 32 + 2 * 32 * 16) + 2 * PAIRS * 4 * (8 + 8) + experts
    return MixtralForCausalLM(config), torch.randint(0, 128, (2, 16)), 2 * layer + 2 * 32 * 32 * 128


@torch.library.custom_op("flopmeter_cases::opaque", mutates_args=())
def opaque(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


@opaque.register_fake
def _(x, w):
    return x.new_empty(x.shape[0], w.shape[1])


opaque.register_autograd(
    lambda ctx, grad: (grad @ ctx.saved_tensors[1].t(), ctx.saved_tensors[0].t() @ grad),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


class Opaque(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.weight = nn.Parameter(torch.randn(64, 8))

    def forward(self, x):
        return opaque(torch.relu(self.first(x)), self.weight)


def custom_op():
    return Opaque(), torch.randn(16, 32), 2 * 16 * (32 * 64 + 64 * 8)


class Nested(GPT):
    def forward(self, x):
        for block in self.blocks:
            x = torch.compiler.nested_compile_region(block)(x)
        return self.head(x)


def nested_region():
    return Nested(), torch.randn(BATCH, LENGTH, WIDTH), gpt_forward()


class Broken(GPT):
    def forward(self, x):
        x = self.blocks[0](x)
        torch._dynamo.graph_break()
        return self.head(self.blocks[1](x))


def graph_break():
    return Broken(), torch.randn(BATCH, LENGTH, WIDTH), gpt_forward()


class OptimizerStep(nn.Module):
    """A step of Muon, which multiplies: five iterations for each weight of size m x n, m < n."""

    def __init__(self):
        super().__init__()
        weights = [nn.Parameter(torch.randn(64, 32)), nn.Parameter(torch.randn(8, 64))]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        self.optimizer = torch.optim.Muon(weights)
        self.step = self.optimizer.step

    def forward(self, x):
        self.step()
        return x


def optimizer():
    return OptimizerStep(), torch.zeros(1), sum(5 * (2 * 2 * m * m * n + 2 * m**3) for m, n in ((32, 64), (8, 64)))


def fsdp2(model):
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    mesh = torch.distributed.init_device_mesh("cpu", (1,))
    for each in (*model.blocks, model):
        fully_shard(each, mesh=mesh)
    return model


CASES = {
    "fsdp2": gpt,
    "checkpointed": lambda: gpt(True),
    "dynamic": gpt,
    "inference": mlp,
    "regional": gpt,
    "compiled_autograd": mlp,
    "aot_inductor": mlp,
}


def step(model, x, train):
    with contextlib.nullcontext() if train else torch.no_grad():
        out = model(x)
    out = getattr(out, "logits", out)
    if train:
        out.sum().backward()


def counted(model, x, train):
    import flopmeter

    with flopmeter.count() as c:
        step(model, x, train)
    return {"forward": c.forward, "backward": c.backward, "recompute": c.recompute, "model": c.model_flops}, [each.op for each in c.unsupported]


def compiled_model(case, model, x, options):
    if case == "regional":
        for block in model.blocks:
            block.compile(**options)
        return model
    if case == "aot_inductor":
        program = torch.export.export(model.eval(), (x,))
        return torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program))
    if case == "optimizer":
        model.step = torch.compile(model.step, **options)
        return model
    return torch.compile(fsdp2(model) if case == "fsdp2" else model, **options)


def main(case, options, with_flopmeter):
    torch.manual_seed(0)
    model, x, closed_form = CASES.get(case) and CASES[case]() or globals()[case]()
    train = case not in ("inference", "aot_inductor", "optimizer", "flex")  # flex_attention has no backward on the CPU
    if not train:
        model.eval()
    result = {"closed_form": closed_form}
    context = contextlib.nullcontext()
    if with_flopmeter:
        result["eager"], _ = counted(model, x, train)
    if case == "compiled_autograd":
        context = torch._dynamo.compiled_autograd._enable(torch.compile)
    model = compiled_model(case, model, x, options)
    with context:
        if case == "dynamic":
            step(model, torch.randn(2, 24, WIDTH), train)
        if not with_flopmeter:
            step(model, x, train)
            return result
        result["first"], _ = counted(model, x, train)
        result["second"], result["unsupported"] = counted(model, x, train)
    if case == "checkpointed":
        # The compiler also recomputes what eager code saves outside of the last block: its last matmul.
        result["compiled_recompute"] = result["eager"]["recompute"] + 2 * BATCH * LENGTH * 2 * WIDTH * WIDTH
    from torch._dynamo.utils import counters

    result["cache_hits"] = counters["inductor"]["fxgraph_cache_hit"]
    return result


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3] == "1")))
