// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <flopmeter/monitor/compat_options.h>
#include <flopmeter/monitor/monitor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

namespace flopmeter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Options, the_flagscale_block_is_read_and_its_other_keys_are_ignored) {
  Options options = flag_defaults();
  const auto done = apply_yaml(options, R"(
train:
  system:
    tensor_model_parallel_size: 2
    checkpoint: { save_interval: 100 }
    enable_perf_monitor: True
    perf_log_interval: 20
    perf_log_dir: ./outputs/logs/perf_monitor
    perf_console_output: False
    perf_memory_tracking: False
    perf_breakdown: True
    perf_max_log_files: 3
  model: { num_layers: 4 }
)");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.log_interval, 20);
  EXPECT_EQ(options.directory, "./outputs/logs/perf_monitor");
  EXPECT_FALSE(options.console);
  EXPECT_FALSE(options.memory);
  EXPECT_TRUE(options.breakdown);
  EXPECT_EQ(options.max_log_files, 3);
}

TEST(Options, the_monitoring_block_is_read) {
  Options options;
  const auto done = apply_yaml(options, R"(
monitoring:
  mfu_calculation_mode: "smart"
  performance_monitoring:
    measure_flops_frequency: 250
    smart_mode:
      initial_profiling: true
      calibration_enabled: false
      recalibration_frequency: 700
    hybrid_mode:
      hardware_counters_enabled: false
      fallback_to_profiler: false
)");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(options.mode, Mode::smart);
  EXPECT_EQ(options.measure_frequency, 250);
  EXPECT_FALSE(options.calibration);
  EXPECT_EQ(options.recalibration_frequency, 700);
  EXPECT_FALSE(options.hardware_counters);
  EXPECT_FALSE(options.fallback_to_profiler);
  ASSERT_TRUE(apply_yaml(options, "monitoring: {flops_profile_freq: 50}"));
  EXPECT_EQ(options.measure_frequency, 50);
  ASSERT_TRUE(apply_yaml(options, "monitor:\n  freq:\n    flops_profile_freq: 60\n"));
  EXPECT_EQ(options.measure_frequency, 60);
}

TEST(Options, an_unknown_key_is_an_error_with_its_line_and_a_suggestion) {
  Options options;
  const auto done =
      apply_yaml(options, "monitoring:\n  mfu_calculation_mod: smart\n", "config.yaml");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("config.yaml line 2"));
  EXPECT_THAT(done.error().message, HasSubstr("did you mean monitoring.mfu_calculation_mode"));
  const auto perf = apply_yaml(options, "system: {perf_log_intervall: 3}");
  ASSERT_FALSE(perf);
  EXPECT_THAT(perf.error().message, HasSubstr("system.perf_log_interval"));
  EXPECT_FALSE(apply_yaml(options, "flopmeter: {log_interval: }"));
}

TEST(Options, a_misspelled_block_is_an_error_and_an_unrelated_block_is_not) {
  Options options;
  const auto message = [&options](std::string_view text) {
    const auto done = apply_yaml(options, text, "config.yaml");
    return done ? std::string{} : done.error().message;
  };
  EXPECT_EQ(message("model: {layers: 2}\nmonitorng:\n  flops_profile_freq: 50\n"),
            "config.yaml line 3: unknown key 'monitorng.flops_profile_freq'; did you mean the "
            "block 'monitoring'?");
  EXPECT_THAT(message("sytem: {perf_log_interval: 3}"), HasSubstr("the block 'system'"));
  EXPECT_THAT(message("train: {sytem: {perf_log_interval: 3}}"), HasSubstr("the block 'system'"));
  EXPECT_THAT(message("trian: {system: {perf_log_interval: 3}}"), HasSubstr("the block 'train'"));
  EXPECT_THAT(message("monitor: {flops_profile_freq: 50}"), HasSubstr("the block 'monitoring'"));
  EXPECT_THAT(message("flopmetr: {log_interval: 3}"), HasSubstr("the block 'flopmeter'"));
  EXPECT_THAT(message("moniter: {freq: {flops_profile_freq: 3}}"), HasSubstr("'monitor'"));
  EXPECT_EQ(options.log_interval, Options{}.log_interval);
  EXPECT_EQ(message("model: {layers: 2}\ndata: {path: x}\noptimizer: {lr: 1}\nseed: 3\n"
                    "trainer: {max_steps: 10}\nsystems: {a: {gpus: 8}}\nmain: {steps: 5}\n"
                    "monitor: {metric: val_loss}\nmonitors: [loss]\n"),
            "");
}

