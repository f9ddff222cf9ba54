# SPDX-License-Identifier: Apache-2.0
"""The model families of the catalog as transformers classes.

One row per family: its model class and a generator of small random configurations. Rows contain no formulas; the tests
compare with the real model. Text rows take token IDs only. Rows with a vision tower are in `families_vision.py`.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Callable

import torch
import transformers as hf


@dataclass(frozen=True)
class Family:
    """A model family: its class, a configuration generator, and a batch generator."""

    name: str
    model: type
    config: Callable[[Random], hf.PreTrainedConfig]
    inputs: Callable[[hf.PreTrainedConfig, int, int], dict] = field(default=None)
    arguments: Callable[[hf.PreTrainedConfig, dict], list] = field(default=lambda config, inputs: [])
    attention: tuple = ("eager", "sdpa")
    rename: Callable[[hf.PreTrainedConfig, str], str] = field(default=lambda config, module: module)
    by_kernel: tuple = ()  # components whose FLOPs depend on the kernel: only their presence is checked

    def batch(self, config, sequences, length):
        """Token IDs (and images for a vision row) of one batch; deterministic."""
        if self.inputs:
            return self.inputs(config, sequences, length)
        return token_ids(config.vocab_size, sequences, length)


def token_ids(vocabulary, sequences, length):
    """Random token IDs without padding or mask."""
    generator = torch.Generator().manual_seed(sequences * 1000 + length)
    ids = torch.randint(3, vocabulary, (sequences, length), generator=generator)
    return {"input_ids": ids, "labels": ids}


def maybe(rng, share=0.5):
    """True for about `share` of the draws."""
    return rng.random() < share


def sizes(rng, *, grouped=True):
    """Dimensions that most decoder configurations share."""
    kv = rng.choice([1, 2, 3])
    heads = kv * rng.choice([1, 2, 3]) if grouped else rng.choice([1, 2, 3, 4])
    return {
        "hidden_size": heads * rng.choice([8, 12, 16, 20]),
        "intermediate_size": rng.choice([24, 40, 64, 96]),
        "num_hidden_layers": rng.randint(1, 6),
        "num_attention_heads": heads,
        "num_key_value_heads": kv if grouped else heads,
        "vocab_size": rng.choice([50, 97, 128, 301]),
        "tie_word_embeddings": maybe(rng),
        "max_position_embeddings": 64,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def without(row, *names):
    """The row without some keys, which take the defaults of the configuration."""
    return {key: value for key, value in row.items() if key not in names}


def ids_only(row):
    """The row for a configuration class without key-value heads."""
    return without(row, "num_key_value_heads")


def window(rng, layers):
    """A sliding window smaller than the test sequences, and the layers that use it."""
    kinds = ["sliding_attention", "full_attention"]
    return {"sliding_window": rng.choice([4, 7]), "layer_types": [rng.choice(kinds) for _ in range(layers)]}


def gpt2(rng):
    row = sizes(rng, grouped=False)
    return hf.GPT2Config(
        n_embd=row["hidden_size"], n_layer=row["num_hidden_layers"], n_head=row["num_attention_heads"],
        n_inner=rng.choice([None, 40]), n_positions=rng.choice([32, 64]), vocab_size=row["vocab_size"],
        tie_word_embeddings=row["tie_word_embeddings"], reorder_and_upcast_attn=maybe(rng, 0.3),
        bos_token_id=None, eos_token_id=None)


def gptj(rng):
    row = sizes(rng, grouped=False)
    return hf.GPTJConfig(
        n_embd=row["hidden_size"], n_layer=row["num_hidden_layers"], n_head=row["num_attention_heads"],
        n_inner=rng.choice([None, 40]), n_positions=64, rotary_dim=rng.choice([4, 8]), vocab_size=row["vocab_size"],
        tie_word_embeddings=row["tie_word_embeddings"], bos_token_id=None, eos_token_id=None)


def gpt_neox(rng):
    return hf.GPTNeoXConfig(
        **ids_only(sizes(rng, grouped=False)), attention_bias=maybe(rng), use_parallel_residual=maybe(rng),
        rotary_pct=rng.choice([0.25, 0.5, 1.0]))


def opt(rng):
    row = sizes(rng, grouped=False)
    pre_norm = maybe(rng, 0.7)
    return hf.OPTConfig(
        **without(row, "num_key_value_heads", "intermediate_size"), ffn_dim=row["intermediate_size"],
        word_embed_proj_dim=rng.choice([None, row["hidden_size"] // 2]), do_layer_norm_before=pre_norm,
        enable_bias=maybe(rng, 0.7), layer_norm_elementwise_affine=maybe(rng, 0.7),
        _remove_final_layer_norm=maybe(rng, 0.3))


def bloom(rng):
    row = sizes(rng, grouped=False)
    return hf.BloomConfig(
        hidden_size=row["hidden_size"], n_layer=row["num_hidden_layers"], n_head=row["num_attention_heads"],
        vocab_size=row["vocab_size"], tie_word_embeddings=row["tie_word_embeddings"],
        bos_token_id=None, eos_token_id=None)


def mpt(rng):
    row = sizes(rng, grouped=False)
    return hf.MptConfig(
        d_model=row["hidden_size"], n_layers=row["num_hidden_layers"], n_heads=row["num_attention_heads"],
        expansion_ratio=rng.choice([2, 4]), vocab_size=row["vocab_size"], max_seq_len=64,
        tie_word_embeddings=row["tie_word_embeddings"])


def falcon(rng):
    row = sizes(rng)
    new, shared = maybe(rng, 0.4), maybe(rng)
    kv = row["num_key_value_heads"] if new or shared else row["num_attention_heads"]
    return hf.FalconConfig(
        **without(row, "num_key_value_heads", "intermediate_size"), num_kv_heads=kv, multi_query=shared,
        new_decoder_architecture=new, parallel_attn=new or maybe(rng), bias=maybe(rng), alibi=maybe(rng, 0.3),
        ffn_hidden_size=rng.choice([None, row["intermediate_size"]]),
        num_ln_in_parallel_attn=rng.choice([None, 1, 2]) if new else None)


def llama(rng):
    row = sizes(rng)
    return hf.LlamaConfig(**row, head_dim=rng.choice([None, 8, 24]), attention_bias=maybe(rng), mlp_bias=maybe(rng))


def mistral(rng):
    return hf.MistralConfig(**sizes(rng), head_dim=rng.choice([None, 8, 24]), sliding_window=rng.choice([None, 5]))


def qwen2(rng):
    row = sizes(rng)
    return hf.Qwen2Config(**row, use_sliding_window=maybe(rng), sliding_window=5, max_window_layers=rng.randint(0, 4))


def qwen3(rng):
    row = sizes(rng)
    return hf.Qwen3Config(
        **row, head_dim=rng.choice([8, 24]), attention_bias=maybe(rng), use_sliding_window=maybe(rng),
        sliding_window=5, max_window_layers=rng.randint(0, 4))


def gemma(rng):
    return hf.GemmaConfig(**sizes(rng), head_dim=rng.choice([8, 24]), attention_bias=maybe(rng))


def gemma2(rng):
    row = sizes(rng)
    return hf.Gemma2Config(
        **row, head_dim=rng.choice([8, 24]), attention_bias=maybe(rng), sliding_window=rng.choice([4, 7]))


def gemma3(rng):
    row = sizes(rng)
    return hf.Gemma3TextConfig(
        **row, head_dim=rng.choice([8, 24]), attention_bias=maybe(rng), **window(rng, row["num_hidden_layers"]))


def phi(rng):
    return hf.PhiConfig(**sizes(rng), qk_layernorm=maybe(rng))


def phi3(rng):
    return hf.Phi3Config(**sizes(rng), sliding_window=rng.choice([None, 5]))


def glm(rng):
    return hf.GlmConfig(**sizes(rng), head_dim=rng.choice([8, 24]), attention_bias=maybe(rng))


def glm4(rng):
    return hf.Glm4Config(**sizes(rng), head_dim=rng.choice([8, 24]), attention_bias=maybe(rng))


DENSE = [
    Family("gpt2", hf.GPT2LMHeadModel, gpt2),
    Family("gptj", hf.GPTJForCausalLM, gptj, attention=("eager",)),
    Family("gpt_neox", hf.GPTNeoXForCausalLM, gpt_neox),
    Family("opt", hf.OPTForCausalLM, opt),
    Family("bloom", hf.BloomForCausalLM, bloom, attention=("eager",)),
    Family("mpt", hf.MptForCausalLM, mpt, attention=("eager",)),
    Family("falcon", hf.FalconForCausalLM, falcon),
    Family("llama", hf.LlamaForCausalLM, llama),
    Family("mistral", hf.MistralForCausalLM, mistral),
    Family("qwen2", hf.Qwen2ForCausalLM, qwen2),
    Family("qwen3", hf.Qwen3ForCausalLM, qwen3),
    Family("gemma", hf.GemmaForCausalLM, gemma),
    Family("gemma2", hf.Gemma2ForCausalLM, gemma2, attention=("eager",)),
    Family("gemma3_text", hf.Gemma3ForCausalLM, gemma3),
    Family("phi", hf.PhiForCausalLM, phi),
    Family("phi3", hf.Phi3ForCausalLM, phi3),
    Family("glm", hf.GlmForCausalLM, glm),
    Family("glm4", hf.Glm4ForCausalLM, glm4),
]
