// SPDX-License-Identifier: Apache-2.0
//
// Loops that mark nothing: steps are learned from optimizer steps, as under flopmeter run.
#include "step_script.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace flopmeter {
namespace {

TEST(LearnedSteps, without_a_loader_the_first_step_ends_with_the_next_forward) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) script.train();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(LearnedSteps, tile_the_time_of_the_loop_once_the_count_is_learned) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 4; ++i) script.train();
  const auto records = script.records();
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(time_of(records[2]), 6);  // six events: each has its place in exactly one step
  EXPECT_EQ(time_of(records[2], Phase::forward), 1);
  EXPECT_EQ(time_of(records[2], Phase::backward), 1);
  EXPECT_EQ(time_of(records[2], Phase::optimizer), 1);
  EXPECT_EQ(time_of(records[2], Phase::other), 3);
  EXPECT_EQ(time_of(records[2], Phase::data), -1);
  EXPECT_EQ(records[2].inter_step_seconds->value, 0);
}

TEST(LearnedSteps, accumulation_is_one_step_with_micro_batches) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) {
    for (int micro = 0; micro < 2; ++micro) {
      script.forward();
      script.backward();
    }
    script.optimizer();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 8/2", "train 2 8/2", "train 3 8/2"}));
}

TEST(LearnedSteps, the_wait_for_data_belongs_to_the_step_after_it) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) {
    script.fetch();
    script.train();
  }
  const auto records = script.records();
  ASSERT_EQ(records.size(), 3U);
  for (const StepRecord& record : records) EXPECT_EQ(time_of(record, Phase::data), 1);
}

TEST(LearnedSteps, several_optimizers_make_one_step) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 4; ++i) {
    script.forward();
    script.backward();
    script.optimizer();
    script.optimizer();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1", "train 4 4/1"}));
}

TEST(LearnedSteps, a_gan_with_a_loader_is_one_step_per_batch) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) {
    script.fetch();
    script.forward();  // the critic on real data
    script.forward();  // and on generated data: the same step, no further batch
    script.backward();
    script.optimizer();
    script.forward();  // for the generator: after a backward pass, so one more micro-batch
    script.backward();
    script.optimizer(false);
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 8/2", "train 2 8/2", "train 3 8/2"}));
}

TEST(LearnedSteps, one_more_optimizer_extends_the_learned_count) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  script.train();  // learned: one
  for (int i = 0; i < 4; ++i) {
    script.forward();
    script.backward();
    script.optimizer();
    script.optimizer();
  }
  EXPECT_EQ(script.lines().size(), 6U);
}

TEST(LearnedSteps, a_teacher_without_gradients_opens_the_step_but_gives_no_batch) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) {
    script.forward_begin(four_samples, true, false);
    script.forward_end(BackwardReport::none, true, false);
    script.train();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(LearnedSteps, an_evaluation_between_steps_is_a_separate_record) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  script.train();
  for (int i = 0; i < 3; ++i) script.evaluate();
  script.train();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "evaluation 2", "train 3 4/1"}));
}

TEST(LearnedSteps, fetches_of_an_evaluation_are_not_data_wait) {
  Script script(StepPolicy::per_optimizer_step);
  script.fetch();
  script.train();
  script.evaluate();
  script.fetch();
  script.evaluate();
  script.train();
  const auto records = script.records();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].tag, StepTag::evaluation);
  EXPECT_EQ(time_of(records[1], Phase::data), -1);
  EXPECT_EQ(time_of(records[2], Phase::data), -1);
}

/// With batches of loader 1.
void train_two_steps(Script& script) {
  for (int i = 0; i < 2; ++i) {
    script.fetch(1);
    script.train();
  }
}

TEST(LearnedSteps, the_training_loader_ends_an_evaluation) {
  Script script(StepPolicy::per_optimizer_step);
  train_two_steps(script);
  for (int i = 0; i < 2; ++i) {
    script.fetch(2);
    script.evaluate();
  }
  script.fetch(1);
  script.train();
  const auto records = script.records();
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[2].tag, StepTag::evaluation);
  EXPECT_EQ(time_of(records[2], Phase::data), -1);
  EXPECT_EQ(time_of(records[3], Phase::data), time_of(records[1], Phase::data));
}

TEST(LearnedSteps, an_evaluation_with_batches_of_the_training_loader_is_one_record) {
  Script script(StepPolicy::per_optimizer_step);
  train_two_steps(script);
  for (int i = 0; i < 3; ++i) {
    script.fetch(1);
    script.evaluate();
  }
  script.fetch(1);
  script.train();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "evaluation 2", "train 3 4/1"}));
}

