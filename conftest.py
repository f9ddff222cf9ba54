# SPDX-License-Identifier: Apache-2.0
"""Configuration shared by all folders of Python tests."""

import signal

import pytest

# A shell starts background jobs with SIGINT ignored, and child processes inherit that. Some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    for mark in item.iter_markers("torch2"):
        torch = pytest.importorskip("torch")
        if torch.__version__.startswith("1."):
            pytest.skip(f"torch {torch.__version__} lacks {mark.args[0]}")
