// SPDX-License-Identifier: Apache-2.0
//
// Frames against stored ones.  FLOPMETER_UPDATE_GOLDEN=1 accepts what is drawn now.
#include "../src/braille_plot.h"
#include "support.h"

#include <flopmeter/report/frame.h>
#include <flopmeter/report/terminal_text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopmeter {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Frame : public testing::Test {
 protected:
  Frame() {
    run_.model = "llama-3-8b";
    run_.peaks.device = "NVIDIA A100 SXM 80GB";
    findings_.push_back({.rule = "data_loading",
                         .summary = "Training waits for data 10 % of the time",
                         .evidence = "",
                         .recommendation = "num_workers=8 instead of 2",
                         .share = 0.101});
    findings_.push_back({.rule = "straggler",
                         .summary = "Rank 3 is slower than the others",
                         .evidence = "",
                         .recommendation = "look at the clocks of its device",
                         .share = 0.03});
  }

  void steps(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t step = 1; step <= 40; ++step) totals_.add(sample_step(step, rank));
    }
  }

  [[nodiscard]] std::vector<std::string> draw(FrameSize size, bool color = false) const {
    return draw_frame({run_, totals_, findings_, 1'700'000'021, 160, totals_.run()}, size, color);
  }

  RunMetadata run_;
  LiveTotals totals_;
  std::vector<Finding> findings_;
};

class GoldenFrame : public Frame, public testing::WithParamInterface<std::size_t> {};

TEST_P(GoldenFrame, equals_the_stored_one) {
  steps(4);
  std::string text;
  for (const std::string& line : draw({GetParam(), 0})) {
    EXPECT_LE(cells(line), GetParam()) << line;
    text += line + "\n";
  }
  const std::string stored =
      std::string{FLOPMETER_GOLDEN} + "/frame_" + std::to_string(GetParam()) + ".txt";
  if (std::getenv("FLOPMETER_UPDATE_GOLDEN") != nullptr) std::ofstream{stored} << text;
  EXPECT_EQ(text, read_file(stored));
}

INSTANTIATE_TEST_SUITE_P(Widths, GoldenFrame, testing::Values(40, 80, 200));

TEST_F(Frame, shows_the_planned_steps_and_the_time_left) {
  steps(1);
  run_.total_steps = 1000;
  EXPECT_THAT(draw({120, 0})[1], HasSubstr("step 40 of 1,000  ETA "));
}

TEST_F(Frame, a_phase_longer_than_its_step_is_the_whole_step) {
  StepRecord damaged = sample_step(1, 0);
  damaged.step_seconds = {1e-320};
  totals_.add(damaged);
  EXPECT_THAT(draw({120, 0}), Contains(AllOf(HasSubstr("forward"), HasSubstr("100.0 %"))));
}

TEST_F(Frame, never_exceeds_its_size) {
  steps(4);
  for (std::size_t columns = 1; columns < 120; columns += 7) {
    for (std::size_t rows = 1; rows < 40; ++rows) {
      const auto lines = draw({columns, rows});
      ASSERT_LE(lines.size(), rows);
      for (const std::string& line : lines) ASSERT_LE(cells(line), columns) << line;
    }
  }
}

TEST_F(Frame, color_changes_nothing_but_the_color) {
  steps(4);
  const auto plain = draw({80, 30});
  const auto colored = draw({80, 30}, true);
  ASSERT_EQ(plain.size(), colored.size());
  std::size_t codes = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    std::string bare;
    for (std::size_t c = 0; c < colored[i].size(); ++c) {
      if (colored[i][c] == '\x1b') {
        c = colored[i].find('m', c);
        ++codes;
      } else {
        bare.push_back(colored[i][c]);
      }
    }
    EXPECT_EQ(bare, plain[i]);
  }
  EXPECT_GT(codes, 10U);
}

TEST_F(Frame, a_long_recommendation_is_wrapped_if_there_is_room_and_cut_otherwise) {
  findings_[0].recommendation =
      "load ahead with num_workers=8, prefetch_factor=4 and persistent_workers=True, "
      "and keep the data on a local disk";
  steps(1);
  const auto recommendation_in = [&](FrameSize size) {
    std::string text;
    const auto lines = draw(size);
    for (const std::string& line : lines) {
      EXPECT_LE(cells(line), size.columns);
      if (line.starts_with("  ") && !line.starts_with("   ")) text += line.substr(1);
    }
    EXPECT_LE(lines.size(), size.rows);
    return text;
  };
  EXPECT_THAT(recommendation_in({60, 40}),
              HasSubstr("and keep the data on a local disk try: look at"));
  EXPECT_THAT(recommendation_in({60, 19}), HasSubstr("prefetch_factor=4 and… try: look at"));
}

