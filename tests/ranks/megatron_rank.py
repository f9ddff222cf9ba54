# SPDX-License-Identifier: Apache-2.0
"""One rank (RANK of 8) of a loop with the Megatron hooks: two replicas, tensor x pipeline x context = 2 x 2 x 1.

megatron_rank.py DIRECTORY: uses the arguments that Megatron's parser and initialization produce.
"""

import argparse
import os
import sys
import time

from flopmeter.integrations import megatron

WORLD, GLOBAL_BATCH, LENGTH, STEPS = 8, 6, 47, 4
ARGUMENTS = {
    "world_size": WORLD,
    "data_parallel_size": 2,
    "tensor_model_parallel_size": 2,
    "pipeline_model_parallel_size": 2,
    "global_batch_size": GLOBAL_BATCH,
    "micro_batch_size": 1,
    "seq_length": LENGTH,
    "max_position_embeddings": LENGTH,
    "num_layers": 3,
    "hidden_size": 21,
    "num_attention_heads": 3,
    "ffn_hidden_size": 39,
    "padded_vocab_size": 129,
}


def arguments(directory, rank):
    flags = ["--enable-perf-monitor", "--perf-log-dir", str(directory), "--perf-log-interval", str(STEPS), "--no-perf-console-output"]
    parsed = megatron.add_arguments(argparse.ArgumentParser()).parse_args(flags)
    return argparse.Namespace(**vars(parsed), **ARGUMENTS, rank=rank)


if __name__ == "__main__":
    megatron.initialize_perf_monitor(arguments(sys.argv[1], int(os.environ["RANK"])), peak_tflops=1)
    for iteration in range(1, STEPS + 1):
        megatron.perf_monitor_start_iteration(iteration)
        time.sleep(0.02)
        megatron.perf_monitor_end_iteration(iteration)
    megatron.perf_monitor_end_training()
