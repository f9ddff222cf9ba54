# SPDX-License-Identifier: Apache-2.0
"""The third document's four checks of the simplified estimate."""

import flopmeter
import torch

flopmeter.compat.install()
from training.utils import monitor  # noqa: E402

model = torch.nn.Linear(10, 10)
batch = {"input_ids": torch.zeros(2, 5, dtype=torch.long)}
flops = monitor.profile_model_flops(model, batch)
assert flops == 3 * 2.5 * 110 * 2 * 5, flops
assert not hasattr(monitor, "_profile_forward_flops")
assert not hasattr(monitor, "_profile_backward_flops")
assert 0 < monitor.calculate_mfu(flops, 0.1, 1e9) < 1
print("ok")
