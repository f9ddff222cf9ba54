# SPDX-License-Identifier: Apache-2.0
"""Python functions that do not pass the dispatcher.  Their modules are stubs that compute with NumPy, which is not counted."""

import copy
import enum
import sys
import types

import numpy as np
import pytest
import torch

import flopmeter
from flopmeter import _flopmeter

PAIR = 4 * 2 * (8 + 6)  # query heads, sizes of keys and values


@pytest.fixture
def stub(monkeypatch):
    """Makes a module with functions and lets flopmeter find it, as its import would."""

    def make(name, **functions):
        module = types.ModuleType(name)
        module.__dict__.update(functions)
        monkeypatch.setitem(sys.modules, name, module)
        with flopmeter.count():
            pass
        from flopmeter.torch import imports

        for callback in imports._waiting.get(name, []):
            callback(module)
        return module

    return make


def unseen(*_args, **_kwargs):
    return np.ones(3).sum()


def qkv(packed=False):
    shape = ((7,), (7,)) if packed else ((2, 3), (2, 5))
    return torch.randn(*shape[0], 4, 8), torch.randn(*shape[1], 2, 8), torch.randn(*shape[1], 2, 6)


def test_apex_weight_gradient(stub):
    apex = stub("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=unseen)
    with flopmeter.count() as c:
        apex.wgrad_gemm_accum_fp32(torch.randn(10, 3), torch.randn(10, 4), torch.randn(4, 3))
    assert c.by_op == {"fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32": 2 * 10 * 3 * 4}


@pytest.mark.parametrize(("count", "causal", "window"), [(9, 6, None), (11, 6, 7), (12, 7, 8), (13, 7, 8)])
def test_flash_attention_2_forward_by_release(stub, count, causal, window):
    flash = stub("flash_attn_2_cuda", fwd=unseen)
    args = [*qkv(), *[None] * (count - 3)]
    args[causal] = True
    if window is not None:
        args[window : window + 2] = [1, 0]  # two keys for each of six queries
    with flopmeter.count() as c:
        flash.fwd(*args)
    assert c.hardware_flops == (12 if window is not None else 24) * PAIR
    assert not c.unsupported


HOPPER = [(6, 5, None, None), (9, 8, None, None), (11, 8, 9, None), (31, 22, 23, "flash_attn_3_cuda"), (31, 23, 24, "flash_attn_3_cuda")]


@pytest.mark.parametrize(("count", "causal", "window", "module"), HOPPER)
def test_flash_attention_3_forward_by_release(stub, count, causal, window, module):
    name = module or "flashattn_hopper_cuda"
    flash = stub(name, fwd=unseen)
    args = [*qkv(), *[None] * (count - 3)]
    args[causal] = True
    if window is not None:
        args[window : window + 2] = [1, 0]
    with flopmeter.count() as c:
        flash.fwd(*args)
    assert c.by_op == {f"{name}::fwd": (12 if window is not None else 24) * PAIR}
    assert not c.unsupported


@pytest.mark.parametrize(("count", "starts", "longest", "causal"), [(11, 4, 7, 10), (14, 4, 8, 11), (15, 4, 9, 12)])
def test_packed_flash_attention_3_forward_by_release(stub, count, starts, longest, causal):
    flash = stub("flashattn_hopper_cuda", varlen_fwd=unseen)
    args = [*qkv(packed=True), *[None] * (count - 3)]
    args[starts] = args[starts + 1] = torch.tensor([0, 5, 7], dtype=torch.int32)
    args[longest : longest + 2] = [5, 5]
    args[causal] = True
    with flopmeter.count() as c:
        flash.varlen_fwd(*args)
    assert (c.hardware_flops, c.bounded_flops, c.attention_pairs) == ((15 + 3) * PAIR, 0, "exact")


def test_a_release_with_another_number_of_arguments_is_unsupported(stub):
    flash = stub("flash_attn_2_cuda", fwd=unseen)
    with flopmeter.count() as c:
        flash.fwd(*qkv(), *[None] * 30)
    assert c.hardware_flops == 0
    assert [(each.op, each.calls) for each in c.unsupported] == [("flash_attn_2_cuda::fwd", 1)]


def test_packed_sequences_with_starts_on_the_host_are_exact(stub):
    flash = stub("flash_attn_2_cuda", varlen_fwd=unseen)
    args = [*qkv(packed=True), *[None] * 18]
    starts = torch.tensor([0, 5, 7], dtype=torch.int32)
    args[4], args[5], args[10], args[11], args[15], args[16], args[17] = starts, starts, 5, 5, True, -1, -1
    with flopmeter.count() as c:
        flash.varlen_fwd(*args)
    assert (c.hardware_flops, c.bounded_flops, c.attention_pairs) == ((15 + 3) * PAIR, 0, "exact")


def test_packed_sequences_with_used_lengths_are_an_upper_bound(stub):
    flash = stub("flash_attn_2_cuda", varlen_fwd=unseen)
    args = [*qkv(packed=True), *[None] * 18]
    starts = torch.tensor([0, 5, 7], dtype=torch.int32)
    args[4], args[5], args[10], args[11], args[15], args[16], args[17] = starts, starts, 5, 5, True, -1, -1
    args[6] = torch.tensor([4, 2], dtype=torch.int32)
    with flopmeter.count() as c:
        flash.varlen_fwd(*args)
    assert c.hardware_flops == c.bounded_flops == 2 * 15 * PAIR
    assert c.attention_pairs == "unknown"


def test_keywords_and_defaults_of_python_functions(stub):
    def _flash_attn_fwd(q, k, v, softmax_scale=None, causal=False, window_size_left=None, window_size_right=None, mask_mod=None, **_more):
        return unseen()

    _flash_attn_fwd.compile_cache = {}
    interface = stub("flash_attn.cute.interface", _flash_attn_fwd=_flash_attn_fwd)
    q, k, v = qkv()
    with flopmeter.count() as c:
        interface._flash_attn_fwd(q, v=v, k=k, causal=True)
        assert interface._flash_attn_fwd.compile_cache is _flash_attn_fwd.compile_cache
    assert c.hardware_flops == 24 * PAIR
    assert c.bounded_flops == 0
    with flopmeter.count() as c:
        interface._flash_attn_fwd(q, k, v, mask_mod=lambda *_: True, block_sparse_tensors=None, gather_kv_indices=None)
    assert c.hardware_flops == c.bounded_flops == 30 * PAIR
    with flopmeter.count() as c:
        interface._flash_attn_fwd(q, k, v, qv=torch.randn(2, 3, 4, 6))  # also multiplies the values
    assert (c.hardware_flops, len(c.unsupported)) == (0, 1)


class Quantized:
    """As TransformerEngine's storage classes: not a tensor, with logical sizes."""

    def __init__(self, *shape, **dtype):
        self._shape = shape
        self.__dict__.update(dtype)

    def size(self):
        return torch.Size(self._shape)


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [({}, "bf16"), ({"_fp8_dtype": "kFloat8E4M3"}, "fp8"), ({"_fp4_dtype": "kFloat4E2M1", "_rowwise_data": ()}, "fp4")],
)
def test_transformer_engine_gemm_by_dtype(stub, operands, dtype):
    te = stub("transformer_engine_torch", generic_gemm=unseen)

    def tensor(*shape):
        return Quantized(*shape, **operands) if operands else torch.randn(*shape, dtype=torch.bfloat16)

    with flopmeter.count() as c:
        te.generic_gemm(tensor(4, 3), True, tensor(2, 5, 3), False, None, None, None, comm_overlap=None)  # forward
        te.generic_gemm(tensor(4, 3), False, tensor(2, 5, 4), False, None)  # gradient of the input
        te.generic_gemm(tensor(10, 3), False, tensor(10, 4), True, None)  # gradient of the weight
    assert c.by_dtype == {dtype: 3 * 2 * 10 * 3 * 4}


