# SPDX-License-Identifier: Apache-2.0
"""Configuration shared by all folders of Python tests."""

import signal

import pytest

# A shell starts background jobs with SIGINT ignored, and child processes inherit that. Some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    for mark in item.iter_markers("torch2"):
        version = pytest.importorskip("torch").__version__
        if tuple(int(part) for part in version.split(".")[:2]) < mark.kwargs.get("since", (2, 0)):
            pytest.skip(f"torch {version} lacks {mark.args[0]}")
