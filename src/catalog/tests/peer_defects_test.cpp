// SPDX-License-Identifier: Apache-2.0
//
// Defects of other counters: each test names one and shows that flopmeter does not have it.
#include <flopmeter/catalog/devices.h>
#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/op_call_text.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

OpCost cost(std::string_view op, std::string_view text) {
  const OpRule* rule = find_op_rule(op);
  EXPECT_NE(rule, nullptr) << op;
  const auto call = parse_op_call(text);
  EXPECT_TRUE(call) << text;
  const auto flop_cost = rule->flop_cost((*call).call());
  EXPECT_TRUE(flop_cost) << op << " " << text;
  return flop_cost.value_or(OpCost{});
}

Model model_of(std::string_view json) {
  const auto config = Config::parse(json, "test");
  EXPECT_TRUE(config) << config.error().message;
  auto model = build_model(*config);
  EXPECT_TRUE(model) << model.error().message;
  EXPECT_FALSE((*model).bare_parameters);
  return *std::move(model);
}

Estimate count(const Model& model,
               Batch batch,
               std::string_view convention = "model-v1",
               Training training = {}) {
  const auto result = estimate(model,
                               {.batch = std::move(batch),
                                .training = std::move(training),
                                .convention = std::string{convention}});
  EXPECT_TRUE(result) << result.error().message;
  return *result;
}

constexpr std::string_view small =
    R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32})";
constexpr std::string_view windowed =
    R"({"model_type": "mistral", "hidden_size": 8, "num_hidden_layers": 2,
  "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32,
  "sliding_window": 3})";
constexpr std::string_view experts =
    R"({"model_type": "mixtral", "hidden_size": 8, "num_hidden_layers": 1,
  "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 32,
  "num_local_experts": 4, "num_experts_per_tok": 2})";
constexpr std::string_view qwen25_vl_7b = R"({"model_type": "qwen2_5_vl", "hidden_size": 3584,
  "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
  "vocab_size": 152064, "tie_word_embeddings": false, "vision_config": {"depth": 32, "hidden_size": 1280,
  "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
  "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}})";

// --- torch.utils.flop_counter ---

TEST(FlopCounterMode, counts_all_pairs_of_causal_attention__we_count_those_of_the_mask) {
  // 4 * 5 / 2 = 10 pairs, not 16: 2 * 10 * (2 + 2).
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention", "[1,1,4,2] [1,1,4,2] [1,1,4,2] - 1")
                .executed.value,
            40 * 2);
}

TEST(FlopCounterMode, counts_the_recomputed_scores_of_backward_as_model_work__we_separate_them) {
  const OpCost back = cost("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                           "[1,1,4,2] [1,1,4,2] [1,1,4,2] [1,1,4,2] [1,1,4,2] [1,1,4] - 0 - -");
  const WideInt forward = 4 * 16 * 2;
  EXPECT_EQ(back.model.value, 2 * forward);
  EXPECT_EQ(back.executed.value, 5 * forward / 2);
}

TEST(FlopCounterMode, counts_attention_on_cpus_as_nothing__we_have_a_rule) {
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention_for_cpu",
                 "[1,1,4,2] [1,1,4,2] [1,1,4,2] - 0 - -")
                .executed.value,
            4 * 16 * 2);
}

TEST(FlopCounterMode, fails_on_grouped_keys__we_count_query_heads) {
  EXPECT_EQ(cost("aten::_scaled_dot_product_flash_attention_for_cpu",
                 "[1,4,4,2] [1,2,4,2] [1,2,4,2] - 0 - -")
                .executed.value,
            4 * 4 * 16 * 2);
}

TEST(FlopCounterMode, swaps_sequence_and_heads_of_flash_attention__we_read_its_layout) {
  // batch, sequence 16, heads 2, size 8
  EXPECT_EQ(
      cost("aten::_flash_attention_forward", "[1,16,2,8] [1,16,2,8] [1,16,2,8] - - 16 16 - 0 0")
          .executed.value,
      4 * 16 * 16 * 2 * 8);
}

TEST(FlopCounterMode, ignores_groups_in_the_weights_gradient__ours_costs_as_much_as_forward) {
  const WideInt forward =
      cost("aten::convolution", "[1,64,8,8] [64,1,3,3] - (1,1) (1,1) (1,1) 0 (0,0) 64")
          .executed.value;
  EXPECT_EQ(forward, 2 * 64 * 64 * 9);
  EXPECT_EQ(cost("aten::convolution_backward",
                 "[1,64,8,8] [1,64,8,8] [64,1,3,3] - (1,1) (1,1) (1,1) 0 (0,0) 64 (0,1,0)")
                .executed.value,
            forward);
}

TEST(FlopCounterMode, mistakes_cudnns_benchmark_flag_for_transposed__we_do_not) {
  const auto flops = [](std::string_view call) {
    return cost("aten::cudnn_convolution", call).executed.value;
  };
  EXPECT_EQ(flops("[1,4,6,6] [8,2,3,3] (1,1) (2,2) (1,1) 2 1 0 1"),
            flops("[1,4,6,6] [8,2,3,3] (1,1) (2,2) (1,1) 2 0 0 1"));
}

