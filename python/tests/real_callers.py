# SPDX-License-Identifier: Apache-2.0
"""Runs the Python files of a library with stubs for its kernels, and prints counts; started by test_count_real_callers.py."""

import ast
import contextlib
import enum
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import torch

import flopmeter


def stub(name, **functions):
    """A module for the kernels.  They compute nothing that is counted."""
    module = types.ModuleType(name)
    module.__dict__.update(functions)
    sys.modules[name] = module
    return module


def counted(function):
    with flopmeter.count() as c:
        function()
    return {"forward": c.forward, "backward": c.backward, "bounded": c.bounded_flops, "ops": c.by_op, "unsupported": c.unsupported}


def flash_attn(_folder):
    old = False

    def forward(q, _k, v, lse):
        out = q.new_zeros(*q.shape[:-1], v.shape[-1])
        padded = (q, _k, v, out) if old else ()
        return (out, *padded, lse, None if old else torch.zeros(0), torch.zeros(2, dtype=torch.int64))

    def backward(_dout, _q, _k, _v, _out, lse, dq, dk, dv, *_rest):
        for each in (dq, dk, dv):
            each.zero_()
        return dq, dk, dv, lse.clone()

    stub(
        "flash_attn_2_cuda",
        fwd=lambda q, k, v, *_: forward(q, k, v, torch.zeros(q.shape[0], q.shape[2], q.shape[1])),
        varlen_fwd=lambda q, k, v, *_: forward(q, k, v, torch.zeros(q.shape[1], q.shape[0])),
        bwd=backward,
        varlen_bwd=backward,
    )
    custom_op = torch.library.custom_op
    # flash-attn registers its operators for CUDA only.
    torch.library.custom_op = lambda *args, device_types=None, **more: custom_op(*args, **more)
    import flash_attn as library

    old = library.__version__ < "2.7"

    def inputs(*rows):
        return [torch.randn(*each, heads, 8, requires_grad=True) for each, heads in zip((rows[0], rows[-1], rows[-1]), (4, 2, 2))]

    starts = torch.tensor([0, 5, 7], dtype=torch.int32)
    even, packed = inputs((2, 3), (2, 5)), inputs((7,))
    return {
        "causal": counted(lambda: library.flash_attn_func(*even, causal=True).sum().backward()),
        "window": counted(lambda: library.flash_attn_func(*even, causal=True, window_size=(1, 0)).sum().backward()),
        "packed": counted(
            lambda: library.flash_attn_varlen_func(*packed, starts, starts, 5, 5, causal=True).sum().backward()
        ),
    }


def megatron(_folder):
    def add_weight_gradient(x, grad, main_grad):
        main_grad += torch.from_numpy(grad.detach().flatten(0, -2).numpy().T @ x.detach().flatten(0, -2).numpy())

    stub(
        "fused_weight_gradient_mlp_cuda",
        wgrad_gemm_accum_fp32=add_weight_gradient,
        wgrad_gemm_accum_fp16=add_weight_gradient,
    )
    from megatron.core import parallel_state
    from megatron.core.model_parallel_config import ModelParallelConfig
    from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear

    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    config = ModelParallelConfig(use_cpu_initialization=True, gradient_accumulation_fusion=True, params_dtype=torch.float32)
    options = {"config": config, "init_method": torch.nn.init.ones_, "bias": False}
    layers = [
        ColumnParallelLinear(32, 64, gather_output=False, **options),
        RowParallelLinear(64, 48, input_is_parallel=True, skip_bias_add=False, **options),
    ]
    for layer in layers:
        layer.weight.main_grad = torch.zeros_like(layer.weight)
    x = torch.randn(8, 2, 32, requires_grad=True)
    return {"linear": counted(lambda: layers[1](layers[0](x)[0])[0].sum().backward())}


