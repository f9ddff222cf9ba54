# SPDX-License-Identifier: Apache-2.0
"""Compiled graphs: the count equals that of eager code and the closed form, also from the caches of the compiler."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from compiled_cases import BATCH, GPT, LENGTH, WIDTH, counted

import flopmeter
from flopmeter.torch.graph_reader import from_text

pytestmark = pytest.mark.torch2("torch.compile")
PROGRAM = Path(__file__).parent / "compiled_cases.py"


def run(tmp_path, case, *, with_flopmeter=True, freezing=False, **options):
    """Counts of a case in a separate process; the caches stay in ``tmp_path``."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), case, json.dumps(options), str(int(with_flopmeter))],
        capture_output=True,
        text=True,
        timeout=1200,
        env={
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
            "TORCHINDUCTOR_FREEZING": str(int(freezing)),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": str(Path(flopmeter.__file__).parents[1]),  # the package of this process
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(result, cached=False):
    eager, first, second = result["eager"], result["first"], result["second"]
    assert first == second
    expected = dict(eager, recompute=result.get("compiled_recompute", eager["recompute"]))
    assert first == expected
    assert result["closed_form"] == eager["forward"]
    assert result["unsupported"] == []
    if cached:
        assert result["cache_hits"] > 0


def test_the_text_of_a_graph_without_a_name_is_read():
    graph = from_text(
        "class <lambda>(torch.nn.Module):\n"
        '    def forward(self, a: "f32[2, 3][3, 1]cpu", b: "f32[3, 4][4, 1]cpu"):\n'
        '        mm: "f32[2, 4][4, 1]cpu" = torch.ops.aten.mm.default(a, b);  a = b = None\n'
        "        return (mm,)\n"
    )
    assert [node.target for node, *_ in graph.nodes] == [torch.ops.aten.mm.default]


@pytest.mark.torch2("caches of compiled graphs", since=(2, 6))
def test_small_gpt_in_the_first_process_and_from_caches(tmp_path):
    check(run(tmp_path, "gpt"))
    check(run(tmp_path, "gpt"), cached=True)


@pytest.mark.torch2("caches that other programs can use", since=(2, 12))
def test_caches_written_without_flopmeter(tmp_path):
    run(tmp_path, "checkpointed", with_flopmeter=False)
    check(run(tmp_path, "checkpointed"), cached=True)


def test_checkpointed_blocks_recompute_in_the_compiled_backward(tmp_path):
    check(run(tmp_path, "checkpointed"))


def test_cpp_wrapper(tmp_path):
    check(run(tmp_path, "gpt", options={"cpp_wrapper": True}))


@pytest.mark.torch2("flex attention with gradients on a CPU", since=(2, 12))
def test_flex_attention(tmp_path):
    check(run(tmp_path, "flex"))


def test_dynamic_shapes(tmp_path):
    check(run(tmp_path, "dynamic", dynamic=True))


@pytest.mark.torch2("the same recomputation in aot_eager", since=(2, 6))
def test_another_backend_that_recomputes():
    """AOTAutograd without TorchInductor: nothing is compiled to machine code."""
    torch._dynamo.reset()
    model = GPT(checkpointed=True)
    x = torch.randn(BATCH, LENGTH, WIDTH)
    eager, _ = counted(model, x, train=True)
    other = torch.compile(model, backend="aot_eager", dynamic=True)
    counted(other, torch.randn(2, 24, WIDTH), train=True)
    compiled, unsupported = counted(other, x, train=True)
    assert unsupported == []
    assert {**compiled, "recompute": 0} == {**eager, "recompute": 0}
    assert compiled["recompute"] >= eager["recompute"] > 0  # the compiler may recompute more


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    ["mlp", "conv", "llama", "moe", "custom_op", "nested_region", "regional", "graph_break", "optimizer", "fsdp2"],
)
def test_other_models(tmp_path, case):
    check(run(tmp_path, case))
    check(run(tmp_path, case), cached=True)


@pytest.mark.long
@pytest.mark.parametrize("case", ["mlp", "conv", "llama", "moe", "flex"])
def test_other_models_with_caches_written_without_flopmeter(tmp_path, case):
    run(tmp_path, case, with_flopmeter=False)
    check(run(tmp_path, case), cached=True)


@pytest.mark.long
@pytest.mark.parametrize("case", ["mlp", "conv", "llama", "moe"])
def test_other_models_with_cpp_wrapper(tmp_path, case):
    check(run(tmp_path, case, options={"cpp_wrapper": True}))


@pytest.mark.long
def test_gemm_templates_of_the_cpu(tmp_path):
    templates = {"max_autotune": True, "max_autotune_gemm_backends": "CPP"}
    check(run(tmp_path, "inference", freezing=True, options=templates))
    check(run(tmp_path, "inference", freezing=True, options=templates))
    check(run(tmp_path, "mlp", mode="max-autotune"))


@pytest.mark.long
def test_reduced_overhead(tmp_path):
    check(run(tmp_path, "gpt", mode="reduce-overhead"))  # CUDA graphs are in test_count_replays.py


@pytest.mark.long
def test_compiled_autograd(tmp_path):
    check(run(tmp_path, "compiled_autograd"))


@pytest.mark.long
def test_a_package_of_aot_inductor_is_unsupported(tmp_path):
    result = run(tmp_path, "aot_inductor")
    assert result["unsupported"] == ["torch._inductor::AOTICompiledModel"]
