# SPDX-License-Identifier: Apache-2.0
"""A CUDA graph class for machines without CUDA.  A capture runs its operators, and a replay does nothing."""

import contextlib

import torch


class _Graph:
    def __new__(cls, *_args):
        return object.__new__(cls)

    def __init__(self, *_args):
        """Unlike the dummy class, which refuses."""

    def capture_begin(self, *_args, **_kwargs):
        """Begin."""

    capture_end = replay = reset = pool = capture_begin


class _Capture:
    def __init__(self, graph, **_kwargs):
        self._graph = graph

    def __enter__(self):
        self._graph.capture_begin()

    def __exit__(self, *_error):
        self._graph.capture_end()


def install(patch=setattr):
    """``patch(owner, name, value)`` replaces an attribute."""
    for name in ("__new__", "__init__", "capture_begin", "capture_end", "replay", "reset", "pool"):
        patch(torch._C._CUDAGraph, name, _Graph.__dict__[name])
    patch(torch.cuda, "graph", _Capture)
    patch(torch.cuda, "synchronize", lambda *_: None)
    patch(torch.cuda, "Stream", lambda *_: None)
    patch(torch.cuda, "stream", lambda _stream: contextlib.nullcontext())
    patch(torch.cuda.graphs, "graph_pool_handle", lambda: None)
