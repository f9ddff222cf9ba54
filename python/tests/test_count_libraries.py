# SPDX-License-Identifier: Apache-2.0
"""Operators of other libraries: defined late, with other argument orders, or in unknown namespaces."""

import pytest
import torch

import flopmeter

FORWARD = 2 * 2 * (3 + 4 + 5) * 4 * (8 + 6)  # pairs of two causal sequences, heads, sizes of keys and values


@pytest.fixture
def library(request):
    """A library of operators in the namespace that the test names, removed after it."""
    made = torch.library.Library(request.param, "FRAGMENT")
    yield made
    made._destroy()


def inputs():
    return torch.randn(2, 3, 4, 8), torch.randn(2, 5, 2, 8), torch.randn(2, 5, 2, 6)


def define(library, schema, arity=3):
    library.define(schema)
    library.impl(schema.split("(")[0], lambda *args: args[0].clone(), "CPU")


@pytest.mark.parametrize("library", ["flash_attn_3"], indirect=True)
def test_an_operator_defined_after_the_first_counter_is_counted(library):
    with flopmeter.count():
        pass
    with flopmeter.count() as c:
        define(library, "_flash_attn_forward(Tensor q, Tensor k, Tensor v, bool causal) -> Tensor")
        torch.ops.flash_attn_3._flash_attn_forward(*inputs(), True)
    assert c.by_op == {"flash_attn_3::_flash_attn_forward": FORWARD}
    assert not c.unsupported


@pytest.mark.parametrize("library", ["mslk_flash"], indirect=True)
def test_arguments_are_found_by_their_names(library):
    define(
        library,
        "flash_fwd(Tensor query, Tensor key, Tensor value, Tensor? cu_seqlens_q, bool is_causal, int window_right, int window_left) -> Tensor",
    )
    with flopmeter.count() as c:
        torch.ops.mslk_flash.flash_fwd(*inputs(), None, True, -1, -1)
        torch.ops.mslk_flash.flash_fwd(*inputs(), None, True, -1, 1)  # two keys for each of six queries
    assert c.hardware_flops == FORWARD + 2 * 12 * 4 * 14


@pytest.mark.parametrize("library", ["xformers"], indirect=True)
@pytest.mark.parametrize("release", ["0.0.23", "0.0.26"])
def test_arguments_whose_names_differ_by_release(library, release):
    name = "efficient_attention_forward_cutlass"
    if release == "0.0.23":
        define(library, f"{name}(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, Tensor? seqstart_q, int custom_mask_type) -> Tensor")
    else:
        define(library, f"{name}(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? cu_seqlens_q, int custom_mask_type) -> Tensor")
    call = getattr(torch.ops.xformers, name)
    with flopmeter.count() as c:
        call(*inputs(), None, None, 2)
    assert (c.hardware_flops, c.attention_pairs) == (FORWARD, "exact")
    with flopmeter.count() as c:
        call(*inputs(), torch.zeros(3, 5), None, 2)
    assert c.attention_pairs == "full"


@pytest.mark.parametrize("library", ["xformers_flash"], indirect=True)
def test_one_of_several_optional_parameters_is_enough(library):
    define(
        library,
        "flash_fwd(Tensor query, Tensor key, Tensor value, bool is_causal, Tensor? seqused_q, Tensor? seqused_k, Tensor? block_tables) -> Tensor",
    )
    lengths = torch.ones(2, dtype=torch.int32)
    with flopmeter.count() as c:
        torch.ops.xformers_flash.flash_fwd(*inputs(), True, lengths, None, None)
    assert c.hardware_flops == c.bounded_flops == FORWARD
    with flopmeter.count() as c:
        torch.ops.xformers_flash.flash_fwd(*inputs(), True, None, None, lengths)
    assert [each.op for each in c.unsupported] == ["xformers_flash::flash_fwd"]


@pytest.mark.parametrize("library", ["_flash_attn_9e27194_dirty"], indirect=True)
def test_attention_in_an_unknown_namespace_is_recognized(library):
    define(library, "fwd(Tensor q, Tensor k, Tensor v, Tensor? out, float p, float scale, bool is_causal, int window_size_left, int window_size_right) -> Tensor")
    define(library, "bwd(Tensor dout, Tensor q, Tensor k, Tensor v, bool is_causal, int window_size_left) -> Tensor")
    ops = torch.ops._flash_attn_9e27194_dirty
    q, k, v = inputs()
    with flopmeter.count() as c:
        ops.fwd(q, k, v, None, 0.0, 1.0, True, -1, -1)
        ops.bwd(torch.randn(2, 3, 4, 6), q, k, v, True, -1)
    assert c.by_op == {
        "_flash_attn_9e27194_dirty::fwd": FORWARD,
        "_flash_attn_9e27194_dirty::bwd": 2 * 24 * 4 * (3 * 8 + 2 * 6),
    }
    assert not c.unsupported


