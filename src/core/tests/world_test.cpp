// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/flop_estimator.h>
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

TEST(World, invalid_values_are_ignored) {
  EXPECT_EQ(world_of({"RANK=9", "WORLD_SIZE=8"}).size, 1);
  EXPECT_EQ(world_of({"RANK=-1", "WORLD_SIZE=8"}).size, 1);
  EXPECT_EQ(world_of({"RANK=x", "WORLD_SIZE=8", "SLURM_PROCID=1", "SLURM_NTASKS=2"}).rank, 1);
}

TEST(World, unspecified_sizes_follow_from_the_others) {
  World world{.rank = 5, .size = 16, .tensor_parallel = 2, .pipeline_parallel = 4};
  EXPECT_EQ(data_parallel_of(world), 2);
  EXPECT_EQ(tensor_rank_of(world), 1);
  world.data_parallel = 8;
  world.tensor_rank = 0;
  EXPECT_EQ(data_parallel_of(world), 8);
  EXPECT_EQ(tensor_rank_of(world), 0);
  EXPECT_EQ(data_parallel_of({.size = 2, .tensor_parallel = 4}), 1);
}

TEST(World, ranks_of_one_pipeline_stage_have_one_role) {
  EXPECT_EQ(role_of(5, 1, 0), 0);
  EXPECT_EQ(role_of(5, 4, 2), 2);  // 0 0 1 1 2 2 3 3, as Megatron places them
  EXPECT_EQ(role_of(5, 2, 1), 1);  // 0 1 0 1 …
  EXPECT_EQ(role_of(5, 2, 0), 5);  // unknown stages
}

TEST(World, shares_of_a_batch_are_even_and_sum_to_the_batch) {
  FlopEstimate batch;
  batch.model[0] = 1'000'000'007;
  batch.hardware[0] = 1'000'000'009;
  batch.recompute = 2;
  FlopEstimate sum;
  for (int rank = 0; rank < 8; ++rank) {  // two replicas of four ranks
    const FlopEstimate share = share_of(batch, 8, 2, rank);
    EXPECT_LE(share.model[0] - 250'000'001, 1U);
    sum.model[0] += share.model[0];
    sum.hardware[0] += share.hardware[0];
    sum.recompute += share.recompute;
  }
  EXPECT_EQ(sum.model[0], 2 * batch.model[0]);
  EXPECT_EQ(sum.hardware[0], 2 * batch.hardware[0]);
  EXPECT_EQ(sum.recompute, 2 * batch.recompute);
  EXPECT_EQ(share_of(batch, 1, 1, 0).model[0], batch.model[0]);
  EXPECT_EQ(share_of(batch, 4, 4, 3).model[0], batch.model[0]);
}

}  // namespace
}  // namespace flopmeter