def test_transformer_engine_mxfp8_has_its_own_rows(stub):
    class MXFP8TensorStorage(Quantized):
        pass

    te = stub("transformer_engine_torch", generic_gemm=unseen, te_general_grouped_gemm=unseen)
    fp8 = {"_fp8_dtype": "kFloat8E4M3"}
    with flopmeter.count() as c:
        te.generic_gemm(Quantized(4, 3, **fp8), True, Quantized(10, 3, **fp8), False, None)
        te.generic_gemm(MXFP8TensorStorage(4, 3, **fp8), True, MXFP8TensorStorage(20, 3, **fp8), False, None)
        weights, rows = [MXFP8TensorStorage(4, 3, **fp8)] * 2, [MXFP8TensorStorage(7, 3, **fp8), MXFP8TensorStorage(23, 3, **fp8)]
        te.te_general_grouped_gemm(weights, True, rows, False, None, None, [7, 23], *[None] * 10)
    assert c.by_dtype == {"fp8": (10 + 20 + 30) * 2 * 3 * 4}
    assert c.by_op == {
        "transformer_engine_torch::generic_gemm": 10 * 2 * 3 * 4,
        "transformer_engine_torch::generic_gemm.mxfp8": 20 * 2 * 3 * 4,
        "transformer_engine_torch::te_general_grouped_gemm.mxfp8": 30 * 2 * 3 * 4,
    }


