# SPDX-License-Identifier: Apache-2.0
"""What all folders of Python tests share."""

import signal

import pytest

# What a shell starts in the background is deaf to Ctrl-C, and so is all that it starts: some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    for mark in item.iter_markers("torch2"):
        torch = pytest.importorskip("torch")
        if torch.__version__.startswith("1."):
            pytest.skip(f"torch {torch.__version__} lacks {mark.args[0]}")
