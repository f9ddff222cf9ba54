// SPDX-License-Identifier: Apache-2.0
//
// Published training results, recomputed under the convention of their source.  Rows that cannot be
// recomputed, or differ, state the reason in the table.
#include <flopmeter/catalog/devices.h>
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/published.h>

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <set>
#include <sstream>

namespace flopmeter {
namespace {

/// Half a unit of the last printed digit.
double rounding(double value) {
  std::ostringstream out;
  out << value;
  const std::string digits = out.str();
  const auto point = digits.find('.');
  const auto decimals = point == std::string::npos ? 0 : digits.size() - point - 1;
  return 0.5 * std::pow(10, -static_cast<double>(decimals));
}

struct Outcome {
  bool recomputed = false;
  bool peak_alone = false;  ///< compares only reported TFLOP/s with the peak
  bool agrees = true;
  std::string text;

  void check(const char* what, std::optional<double> reported, std::optional<double> ours) {
    if (!reported || !ours) return;
    recomputed = true;
    const double error = std::abs(*ours - *reported);
    if (error > std::max(0.02 * *reported, rounding(*reported))) agrees = false;
    text += std::string{" "} + what + " " + std::to_string(*reported) + " ours " +
            std::to_string(*ours);
  }
};

std::optional<double> percent_of(std::optional<double> ratio) {
  return ratio ? std::optional{100 * *ratio} : std::nullopt;
}

/// TFLOP/s of the source divided by the peak of the catalog.
Outcome check_peak(const PublishedResult& row) {
  Outcome outcome{.peak_alone = true};
  const auto device = find_device(row.device);
  const auto reported = row.hardware_flops ? row.hfu : row.mfu;
  if (!device || !row.tflops_per_device || !reported) return outcome;
  outcome.check("of peak",
                percent_of(reported),
                100 * *row.tflops_per_device * 1e12 / peaks_of(**device).peak(row.dtype)->value);
  return outcome;
}

Outcome recompute(const PublishedResult& row) {
  if (!row.tokens_per_second_per_device) return check_peak(row);
  Outcome outcome;
  const auto model = published_model(row);
  if (row.convention.empty() || !model) {
    outcome.text = model ? "no convention" : model.error().message;
    return outcome;
  }
  EstimateRequest request;
  request.batch = Batch::uniform(1, row.seq_len.value_or(4096));
  request.convention = row.convention;
  request.training.recompute = row.recompute == "full" ? Recompute::full : Recompute::none;
  request.training.forward_only = row.training == "forward";
  if (row.variant == "w/o MTP") request.training.mtp = Training::Mtp::off;
  request.dtype = row.dtype;
  if (const auto device = find_device(row.device)) request.peaks = peaks_of(**device);
  request.tokens_per_second = row.tokens_per_second_per_device;
  const auto result = estimate(*model, request);
  if (!result) {
    outcome.text = result.error().message;
    return outcome;
  }
  const Estimate& e = *result;
  if (row.hardware_flops) {
    const double ratio =
        static_cast<double>(e.hardware_flops.value) / static_cast<double>(e.model_flops.value);
    outcome.check("TFLOP/s", row.tflops_per_device, *e.rates.tflops_per_device * ratio);
    return outcome;
  }
  if (row.convention == "mosaic") {
    EXPECT_EQ(to_string(e.parameters.total), to_string(WideInt{row.parameters.value_or(0)}))
        << row.id;
  }
  outcome.check("TFLOP/s", row.tflops_per_device, e.rates.tflops_per_device);
  outcome.check("MFU", percent_of(row.mfu), percent_of(e.rates.mfu));
  outcome.check("HFU", percent_of(row.hfu), percent_of(e.rates.hfu));
  return outcome;
}

TEST(PublishedResults, are_reproduced_under_their_convention) {
  int recomputed = 0;
  int agreeing = 0;
  std::set<std::string> ids;
  for (const PublishedResult& row : published_results()) {
    EXPECT_TRUE(ids.insert(row.id).second) << row.id;
    EXPECT_TRUE(row.check.empty() || row.check == "excluded" || row.check == "differs") << row.id;
    EXPECT_TRUE(row.check.empty() || row.note.size() > 10) << "a reason for " << row.id;
    if (row.check == "excluded") continue;
    const Outcome outcome = recompute(row);
    EXPECT_TRUE(outcome.recomputed) << row.id << outcome.text;
    EXPECT_EQ(outcome.agrees, row.check != "differs") << row.id << outcome.text;
    if (outcome.peak_alone) continue;  // checks the peak, not the FLOPs
    recomputed += int{outcome.recomputed};
    agreeing += int{outcome.recomputed && outcome.agrees};
  }
  std::cout << recomputed << " of " << ids.size() << " rows recomputed, " << agreeing << " agree\n";
  EXPECT_GE(recomputed, 270);
  EXPECT_GE(100 * agreeing, 95 * recomputed);
}

TEST(PublishedResults, name_a_source) {
  for (const PublishedResult& row : published_results()) {
    EXPECT_FALSE(row.source.empty()) << row.id;
    EXPECT_TRUE(row.url.starts_with("https://") || row.check == "excluded") << row.id;
  }
}

TEST(PublishedResults, report_the_line_of_an_error) {
  const auto read = parse_published_results("id,dtype,source\na,bf17,s\n");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "published results, line 2: dtype 'bf17' is not valid");
}

TEST(PublishedResults, are_recounted_with_half_the_attention_of_a_full_mask) {
  // Megatron's 2021 formula counts recomputation and all pairs; model-v1 counts neither.
  for (const PublishedResult& row : published_results()) {
    if (row.id != "megatron-sc21-1T") continue;
    const ComparableResult ours = recount_published(row, published_model(row));
    EXPECT_TRUE(ours.recounted);
    ASSERT_TRUE(ours.mfu);
    EXPECT_GT(*ours.mfu, 0.37);
    EXPECT_LT(*ours.mfu, 0.75 * *row.hfu);
  }
}

PublishedComparison similar_to(std::string_view model, std::string device, Dtype dtype) {
  const auto found = find_model(model);
  EXPECT_TRUE(found);
  PublishedQuery query = published_query(*found, false);
  query.device = std::move(device);
  query.dtype = dtype;
  return compare_published(query);
}

TEST(PublishedResults, of_similar_models_have_their_kind_size_device_and_dtype) {
  const PublishedComparison found = similar_to("llama-3-8b", "NVIDIA H100 80GB HBM3", Dtype::bf16);
  ASSERT_GT(found.results.size(), 5U);
  for (const ComparableResult& each : found.results) {
    EXPECT_EQ(each.kind, ModelKind::dense);
    EXPECT_EQ(each.result->dtype, Dtype::bf16);
    EXPECT_GE(static_cast<double>(each.active_parameters), 4e9);
    EXPECT_LE(static_cast<double>(each.active_parameters), 16.1e9);
    EXPECT_GE(*each.mfu, *found.low());
    EXPECT_LE(*each.mfu, *found.high());
    EXPECT_LT(*each.mfu, 0.75) << each.result->id;
  }
  EXPECT_TRUE(found.text.starts_with("published for ")) << found.text;
  EXPECT_FALSE(found.links().empty());
}

TEST(PublishedResults, of_no_similar_model_are_one_line) {
  const PublishedComparison found = similar_to("gpt-2", "this CPU", Dtype::fp32);
  EXPECT_TRUE(found.results.empty());
  EXPECT_EQ(found.text, "no published result for 0.12B dense, this CPU, fp32");
}

}  // namespace
}  // namespace flopmeter
