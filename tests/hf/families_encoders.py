# SPDX-License-Identifier: Apache-2.0
"""Encoders with the heads of their classes, and decoders with a head for labels."""

import re

import torch
import transformers as hf

from families import Family, gpt2, llama, maybe, sizes, token_ids, without


def encoder(rng, config):
    """A small encoder configuration of class `config` with two to five labels."""
    row = without(sizes(rng, grouped=False), "num_key_value_heads", "pad_token_id")
    return config(**row, type_vocab_size=rng.choice([1, 2, 3]), id2label=dict(enumerate("abcde"[: rng.randint(2, 5)])))


def masked_batch(config, sequences, length):
    """Token IDs and labels for all of them; the number of masked tokens does not change the FLOPs."""
    return token_ids(config.vocab_size, sequences, length)


def pair_batch(config, sequences, length):
    """Masked language modeling and next-sentence prediction."""
    return {**masked_batch(config, sequences, length), "next_sentence_label": torch.zeros(sequences, dtype=torch.long)}


def sequence_batch(config, sequences, length):
    """One label per sequence."""
    return {**masked_batch(config, sequences, length), "labels": torch.zeros(sequences, dtype=torch.long)}


def token_batch(config, sequences, length):
    """One label per token."""
    return {**masked_batch(config, sequences, length), "labels": torch.zeros(sequences, length, dtype=torch.long)}


def answer_batch(config, sequences, length):
    """First and last token of each answer."""
    ids = masked_batch(config, sequences, length)["input_ids"]
    return {"input_ids": ids, "start_positions": ids[:, 0] * 0, "end_positions": ids[:, 0] * 0 + 1}


def part_names(config, module):
    """Renames the components to the names of other families."""
    module = re.sub(r"\.attention\.self$", ".attention", module)
    module = re.sub(r"\.(intermediate|output)\.dense$", r".mlp.\1", module) if ".attention." not in module else module
    return re.sub(r"^(cls|lm_head|classifier|score|qa_outputs|bert\.pooler)\b.*", "lm_head", module)


HEADS = {
    "MaskedLM": masked_batch, "PreTraining": pair_batch, "SequenceClassification": sequence_batch,
    "TokenClassification": token_batch, "QuestionAnswering": answer_batch,
}


def row(name, prefix, config, head):
    """A model with one head; its configuration names the class, as `save_pretrained` does."""
    model = getattr(hf, f"{prefix}For{head}")

    def draw(rng):
        drawn = encoder(rng, config)
        if head == "QuestionAnswering":
            drawn.num_labels = 2  # start and end of an answer
        if head != "MaskedLM" or maybe(rng):
            drawn.architectures = [model.__name__]
        return drawn

    return Family(f"{name}_{head}", model, draw, HEADS[head], rename=part_names)


def labeled(draw, model, head):
    """A decoder whose class has a head for labels in place of words."""

    def labeled_draw(rng):
        drawn = draw(rng)
        drawn.architectures, drawn.pad_token_id = [model.__name__], 0
        labels = 2 if head == "QuestionAnswering" else rng.randint(2, 5)
        drawn.id2label = dict(enumerate("abcde"[:labels]))
        return drawn

    return Family(model.__name__, model, labeled_draw, HEADS[head], rename=part_names)


ENCODERS = [
    labeled(llama, hf.LlamaForSequenceClassification, "SequenceClassification"),
    labeled(llama, hf.LlamaForTokenClassification, "TokenClassification"),
    labeled(llama, hf.LlamaForQuestionAnswering, "QuestionAnswering"),
    labeled(gpt2, hf.GPT2ForSequenceClassification, "SequenceClassification"),
    *(row("bert", "Bert", hf.BertConfig, head) for head in HEADS),
    *(row("roberta", "Roberta", hf.RobertaConfig, head) for head in HEADS if head != "PreTraining"),
    row("xlm_roberta", "XLMRoberta", hf.XLMRobertaConfig, "MaskedLM"),
]
