# SPDX-License-Identifier: Apache-2.0
"""Megatron's arguments: flags, the described model compared with Megatron's formula, and the hooks of the loop."""

import argparse
import json

import flopmeter
import pytest
from flopmeter.integrations import megatron
from flopmeter.integrations.megatron_model import trainable_of
from megatron_formula import LATENT, SMALL, megatron_flops
from run_records import records

GQA = {"group_query_attention": True, "num_query_groups": 2}
EXPERTS = {"num_experts": 8, "moe_router_topk": 2, "moe_ffn_hidden_size": 48}
DELTA = {
    "experimental_attention_variant": "gated_delta_net",
    "linear_attention_freq": 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {"mamba_state_dim": 16, "mamba_head_dim": 8, "mamba_num_groups": 2}
SETS = {
    "gqa": GQA,
    "mha": {},
    "wide heads": {**GQA, "kv_channels": 16},
    "gelu": {"swiglu": False, "ffn_hidden_size": 256},
    "gelu gqa": {**GQA, "swiglu": False},
    "untied": {"untie_embeddings_and_output_weights": True},
    "experts": {**EXPERTS, **GQA},
    "experts every second layer": {**EXPERTS, "moe_layer_freq": 2},
    "experts by list": {**EXPERTS, "moe_layer_freq": [0, 1, 1, 0]},
    "shared experts": {**EXPERTS, "moe_shared_expert_intermediate_size": 96, "moe_layer_freq": [0, 1, 1, 1]},
    "latent": LATENT,
    "latent without query rank": {**LATENT, "q_lora_rank": None},
    "latent experts": {**LATENT, **EXPERTS, "moe_layer_freq": [0, 1, 1, 1], "moe_shared_expert_intermediate_size": 48},
    "latent with prediction": {**LATENT, "mtp_num_layers": 1},
    "shared expert of any width": {**EXPERTS, "moe_shared_expert_intermediate_size": 40},
    "shared expert and wide heads": {**EXPERTS, **GQA, "kv_channels": 16, "moe_shared_expert_intermediate_size": 40},
    "shared expert every second layer": {**EXPERTS, "moe_shared_expert_intermediate_size": 100, "moe_layer_freq": 2},
    "experts without a gate": {**EXPERTS, "swiglu": False},
    "prediction": {**GQA, "mtp_num_layers": 1},
    "prediction with experts": {**EXPERTS, "mtp_num_layers": 2},
    "output gate": {**GQA, "attention_output_gate": True},
    "experts in a latent width": {**EXPERTS, "moe_latent_size": 16},
    "delta nets": DELTA,
    "delta nets under their later name": {**DELTA, "experimental_attention_variant": "gdn"},
    "delta nets by list": {**DELTA, "linear_attention_freq": [1, 0, 0, 1]},
    "latent without a gate": {**LATENT, "swiglu": False},
    "latent experts mixed with dense layers": {**LATENT, **EXPERTS, "moe_latent_size": 16, "moe_layer_freq": 2, "moe_shared_expert_intermediate_size": 40},
    "delta nets with other value heads": {**DELTA, "linear_value_head_dim": 12},
    "hybrid": {**GQA, **MAMBA, "hybrid_layer_pattern": "M*-M|-*"},
    "hybrid of other widths": {**MAMBA, "mamba_num_heads": 4, "kv_channels": 16, "swiglu": False, "hybrid_override_pattern": "MM*-"},
    "hybrid by ratios": {**MAMBA, "num_layers": 8, "is_hybrid_model": True, "hybrid_attention_ratio": 0.25, "hybrid_mlp_ratio": 0.5},
    "hybrid with experts, delta nets, and prediction": {**MAMBA, **EXPERTS, **DELTA, "moe_latent_size": 16, "hybrid_layer_pattern": "MGE*/ME/ME", "mtp_num_layers": 2},
    "windows count as full layers": {"window_size": (7, 0)},
    "delta nets, gates, and experts": {**DELTA, **EXPERTS, "attention_output_gate": True, "moe_shared_expert_intermediate_size": 40},
}


def arguments(more):
    return argparse.Namespace(**{**SMALL, **more})


@pytest.mark.parametrize("name", SETS)
def test_flops_equal_megatrons_formula(name):
    a = arguments(SETS[name])
    mtp = True if getattr(a, "mtp_num_layers", None) else None
    estimated = flopmeter.estimate(megatron.model_config(a), seq_len=a.seq_length, batch=3, convention="megatron", mtp=mtp)
    assert estimated["flops"]["model"] == megatron_flops(a, 3)


# FlagScale's arguments for Qwen2.5-VL 7B.
QWEN_VL = {
    "num_layers": 28,
    "hidden_size": 3584,
    "ffn_hidden_size": 18944,
    "num_attention_heads": 28,
    "group_query_attention": True,
    "num_query_groups": 4,
    "padded_vocab_size": 152064,
    "seq_length": 1024,
    "untie_embeddings_and_output_weights": True,
    "freeze_ViT": False,
    "freeze_LM": False,
    "vision_recompute_layer_steps": 0,
}
GRIDS = [(1, 36, 36), (2, 16, 24)]


def vision_flops(more, **options):
    a = arguments({**QWEN_VL, **more})
    options.setdefault("trainable", trainable_of(a))
    return flopmeter.estimate(megatron.model_config(a), seq_len=1024, batch=2, image_grid_thw=GRIDS, **options)["flops"]["model"]


def test_a_vision_tower_follows_from_flagscales_arguments():
    published = flopmeter.estimate("qwen2.5-vl-7b", seq_len=1024, batch=2, image_grid_thw=GRIDS)["flops"]["model"]
    assert vision_flops({}) == published
    frozen = flopmeter.estimate("qwen2.5-vl-7b", seq_len=1024, batch=2, image_grid_thw=GRIDS, trainable="freeze:model.visual*")
    assert vision_flops({"freeze_ViT": True}) == frozen["flops"]["model"] < published
    assert vision_flops({"freeze_LM": True}) < published


@pytest.mark.parametrize(("layers", "hidden", "depth"), [(36, 2560, 24), (36, 4096, 27)])
def test_the_tower_of_qwen3_vl_depends_on_the_language_model(layers, hidden, depth):
    a = arguments({**QWEN_VL, "num_layers": layers, "hidden_size": hidden, "kv_channels": 128})
    del a.vision_recompute_layer_steps
    a.vision_recompute_activations = False
    config = megatron.model_config(a)
    assert (config["model_type"], config["vision_config"]["depth"]) == ("qwen3_vl", depth)
    assert flopmeter.estimate(config, seq_len=1024, image_grid_thw=GRIDS)["flops"]["components"]["vision"] > 0


def test_hooks_count_the_images_of_an_iteration(tmp_path, capsys):
    flags = ["--enable-perf-monitor", "--perf-log-dir", str(tmp_path)]
    a = arguments({**QWEN_VL, "micro_batch_size": 1, "global_batch_size": 2})
    megatron.initialize_perf_monitor(megatron.add_arguments(argparse.ArgumentParser()).parse_args(flags, a), device="h100")
    for iteration, grids in ((1, GRIDS), (2, None)):
        megatron.perf_monitor_start_iteration(iteration, image_grid_thw=grids)
        megatron.perf_monitor_end_iteration(iteration)
    megatron.perf_monitor_end_training()
    known, assumed = records(tmp_path)
    assert known["model_flops"] == vision_flops({})
    assert assumed["model_flops"] != known["model_flops"]
    assert "one of 576 visual tokens is assumed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"padded_vocab_size": None}, "padded_vocab_size"),
        ({**EXPERTS, "moe_layer_freq": [1]}, "1 entries for 4 layers"),
        ({**EXPERTS, "moe_layer_freq": "[1]*4"}, "parser"),
        ({"hybrid_layer_pattern": "M*", "mtp_num_layers": 1}, "without the layers of a prediction"),
        ({"hybrid_layer_pattern": "M*", "spec": ["module", "gdp_stack_spec"]}, "gdp_stack_spec"),
        ({**DELTA, "experimental_attention_variant": "dsa"}, "experimental_attention_variant dsa"),
        ({**DELTA, "experimental_attention_variant": "gdn2"}, "experimental_attention_variant gdn2"),
        ({**DELTA, "linear_attention_freq": [1]}, "an entry for each of 4 layers"),
        ({"attention_output_gate": True, "window_size": (16, 0)}, "window_size together with"),
        ({"decoder_num_layers": 4}, "decoder_num_layers"),
        ({"retro_add_retriever": True}, "retro_add_retriever"),
        ({"peft_type": "dora"}, "peft_type"),
        ({**EXPERTS, "peft_type": "lora"}, "peft_type"),
        ({"peft_type": "LoRA", "lora_target_modules": []}, "peft_type"),
        ({"peft_type": "LoRA", "lora_target_modules": ["*.layers.0.*.linear_qkv"]}, "peft_type"),
        ({"peft_type": "lora", "lora_target_modules": ["linear_q_proj"]}, "peft_type"),
        ({"freeze_ViT": False}, "vision tower"),
        ({"vision_pretraining": True}, "vision tower"),
        ({"freeze_ViT": False, "vision_recompute_activations": False, "vision_num_layers": 27}, "vision tower"),
        ({"tokenizer_type": "BertWordPieceLowerCase"}, "BertWordPieceLowerCase"),
        ({**LATENT, "window_size": (16, 0)}, "window_size together with MLA"),
        ({"swiglu": False, "window_size": (16, 0), "window_attn_skip_freq": 2}, "window_attn_skip_freq without"),
        ({"window_size": (16, 0), "window_attn_skip_freq": [1, 0]}, "2 entries for 4 layers"),
        ({**EXPERTS, "window_size": (4, 0), "window_attn_skip_freq": 2, "moe_layer_freq": 2}, "layers without experts"),
        *(({name: None}, f"no {name}") for name in ("num_layers", "hidden_size", "num_attention_heads")),
    ],
)
def test_an_unsupported_argument_is_an_error(more, message):
    with pytest.raises(ValueError, match=message):
        megatron.model_config(arguments(more))


