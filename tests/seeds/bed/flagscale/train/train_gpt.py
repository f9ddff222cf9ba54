# SPDX-License-Identifier: Apache-2.0
"""A small program with Megatron's arguments that trains a transformer for real and calls the monitor's hooks."""

import argparse

import torch
from flopmeter import megatron


def parse():
    parser = argparse.ArgumentParser()
    defaults = {"num_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "seq_length": 16, "train_iters": 20}
    for name, value in {**defaults, "global_batch_size": 4, "padded_vocab_size": 64}.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--swiglu", action="store_true")
    parser.add_argument("--data-path")
    parser.add_argument("--tensorboard", action="store_true")
    parser.add_argument("--tensorboard-dir")
    return megatron.add_arguments(parser).parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    table = torch.nn.Embedding(args.padded_vocab_size, args.hidden_size)
    layer = torch.nn.TransformerEncoderLayer(args.hidden_size, args.num_attention_heads, batch_first=True)
    model = torch.nn.Sequential(table, torch.nn.TransformerEncoder(layer, args.num_layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    megatron.initialize_perf_monitor(args)
    for iteration in range(1, args.train_iters + 1):
        megatron.perf_monitor_start_iteration(iteration)
        ids = torch.randint(args.padded_vocab_size, (args.global_batch_size, args.seq_length))
        loss = (model(ids) @ table.weight.T).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(loss, ids.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        megatron.perf_monitor_end_iteration(iteration, loss=loss.item())
    megatron.perf_monitor_end_training()


if __name__ == "__main__":
    main()