def test_transformer_engine_fp4_tensors_without_rowwise_data(stub):
    class Columnwise(Quantized):
        def size(self):
            raise AssertionError("size() of such a tensor prints a warning")

    te = stub("transformer_engine_torch", generic_gemm=unseen)
    data = torch.empty(4, 5, dtype=torch.uint8)  # of [10, 4]: transposed, two elements in a byte
    gradient = Columnwise(_fp4_dtype="kFloat4E2M1", _rowwise_data=None, _columnwise_data=data)
    with flopmeter.count() as c:
        te.generic_gemm(Quantized(10, 3, _fp4_dtype="kFloat4E2M1", _rowwise_data=()), False, gradient, True, None)
    assert c.by_dtype == {"fp4": 2 * 10 * 3 * 4}


def test_transformer_engine_grouped_gemm(stub):
    te = stub("transformer_engine_torch", te_general_grouped_gemm=unseen)
    weights, rows = [torch.randn(4, 3)] * 2, [torch.randn(7, 3), torch.randn(3, 3)]
    with flopmeter.count() as c:
        te.te_general_grouped_gemm(weights, True, rows, False, None, None, [7, 3], *[None] * 10)
    assert c.hardware_flops == 2 * 10 * 3 * 4


class GroupedTensorStorage:
    def __init__(self, groups, *shape, quantizer=None):
        self.num_tensors, self.logical_shape, self.quantizer = groups, shape, quantizer
        self.rowwise_data, self.columnwise_data = None, torch.empty(0, dtype=torch.bfloat16)


class MXFP8Quantizer:
    pass


@pytest.mark.parametrize(("quantizer", "dtype", "row"), [(None, "bf16", ""), (MXFP8Quantizer(), "fp8", ".mxfp8")])
def test_transformer_engine_grouped_tensors_are_an_upper_bound(stub, quantizer, dtype, row):
    names = [f"te_general_grouped_gemm_for_{kind}" for kind in ("grouped_tensor", "discrete_in", "discrete_out")]
    te = stub("transformer_engine_torch", **dict.fromkeys(names, unseen))
    rest = [None] * 9
    inputs, gradients, weights = (GroupedTensorStorage(2, *shape, quantizer=quantizer) for shape in ((10, 3), (10, 4), (8, 3)))
    with flopmeter.count() as c:
        te.te_general_grouped_gemm_for_grouped_tensor(weights, True, inputs, False, *rest)
        te.te_general_grouped_gemm_for_discrete_in([torch.empty(4, 3)] * 2, False, gradients, False, *rest)
        te.te_general_grouped_gemm_for_discrete_out(inputs, False, gradients, True, *rest)
    work = 2 * 10 * 3 * 4
    assert c.by_op == {f"transformer_engine_torch::{name}{row}": work for name in names}
    assert c.by_dtype == {dtype: 3 * work}
    assert c.bounded_flops == c.model_flops == 3 * work