TEST(LearnedSteps, an_evaluation_inside_a_step_is_part_of_the_step) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  script.train();
  script.forward();
  script.evaluate();
  script.backward();
  script.optimizer();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(LearnedSteps, a_model_that_is_trained_in_evaluation_mode_has_steps) {
  Script script(StepPolicy::per_optimizer_step);
  script.mark().set_frozen_mode(true);
  for (int i = 0; i < 3; ++i) {
    script.forward_begin(four_samples, false, true);
    script.forward_end(BackwardReport::reported, false, true);
    script.backward();
    script.optimizer();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(LearnedSteps, an_optimizer_step_in_evaluation_mode_reveals_training) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  const auto frozen = [&] {
    script.forward_begin(four_samples, false, true);
    script.forward_end(BackwardReport::reported, false, true);
    script.backward();
    script.optimizer();
  };
  for (int i = 0; i < 4; ++i) frozen();
  const Lines lines = script.lines();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "evaluation 1"), 1);
  EXPECT_GE(lines.size(), 4U);
}

TEST(LearnedSteps, without_an_optimizer_each_backward_pass_becomes_a_step) {
  Script script(StepPolicy::per_optimizer_step);
  bool reported = false;
  for (int i = 0; i < 100; ++i) {
    script.fetch();
    reported |= script.forward_begin(four_samples).no_optimizer;
    script.forward_end();
    script.backward();
  }
  const Lines lines = script.lines();
  EXPECT_TRUE(reported);
  EXPECT_EQ(lines.size(), 35U);
  EXPECT_EQ(lines.front(), "train 1 4/1");
}

TEST(LearnedSteps, a_loop_that_is_known_to_lack_an_optimizer_starts_at_once) {
  Script script(StepPolicy::per_optimizer_step);
  script.mark().expect_no_optimizer();
  for (int i = 0; i < 5; ++i) {
    script.forward();
    script.backward();
  }
  EXPECT_EQ(script.lines().size(), 4U);
}

TEST(LearnedSteps, without_a_model_each_optimizer_step_is_a_step) {
  Script script(StepPolicy::per_optimizer_step, false);
  for (int i = 0; i < 3; ++i) {
    script.fetch();
    script.optimizer();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1", "train 2", "train 3"}));
}

TEST(LearnedSteps, a_replay_is_a_step_of_a_model_that_is_not_called) {
  Script script(StepPolicy::per_optimizer_step);
  script.fetch();
  script.forward();  // the capture
  script.backward();
  for (int i = 0; i < 4; ++i) {
    script.fetch();
    script.on(Kind::replay);
    script.on(Kind::replay);  // a second graph of the same step
    EXPECT_FALSE(script.optimizer().model_lost);
  }
  EXPECT_EQ(script.lines().size(), 4U);
}

TEST(LearnedSteps, optimizers_of_another_model_report_that_the_model_is_lost) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  script.train();
  EXPECT_FALSE(script.optimizer(false).model_lost);
  EXPECT_TRUE(script.optimizer(false).model_lost);
}

TEST(LearnedSteps, many_optimizer_steps_without_a_forward_report_that_the_model_is_lost) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  script.train();
  int calls = 0;
  while (!script.optimizer().model_lost) ++calls;
  EXPECT_EQ(calls, 15);
}

TEST(LearnedSteps, a_closure_runs_its_forward_inside_the_optimizer_step) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 4; ++i) {
    script.on(Kind::optimizer_begin);
    script.forward();
    script.backward();
    script.on(Kind::optimizer_end);
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1", "train 4 4/1"}));
}

TEST(LearnedSteps, a_backward_pass_that_is_not_reported_is_what_follows_the_forward) {
  Script script(StepPolicy::per_optimizer_step);
  for (int i = 0; i < 3; ++i) {
    script.forward_begin(four_samples);
    script.forward_end(BackwardReport::unseen);
    script.optimizer();
  }
  const auto records = script.records();
  ASSERT_EQ(records.size(), 3U);
  for (const StepRecord& record : records) EXPECT_EQ(time_of(record, Phase::backward), 1);
}

TEST(LearnedSteps, events_of_other_threads_are_ignored) {
  Script script(StepPolicy::per_optimizer_step);
  script.train();
  std::thread{[&] {
    script.train();
    script.fetch();
  }}.join();
  script.train();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1"}));
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(LearnedSteps, a_loop_with_more_optimizers_than_its_loader_explains_does_without_it) {
  Script script(StepPolicy::per_optimizer_step);
  script.fetch();  // one batch, then random data
  for (int i = 0; i < 12; ++i) script.train();
  EXPECT_GE(script.lines().size(), 4U);
}

}  // namespace
}  // namespace flopmeter