def test_lora_adapts_the_fused_linears_that_the_arguments_name():
    lora = {"peft_type": "lora", "lora_dim": 8, "lora_target_modules": ["linear_qkv", "linear_fc2"]}
    a = arguments({**lora, "group_query_attention": True, "num_query_groups": 2})
    adapted = flopmeter.estimate(megatron.model_config(a), seq_len=a.seq_length, trainable=trainable_of(a))
    frozen = flopmeter.estimate(megatron.model_config(a), seq_len=a.seq_length, trainable="freeze:*")
    heads, groups, width = a.num_attention_heads, a.num_query_groups, a.hidden_size // a.num_attention_heads
    sizes = [a.hidden_size + (heads + 2 * groups) * width, a.ffn_hidden_size + a.hidden_size]
    parameters = a.num_layers * 8 * sum(sizes)
    assert adapted["model"]["parameters"]["trainable"] == parameters
    assert adapted["flops"]["forward"] - frozen["flops"]["forward"] == 2 * parameters * a.seq_length
    assert trainable_of(arguments({"peft_type": "lora"})).count("*.linear_") == 4
    assert trainable_of(arguments({})) == "all"


def flops(more, **how):
    return flopmeter.estimate(megatron.model_config(arguments(more)), seq_len=32, **how)["flops"]["model"]


