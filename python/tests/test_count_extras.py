# SPDX-License-Identifier: Apache-2.0
"""Replayed regions, registered operators, and use without torch."""

import os
import subprocess
import sys

import pytest
import torch

import flopmeter

MM = 2 * 4 * 5 * 6


def product():
    return torch.randn(4, 5) @ torch.randn(5, 6)


def test_a_region_counts_once_and_once_per_replay():
    with flopmeter.count() as c:
        with flopmeter.region("graph") as region:
            product()
        assert c.hardware_flops == MM
        region.replayed(10)
    assert region.hardware_flops == MM
    assert c.hardware_flops == 11 * MM
    assert c.by_op == {"aten::mm": 11 * MM}
    assert c.calls == 11


def test_replaying_before_capturing_is_an_error():
    with pytest.raises(RuntimeError, match="nothing was captured"):
        flopmeter.region("graph").replayed()


LIBRARY = torch.library.Library("flopmeter_test", "DEF")
LIBRARY.define("fused(Tensor x, Tensor w, bool twice) -> Tensor")
LIBRARY.define("another(Tensor x) -> Tensor")
fused, another = torch.ops.flopmeter_test.fused, torch.ops.flopmeter_test.another


def _fused(x, w, twice):
    y = x @ w
    return y @ y.t() if twice else y


LIBRARY.impl("fused", _fused, "CPU")
LIBRARY.impl("another", lambda x: x * 2, "CPU")


def test_a_registered_rule_counts_a_custom_op_and_not_the_operators_inside():
    x, w = torch.randn(4, 5), torch.randn(5, 6)
    with flopmeter.count() as before:
        fused(x, w, False)
    assert before.by_op == {"aten::mm": MM}
    flopmeter.register_op("flopmeter_test::fused", lambda x, w, twice, out_shape: 1000 + x[0] * out_shape[1] + twice)
    with flopmeter.count() as c:
        fused(x, w, False)
        fused(x, w, True)
    assert c.by_op == {"flopmeter_test::fused": 1024 + 1017}
    assert c.rows[0].calls == 2


def test_a_rule_without_a_result_or_with_an_error_leaves_the_call_unknown(capsys):
    x, w = torch.randn(4, 5), torch.randn(5, 6)
    flopmeter.register_op("flopmeter_test::fused", lambda *args: None)
    with flopmeter.count() as c:
        fused(x, w, False)
    assert (c.hardware_flops, c.unsupported) == (0, [("flopmeter_test::fused", 1, None)])


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("mm", ValueError, "namespace"),
        ("nowhere::nothing", KeyError, "no operator"),
        ("aten::matmul", RuntimeError, "made of other operators"),
    ],
)
def test_names_that_cannot_be_registered_are_refused_with_a_reason(name, error, text):
    with pytest.raises(error, match=text):
        flopmeter.register_op(name, lambda *args: 1)


WITHOUT_TORCH = """
import sys, time
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch": raise ImportError("No module named 'torch'")
sys.meta_path.insert(0, NoTorch())
begin = time.process_time()
import flopmeter
took = time.process_time() - begin
try:
    with flopmeter.count(): pass
except ImportError as error:
    print(took, "|", error)
"""


def test_without_torch_the_package_imports_fast_and_count_reports_what_is_missing(tmp_path):
    # Compiled once, as in an installation, even if the environment disables it.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    env = {**os.environ, **compiled, "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = [
        subprocess.run([sys.executable, "-c", WITHOUT_TORCH], env=env, capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    took = min(float(run.stdout.split("|")[0]) for run in runs)
    message = runs[0].stdout.split("|")[1].strip()
    assert took < 0.05
    assert "counting needs PyTorch" in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("name, product", [
    ("aten::addmm", lambda dense: torch.sparse.mm(torch.eye(8).to_sparse(), dense)),
    ("aten::_sparse_sparse_matmul", lambda dense: torch.sparse.mm(torch.eye(8).to_sparse(), torch.eye(8).to_sparse())),
    ("aten::sparse_sampled_addmm", lambda dense: torch.sparse.sampled_addmm(torch.eye(8).to_sparse_csr(), dense, dense.T)),
])
def test_sparse_matmuls_are_reported_as_unknown(name, product):
    dense = torch.randn(8, 4)
    with flopmeter.count() as c:
        product(dense)
    assert c.hardware_flops == 0
    assert c.unsupported == [(name, 1, None)]
    with flopmeter.profile() as s:
        product(dense)
    assert set(s.unknown_ops) == {name}


def test_matmuls_that_quantize_their_input_count_as_int8():
    layer = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(16, 8)), dtype=torch.qint8)
    with flopmeter.count() as c:
        layer(torch.randn(4, 16))
    assert c.by_dtype == {"int8": 2 * 4 * 16 * 8}


@pytest.mark.parametrize(("cell", "gates"), [(torch.nn.LSTM, 4), (torch.nn.GRU, 3)])
def test_recurrent_layers_with_packed_weights(cell, gates):
    net = torch.nn.Sequential(cell(8, 12, num_layers=2, bidirectional=True))
    layer = torch.ao.quantization.quantize_dynamic(net, {cell}, dtype=torch.qint8)[0]
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(7, 3, 8), [7, 4, 2])
    with flopmeter.count() as c:
        layer(torch.randn(7, 5, 8))
        layer(packed)
    assert c.by_dtype == {"int8": 2 * (7 * 5 + 13) * 2 * gates * 12 * (8 + 12 + 24 + 12)}


def test_a_profile_contains_all_operators_and_lists_those_without_a_rule():
    x, w = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64)
    with flopmeter.profile() as s:
        (x @ w).relu().sum().backward()
        another(w)
    calls = {}
    for row in s.rows:
        calls[row.name] = calls.get(row.name, 0) + row.calls
    assert (calls["aten::mm"], calls["aten::relu"]) == (2, 1)
    assert {row.backward for row in s.rows if row.name == "aten::mm"} == {False, True}
    assert set(s.unknown_ops) == {"flopmeter_test::another"}
    assert 0 < s.seconds("compute") < s.busy_seconds