def test_a_grouped_tensor_without_its_attributes_is_unsupported(stub):
    te = stub("transformer_engine_torch", te_general_grouped_gemm_for_grouped_tensor=unseen)
    empty = GroupedTensorStorage(2, 10, 3)
    del empty.num_tensors
    with flopmeter.count() as c:
        te.te_general_grouped_gemm_for_grouped_tensor(empty, True, empty, False, *[None] * 9)
    assert [(each.op, each.calls) for each in c.unsupported] == [("transformer_engine_torch::te_general_grouped_gemm_for_grouped_tensor", 1)]


class Mask(enum.Enum):
    NVTE_NO_MASK = 0
    NVTE_CAUSAL_MASK = 1
    NVTE_PADDING_CAUSAL_BOTTOM_RIGHT_MASK = 2


class Layout(enum.Enum):
    NVTE_BSHD_BSHD_BSHD = 0
    NVTE_THD_THD_THD = 1


@pytest.mark.parametrize(
    ("mask", "layout", "pairs"),
    [
        (Mask.NVTE_NO_MASK, Layout.NVTE_BSHD_BSHD_BSHD, 30),
        (Mask.NVTE_CAUSAL_MASK, Layout.NVTE_BSHD_BSHD_BSHD, 12),
        # three queries with five keys, and one with two
        (Mask.NVTE_PADDING_CAUSAL_BOTTOM_RIGHT_MASK, Layout.NVTE_THD_THD_THD, 3 + 4 + 5 + 2),
    ],
)
def test_transformer_engine_attention(stub, mask, layout, pairs):
    te = stub("transformer_engine_torch", fused_attn_fwd=unseen)
    args = [None] * 27
    args[0], args[1], args[6], args[8], args[10] = 3, 5, layout, mask, [-1, -1]
    args[11], args[12] = torch.tensor([0, 3, 4], dtype=torch.int32), torch.tensor([0, 5, 7], dtype=torch.int32)
    args[13:16] = qkv()
    with flopmeter.count() as c:
        te.fused_attn_fwd(*args)
    assert (c.hardware_flops, c.bounded_flops) == (pairs * PAIR, 0)


