# SPDX-License-Identifier: Apache-2.0
"""Units, with torch: a counted step has the FLOPs of its product."""

import flopmeter
import torch

monitor = flopmeter.Monitor("unit", console=False)
records = monitor.subscribe()
with monitor.step(samples=1):
    torch.ones(2, 3) @ torch.ones(3, 4)
monitor.finish()
assert '"model_flops":48' in records.next(1).replace(" ", "")
print("ok")
