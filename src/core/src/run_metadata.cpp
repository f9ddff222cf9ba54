// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/run_metadata.h>
#include <flopmeter/core/world.h>

namespace flopmeter {

int RunMetadata::role(int rank) const {
  return role_of(rank, pipeline_parallel.value_or(1), pipeline_stride.value_or(0));
}

}  // namespace flopmeter