@pytest.mark.parametrize("library", ["_neighborhood_attention"], indirect=True)
def test_recognized_attention_with_parameters_that_reduce_the_pairs_is_an_upper_bound(library):
    define(library, "fmha_forward(Tensor query, Tensor key, Tensor value, bool is_causal, Tensor? cumulative_seqlen_Q) -> Tensor")
    define(library, "fmha_backward(Tensor query, Tensor key, Tensor value, Tensor d_output, bool is_causal, int max_seqlen_Q) -> Tensor")
    define(library, "na1d_forward(Tensor query, Tensor key, Tensor value, int[] kernel_size, bool[] is_causal, int max_seqlen) -> Tensor")
    ops = torch.ops._neighborhood_attention
    with flopmeter.count() as c:
        ops.fmha_forward(*inputs(), True, None)
        ops.fmha_backward(*inputs(), torch.randn(2, 3, 4, 6), True, 0)
    assert (c.hardware_flops, c.bounded_flops) == (FORWARD + 2 * 24 * 4 * (3 * 8 + 2 * 6), 0)
    with flopmeter.count() as c:
        ops.fmha_forward(*inputs(), True, torch.tensor([0, 2, 3]))
    assert c.hardware_flops == c.bounded_flops == FORWARD
    with flopmeter.count() as c:
        ops.na1d_forward(*inputs(), [3], [False], 0)
    assert c.hardware_flops == c.bounded_flops == 2 * 2 * 15 * 4 * (8 + 6)


@pytest.mark.parametrize("library", ["_heads_first"], indirect=True)
def test_attention_whose_layout_is_not_known_is_named(library):
    define(library, "sdpa(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> Tensor")
    with flopmeter.count() as c:
        torch.ops._heads_first.sdpa(*(torch.randn(2, 4, 64, 8) for _ in "qkv"), True, 1.0)
    assert (c.hardware_flops, c.unsupported) == (0, [("_heads_first::sdpa", 1, None)])


@pytest.mark.parametrize("library", ["_flash_attn_late"], indirect=True)
def test_calls_before_an_unknown_operator_was_noticed_are_reported(library):
    with flopmeter.count() as c:
        define(library, "fwd(Tensor q, Tensor k, Tensor v, bool causal, int window_size_left) -> Tensor")
        torch.ops._flash_attn_late.fwd(*inputs(), True, -1)
    assert c.hardware_flops == 0
    assert c.unsupported == [("_flash_attn_late::fwd", 1, None)]
    with flopmeter.count() as c:
        torch.ops._flash_attn_late.fwd(*inputs(), True, -1)
    assert c.hardware_flops == FORWARD
    assert not c.unsupported


@pytest.mark.parametrize("library", ["torchao"], indirect=True)
def test_a_matmul_without_a_rule_is_named(library):
    define(library, "blockwise_scaled_mm(Tensor a, Tensor b) -> Tensor")
    with flopmeter.count() as c:
        torch.ops.torchao.blockwise_scaled_mm(torch.ones(2, 3), torch.ones(3, 4))
    assert c.unsupported == [("torchao::blockwise_scaled_mm", 1, None)]


@pytest.mark.parametrize("library", ["unknown_kernels"], indirect=True)
def test_an_operator_of_an_unknown_library_is_named_if_its_name_states_a_matmul(library):
    multiply = ("fused_gemm", "quant_matmul", "spmm_sum")
    others = ("gemm_workspace_size", "quantize_for_gemm", "rotate")
    for name in multiply + others:
        define(library, f"{name}(Tensor a, Tensor b) -> Tensor")
    ops = torch.ops.unknown_kernels
    with flopmeter.count() as c:
        for name in multiply + others:
            getattr(ops, name)(torch.ones(2, 3), torch.ones(3, 4))
    assert c.unsupported == [(f"unknown_kernels::{name}", 1, None) for name in multiply]
    flopmeter.register_op("unknown_kernels::fused_gemm", lambda a, b: 2 * a[0] * a[1] * b[1])
    with flopmeter.count() as c:
        ops.fused_gemm(torch.ones(2, 3), torch.ones(3, 4))
    assert (c.hardware_flops, c.unsupported) == (2 * 2 * 3 * 4, [])


def test_packed_attention_of_torch_counts_the_kernels_that_it_calls():
    pytest.importorskip("torch.nn.attention.varlen")
    library = torch.library.Library("torch_attn", "IMPL")
    library.impl("_varlen_attn", lambda q, k, v, *_: (q.flatten(1) @ k.flatten(1).t(), q.clone(), q.clone()), "CPU")
    q, starts = torch.randn(7, 4, 8), torch.tensor([0, 5, 7], dtype=torch.int32)
    with flopmeter.count() as c:
        torch.ops.torch_attn._varlen_attn(q, q, q, starts, starts, 5, 5, True)
    library._destroy()
    assert (c.by_op, c.unsupported) == ({"aten::mm": 2 * 7 * 7 * 32}, [])


@pytest.mark.parametrize("library", ["unknown_layers"], indirect=True)
def test_operators_inside_an_unknown_operator_are_counted(library):
    library.define("linear_gelu(Tensor a, Tensor b) -> Tensor")
    library.impl("linear_gelu", lambda a, b: torch.nn.functional.gelu(a @ b), "CPU")
    call = torch.ops.unknown_layers.linear_gelu
    for function in (call, torch.compile(call, backend="aot_eager")):
        with flopmeter.count() as c:
            function(torch.ones(2, 3), torch.ones(3, 4))
        assert (c.by_op, c.unsupported) == ({"aten::mm": 2 * 2 * 3 * 4}, [])
