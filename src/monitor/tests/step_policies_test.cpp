// SPDX-License-Identifier: Apache-2.0
//
// Steps of wrapped loaders, explicit marks, and framework integrations.
#include "step_script.h"

#include <gtest/gtest.h>

#include <thread>

namespace flopmeter {
namespace {

TEST(WrappedLoader, each_optimizer_step_is_a_step_and_batches_before_it_are_micro_batches) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  for (int i = 0; i < 6; ++i) {
    script.next();
    script.forward();
    script.backward();
    if (i % 3 == 2) script.optimizer();
  }
  script.on({Kind::fetch_begin, Kind::loop_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 12/3", "train 2 12/3"}));
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(WrappedLoader, values_that_are_logged_after_the_optimizer_step_belong_to_the_step) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  for (int i = 1; i <= 2; ++i) {
    script.next();
    script.train();
    script.mark().log({.loss = i});
  }
  script.on({Kind::fetch_begin, Kind::loop_end});
  const auto records = script.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].loss, 1);
  EXPECT_EQ(records[1].loss, 2);
}

TEST(WrappedLoader, without_hooks_each_batch_is_a_step) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop(StepPolicy::per_batch);
  for (int i = 0; i < 3; ++i) script.next();
  script.on({Kind::fetch_begin, Kind::loop_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(WrappedLoader, a_model_that_no_hook_sees_is_known_by_its_optimizer) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  for (int i = 0; i < 3; ++i) {
    script.next();
    script.optimizer();
  }
  script.on({Kind::fetch_begin, Kind::loop_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
}

TEST(WrappedLoader, a_loop_that_is_left_keeps_finished_steps_only) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  for (int i = 0; i < 2; ++i) {
    script.next();
    script.train();
  }
  script.next();
  script.on(Kind::loop_end);
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1"}));
}

TEST(WrappedLoader, an_iterator_that_is_kept_loses_no_step) {
  Script script(StepPolicy::explicit_marks);
  for (int loop = 0; loop < 2; ++loop) {
    script.begin_loop();
    for (int i = 0; i < 2; ++i) {
      script.next();
      script.train();
    }
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1", "train 4 4/1"}));
}

TEST(WrappedLoader, an_evaluation_before_the_step_leaves_the_batch_to_the_step) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  script.next();
  script.train();
  script.next();
  script.evaluate();
  script.train();
  script.on({Kind::fetch_begin, Kind::loop_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "evaluation 1", "train 2 4/1"}));
}

TEST(WrappedLoader, an_evaluation_after_the_step_ends_the_step) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  script.next();
  script.train();
  script.evaluate();
  script.next();
  script.train();
  script.mark().begin_phase(Phase::evaluation);
  script.evaluate();
  script.mark().end_phase(Phase::evaluation);
  script.on({Kind::fetch_begin, Kind::loop_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "evaluation 1", "train 2 4/1", "evaluation 2"}));
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(WrappedLoader, a_loop_without_gradients_is_not_training) {
  Script script(StepPolicy::explicit_marks);
  EXPECT_FALSE(script.begin_loop(StepPolicy::per_optimizer_step, false).not_training);
  script.next();
  script.train();
  EXPECT_TRUE(script.begin_loop(StepPolicy::per_optimizer_step, false).not_training);
}

TEST(WrappedLoader, a_very_long_accumulation_counts_each_batch) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  for (int i = 0; i < 600; ++i) {
    script.next();
    script.forward();
    script.backward();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 2048/512"}));
}

TEST(WrappedLoader, the_loop_may_run_in_another_thread) {
  Script script(StepPolicy::explicit_marks);
  std::thread{[&] {
    script.begin_loop();
    for (int i = 0; i < 2; ++i) {
      script.next();
      script.train();
    }
    script.on({Kind::fetch_begin, Kind::loop_end});
  }}.join();
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1"}));
}

// ---- explicit marks

TEST(ExplicitSteps, batches_come_from_the_marks_the_loader_or_the_forward_passes) {
  Script script(StepPolicy::explicit_marks);
  script.begin_loop();
  script.next({.samples = 2});
  script.mark().begin_step({.samples = 7});  // takes precedence over the loader
  script.train();
  script.mark().end_step({});
  script.next({.samples = 2});
  script.mark().begin_step({});
  script.train();
  script.mark().end_step({});
  script.on({Kind::fetch_begin, Kind::loop_end});
  script.mark().begin_step({});
  script.train();
  script.forward();
  script.mark().end_step({});
  EXPECT_EQ(script.lines()[0], "train 1 7/1");
  EXPECT_EQ(script.lines()[2], "train 3 8/2");
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(ExplicitSteps, a_mark_ends_the_step_before_it) {
  Script script(StepPolicy::explicit_marks);
  for (int i = 0; i < 3; ++i) {
    script.mark().mark_step({.samples = 4});
    script.train();
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1", "train 2 4/1", "train 3 4/1"}));
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(ExplicitSteps, an_evaluation_inside_an_open_step_tags_the_step) {
  Script script(StepPolicy::explicit_marks);
  script.mark().begin_step({});
  script.mark().begin_phase(Phase::evaluation);
  script.mark().end_phase(Phase::evaluation);
  script.mark().end_step({});
  EXPECT_EQ(script.lines(), (Lines{"evaluation 1"}));
}

TEST(ExplicitSteps, phases_that_the_loop_marks_replace_those_that_hooks_find) {
  Script script(StepPolicy::explicit_marks);
  script.mark().begin_step({});
  script.mark().begin_phase(Phase::forward);
  script.forward();
  script.mark().end_phase(Phase::forward);
  script.backward();
  script.optimizer();
  script.mark().end_step({});
  const auto records = script.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(time_of(records[0], Phase::forward), 3);
  EXPECT_EQ(time_of(records[0], Phase::backward), -1);
  EXPECT_EQ(time_of(records[0], Phase::optimizer), -1);
}

TEST(ExplicitSteps, generation_and_checkpoint_between_steps_are_separate_records) {
  Script script(StepPolicy::explicit_marks);
  script.mark().set_stage("rollout");
  script.mark().begin_phase(Phase::generation);
  script.forward();
  script.mark().end_phase(Phase::generation);
  script.mark().set_stage("");
  script.mark().begin_step({});
  script.mark().end_step({});
  script.mark().begin_phase(Phase::checkpoint);
  script.mark().end_phase(Phase::checkpoint);
  const auto records = script.records();
  EXPECT_EQ(script.lines(), (Lines{"generation 0", "train 1", "checkpoint 1"}));
  EXPECT_EQ(records[0].stage, "rollout");
  EXPECT_EQ(records[1].stage, "");
  EXPECT_EQ(time_of(records[0], Phase::generation), 3);
  EXPECT_EQ(time_of(records[0], Phase::forward), -1);
}

TEST(ExplicitSteps, marks_out_of_order_are_counted_and_harmless) {
  Script script(StepPolicy::explicit_marks);
  script.mark().end_step({});
  script.mark().end_phase(Phase::forward);
  script.mark().micro_batch({});
  script.mark().begin_step({});
  script.mark().begin_step({});  // the previous one did not end
  std::thread{[&] { script.mark().end_step({}); }}.join();
  for (int i = 0; i < 40; ++i) script.mark().begin_phase(Phase::forward);
  for (int i = 0; i < 50; ++i) script.mark().end_phase(Phase::forward);
  script.mark().begin_phase(Phase::optimizer);
  script.mark().end_step({});  // with a phase that is open
  EXPECT_EQ(script.lines(), (Lines{"train 1"}));
  EXPECT_GE(script.misuse(), 6U);
}

// ---- frameworks

TEST(FrameworkSteps, hugging_face_accumulates_and_evaluates_between_steps) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  for (int step = 1; step <= 3; ++step) {
    script.fetch();
    script.fetch();
    script.mark().begin_step({.step = step});
    for (int micro = 0; micro < 2; ++micro) {
      script.forward();
      script.backward();
    }
    script.optimizer();
    script.mark().end_step({});
    if (step == 2) {
      script.on(Kind::evaluation_begin);
      script.fetch();
      script.evaluate();
      script.on({Kind::evaluation_end, Kind::checkpoint_begin, Kind::checkpoint_end});
    }
  }
  EXPECT_EQ(script.lines(),
            (Lines{"train 1 8/2", "train 2 8/2", "evaluation 2", "checkpoint 2", "train 3 8/2"}));
  for (const StepRecord& record : script.records()) {
    if (record.tag == StepTag::train) {
      EXPECT_EQ(time_of(record, Phase::data), 2);
    }
  }
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(FrameworkSteps, time_between_steps_belongs_to_the_next_step) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.mark().begin_step({});
  script.mark().end_step({});
  HandClock::advance(100);  // a slow logger
  script.mark().begin_step({});
  script.mark().end_step({});
  const auto records = script.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(time_of(records[1]), 102);
}

TEST(FrameworkSteps, lightning_ends_a_step_with_the_batch_in_which_an_optimizer_stepped) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  for (int i = 0; i < 4; ++i) {
    script.fetch();
    script.begin_batch();
    script.on({Kind::forward_end, Kind::backward_begin, Kind::backward_end});
    if (i % 2 == 1) {
      script.on({Kind::optimizer_begin, Kind::optimizer_begin, Kind::optimizer_end});
    }
    EXPECT_EQ(script.on(Kind::batch_end).step_ended, i % 2 == 1);
  }
  EXPECT_EQ(script.lines(), (Lines{"train 1 8/2", "train 2 8/2"}));
}

TEST(FrameworkSteps, an_optimizer_step_that_is_skipped_still_ends_the_step) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.begin_batch();
  script.on(Kind::optimizer_begin);  // gradients are not finite: no optimizer runs
  script.on(Kind::batch_end);
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1"}));
}

TEST(FrameworkSteps, a_validation_inside_an_accumulation_discards_the_step) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.begin_batch();
  script.on(Kind::batch_end);
  EXPECT_TRUE(script.on(Kind::evaluation_begin).step_discarded);
  script.on(Kind::evaluation_end);
  script.begin_batch();  // the rest of the step: no record
  script.on({Kind::optimizer_begin, Kind::optimizer_end, Kind::batch_end});
  script.begin_batch();
  script.on({Kind::optimizer_begin, Kind::optimizer_end, Kind::batch_end});
  EXPECT_EQ(script.lines(), (Lines{"evaluation 0", "train 1 4/1"}));
  EXPECT_EQ(script.misuse(), 0U);
}

