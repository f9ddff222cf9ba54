# SPDX-License-Identifier: Apache-2.0
"""A stand-in for Megatron's pretrain_gpt.py: its argument names, types and derived values, and its loop with our hooks."""

import argparse
import os

from flopmeter.integrations import megatron

INTEGERS = (
    "num-layers hidden-size ffn-hidden-size num-attention-heads kv-channels num-query-groups seq-length "
    "max-position-embeddings micro-batch-size global-batch-size train-iters make-vocab-size-divisible-by vocab-size "
    "num-experts moe-router-topk moe-ffn-hidden-size moe-shared-expert-intermediate-size "
    "q-lora-rank kv-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim mtp-num-layers "
    "tensor-model-parallel-size pipeline-model-parallel-size context-parallel-size expert-model-parallel-size"
).split()
SWITCHES = "swiglu group-query-attention multi-latent-attention untie-embeddings-and-output-weights bf16".split()
DEFAULTS = {"micro_batch_size": 1, "train_iters": 3, "make_vocab_size_divisible_by": 128}


def layer_pattern(text):
    """Megatron's --moe-layer-freq: a number, or a list such as "([0]*1+[1]*3)"."""
    return eval(text, {"__builtins__": {}})


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in INTEGERS:
        parser.add_argument(f"--{name}", type=int)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--moe-layer-freq", type=layer_pattern, default=1)
    parser.add_argument("--recompute-granularity", choices=("full", "selective"))
    parser.set_defaults(**DEFAULTS)
    args = megatron.add_arguments(parser).parse_args()
    args.rank = int(os.environ.get("RANK", "0"))
    args.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    tensor = args.tensor_model_parallel_size or 1
    multiple = args.make_vocab_size_divisible_by * tensor
    args.padded_vocab_size = -(-args.vocab_size // multiple) * multiple
    parts = tensor * (args.pipeline_model_parallel_size or 1) * (args.context_parallel_size or 1)
    args.data_parallel_size = args.world_size // parts
    return args


if __name__ == "__main__":
    args = parse()
    megatron.initialize_perf_monitor(args, device="h100", convention="megatron")
    for iteration in range(1, args.train_iters + 1):
        megatron.perf_monitor_start_iteration(iteration)
        sum(i * i for i in range(2000))
        megatron.perf_monitor_end_iteration(iteration, loss=1.0 / iteration)
    megatron.perf_monitor_end_training()
