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
  int expert_parallel = 1;  ///< divides ranks that the other sizes already count
  int tensor_rank = -1;     ///< within its tensor-parallel group; negative: rank % tensor_parallel
  int pipeline_stride = 0;  ///< from a rank to the one with the next layers; 0: not known
  std::string host;
};

/// World from the environment of the launcher ("KEY=value", ended by null, as `environ`): torchrun,
/// SLURM, Open MPI, or PMI; a world of one without these variables.
World world_of_environment(const char* const* environment);

/// Ranks that work on different samples, and the rank within the tensor-parallel group, derived if
/// not specified.
int data_parallel_of(const World& world);
int tensor_rank_of(const World& world);

/// Ranks of one role hold the same layers, so their speeds can be compared: the pipeline's stage.
/// If the stage is unknown, each rank has a separate role.
int role_of(int rank, int pipeline_parallel, int pipeline_stride);

}  // namespace flopmeter
