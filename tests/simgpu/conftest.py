# SPDX-License-Identifier: Apache-2.0
"""The simulated device needs the device interfaces of torch 2.12."""

import pytest

torch = pytest.importorskip("torch")
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 12):
    collect_ignore_glob = ["test_*.py"]
else:
    import simgpu

    @pytest.fixture(autouse=True)
    def fresh_device():
        """Each test gets the default settings and an empty log."""
        settings = simgpu.settings()
        torch.accelerator.synchronize()
        simgpu.reset()
        yield
        simgpu.configure(**settings)