def liger(_folder):
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    loss = LigerFusedLinearCrossEntropyLoss()
    weight, x = torch.randn(64, 32, requires_grad=True), torch.randn(16, 32, requires_grad=True)
    target = torch.randint(0, 64, (16,))
    return {"loss": counted(lambda: loss(weight, x, target).backward())}


def triton_kernel(folder):
    """A kernel that multiplies: interpreted, and compiled for a GPU without being launched."""
    Path(folder, "user_kernels.py").write_text(
        "import triton\nimport triton.language as tl\n"
        "@triton.jit\n"
        "def multiply(a, b, c, SIZE: tl.constexpr):\n"
        "    i = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]\n"
        "    tl.store(c + i, tl.dot(tl.load(a + i), tl.load(b + i)))\n"
        "@triton.jit\n"
        "def add(a, b, c, SIZE: tl.constexpr):\n"
        "    i = tl.arange(0, SIZE)\n"
        "    tl.store(c + i, tl.load(a + i) + tl.load(b + i))\n"
    )
    with flopmeter.count():
        pass
    import triton
    import user_kernels

    if triton.knobs.runtime.interpret:
        a, b, c = (torch.randn(16, 16) for _ in range(3))
        with flopmeter.count() as count:
            user_kernels.multiply[(1,)](a, b, c, 16)
            user_kernels.add[(1,)](a, b, c, 16)
        return {"names": [[each.op, each.calls] for each in count.unsupported]}

    from triton.backends.compiler import GPUTarget
    from triton.runtime.jit import JitFunctionInfo

    for kernel in (user_kernels.multiply, user_kernels.add):
        source = triton.compiler.ASTSource(kernel, {"a": "*fp32", "b": "*fp32", "c": "*fp32", "SIZE": "constexpr"}, {(3,): 16})
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        kernel.device_caches[0] = ({"key": compiled},)
        kernel.run = lambda *_, **__: None
        with flopmeter.count() as count:
            info = JitFunctionInfo("user_kernels", kernel.fn.__name__, kernel)
            triton.knobs.runtime.jit_post_compile_hook(key="key", fn=info, compile={"device": 0})
            kernel[(1,)](1, 2, 3)
        if kernel is user_kernels.multiply:
            names = [[each.op, each.calls] for each in count.unsupported]
    assert not count.unsupported
    return {"names": names}


class Mask(enum.Enum):
    NVTE_CAUSAL_BOTTOM_RIGHT_MASK = 0


class Layout(enum.Enum):
    NVTE_BSHD_BSHD_BSHD = 0


def transformer_engine(folder):
    """Attention, whose backend depends on the device: the calls are read from its files, and made with these values."""
    starts = torch.zeros(3, dtype=torch.int32)
    values = {
        "max_seqlen_q": 3,
        "max_seqlen_kv": 5,
        "QKVLayout[qkv_layout]": Layout.NVTE_BSHD_BSHD_BSHD,
        "AttnMaskType[attn_mask_type]": Mask.NVTE_CAUSAL_BOTTOM_RIGHT_MASK,
        "window_size": (-1, 0),
        "cu_seqlens_q": starts,
        "cu_seqlens_kv": starts,
        "q": torch.randn(2, 3, 4, 8),
        "k": torch.randn(2, 5, 2, 8),
        "v": torch.randn(2, 5, 2, 6),
    }
    tex = stub("transformer_engine_torch", fused_attn_fwd=lambda *_: None, fused_attn_bwd=lambda *_: None)
    with flopmeter.count():
        pass
    from flopmeter.torch import callables

    for name in ("fused_attn_fwd", "fused_attn_bwd"):
        callables.count_function(f"transformer_engine_torch::{name}")
    tree = ast.parse(Path(folder, "transformer_engine/pytorch/cpp_extensions/fused_attn.py").read_text())
    result = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("tex.fused_attn_"):
            name = ast.unparse(node.func)[4:]
            args = [values.get(ast.unparse(each)) for each in node.args]
            result[name] = counted(lambda name=name, args=args: getattr(tex, name)(*args))
    return result