// --- op counters in other projects ---

TEST(TorchProfiler, has_no_flops_for_convolutions_backward__we_have) {
  EXPECT_GT(cost("aten::convolution_backward",
                 "[1,8,3,3] [1,4,6,6] [8,2,3,3] (8) (2,2) (1,1) (1,1) 0 (0,0) 2 (1,1,1)")
                .executed.value,
            0);
}

TEST(DeepSpeed, divides_transposed_convolutions_by_groups_twice__we_divide_once) {
  const auto flops = [](std::string_view call) {
    return cost("aten::convolution", call).executed.value;
  };
  const WideInt whole = flops("[1,4,6,6] [4,8,3,3] - (2,2) (1,1) (1,1) 1 (1,1) 1");
  EXPECT_EQ(flops("[1,4,6,6] [4,4,3,3] - (2,2) (1,1) (1,1) 1 (1,1) 2"), whole / 2);
}

TEST(DeepSpeed, counts_more_at_each_profile__the_same_call_costs_the_same) {
  const auto first = cost("aten::mm", "[2,3] [3,4]");
  EXPECT_EQ(cost("aten::mm", "[2,3] [3,4]").executed, first.executed);
}

TEST(Fvcore, calls_a_multiply_add_one_flop__it_is_two) {
  EXPECT_EQ(cost("aten::mm", "[2,3] [3,4]").executed.value, 2 * 2 * 3 * 4);
}

TEST(TorchNpu, multiplies_shapes_in_32_bits__ours_go_beyond_64) {
  EXPECT_EQ(to_string(cost("aten::mm", "[65536,65536] [65536,65536]").executed.value),
            "562949953421312");
  EXPECT_EQ(to_string(cost("aten::bmm", "[65536,65536,65536] [65536,65536,65536]").executed.value),
            "36893488147419103232");
}

TEST(TorchNpu, multiplies_a_transposed_convolution_by_the_whole_output__ours_by_input_positions) {
  EXPECT_EQ(
      cost("aten::convolution", "[1,4,6,6] [4,4,3,3] - (2,2) (1,1) (1,1) 1 (1,1) 2").executed.value,
      2 * 36 * 4 * 4 * 9);
}

// --- formulas over configurations ---

TEST(MegatronLm, counts_windowed_layers_as_full__we_count_the_band) {
  // W (W + 1) / 2 + (s - W) W = 6 + 7 * 3 = 27 pairs of s = 10; 2 layers, 2 heads of 4.
  const Estimate e = count(model_of(windowed), Batch::uniform(1, 10));
  EXPECT_EQ(e.parts[Component::attention_core].forward.value, 2 * 27 * 4 * 2 * 4);
}

TEST(Torchtitan, counts_windowed_layers_as_full_and_ignores_the_mask__we_count_pairs) {
  const Model model = model_of(windowed);
  const Estimate theirs = count(model, Batch::uniform(1, 10), "torchtitan");
  EXPECT_EQ(theirs.parts[Component::attention_core].forward.value, 2 * 100 * 4 * 2 * 4);
  EXPECT_EQ(count(model, Batch::uniform(1, 10)).parts[Component::attention_core].forward.value,
            2 * 27 * 4 * 2 * 4);
}

TEST(Torchtitan, uses_the_configured_length_for_packed_documents__we_use_theirs) {
  Batch documents;
  documents.sequences = {{.length = 3}, {.length = 5}};
  const Estimate e = count(model_of(small), documents);
  EXPECT_EQ(e.parts[Component::attention_core].forward.value, 2 * (6 + 15) * 4 * 2 * 4);
}

TEST(Verl, counts_a_window_as_a_full_band__we_exclude_its_corner) {
  const Estimate theirs = count(model_of(windowed), Batch::uniform(1, 10), "verl-2025");
  EXPECT_EQ(theirs.parts[Component::attention_core].forward.value, 2 * 30 * 4 * 2 * 4);
  EXPECT_LT(
      count(model_of(windowed), Batch::uniform(1, 10)).parts[Component::attention_core].forward,
      theirs.parts[Component::attention_core].forward);
}

TEST(Verl, counts_the_embeddings_gather_as_a_matmul__it_costs_nothing) {
  const Model model = model_of(small);
  EXPECT_EQ(count(model, Batch::uniform(1, 4)).parts[Component::embedding].forward.value, 0);
  EXPECT_EQ(
      count(model, Batch::uniform(1, 4), "verl-2026").parts[Component::embedding].forward.value,
      2 * 4 * 32 * 8);
}

TEST(MegatronLm, excludes_the_router__we_count_it) {
  const Model model = model_of(experts);
  EXPECT_EQ(count(model, Batch::uniform(1, 4)).parts[Component::router].forward.value,
            2 * 4 * 8 * 4);
  EXPECT_EQ(count(model, Batch::uniform(1, 4), "megatron").parts[Component::router].forward.value,
            0);
}

