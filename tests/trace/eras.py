# SPDX-License-Identifier: Apache-2.0
"""Writes the same short training run in the trace format of each torch version and accelerator.

Two steps of one matmul forward and one backward, a copy, a fill, and an all-reduce. All times are whole microseconds,
so every format holds the same figures; FIGURES has them in nanoseconds.
"""

import json
from dataclasses import dataclass, field

ROWS, INNER, COLUMNS = 64, 32, 16
STEP_US = 1000
MATMUL_FLOPS = 2 * ROWS * INNER * COLUMNS

# name, device start, duration, launch start, stream, class
DEVICE_WORK = [
    ("Memcpy HtoD (Pageable -> Device)", 100, 50, 80, 7, "memcpy"),
    ("gemm_forward", 160, 200, 110, 7, "kernel"),
    ("gemm_backward", 400, 300, 380, 7, "kernel"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float", 600, 200, 590, 20, "kernel"),
    ("Memset (Device)", 820, 10, 815, 7, "memset"),
]
FIGURES = {
    "kernels": 6,
    "memcpys": 2,
    "memsets": 2,
    "window": 1000 + 830 - 100,
    "compute": 2 * 500,
    "communication": 2 * 200,
    "exposed_communication": 2 * 100,
    "exposed_memcpy": 2 * 50,
    "exposed_memset": 2 * 10,
    "model": 2 * 2 * MATMUL_FLOPS,
}


@dataclass
class Era:
    """How a version writes its events."""

    name: str
    categories: dict = field(default_factory=dict)  # of the current names
    origin: int = 0  # added to every time, microseconds
    decimals: bool = False
    text_ids: bool = False  # thread and stream as text
    external_id: str = "External id"
    external_is_correlation: bool = False
    dims: str = "Input Dims"
    types: bool = True
    concrete: bool = True
    array: bool = False
    base: int | None = None
    runtime: str = "cudaLaunchKernel"
    device: str = "NVIDIA A100-SXM4-80GB"
    device_index: int = 0
    launch_category: str = "cuda_runtime"


OLD = {
    "cpu_op": "Operator",
    "user_annotation": "Operator",
    "cuda_runtime": "Runtime",
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
}
ERAS = [
    Era(
        "torch-1.8",
        OLD,
        1_600_000_000_000_000,
        text_ids=True,
        external_id="external id",
        dims="Input dims",
        types=False,
        concrete=False,
    ),
    Era("torch-1.9", OLD, 1_620_000_000_000_000, text_ids=True, concrete=False),
    Era("torch-1.13", origin=1_670_000_000_000_000, external_is_correlation=True, concrete=False),
    Era("torch-2.1", origin=1_700_000_000_000_000, external_is_correlation=True),
    Era("nightly-2024", origin=1_712_195_495_523_352, decimals=True),
    Era("torch-2.4", origin=2_204_338_329_788, decimals=True, base=1_751_410_836_000_000_000),
    Era("torch-2.13", origin=2_204_338_329_788, decimals=True, base=1_775_078_550_000_000_000),
    Era("array", array=True, decimals=True),
    Era("rocm", decimals=True, runtime="hipLaunchKernel", device="AMD Instinct MI300X", device_index=2),
    Era(
        "xpu",
        decimals=True,
        runtime="urEnqueueKernelLaunch",
        launch_category="xpu_runtime",
        device="Intel(R) Data Center GPU Max 1550",
    ),
]


def write(era: Era, device_work=DEVICE_WORK) -> str:
    events = []

    def number(value):
        return f"{value + era.origin}.000" if era.decimals else str(value + era.origin)

    def event(category, name, start, duration, tid, pid=4242, **args):
        thread = f'"{tid}"' if era.text_ids else str(tid)
        width = f"{duration}.000" if era.decimals else duration
        category = era.categories.get(category, category)
        events.append(
            f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {thread},\n'
            f'    "ts": {number(start)}, "dur": {width},\n    "args": {json.dumps(args)}}}'
        )

    def shapes(*extents):
        args = {era.dims: [list(shape) for shape in extents]}
        args["Input type"] = ["float"] * len(extents) if era.types else ""
        if era.concrete:
            args["Concrete Inputs"] = [""] * len(extents)
        return args

    for step in range(2):
        at = step * STEP_US
        event("user_annotation", f"ProfilerStep#{step + 5}", at, STEP_US - 10, 4242)
        external = 100 * (step + 1)
        event("cpu_op", "aten::to", at + 70, 30, 4242, **{era.external_id: external})
        event("cpu_op", "aten::linear", at + 105, 40, 4242, **{era.external_id: external + 1})
        matmul = shapes((ROWS, INNER), (INNER, COLUMNS))
        matmul |= {era.external_id: external + 2, "Sequence number": step}
        event("cpu_op", "aten::mm", at + 106, 30, 4242, **matmul)
        event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 370, 50, 4343)
        backward = shapes((INNER, ROWS), (ROWS, COLUMNS))
        event("cpu_op", "aten::mm", at + 375, 30, 4343, **{era.external_id: external + 3}, **backward)
        for i, (name, start, duration, launch, stream, kind) in enumerate(device_work):
            correlation = 1000 * (step + 1) + i
            thread = 4343 if name == "gemm_backward" else 4242
            event(era.launch_category, era.runtime, at + launch, 8, thread, correlation=correlation)
            args = {"device": era.device_index, "correlation": correlation}
            args["stream"] = str(stream) if era.text_ids else stream
            if era.external_is_correlation:
                args["External id"] = correlation
            category = kind if kind == "kernel" else "gpu_" + kind
            tid = f"stream {stream}" if era.text_ids else stream
            event(category, name, at + start, duration, tid, pid=era.device_index, **args)
        events.append(f'{{"ph": "s", "id": {step}, "pid": 1, "tid": 1, "ts": {number(at)}, "cat": "ac2g", "name": "ac2g"}}')
    body = "[\n  " + ",\n  ".join(events) + "\n]"
    if era.array:
        return body
    base = f',\n"displayTimeUnit": "ms",\n"baseTimeNanoseconds": {era.base}' if era.base else ""
    return (
        f'{{\n  "schemaVersion": 1,\n  "deviceProperties": [{{"id": 0, "name": "{era.device}"}}],\n'
        f'  "traceEvents": {body},\n  "traceName": "t"{base}\n}}'
    )
