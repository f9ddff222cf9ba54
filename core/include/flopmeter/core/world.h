// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace flopmeter {

/// Where a process stands among the ranks of its run, and how the run splits its work.
struct World {
  int rank = 0;
  int local_rank = 0;
  int size = 1;
  int data_parallel = 0;  ///< ranks that work on different samples; 0: the rest of the size
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int context_parallel = 1;
  int expert_parallel = 1;  ///< splits ranks that are counted in the others already
  int tensor_rank = -1;     ///< within its tensor-parallel group; negative: rank % tensor_parallel
  std::string host;
};

/// What a launcher left in the environment ("KEY=value", ended by null, as `environ`): torchrun's,
/// SLURM's, Open MPI's or PMI's variables; alone where there are none.
World world_of_environment(const char* const* environment);

/// Ranks that work on different samples, and the rank within the tensor-parallel group, where they
/// were not said.
int data_parallel_of(const World& world);
int tensor_rank_of(const World& world);

}  // namespace flopmeter
