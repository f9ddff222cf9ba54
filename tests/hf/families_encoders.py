# SPDX-License-Identifier: Apache-2.0
"""Encoders: every token sees all others, and the head is what the class says: masked words or labels."""

import re

import torch
import transformers as hf

from families import Family, maybe, sizes, token_ids, without


def encoder(rng, config):
    """A small encoder's configuration of the class `config`, with two to five labels."""
    row = without(sizes(rng, grouped=False), "num_key_value_heads", "pad_token_id")
    return config(**row, type_vocab_size=rng.choice([1, 2, 3]), id2label=dict(enumerate("abcde"[: rng.randint(2, 5)])))


def masked_batch(config, sequences, length):
    """Words and labels of all of them: how many are masked changes no FLOP."""
    return token_ids(config.vocab_size, sequences, length)


def pair_batch(config, sequences, length):
    """Masked words, and whether the second sentence follows the first."""
    return {**masked_batch(config, sequences, length), "next_sentence_label": torch.zeros(sequences, dtype=torch.long)}


def sequence_batch(config, sequences, length):
    """One label a sequence."""
    return {**masked_batch(config, sequences, length), "labels": torch.zeros(sequences, dtype=torch.long)}


def token_batch(config, sequences, length):
    """One label a token."""
    return {**masked_batch(config, sequences, length), "labels": torch.zeros(sequences, length, dtype=torch.long)}


def answer_batch(config, sequences, length):
    """The first and last token of each answer."""
    ids = masked_batch(config, sequences, length)["input_ids"]
    return {"input_ids": ids, "start_positions": ids[:, 0] * 0, "end_positions": ids[:, 0] * 0 + 1}


def part_names(config, module):
    """The parts under the names that other families have for them."""
    module = re.sub(r"\.attention\.self$", ".attention", module)
    module = re.sub(r"\.(intermediate|output)\.dense$", r".mlp.\1", module) if ".attention." not in module else module
    return re.sub(r"^(cls|lm_head|classifier|qa_outputs|bert\.pooler)\b.*", "lm_head", module)


HEADS = {
    "MaskedLM": masked_batch, "PreTraining": pair_batch, "SequenceClassification": sequence_batch,
    "TokenClassification": token_batch, "QuestionAnswering": answer_batch,
}


def row(name, prefix, config, head):
    """A model with one head; its file names the class, as `save_pretrained` of a model writes it."""
    model = getattr(hf, f"{prefix}For{head}")

    def draw(rng):
        drawn = encoder(rng, config)
        if head == "QuestionAnswering":
            drawn.num_labels = 2  # the start and the end of an answer
        if head != "MaskedLM" or maybe(rng):
            drawn.architectures = [model.__name__]
        return drawn

    return Family(f"{name}_{head}", model, draw, HEADS[head], rename=part_names)


ENCODERS = [
    *(row("bert", "Bert", hf.BertConfig, head) for head in HEADS),
    *(row("roberta", "Roberta", hf.RobertaConfig, head) for head in HEADS if head != "PreTraining"),
    row("xlm_roberta", "XLMRoberta", hf.XLMRobertaConfig, "MaskedLM"),
]