TEST(Options, a_bad_value_is_an_error_and_changes_nothing) {
  Options options;
  const auto done = apply_yaml(options, "flopmeter:\n  breakdown: true\n  log_interval: -5\n");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              HasSubstr("log_interval is '-5' but must be an integer, 1 or greater"));
  EXPECT_FALSE(options.breakdown);
  EXPECT_FALSE(apply_yaml(options, "flopmeter: {mode: turbo}"));
  EXPECT_FALSE(apply_yaml(options, "a: [1, 2"));
  EXPECT_FALSE(apply_yaml(options, "&a [*a, *b]"));
  for (const char* text : {"plain text", "- a\n- b"})
    EXPECT_FALSE(apply_yaml(options, text)) << text;
  for (const char* text : {"", "# nothing", ",", ",\n"})  // yaml-cpp reads a comma as null
    EXPECT_TRUE(apply_yaml(options, text)) << text;
}

TEST(Options, every_flag_has_an_effect_and_a_no_form) {
  Options options = flag_defaults();
  EXPECT_FALSE(options.enabled);
  EXPECT_FALSE(options.console);
  const std::string on[] = {"--enable-perf-monitor",
                            "--perf-log-interval",
                            "7",
                            "--perf-log-dir=/x",
                            "--perf-console-output",
                            "--no-perf-memory-tracking",
                            "--perf-breakdown",
                            "--perf-max-log-files",
                            "4",
                            "--train-iters",
                            "100"};
  const auto rest = apply_arguments(options, on);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_THAT(*rest, ElementsAre("--train-iters", "100"));
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.log_interval, 7);
  EXPECT_EQ(options.directory, "/x");
  EXPECT_TRUE(options.console);
  EXPECT_FALSE(options.memory);
  EXPECT_TRUE(options.breakdown);
  EXPECT_EQ(options.max_log_files, 4);
  const std::string off[] = {"--no-enable-perf-monitor",
                             "--no-perf-console-output",
                             "--perf-memory-tracking",
                             "--no-perf-breakdown"};
  ASSERT_TRUE(apply_arguments(options, off));
  EXPECT_FALSE(options.enabled);
  EXPECT_FALSE(options.console);
  EXPECT_TRUE(options.memory);
  EXPECT_FALSE(options.breakdown);
}

TEST(Options, shared_flags_are_read_and_kept) {
  Options options;
  const std::string arguments[] = {
      "--tensorboard", "--tensorboard-dir", "./tb", "--", "--perf-breakdown"};
  const auto rest = apply_arguments(options, arguments);
  ASSERT_TRUE(rest);
  EXPECT_THAT(*rest,
              ElementsAre("--tensorboard", "--tensorboard-dir", "./tb", "--", "--perf-breakdown"));
  EXPECT_TRUE(options.tensorboard);
  EXPECT_EQ(options.tensorboard_dir, "./tb");
  EXPECT_FALSE(options.breakdown);
}

TEST(Options, wrong_flags_are_errors_with_a_suggestion) {
  Options options;
  const auto message = [&](std::initializer_list<std::string> arguments) {
    const std::vector<std::string> list{arguments};
    const auto rest = apply_arguments(options, list);
    return rest ? "" : rest.error().message;
  };
  EXPECT_THAT(message({"--perf-log-intervall", "3"}),
              HasSubstr("did you mean --perf-log-interval"));
  EXPECT_THAT(message({"--perf-log-interval"}), HasSubstr("needs a value"));
  EXPECT_THAT(message({"--perf-log-interval", "ten"}), HasSubstr("must be an integer"));
  EXPECT_THAT(message({"train.system.perf_log_intervl=3"}), HasSubstr("perf_log_interval"));
}

TEST(Options, hydra_words_are_taken_and_others_kept) {
  Options options;
  const std::string words[] = {"action=run",
                               "train.system.enable_perf_monitor=true",
                               "+train.system.perf_log_interval=10",
                               "train.system.perf_log_dir=./outputs",
                               "train.data.data_path=../x",
                               "train=7b_with_perf_monitor"};
  const auto rest = apply_arguments(options, words);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_THAT(*rest,
              ElementsAre("action=run", "train.data.data_path=../x", "train=7b_with_perf_monitor"));
  EXPECT_EQ(options.log_interval, 10);
  EXPECT_EQ(options.directory, "./outputs");
}