TEST(MegatronLm, halves_attention_of_bidirectional_encoders__we_halve_no_full_mask) {
  EXPECT_EQ(mask_pairs({.shape = MaskPairs::Shape::full}, 10, 10), 100);
  EXPECT_EQ(mask_pairs({.shape = MaskPairs::Shape::causal}, 10, 10), 55);
}

TEST(MegatronLmAndTorchtitan,
     count_frozen_weights_like_trained_ones__we_count_their_gradients_only) {
  Training lora;
  lora.trainable = {.kind = Trainable::Kind::lora, .pattern = "", .lora_rank = 1};
  const Estimate e = count(model_of(small), Batch::uniform(1, 4), "model-v1", lora);
  // A frozen weight passes gradients and gets none: backward costs as much as forward.
  EXPECT_EQ(e.parts[Component::mlp].backward, e.parts[Component::mlp].forward);
  EXPECT_EQ(e.parts[Component::lm_head].backward, e.parts[Component::lm_head].forward);
  EXPECT_EQ(e.parts[Component::attention_core].backward,
            2 * e.parts[Component::attention_core].forward);
  for (const std::string_view theirs : {"megatron", "torchtitan"}) {
    const Estimate blind = count(model_of(small), Batch::uniform(1, 4), theirs, lora);
    EXPECT_EQ(blind.backward, 2 * blind.forward) << theirs;
  }
}

TEST(FlagScale, ignores_grouped_keys_and_gates_of_experts__we_do_not) {
  const Estimate ours = count(model_of(experts), Batch::uniform(1, 4));
  EXPECT_EQ(ours.parts[Component::attention_projections].forward.value,
            2 * 4 * (8 * 8 + 2 * 8 * 4 + 8 * 8));
  EXPECT_EQ(ours.parts[Component::mlp].forward.value, 2 * 4 * 2 * 3 * 8 * 16);
  const Estimate theirs = count(model_of(experts), Batch::uniform(1, 4), "flagscale");
  EXPECT_EQ(theirs.parts[Component::attention_projections].forward.value, 2 * 4 * 4 * 8 * 8);
  EXPECT_EQ(theirs.parts[Component::mlp].forward.value, 2 * 4 * 2 * 2 * 8 * 16);
}

TEST(FlagScale, divides_one_ranks_batch_by_all_devices__we_divide_the_whole_batch) {
  EstimateRequest request{.batch = Batch::uniform(16, 4)};
  request.devices = 8;
  request.step_seconds = Seconds{2};
  const auto e = estimate(model_of(small), request);
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(*(*e).rates.tflops_per_device,
                   static_cast<double>((*e).model_flops.value) / 2 / 8 / 1e12);
  EXPECT_DOUBLE_EQ(*(*e).rates.tokens_per_second, 16 * 4 / 2.0);
}

struct Tower {
  ImageGrid image;
  std::int64_t forward;
};

TEST(MegatronTorchtitanVerlVeOmni,
     exclude_or_overcount_the_vision_tower__we_count_it_per_frame_window_and_merged_token) {
  // Patches P = t h w, width 1280, MLP 3420 gated, 32 layers, 4 of them over whole frames and the
  // rest over ragged windows of 8 x 8 patches (112 pixels, not 112 patches); the merger once for
  // each 2 x 2 patches.
  const Model model = model_of(qwen25_vl_7b);
  constexpr Tower towers[] = {{{.t = 1, .h = 32, .w = 32}, 1'346'937'815'040},
                              {{.t = 1, .h = 36, .w = 50}, 2'394'885'160'960},
                              {{.t = 4, .h = 24, .w = 24}, 3'009'470'791'680},
                              {{.t = 1, .h = 98, .w = 146}, 22'709'543'485'440}};
  for (const Tower& tower : towers) {
    Batch batch = Batch::uniform(1, 8192);
    batch.images = {tower.image};
    EXPECT_EQ(to_string(count(model, batch).parts[Component::vision].forward.value),
              std::to_string(tower.forward));
    EXPECT_EQ(count(model, batch, "megatron").parts[Component::vision].forward.value, 0);
    const WideInt verl = count(model, batch, "verl-2026").parts[Component::vision].forward.value;
    // Three more times the merger: 2 P/4 (5120^2 + 5120 * 3584).
    const WideInt patches = WideInt{tower.image.t} * tower.image.h * tower.image.w;
    EXPECT_EQ(verl - tower.forward,
              3 * 2 * patches / 4 * (WideInt{5120} * 5120 + WideInt{5120} * 3584));
  }
}

TEST(LlmC, prints_minus_100_percent_on_an_unknown_device__we_print_no_mfu) {
  EXPECT_FALSE(find_device("GeForce RTX 9999"));
  EstimateRequest request{.batch = Batch::uniform(1, 4)};
  request.step_seconds = Seconds{1};
  const auto e = estimate(model_of(small), request);
  ASSERT_TRUE(e);
  EXPECT_FALSE((*e).rates.mfu);
  EXPECT_TRUE((*e).rates.tflops_per_device);
}

}  // namespace
}  // namespace flopmeter