TEST_F(Frame, without_a_step_shows_that_it_waits) {
  const auto lines = draw({80, 0});
  EXPECT_THAT(lines.at(0), HasSubstr("waiting for the first step"));
}

TEST_F(Frame, text_from_the_run_cannot_control_the_terminal) {
  run_.model = "evil\x1b[2J\x07name";
  steps(1);
  for (const std::string& line : draw({80, 0})) {
    EXPECT_EQ(line.find('\x1b'), std::string::npos);
    EXPECT_EQ(line.find('\x07'), std::string::npos);
  }
}

TEST_F(Frame, the_slowest_rank_is_the_one_with_the_least_speed_not_with_the_longest_step) {
  const auto line_of_ranks = [this] {
    for (const std::string& line : draw({80, 0})) {
      if (line.find(" ranks") != std::string::npos) return line;
    }
    return std::string{};
  };
  for (int rank = 0; rank < 6; ++rank) {
    for (std::int64_t step = 1; step <= 40; ++step) {
      StepRecord record = sample_step(step);
      record.rank = rank;
      // Rank 1 has twice the work and takes twice as long; rank 4 has half of it, at 0.7 the speed.
      const double work = rank == 1 ? 2 : rank == 4 ? 0.5 : 1;
      record.model_flops = Flops{static_cast<WideInt>(1e13 * work)};
      record.step_seconds = {0.5 * work / (rank == 4 ? 0.7 : 1)};
      record.phases = {};
      totals_.add(record);
    }
  }
  EXPECT_THAT(line_of_ranks(), HasSubstr("slowest 4 (−30.0 % FLOP/s)"));
  for (int rank = 0; rank < 6; ++rank) {
    for (std::int64_t step = 41; step <= 60; ++step) {
      StepRecord record = sample_step(step, rank);
      record.model_flops = std::nullopt;
      totals_.add(record);
    }
  }
  EXPECT_THAT(line_of_ranks(), Not(HasSubstr("slowest"))) << "no FLOPs, no speed";
}

TEST_F(Frame, without_mfu_plots_what_there_is) {
  for (std::int64_t step = 1; step <= 40; ++step) {
    StepRecord record = sample_step(step);
    record.mfu = record.hfu = std::nullopt;
    record.model_flops = std::nullopt;
    totals_.add(record);
  }
  std::string text;
  for (const std::string& line : draw({80, 0})) text += line + "\n";
  EXPECT_THAT(text, HasSubstr("MFU n/a"));
  EXPECT_THAT(text, HasSubstr("tokens per second"));
}

TEST_F(Frame, ticks_of_a_rate_have_its_unit) {
  StepRecord record = sample_step(1);
  record.mfu = record.hfu = std::nullopt;
  totals_.add(record);
  const auto lines = draw({100, 0});
  EXPECT_THAT(lines[1], HasSubstr("MFU n/a  last step  step 1"));
  EXPECT_THAT(lines[3], HasSubstr("150 TFLOP/s ┤"));
  EXPECT_THAT(lines[0], HasSubstr("last step 20 s ago"));
  EXPECT_THAT(lines[12], HasSubstr("model FLOP/s per device"));
}

TEST(BraillePlot, a_single_low_step_is_seen) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), 1, 1, 1});
  points[500].low = 0;
  const auto lines = braille_plot(points, 1, 50, 5);
  EXPECT_EQ(lines[4].substr(0, 25), std::string(25, ' '));
  EXPECT_NE(lines[4].find("\xe2"), std::string::npos);
}

TEST(TerminalText, wide_characters_take_two_cells) {
  EXPECT_EQ(cells("模型"), 4U);
  EXPECT_EQ(cells("modèle"), 6U);
  EXPECT_EQ(cut("模型模型", 5), "模型…");
  EXPECT_EQ(padded("ab", 4), "ab  ");
  EXPECT_EQ(cells("\x1b[1;31mred\x1b[0m"), 3U);
}

TEST(TerminalText, lines_break_between_words) {
  using testing::ElementsAre;
  EXPECT_THAT(wrapped("load ahead: num_workers=4", 12),
              ElementsAre("load ahead:", "num_workers=", "4"));
  EXPECT_THAT(wrapped("  as given", 40), ElementsAre("  as given"));
  EXPECT_THAT(wrapped("a \x1b[2mb c\x1b[0m", 3), ElementsAre("a \x1b[2mb", "c\x1b[0m"));
  EXPECT_THAT(wrapped("模型 模型", 5), ElementsAre("模型", "模型"));
  EXPECT_THAT(wrapped("", 5), ElementsAre(""));
}

}  // namespace
}  // namespace flopmeter
