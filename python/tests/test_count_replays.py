# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs, with a fake graph class: a capture is not counted, and each replay is."""

import subprocess
import sys
from pathlib import Path

import fake_cuda_graphs
import pytest
import torch
from torch import nn

import flopmeter
from flopmeter import _flopmeter

pytestmark = pytest.mark.skipif(torch.backends.cuda.is_built(), reason="the fake replaces the graph class of a CPU build")
MATMUL = 2 * 2 * 3 * 4


@pytest.fixture(autouse=True)
def cuda_graphs(monkeypatch):
    fake_cuda_graphs.install(lambda owner, name, value: monkeypatch.setattr(owner, name, value, raising=False))
    with flopmeter.count():
        pass


def captured():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.randn(2, 3) @ torch.randn(3, 4)
    return graph


def test_each_replay_counts_and_the_capture_does_not():
    with flopmeter.count() as c:
        graph = captured()
        assert c.hardware_flops == 0
        for _ in range(7):
            graph.replay()
    assert (c.hardware_flops, c.calls, c.by_op) == (7 * MATMUL, 7, {"aten::mm": 7 * MATMUL})


def test_a_graph_that_was_captured_outside_of_a_count_is_counted():
    graph = captured()
    with flopmeter.count() as c:
        graph.replay()
    assert c.hardware_flops == MATMUL


def test_a_reset_graph_has_no_work():
    with flopmeter.count() as c:
        graph = captured()
        graph.reset()
    assert (c.hardware_flops, c.unsupported) == (0, [])


def test_captures_and_replays_in_a_compiled_graph_are_part_of_it():
    with flopmeter.count() as c:
        assert _flopmeter.begin_call(True)  # as mode="reduce-overhead" of torch.compile on CUDA
        graph = captured()
        graph.replay()
        _flopmeter.end_call()
    assert c.hardware_flops == 0
    assert not c.unsupported


def test_replays_belong_to_the_modules_of_the_capture():
    model = nn.Sequential(nn.Linear(3, 4))
    with flopmeter.count(modules=model) as c:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(torch.randn(2, 3))
        graph.replay()
        graph.replay()
    assert c.by_module["0"].forward == 2 * MATMUL


def test_a_graph_of_an_unknown_capture_is_reported():
    graph = torch.cuda.CUDAGraph()  # captured before flopmeter was loaded
    with flopmeter.count() as c:
        graph.replay()
    assert [(each.op, each.calls) for each in c.unsupported] == [("torch.cuda.graphs::CUDAGraph", 1)]


def test_graphed_callables_work_with_hooks_on_the_model():
    model = nn.Linear(3, 4)
    x = torch.randn(2, 3, requires_grad=True)
    with flopmeter.count(modules=model):
        hooks = (len(model._forward_hooks), len(model._forward_pre_hooks))
        graphed = torch.cuda.make_graphed_callables(model, (x,))
        assert hooks == (len(model._forward_hooks), len(model._forward_pre_hooks)) == (1, 1)
        with flopmeter.count() as c:
            for _ in range(3):
                graphed(x).sum().backward()
    assert (c.forward, c.backward) == (3 * MATMUL, 3 * 2 * MATMUL)


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
import torch, fake_cuda_graphs
fake_cuda_graphs.install()
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(2, 3)
for step in range(6):
    if step == 2:
        model = torch.cuda.make_graphed_callables(model, (x,))
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
print("finished")
"""


def test_graphed_callables_work_under_flopmeter_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)))
    program = Path(sys.executable).parent / "flopmeter"
    if not program.exists():
        pytest.skip("the flopmeter program is not built")
    done = subprocess.run(
        [str(program), "run", "--dir", str(tmp_path / "run"), "--", sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
    )
    assert "finished" in done.stdout, done.stderr
    assert done.returncode == 0