@pytest.mark.parametrize(
    ("more", "skip", "windowed"),
    [
        ({}, None, 4),
        ({}, 2, 2),
        ({"swiglu": False, "quick_geglu": True}, [1, 0, 0, 0], 1),
        ({"swiglu": False}, None, 4),
        ({**EXPERTS, **GQA}, None, 4),
        ({**EXPERTS, **GQA}, 4, 3),
    ],
)
def test_a_windowed_layer_counts_the_visible_keys(more, skip, windowed):
    seen = [sum(min(i + 1, keys) for i in range(32)) for keys in (32, 9)]  # 8 to the left, and itself
    saved = windowed * (seen[0] - seen[1]) * 3 * 4 * 64
    assert flops({**more, "window_size": (8, 0), "window_attn_skip_freq": skip}) == flops(more) - saved


def test_quick_geglu_is_a_gated_mlp_of_the_plain_width():
    gelu, geglu = ({"swiglu": False, "quick_geglu": gated, "ffn_hidden_size": None} for gated in (False, True))
    assert flops(geglu) - flops(gelu) == 6 * 32 * 64 * 256 * 4


def test_sizes_that_megatron_derives_are_derived():
    config = megatron.model_config(arguments({"hidden_size": 256, "ffn_hidden_size": None}))
    assert config["intermediate_size"] == 640  # 4 h 2/3 in steps of 64
    raw = {"padded_vocab_size": None, "vocab_size": 50257, "tensor_model_parallel_size": 2}
    assert megatron.model_config(arguments(raw))["vocab_size"] == 50432
    assert megatron.model_config(arguments({**raw, "make_vocab_size_divisible_by": 64}))["vocab_size"] == 50304


