# SPDX-License-Identifier: Apache-2.0
"""What all folders of Python tests share."""

import pytest


def pytest_runtest_setup(item):
    for mark in item.iter_markers("torch2"):
        torch = pytest.importorskip("torch")
        if torch.__version__.startswith("1."):
            pytest.skip(f"torch {torch.__version__} lacks {mark.args[0]}")
