// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flopmeter::torch_adapter {

/// Times the collectives of torch.distributed on host tensors from now on.  Adds none.
void intercept_collectives();

/// While alive, collectives that this thread starts are the adapter's own and are not timed.
class OwnCollective {
 public:
  OwnCollective();
  ~OwnCollective();
  OwnCollective(const OwnCollective&) = delete;
  OwnCollective& operator=(const OwnCollective&) = delete;
  OwnCollective(OwnCollective&&) = delete;
  OwnCollective& operator=(OwnCollective&&) = delete;
};

}  // namespace flopmeter::torch_adapter
