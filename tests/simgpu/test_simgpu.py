# SPDX-License-Identifier: Apache-2.0
"""The simulated device itself: its timeline, streams, events, copies, memory, and capture."""

import threading
import time

import pytest
import simgpu
import torch
from torch.nn import functional as F

DEVICE = "simgpu"


def kernels():
    return simgpu.truth().kernels


def delay(milliseconds, stream=None):
    """Launches a kernel that takes this long."""
    with stream if stream is not None else torch.accelerator.current_stream():
        torch.simgpu._sleep(milliseconds * 1e6)


def milliseconds_of(function):
    begin = time.monotonic()
    function()
    return (time.monotonic() - begin) * 1e3


# Timeline


def test_a_matmul_takes_its_flops_at_the_efficiency_of_the_peak():
    a, b = (torch.empty(4096, 4096, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    _ = a @ b
    (mm,) = kernels()
    assert (mm.name, mm.flops) == ("mm", 2 * 4096**3)
    assert mm.end - mm.start == pytest.approx(2 * 4096**3 / (100e12 * 0.8) * 1e9 + 2000, abs=1)
    assert mm.ideal_ns == pytest.approx(2 * 4096**3 / 100e12 * 1e9)


def test_an_elementwise_operator_takes_its_bytes_at_the_bandwidth():
    a = torch.empty(1 << 20, device=DEVICE)
    _ = a + a
    (add,) = kernels()
    assert add.end - add.start == pytest.approx(3 * 4 * (1 << 20) / 1000 + 2000, abs=1)


def test_settings_change_the_cost_at_run_time():
    simgpu.configure(bandwidth_gbs=10, kernel_us=0)
    _ = torch.empty(1 << 20, device=DEVICE).neg()
    (neg,) = kernels()
    assert neg.end - neg.start == pytest.approx(2 * 4 * (1 << 20) / 10, abs=1)
    with pytest.raises(KeyError, match="no setting"):
        simgpu.configure(bandwith=1)


def test_a_launch_returns_before_its_kernel_ends():
    assert milliseconds_of(lambda: delay(300)) < 200
    assert milliseconds_of(torch.accelerator.synchronize) > 90


def test_kernels_of_a_stream_run_one_after_another_and_streams_overlap():
    side = torch.Stream(DEVICE)
    delay(50)
    delay(20)
    delay(20, side)
    first, second, other = kernels()
    assert second.start == first.end and second.end - second.start == 20_000_000
    assert other.start < first.end


def test_a_full_queue_blocks_the_host():
    simgpu.configure(queue_depth=4)
    took = milliseconds_of(lambda: [delay(20) for _ in range(10)])
    assert took > 95  # the last launch waits until the fifth before it has started
    simgpu.configure(queue_depth=1e9)
    torch.accelerator.synchronize()
    assert milliseconds_of(lambda: [delay(20) for _ in range(10)]) < 90


# Events


def test_elapsed_time_is_exact():
    begin, end = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
    delay(5)
    begin.record()
    delay(30)
    end.record()
    assert not end.query()
    with pytest.raises(RuntimeError, match="completed"):
        begin.elapsed_time(end)
    end.synchronize()
    assert end.query()
    assert begin.elapsed_time(end) == pytest.approx(30, abs=1e-4)


def test_a_stream_waits_for_an_event_of_another():
    side, event = torch.Stream(DEVICE), torch.Event(DEVICE)
    delay(30)
    event.record()
    side.wait_event(event)
    delay(1, side)
    main, waited = kernels()
    assert waited.start == main.end


def test_events_cost_time_on_host_and_device():
    simgpu.configure(event_host_us=2000, event_device_us=5000)
    delay(10)
    assert milliseconds_of(torch.Event(DEVICE).record) >= 2
    delay(10)
    first, second = kernels()
    assert second.start - first.end == 5_000_000


def test_elapsed_time_can_be_missing():
    simgpu.configure(elapsed_time=0)
    begin, end = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    end.synchronize()
    with pytest.raises(RuntimeError, match="elapsedTime"):
        begin.elapsed_time(end)


def test_calls_are_counted_with_their_thread():
    event = torch.Event(DEVICE)
    event.record()
    thread = threading.Thread(target=event.query)
    thread.start()
    thread.join()
    torch.ones(1, device=DEVICE).item()
    assert simgpu.counters() == {"record_event": 1, "query_event": 1, "item": 1}
    by_name = {call.name: call.thread for call in simgpu.truth().calls}
    assert by_name["record_event"] == threading.get_native_id() != by_name["query_event"]


# Copies and memory


@pytest.mark.parametrize(
    ("kibibytes", "pinned", "non_blocking", "waits"),
    [(1024, False, True, True), (1024, True, True, False), (1024, True, False, True), (16, False, True, False)],
)
def test_host_copies_wait_as_on_cuda(kibibytes, pinned, non_blocking, waits):
    host = torch.zeros(kibibytes * 1024, dtype=torch.uint8, pin_memory=pinned)
    assert host.is_pinned() == pinned
    delay(50)
    host.to(DEVICE, non_blocking=non_blocking)
    assert simgpu.counters() == ({"copy": 1} if waits else {})
    _, copy = kernels()
    assert copy.kind == "host_to_device"
    assert copy.end - copy.start == pytest.approx(kibibytes * 1024 / (24 if pinned else 6) + 5000, abs=1)


def test_a_copy_to_pinned_memory_does_not_wait():
    device, host = torch.zeros(1 << 20, device=DEVICE), torch.zeros(1 << 20, pin_memory=True)
    simgpu.reset()
    host.copy_(device, non_blocking=True)
    assert simgpu.counters() == {}
    host.copy_(device)
    assert simgpu.counters() == {"copy": 1}


def test_memory_statistics_follow_allocations():
    before = torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    tensor = torch.empty(10**9, device=DEVICE, dtype=torch.uint8)
    assert torch.accelerator.memory_allocated() - before == pytest.approx(10**9, abs=512)
    del tensor
    assert torch.accelerator.memory_allocated() == before
    assert torch.simgpu.max_memory_allocated() - before == pytest.approx(10**9, abs=512)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(10**11, device=DEVICE, dtype=torch.uint8)


# Operators


def test_autocast_computes_matmuls_in_16_bits():
    layer = torch.nn.Linear(64, 64, device=DEVICE)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        y = layer(torch.zeros(8, 64, device=DEVICE))
        assert y.dtype == torch.bfloat16
        assert torch.softmax(y, -1).dtype == torch.float32


def test_attention_is_one_kernel_each_way_unless_switched_off():
    def run():
        simgpu.reset()
        q, k, v = (
            torch.zeros(2, 4, 128, 64, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)
        )
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
        return {kernel.name: kernel.flops for kernel in kernels()}

    pairs = 128 * 129 / 2
    fused = run()
    assert fused["fused_attention_forward"] == 2 * 2 * 64 * 2 * 4 * pairs
    assert fused["fused_attention_backward"] == 5 * 2 * 64 * 2 * 4 * pairs
    simgpu.configure(fused_attention=False)
    assert {"bmm", "_softmax"} <= run().keys()


@pytest.mark.parametrize("causal", [True, False])
def test_attention_values_equal_those_of_the_cpu(causal):
    simgpu.configure(values=True)

    def run(device):
        torch.manual_seed(1)
        inputs = [torch.randn(2, 3, 20, 16).to(device).requires_grad_() for _ in range(3)]
        out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
        out.square().sum().backward()
        return [out.detach().cpu()] + [tensor.grad.cpu() for tensor in inputs]

    for ours, expected in zip(run(DEVICE), run("cpu")):
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)


def test_an_operator_whose_shape_depends_on_data_waits_and_is_right():
    simgpu.configure(values=True)
    assert torch.tensor([0, 3, 0, 4], device=DEVICE).nonzero().flatten().tolist() == [1, 3]
    assert simgpu.counters()["cpu_fallback"] == 1


def test_an_operator_passes_interceptors_once_with_values_on():
    simgpu.configure(values=True)
    passed = []

    def intercept(keys, a, b):
        passed.append(a.device.type)
        return torch.ops.aten.mm.default.redispatch(keys.remove(torch._C.DispatchKey.BackendSelect), a, b)

    library = torch.library.Library("aten", "IMPL")
    library.impl("mm", intercept, "BackendSelect", with_keyset=True)
    try:
        x = torch.ones(3, 3, device=DEVICE)
        with torch.profiler.profile() as profile:
            assert (x @ x).sum().item() == 27
    finally:
        library._destroy()
    assert passed == [DEVICE]
    assert [event.name for event in profile.events()].count("aten::mm") == 1


# Capture


def capture(function):
    graph = torch.simgpu.CUDAGraph()
    with torch.simgpu.graph(graph):
        function()
    return graph


def test_a_capture_launches_nothing_and_a_replay_launches_everything():
    simgpu.configure(values=True)
    x = torch.ones(1000, device=DEVICE)
    simgpu.reset()
    graph = capture(lambda: x.mul_(2).add_(1))
    assert kernels() == [] and graph.kernels == 2
    graph.replay()
    graph.replay()
    assert [kernel.name for kernel in kernels()] == ["mul_", "add_"] * 2
    assert x[0].item() == 7


def test_a_side_stream_joins_a_capture():
    side = torch.Stream(DEVICE)

    def fork_and_join():
        side.wait_stream(torch.accelerator.current_stream())
        delay(10, side)
        assert torch.simgpu.is_current_stream_capturing()
        delay(10)
        torch.accelerator.current_stream().wait_stream(side)
        delay(5)

    graph = capture(fork_and_join)
    graph.replay()
    a, b, last = kernels()
    assert a.start == b.start and last.start == max(a.end, b.end)


def test_a_query_from_another_thread_spoils_a_capture():
    event = torch.Event(DEVICE)
    event.record()

    def query():
        with pytest.raises(RuntimeError, match="capturing"):
            event.query()

    def captured():
        thread = threading.Thread(target=query)
        thread.start()
        thread.join()

    with pytest.raises(RuntimeError, match="previous error during capture"):
        capture(captured)
    assert simgpu.counters()["query_event_during_capture"] == 1


def test_a_synchronization_during_capture_fails():
    x = torch.ones(1, device=DEVICE)
    with pytest.raises(RuntimeError, match="capture"):
        capture(x.item)
    assert simgpu.counters()["item_during_capture"] == 1


def test_an_event_of_a_capture_has_no_time():
    event = torch.Event(DEVICE, enable_timing=True)
    capture(event.record)
    assert simgpu.counters()["record_event_during_capture"] == 1
    with pytest.raises(RuntimeError, match="during a capture"):
        event.query()
