# SPDX-License-Identifier: Apache-2.0
"""Configuration of a tiny LLaMA."""

LLAMA = {
    "model_type": "llama",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "vocab_size": 50,
}