TEST(Options, an_unknown_variable_is_a_warning_with_a_suggestion) {
  Options options;
  const char* environment[] = {"FLOPMETER_LOG_INTERVALL=3", "FLOPMETER_LONG=1", "HOME=/", nullptr};
  ASSERT_TRUE(apply_environment(options, environment));
  ASSERT_EQ(options.warnings.size(), 1U);
  EXPECT_THAT(options.warnings[0],
              HasSubstr("FLOPMETER_LOG_INTERVALL; did you mean FLOPMETER_LOG_INTERVAL"));
  TemporaryDirectory directory;
  Options quiet_options = without_console(directory);
  quiet_options.warnings = options.warnings;
  std::vector<std::string> warned;
  Connections connections;
  connections.warn = [&](const std::string& text) { warned.push_back(text); };
  auto monitor = Monitor::start(quiet_options, std::move(connections));
  EXPECT_EQ(warned, options.warnings);
}

TEST(Options, the_environment_sets_any_option) {
  Options options;
  const char* environment[] = {
      "PATH=/bin", "FLOPMETER_MODE=hybrid", "FLOPMETER_LOG_INTERVAL=3", nullptr};
  ASSERT_TRUE(apply_environment(options, environment));
  EXPECT_EQ(options.mode, Mode::hybrid);
  EXPECT_EQ(options.log_interval, 3);
  const char* wrong[] = {"FLOPMETER_LOG_INTERVAL=soon", nullptr};
  const auto done = apply_environment(options, wrong);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("FLOPMETER_LOG_INTERVAL"));
}

TEST(Options, each_row_is_complete_and_unique_and_reads_what_it_shows) {
  std::set<std::string> names;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(names.insert(std::string{row.name}).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    Options options;
    const std::string shown = row.show(options);
    if (!shown.empty() && row.name != "sink") {
      EXPECT_TRUE(set_option(options, row.name, shown)) << row.name;
    }
  }
  for (const CompatName& name : compat_names()) {
    EXPECT_TRUE(names.contains(std::string{name.option})) << name.option;
    EXPECT_THAT(flags_help(), HasSubstr(std::string{name.flag}));
    std::istringstream paths{std::string{name.yaml}};
    for (std::string path; paths >> path;) EXPECT_TRUE(names.insert(path).second) << path;
  }
  Options options;
  const auto unknown = set_option(options, "log_intervall", "1");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("did you mean log_interval"));
}

TEST(Options, the_text_form_restores_every_option) {
  Options options;
  options.directory = "/a b/\u00e9\"c";
  options.sinks = {"csv:/x y", "jsonl"};
  options.metrics_token = "secret: #1";
  options.console = false;
  options.overhead_budget = 0.25;
  options.mode = Mode::hybrid;
  options.peak = "2.5";
  const std::string variable = "FLOPMETER_CONFIG=" + options_text(options);
  const char* environment[] = {"FLOPMETER_LOG_INTERVAL=3", variable.c_str(), nullptr};
  Options restored;
  const auto done = apply_environment(restored, environment);
  ASSERT_TRUE(done) << done.error().message;
  for (const OptionRow& row : option_rows()) EXPECT_EQ(row.show(restored), row.show(options));
  EXPECT_EQ(restored.sinks, options.sinks);
  EXPECT_EQ(restored.metrics_token, options.metrics_token);
  EXPECT_EQ(options_text(Options{}), R"({"flopmeter":{}})");
}

TEST(Options, native_flags_fit_on_one_screen) {
  const auto rows = option_rows();
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.native; }),
            16);
}

TEST(Options, the_sample_configurations_load) {
  const std::filesystem::path folder = std::filesystem::path{FLOPMETER_EXAMPLES} / "configs";
  std::set<Mode> modes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    Options options;
    const auto done = apply_yaml_file(options, entry.path());
    EXPECT_TRUE(done) << done.error().message;
    modes.insert(options.mode);
  }
  EXPECT_THAT(modes, ElementsAre(Mode::estimate, Mode::profiler, Mode::smart, Mode::hybrid));
}

}  // namespace
}  // namespace flopmeter
