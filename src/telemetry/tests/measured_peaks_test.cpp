// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/telemetry/measured_peaks.h>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace flopmeter {
namespace {

TEST(MeasuredPeaks, are_loaded_with_the_measured_shapes) {
  const std::string cache = testing::TempDir() + "measured_peaks";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  MeasuredMachine machine{.processor = processor_name(), .threads = 3, .torch = "2.9"};
  machine.peaks.push_back(
      {.dtype = Dtype::bf16,
       .rate = {4e11},
       .size = 1024,
       .shapes = {{Dtype::bf16, 32, 64, {1e11}}, {Dtype::bf16, 512, 64, {2e11}}}});
  const auto file = store_measured_peaks(machine);
  ASSERT_TRUE(file);
  const auto table = load_measured_peaks(3);
  ASSERT_TRUE(table);
  EXPECT_EQ((*table).peak(Dtype::bf16)->value, 4e11);
  ASSERT_EQ((*table).shapes.size(), 2U);
  EXPECT_EQ((*table).shapes[1].rows, 512);
  EXPECT_EQ((*table).shapes[1].width, 64);
  EXPECT_EQ((*table).shapes[1].rate.value, 2e11);
  EXPECT_FALSE(load_measured_peaks(4));
}

TEST(MeasuredPeaks, without_or_with_damaged_shapes_have_none) {
  const std::string cache = testing::TempDir() + "old_peaks";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  ASSERT_TRUE(store_measured_peaks({.processor = processor_name(),
                                    .threads = 1,
                                    .torch = "2.9",
                                    .peaks = {{.dtype = Dtype::fp32, .rate = {1e11}}}}));
  std::ofstream{cache + "/flopmeter/peaks.json"}
      << R"({"schema": "flopmeter.peaks/1", "machines": [{"processor": ")" << processor_name()
      << R"(", "threads": 1, "torch": "2.9", "peaks": {"fp32": {"flops_per_second": 1e11},)"
      << R"("fp64": {"flops_per_second": 5e10, "shapes": [[32, "x"], 7, [32, 64, null]]}}}]})";
  const auto table = load_measured_peaks();
  ASSERT_TRUE(table);
  EXPECT_EQ((*table).peak(Dtype::fp32)->value, 1e11);
  EXPECT_EQ((*table).peak(Dtype::fp64)->value, 5e10);
  EXPECT_TRUE((*table).shapes.empty());
}

TEST(MeasuredPeaks, are_not_stored_and_not_loaded_if_there_are_none) {
  const std::string cache = testing::TempDir() + "empty_peaks";
  std::filesystem::remove_all(cache);
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EXPECT_FALSE(store_measured_peaks({.processor = processor_name(), .threads = 1, .torch = "2.9"}));
  EXPECT_FALSE(std::filesystem::exists(cache + "/flopmeter/peaks.json"));
  std::filesystem::create_directories(cache + "/flopmeter");
  std::ofstream{cache + "/flopmeter/peaks.json"}
      << R"({"schema": "flopmeter.peaks/1", "machines": [{"processor": ")" << processor_name()
      << R"(", "threads": 1, "torch": "2.9", "peaks": {}}]})";
  EXPECT_FALSE(load_measured_peaks(1));
}

TEST(MeasuredPeaks, of_a_damaged_cache_are_missing) {
  const std::string cache = testing::TempDir() + "damaged_peaks";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const MeasuredMachine machine{.processor = processor_name(),
                                .threads = 1,
                                .torch = "2.9",
                                .peaks = {{.dtype = Dtype::fp32, .rate = {1e11}}}};
  const std::string start = R"({"schema": "flopmeter.peaks/1", "machines": )";
  const std::string name = R"([{"processor": ")" + processor_name() + "\"";
  for (const std::string& text :
       {std::string{R"({"schema": 5})"},
        std::string{"[1"},
        start + "7}",
        start + "[7, null, []]}",
        start + R"([{"processor": 7, "peaks": []}]})",
        start + std::string(100'000, '[') + std::string(100'000, ']') + "}",
        start + name + R"(, "threads": [], "torch": 7, "peaks": 3}]})"}) {
    ASSERT_TRUE(store_measured_peaks(machine));  // creates the directory
    std::ofstream{cache + "/flopmeter/peaks.json"} << text;
    const auto table = load_measured_peaks(1);
    EXPECT_FALSE(table) << text.substr(0, 100);
    EXPECT_TRUE(store_measured_peaks(machine)) << text.substr(0, 100);
    EXPECT_TRUE(load_measured_peaks(1)) << text.substr(0, 100);
  }
}

TEST(MeasuredPeaks, of_a_pipe_are_missing_and_nothing_waits) {
  const std::string cache = testing::TempDir() + "piped_peaks";
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  std::filesystem::create_directories(cache + "/flopmeter");
  const std::string pipe = cache + "/flopmeter/peaks.json";
  ::unlink(pipe.c_str());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(load_measured_peaks(1));
  EXPECT_FALSE(store_measured_peaks({.processor = "x", .threads = 1, .torch = "2.9"}));
}

}  // namespace
}  // namespace flopmeter