def test_operators_inside_a_counted_function_are_part_of_it(stub):
    apex = stub("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=lambda x, grad, main: main.add_(grad.t() @ x))
    with flopmeter.count() as c:
        apex.wgrad_gemm_accum_fp32(torch.randn(10, 3), torch.randn(10, 4), torch.randn(4, 3))
    assert c.hardware_flops == 2 * 10 * 3 * 4
    assert list(c.by_op) == ["fused_weight_gradient_mlp_cuda::wgrad_gemm_accum_fp32"]


def test_a_failing_call_counts_nothing(stub):
    def fail(*_args):
        raise ValueError("no")

    apex = stub("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=fail)
    with flopmeter.count() as c:
        with pytest.raises(ValueError, match="no"):
            apex.wgrad_gemm_accum_fp32(torch.randn(10, 3), torch.randn(10, 4), torch.randn(4, 3))
        torch.randn(2, 3) @ torch.randn(3, 4)
    assert list(c.by_op) == ["aten::mm"]


def test_the_wrapper_keeps_the_identity_of_the_function(stub):
    def wgrad_gemm_accum_fp32(x):
        """Adds."""

    apex = stub("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=wgrad_gemm_accum_fp32)
    wrapper = apex.wgrad_gemm_accum_fp32
    assert isinstance(wrapper, _flopmeter.CountedFunction)
    assert wrapper.__wrapped__ is wgrad_gemm_accum_fp32
    assert (wrapper.__name__, wrapper.__doc__, repr(wrapper)) == ("wgrad_gemm_accum_fp32", "Adds.", repr(wgrad_gemm_accum_fp32))
    assert copy.copy(wrapper) is wrapper


def test_functions_that_other_modules_imported_by_name_are_counted(stub, monkeypatch):
    user = types.ModuleType("user_of_apex")
    user.wgrad_gemm_accum_fp32 = unseen
    monkeypatch.setitem(sys.modules, "user_of_apex", user)
    stub("fused_weight_gradient_mlp_cuda", wgrad_gemm_accum_fp32=unseen)
    with flopmeter.count() as c:
        user.wgrad_gemm_accum_fp32(torch.randn(10, 3), torch.randn(10, 4), torch.randn(4, 3))
    assert c.hardware_flops == 2 * 10 * 3 * 4


def test_a_module_is_patched_when_it_is_imported(tmp_path, monkeypatch):
    with flopmeter.count():
        pass
    (tmp_path / "grouped_gemm_backend.py").write_text("def gmm(a, b, c, batch_sizes, trans_a, trans_b):\n    return c\n")
    monkeypatch.syspath_prepend(tmp_path)
    import grouped_gemm_backend

    with flopmeter.count() as c:
        grouped_gemm_backend.gmm(torch.randn(10, 3), torch.randn(5, 3, 4), None, torch.ones(5, dtype=torch.int64), False, False)
    monkeypatch.delitem(sys.modules, "grouped_gemm_backend")
    assert c.hardware_flops == 2 * 10 * 3 * 4


def test_register_op_counts_a_python_function(stub):
    kernels = stub("my_kernels", fused=lambda x, w=None: x.new_empty(2, 4))
    flopmeter.register_op("my_kernels::fused", lambda x, w, out_shape: 2 * x[0] * x[1] * out_shape[1])
    with flopmeter.count() as c:
        kernels.fused(torch.randn(2, 3), w=torch.randn(3, 4))
    assert c.by_op == {"my_kernels::fused": 2 * 2 * 3 * 4}


def test_an_unsupported_function_is_named(stub):
    scan = stub("selective_scan_cuda", fwd=unseen)
    with flopmeter.count() as c:
        scan.fwd(torch.randn(2, 3, 4))
    assert [(each.op, each.calls, each.seconds) for each in c.unsupported] == [("selective_scan_cuda::fwd", 1, None)]
    assert c.coverage is None


def test_a_tilelang_kernel_that_multiplies_is_named_or_counted_by_a_rule(stub):
    class JITKernel:
        def __init__(self, name, source):
            self.prim_func = types.SimpleNamespace(attrs={"global_symbol": name})
            self.kernel_source = source
            self.torch_function = unseen

        def __call__(self, *args):
            return self.torch_function(*args)

    stub("tilelang")
    stub("tilelang.jit.kernel", JITKernel=JITKernel)
    header = "#include <tl_templates/cuda/gemm.h>\n"
    add, multiply = JITKernel("add", header + "C[i] = A[i] + gamma[i];"), JITKernel("multiply", header + "tl::gemm_ss<128>(A, B, C);")
    assert add.torch_function is unseen
    with flopmeter.count() as c:
        add(), multiply()
    assert [(each.op, each.calls) for each in c.unsupported] == [("tilelang::multiply", 1)]
    flopmeter.register_op("tilelang::multiply", lambda a, b, c, out_shape: 2 * a[0] * a[1] * b[1])
    with flopmeter.count() as c:
        multiply(torch.randn(4, 3), torch.randn(3, 5), torch.randn(4, 5))
    assert (c.by_op, c.unsupported) == ({"tilelang::multiply": 120}, [])
