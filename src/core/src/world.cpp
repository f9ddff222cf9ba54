// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/core/world.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>

namespace flopmeter {
namespace {

/// The variables of one launcher.
struct Launcher {
  std::string_view rank, size, local_rank;
};
// srun also sets its variables around torchrun and mpirun, which are closer to the process.
constexpr std::array<Launcher, 4> launchers{{
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
}};

std::optional<int> number(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (!variable.starts_with(name) || !variable.substr(name.size()).starts_with('=')) continue;
    const auto value = parse_int(variable.substr(name.size() + 1));
    if (value && *value >= 0 && *value < std::numeric_limits<int>::max())
      return static_cast<int>(*value);
  }
  return std::nullopt;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

World world_of_environment(const char* const* environment) {
  World world;
  world.host = host_name();
  for (const Launcher& launcher : launchers) {
    const auto rank = number(environment, launcher.rank);
    const auto size = number(environment, launcher.size);
    if (!rank || !size || *rank >= *size) continue;
    world.rank = *rank;
    world.size = *size;
    world.local_rank = number(environment, launcher.local_rank).value_or(0);
    break;
  }
  return world;
}

int data_parallel_of(const World& world) {
  if (world.data_parallel > 0) return world.data_parallel;
  const long long split =
      1LL * world.tensor_parallel * world.pipeline_parallel * world.context_parallel;
  return static_cast<int>(std::max<long long>(1, world.size / std::max(1LL, split)));
}

int tensor_rank_of(const World& world) {
  if (world.tensor_rank >= 0) return world.tensor_rank;
  return world.rank % std::max(1, world.tensor_parallel);
}

int role_of(int rank, int pipeline_parallel, int pipeline_stride) {
  if (pipeline_parallel <= 1) return 0;
  return pipeline_stride > 0 ? rank / pipeline_stride % pipeline_parallel : rank;
}

}  // namespace flopmeter
