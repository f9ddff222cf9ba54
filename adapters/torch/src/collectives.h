// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flopmeter::torch_adapter {

/// Times the collectives of torch.distributed on tensors of the host from now on.  Adds none.
void watch_collectives();

}  // namespace flopmeter::torch_adapter
