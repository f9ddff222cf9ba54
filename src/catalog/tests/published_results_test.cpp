// SPDX-License-Identifier: Apache-2.0
//
// Published training results, recomputed under the convention of their source.
// tests/data/published_results.json has the reported numbers; the rules below map a row to a model,
// a convention, and a peak. Rows that cannot be reproduced, or differ, are listed with the reason
// in published_exceptions.csv.
#include <flopmeter/catalog/devices.h>
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace flopmeter {
namespace {

using Json = nlohmann::json;

std::string slurp(const std::string& name) {
  std::ifstream in(std::string{FLOPMETER_TEST_DATA} + "/" + name);
  EXPECT_TRUE(in) << name;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<double> number(const Json& row, const char* key) {
  const auto at = row.find(key);
  if (at == row.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::string text(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at == row.end() || !at->is_string() ? "" : at->get<std::string>();
}

/// Convention of a source.
struct Rule {
  std::string_view prefix;      ///< of the row's convention
  std::string_view convention;  ///< empty: TFLOPS are compared with the peak, without a throughput
  bool hardware = false;        ///< the reported TFLOPS are hardware FLOPs
  std::int64_t vocab = 51200;   ///< if the row has none
};

constexpr Rule rules[] = {
    {"Megatron-Bridge model FLOPs", "megatron"},
    {"6N+12*L*d*T", "mosaic", false, 50368},  // GPT-NeoX tokens, padded
    {"FlagPerf", "flagperf"},
    {"torchtitan", "torchtitan"},
    {"Megatron Eq.3 hardware FLOPs", ""},
    {"Megatron hardware FLOPs (", "megatron-2021", true, 250880},  // BLOOM and its prequels
    {"Megatron hardware FLOPs", ""},
    {"Megatron model FLOPs", ""},
    {"hardware FLOPs (Megatron 96 factor)", "megatron-2021", true},
    {"Megatron Eq.3 x 3/4", "megatron-2021"},
    {"MaxText calculate_tflops", ""},
    {"sum of matmuls x3, not halved", "maxtext-2024"},
};

const Rule* rule_of(const Json& row) {
  const std::string convention = text(row, "convention");
  for (const Rule& rule : rules) {
    if (convention.starts_with(rule.prefix)) return &rule;
  }
  return nullptr;
}

/// "LLAMA3_70B" and "llama-3-70b" are the same.
std::string key_of(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

/// A GPT with the sizes of the row: learned positions, biases, tied head, as in Megatron and
/// llm-foundry.
std::string gpt_config(const Json& sizes, std::int64_t positions, const Rule& rule) {
  return Json{
      {"model_type", "gpt2"},
      {"n_layer", sizes.at("num_layers")},
      {"n_embd", sizes.at("hidden_size")},
      {"n_head", sizes.value("num_attention_heads", sizes.at("hidden_size").get<int>() / 64)},
      {"vocab_size", sizes.value("vocab_size", rule.vocab)},
      {"n_positions", positions}}
      .dump();
}

Result<Model> model_of(const Json& row, const Rule& rule, const Json& named) {
  std::string name = text(row, "model");
  name = name.substr(0, name.find(" ("));  // "DeepSeekV3 (w/o MTP)"
  if (rule.convention == "flagperf")
    name = name.substr(0, name.find(' '));  // "Aquila2-7B finetune"
  std::string config;
  if (row.contains("config")) {
    config = gpt_config(row["config"], row["seq_len"], rule);
  } else {
    for (const auto& [known, sizes] : named.at("models").items()) {
      if (key_of(known) == key_of(name)) config = sizes.dump();
    }
  }
  if (config.empty()) return Error{ErrorCode::not_found, "no configuration for '" + name + "'"};
  const auto parsed = Config::parse(config, name);
  if (!parsed) return parsed.error();
  auto model = build_model(*parsed);
  if (model) (*model).name = name;
  return model;
}

Result<PeakTable> peaks_of_row(const Json& row) {
  std::string name = text(row, "device");
  name = name.substr(0, name.find(" ("));
  const auto device = find_device(name);
  if (!device) return device.error();
  return peaks_of(**device);
}

Dtype dtype_of(const Json& row) {
  const std::string dtype = text(row, "dtype");
  return dtype == "amp_fp8" || dtype == "float8" ? Dtype::fp8 : Dtype::bf16;
}

std::optional<double> tokens_per_second(const Json& row) {
  const double devices = number(row, "device_count").value_or(1);
  if (const auto rate = number(row, "tokens_per_s")) return rate;
  if (const auto rate = number(row, "tokens_per_s_per_gpu")) return *rate * devices;
  const double tokens =
      number(row, "global_batch").value_or(0) * number(row, "seq_len").value_or(0);
  if (const auto seconds = number(row, "s_per_iter")) return tokens / *seconds;
  if (const auto rate = number(row, "sequences_per_s"))
    return *rate * number(row, "seq_len").value_or(0);
  return std::nullopt;
}

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
  bool peak_alone = false;  ///< compares only reported TFLOPS with the peak
  bool agrees = true;
  std::string text;
};

class Checker {
 public:
  explicit Checker(Outcome& outcome) : outcome_(outcome) {}

  void check(const char* what, std::optional<double> reported, std::optional<double> ours) {
    if (!reported || !ours) return;
    outcome_.recomputed = true;
    const double error = std::abs(*ours - *reported);
    if (error > std::max(0.02 * *reported, rounding(*reported))) outcome_.agrees = false;
    outcome_.text += std::string{" "} + what + " " + std::to_string(*reported) + " ours " +
                     std::to_string(*ours);
  }

 private:
  Outcome& outcome_;
};

std::optional<double> percent(std::optional<double> ratio) {
  return ratio ? std::optional{100 * *ratio} : std::nullopt;
}

Outcome recompute(const Json& row, const Json& named) {
  Outcome outcome;
  Checker checker{outcome};
  const Rule* rule = rule_of(row);
  if (rule == nullptr) return outcome;
  const auto tflops = number(row, "reported_tflops_per_gpu");
  const auto reported_mfu = number(row, "reported_mfu");
  const auto peaks = peaks_of_row(row);
  if (rule->convention.empty()) {
    const auto reported = reported_mfu ? reported_mfu : number(row, "reported_pct_peak");
    if (!peaks || !tflops || !reported) return outcome;
    outcome.peak_alone = true;
    checker.check("MFU", reported, 100 * *tflops * 1e12 / (*peaks).peak(dtype_of(row))->value);
    return outcome;
  }
  const auto rate = tokens_per_second(row);
  if (!rate || (!tflops && !reported_mfu)) return outcome;
  const auto model = model_of(row, *rule, named);
  if (!model) {
    outcome.text = model.error().message;
    return outcome;
  }
  const std::string name = text(row, "model");
  EstimateRequest request;
  request.batch =
      Batch::uniform(1, static_cast<std::int64_t>(number(row, "seq_len").value_or(4096)));
  request.convention = rule->convention;
  request.training.recompute = text(row, "recompute") == "full" ? Recompute::full : Recompute::none;
  request.training.forward_only = name.ends_with(" pretrain");
  if (name.find("w/o MTP") != std::string::npos) request.training.mtp = Training::Mtp::off;
  request.dtype = dtype_of(row);
  if (peaks) request.peaks = *peaks;
  request.devices = static_cast<std::int64_t>(number(row, "device_count").value_or(1));
  request.tokens_per_second = *rate;
  const auto result = estimate(*model, request);
  if (!result) {
    outcome.text = result.error().message;
    return outcome;
  }
  const Estimate& e = *result;
  if (rule->hardware) {
    const double ratio =
        static_cast<double>(e.hardware_flops.value) / static_cast<double>(e.model_flops.value);
    checker.check("TFLOPS", tflops, *e.rates.tflops_per_device * ratio);
    return outcome;
  }
  if (const auto params = number(row, "params")) {
    EXPECT_EQ(to_string(e.parameters.total), to_string(WideInt{static_cast<std::int64_t>(*params)}))
        << row["id"];
  }
  checker.check("TFLOPS", tflops, e.rates.tflops_per_device);
  checker.check("MFU", reported_mfu, percent(e.rates.mfu));
  checker.check("HFU", number(row, "reported_hfu"), percent(e.rates.hfu));
  return outcome;
}

/// id -> "excluded" or "differs".
std::map<std::string, std::string> exceptions() {
  std::map<std::string, std::string> list;
  std::istringstream in(slurp("published_exceptions.csv"));
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const auto id_end = line.find('"', 1);
    const auto what_end = line.find(',', id_end + 2);
    list[line.substr(1, id_end - 1)] = line.substr(id_end + 2, what_end - id_end - 2);
    EXPECT_GT(line.size(), what_end + 10) << "a reason for " << line;
  }
  return list;
}

TEST(PublishedResults, are_reproduced_under_their_convention) {
  const Json rows = Json::parse(slurp("published_results.json")).at("rows");
  const Json named = Json::parse(slurp("published_models.json"));
  auto listed = exceptions();
  int recomputed = 0;
  int agreeing = 0;
  for (const Json& row : rows) {
    const std::string id = row.at("id");
    const std::string exception = listed.contains(id) ? listed[id] : "";
    listed.erase(id);
    if (exception == "excluded") continue;
    const Outcome outcome = recompute(row, named);
    EXPECT_TRUE(outcome.recomputed) << id << outcome.text;
    EXPECT_EQ(outcome.agrees, exception != "differs") << id << outcome.text;
    if (outcome.peak_alone) continue;  // checks the peak, not the FLOPs
    recomputed += int{outcome.recomputed};
    agreeing += int{outcome.recomputed && outcome.agrees};
  }
  for (const auto& [id, what] : listed) ADD_FAILURE() << "no row is called " << id;
  std::cout << recomputed << " of " << rows.size() << " rows recomputed, " << agreeing
            << " agree\n";
  EXPECT_GE(recomputed, 270);
  EXPECT_GE(100 * agreeing, 95 * recomputed);
}

}  // namespace
}  // namespace flopmeter