TEST(FrameworkSteps, a_batch_that_is_skipped_with_its_epoch_leaves_no_step) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.begin_batch();
  script.on(Kind::batch_end);
  script.begin_batch();  // skipped: it never ends
  script.on(Kind::epoch_end);
  script.begin_batch();
  script.on({Kind::optimizer_begin, Kind::optimizer_end, Kind::batch_end});
  EXPECT_EQ(script.lines(), (Lines{"train 1 4/1"}));
}

TEST(FrameworkSteps, a_checkpoint_inside_an_evaluation_is_part_of_it) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.on(
      {Kind::evaluation_begin, Kind::checkpoint_begin, Kind::checkpoint_end, Kind::evaluation_end});
  const auto records = script.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tag, StepTag::evaluation);
  EXPECT_EQ(time_of(records[0], Phase::checkpoint), 1);
  EXPECT_EQ(time_of(records[0], Phase::evaluation), 2);
}

TEST(FrameworkSteps, a_run_that_is_resumed_continues_its_step_numbers) {
  Script script(StepPolicy::framework);
  script.resume_loop(7);
  for (int i = 0; i < 2; ++i) {
    script.begin_batch();
    script.on({Kind::optimizer_begin, Kind::optimizer_end, Kind::batch_end});
  }
  EXPECT_EQ(script.lines(), (Lines{"train 7 4/1", "train 8 4/1"}));
}

TEST(FrameworkSteps, ends_without_a_begin_are_ignored) {
  Script script(StepPolicy::framework);
  script.begin_loop();
  script.on({Kind::evaluation_end, Kind::checkpoint_end, Kind::batch_end, Kind::epoch_end});
  EXPECT_TRUE(script.lines().empty());
  EXPECT_EQ(script.misuse(), 0U);
}

}  // namespace
}  // namespace flopmeter
