# SPDX-License-Identifier: Apache-2.0
"""Model FLOPs of padded and masked batches: only real tokens and the pairs of their masks, checked by hand."""

import pytest
import torch

import flopmeter
from run_records import records

transformers = pytest.importorskip("transformers")

HIDDEN, FFN, LAYERS, HEADS, VOCAB = 32, 48, 2, 4, 64


def model(**more):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**more, hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=LAYERS, vocab_size=VOCAB,
                                 num_attention_heads=HEADS, num_key_value_heads=HEADS, max_position_embeddings=64))


def by_hand(lengths):
    """Three passes of 2 FLOPs per multiply-add: matmuls over real tokens, attention over causal pairs."""
    matmuls = LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * FFN) + HIDDEN * VOCAB
    tokens = sum(lengths)
    pairs = sum(length * (length + 1) // 2 for length in lengths)
    return 3 * (2 * matmuls * tokens + LAYERS * 2 * 2 * HIDDEN * pairs)


def train(directory, batches, **more):
    net = model(**more)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    monitor = flopmeter.Monitor(directory, model=net, peak_tflops=1, console=False)
    for lengths in monitor.wrap(batches):
        longest = max(lengths)
        tokens = torch.randint(0, VOCAB, (len(lengths), longest))
        mask = torch.tensor([[1] * length + [0] * (longest - length) for length in lengths])
        net(input_ids=tokens, attention_mask=mask, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    monitor.finish()
    return [row for row in records(directory) if row["tag"] == "train"]


def test_padding_and_masked_pairs_are_not_model_flops(tmp_path):
    batches = [[16, 9, 4], [12, 12, 3], [16, 9, 4]]
    rows = train(tmp_path, batches)
    assert [row["model_flops"] for row in rows] == [by_hand(lengths) for lengths in batches]
    assert {row["flops_source"] for row in rows} == {"counted+catalog"}
    assert all(row["hardware_flops"] > row["model_flops"] for row in rows)


def test_a_batch_without_padding_is_counted(tmp_path):
    rows = train(tmp_path, [[16, 16], [16, 16]])
    assert {row["flops_source"] for row in rows} == {"counted"}
    assert [row["model_flops"] for row in rows] == [by_hand([16, 16])] * 2


def test_pairs_that_eager_attention_masks_are_not_model_flops(tmp_path):
    rows = train(tmp_path, [[16, 16], [16, 16]], attn_implementation="eager")
    assert [row["model_flops"] for row in rows] == [by_hand([16, 16])] * 2
    assert {(row["flops_source"], row["attention_pairs"]) for row in rows} == {("counted+catalog", "exact")}
    assert all(row["hardware_flops"] > row["model_flops"] for row in rows)
