// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace flopmeter::torch_adapter {

/// Times the collectives of torch.distributed on tensors of the host from now on.  Adds none.
void watch_collectives();

/// While alive, collectives that this thread starts are our own and not the run's.
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