class Values(type):
    """Makes the members of an enumeration on demand."""

    def __getattr__(cls, name):
        if name == "__members__":
            return {each.name: each for each in cls.made}
        if name.startswith("_"):
            raise AttributeError(name)
        value = cls(len(cls.made))
        value.name = name
        cls.made.append(value)
        setattr(cls, name, value)
        return value


class TransformerEngineTorch(types.ModuleType):
    """The extension module: enumerations by their names, and functions that do nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Values(name, (int,), {"made": []}) if name[0].isupper() else lambda *_, **__: None
        setattr(self, name, value)
        return value


def import_transformer_engine(folder, **functions):
    """Its package without the libraries of CUDA, which its __init__ and those of its parts load."""
    os.environ.update(NVTE_PROJECT_BUILDING="1", NVTE_TORCH_COMPILE="0")
    for name in ("onnxscript", "onnx", "einops"):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = MagicMock()
            sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
    tex = sys.modules["transformer_engine_torch"] = TransformerEngineTorch("transformer_engine_torch")
    tex.__dict__.update(functions)
    package = stub("transformer_engine")
    package.__path__ = [str(Path(folder, "transformer_engine"))]
    importlib.import_module("transformer_engine.common").load_framework_extension = lambda *_: None
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(major=9, minor=0, multi_processor_count=132, name="stub")
    torch.cuda.current_device = lambda: 0
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.device = lambda *_: contextlib.nullcontext()
    empty = torch.empty
    torch.empty = lambda *sizes, device=None, **named: empty(*sizes, **named)  # on the host
    torch.Tensor.is_cuda = property(lambda _: True)
    torch.Tensor.cuda = lambda tensor, *_, **__: tensor
    module = importlib.import_module("transformer_engine.pytorch.module")
    # It imports all names of the extension; others are made on demand.
    sys.modules["transformer_engine.pytorch.cpp_extensions"].__getattr__ = tex.__getattr__
    torch.cuda.is_available = lambda: True
    return module


def transformer_engine_layers(folder):
    """Its own layers; the kernels return zeros."""

    def gemm(a, transpose_a, b, transpose_b, out, *_rest, **_named):
        if out is None:
            width = a.numel() // a.shape[-1] if transpose_a else a.shape[-1]
            out = torch.zeros(b.shape[-1] if transpose_b else b.shape[:-1].numel(), width)
            out = out if transpose_b else out.view(*b.shape[:-1], width)
        return out, None, None, None

    module = import_transformer_engine(
        folder,
        generic_gemm=gemm,
        te_general_grouped_gemm=lambda a, *_, **__: [torch.zeros(0)] * len(a),  # gradients of biases
        get_num_cublas_streams=lambda: 1,
        layernorm_fwd=lambda x, *_: (torch.zeros_like(x), torch.zeros(len(x)), torch.zeros(len(x))),
        layernorm_bwd=lambda _grad, x, _mean, _deviation, weight, *_: (torch.zeros_like(x), *(torch.zeros_like(weight),) * 2),
        gelu=lambda x, *_: torch.zeros_like(x),
        dgelu=lambda _grad, x, *_: torch.zeros_like(x),
    )
    with flopmeter.count():
        pass
    from flopmeter.torch import callables

    callables.install()
    options = {"bias": False, "device": "cpu", "params_dtype": torch.float32}
    linear, grouped = module.Linear(32, 64, **options), module.GroupedLinear(2, 32, 64, **options)
    mlp = module.LayerNormMLP(32, 64, **options)
    x = torch.randn(8, 2, 32, requires_grad=True)
    rows = torch.randn(16, 32, requires_grad=True)
    return {
        "Linear": counted(lambda: linear(x).sum().backward()),
        "LayerNormMLP": counted(lambda: mlp(x).sum().backward()),
        "GroupedLinear": counted(lambda: grouped(rows, [10, 6]).sum().backward()),
    }


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
