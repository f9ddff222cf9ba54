// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/world.h>

#include <gtest/gtest.h>

#include <vector>

namespace flopmeter {
namespace {

World world_of(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return world_of_environment(environment.data());
}

TEST(World, is_alone_without_a_launcher) {
  const World world = world_of({"HOME=/", "RANK=3"});
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.size, 1);
  EXPECT_FALSE(world.host.empty());
}

TEST(World, takes_the_variables_of_each_launcher) {
  for (const auto& environment : std::vector<std::vector<const char*>>{
           {"RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1"},
           {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_RANK=1"},
           {"PMI_RANK=3", "PMI_SIZE=8", "MPI_LOCALRANKID=1"},
           {"SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_LOCALID=1"}}) {
    const World world = world_of(environment);
    EXPECT_EQ(world.rank, 3) << environment[0];
    EXPECT_EQ(world.size, 8) << environment[0];
    EXPECT_EQ(world.local_rank, 1) << environment[0];
  }
}

TEST(World, the_launcher_nearest_to_the_process_counts) {
  EXPECT_EQ(world_of({"SLURM_PROCID=0", "SLURM_NTASKS=2", "RANK=5", "WORLD_SIZE=16"}).size, 16);
}

TEST(World, nonsense_is_left_alone) {
  EXPECT_EQ(world_of({"RANK=9", "WORLD_SIZE=8"}).size, 1);
  EXPECT_EQ(world_of({"RANK=-1", "WORLD_SIZE=8"}).size, 1);
  EXPECT_EQ(world_of({"RANK=x", "WORLD_SIZE=8", "SLURM_PROCID=1", "SLURM_NTASKS=2"}).rank, 1);
}

TEST(World, what_is_not_said_of_the_layout_follows_from_the_rest) {
  World world{.rank = 5, .size = 16, .tensor_parallel = 2, .pipeline_parallel = 4};
  EXPECT_EQ(data_parallel_of(world), 2);
  EXPECT_EQ(tensor_rank_of(world), 1);
  world.data_parallel = 8;
  world.tensor_rank = 0;
  EXPECT_EQ(data_parallel_of(world), 8);
  EXPECT_EQ(tensor_rank_of(world), 0);
  EXPECT_EQ(data_parallel_of({.size = 2, .tensor_parallel = 4}), 1);
}

}  // namespace
}  // namespace flopmeter