def test_the_seven_flags_have_their_defaults_and_no_forms():
    parser = megatron.add_arguments(argparse.ArgumentParser())
    args = parser.parse_args([])
    assert (args.enable_perf_monitor, args.perf_log_interval, args.perf_log_dir) == (False, 10, "logs/perf_monitor")
    assert (args.perf_console_output, args.perf_memory_tracking, args.perf_breakdown, args.perf_max_log_files) == (False, True, False, 10)
    args = parser.parse_args(["--enable-perf-monitor", "--no-perf-memory-tracking", "--perf-log-interval", "3"])
    assert (args.enable_perf_monitor, args.perf_memory_tracking, args.perf_log_interval) == (True, False, 3)
    with pytest.raises(SystemExit):
        parser.parse_args(["--perf-log-interval", "0"])
    assert (args.perf_log_format, args.perf_model_type) == ("both", "auto")
    assert megatron.add_perf_monitor_args is megatron.add_arguments


def test_nothing_starts_without_the_flag(tmp_path):
    args = megatron.add_arguments(argparse.ArgumentParser()).parse_args(["--perf-log-dir", str(tmp_path / "run")])
    assert megatron.initialize_perf_monitor(args) is None
    megatron.perf_monitor_start_iteration(1)
    megatron.perf_monitor_end_iteration(1)
    assert not (tmp_path / "run").exists()


def test_an_unknown_model_is_monitored_without_flops(tmp_path, capsys):
    parser = megatron.add_arguments(argparse.ArgumentParser())
    flags = ["--enable-perf-monitor", "--perf-log-dir", str(tmp_path)]
    monitor = megatron.initialize_perf_monitor(parser.parse_args(flags, arguments({"retro_add_retriever": True})), device="h100")
    megatron.perf_monitor_start_iteration(1)
    megatron.perf_monitor_end_iteration(1)
    megatron.perf_monitor_end_training()
    assert "no model for Megatron's retro_add_retriever; FLOPs and MFU are empty" in capsys.readouterr().err
    (row,) = records(tmp_path)
    assert monitor is not None and row["tokens"] == 32
    assert (row["model_flops"], row["mfu"]) == (None, None)


def test_the_hooks_record_a_ranks_share_of_the_global_batch(tmp_path):
    parser = megatron.add_arguments(argparse.ArgumentParser())
    flags = ["--enable-perf-monitor", "--perf-log-dir", str(tmp_path), "--perf-log-interval", "2"]
    layout = {"world_size": 8, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "context_parallel_size": 1}
    args = parser.parse_args(flags, arguments({**GQA, **layout, "global_batch_size": 16, "bf16": True}))
    monitor = megatron.initialize_perf_monitor(args, device="h100")
    assert megatron.get_perf_monitor() is monitor
    for iteration in range(1, 5):
        megatron.perf_monitor_start_iteration(iteration)
        megatron.perf_monitor_end_iteration(iteration, loss=0.5)
    megatron.perf_monitor_end_training()
    rows = records(tmp_path)
    expected = flopmeter.estimate(megatron.model_config(args), seq_len=32, batch=16)["flops"]["model"]
    assert [(row["step"], row["model_flops"], row["devices"], row["samples"]) for row in rows] == [
        (i, expected // 8, 1, 8) for i in range(1, 5)
    ]
    assert rows[0]["mfu"] == pytest.approx(expected / rows[0]["step_seconds"] / (8 * monitor.peaks.peaks["bf16"]))
    summary = json.loads(next(tmp_path.glob("perf_summary_*.json")).read_text())
    assert len(summary["iteration_logs"]) == 2
