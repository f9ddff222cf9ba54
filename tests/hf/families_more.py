# SPDX-License-Identifier: Apache-2.0
"""More dense families, similar to LLaMA or GPT with different norms, biases, or windows."""

import transformers as hf

from families import Family, maybe, sizes, window


def granite(rng):
    return hf.GraniteConfig(**sizes(rng), attention_bias=maybe(rng), mlp_bias=maybe(rng))


def olmo(rng):
    return hf.OlmoConfig(**sizes(rng), attention_bias=maybe(rng))


def olmo2(rng):
    return hf.Olmo2Config(**sizes(rng), attention_bias=maybe(rng))


def olmo3(rng):
    row = sizes(rng)
    return hf.Olmo3Config(**row, attention_bias=maybe(rng), **window(rng, row["num_hidden_layers"]))


def stablelm(rng):
    return hf.StableLmConfig(
        **sizes(rng), use_qkv_bias=maybe(rng), qk_layernorm=maybe(rng), use_parallel_residual=maybe(rng),
        partial_rotary_factor=0.5)


def cohere(rng):
    return hf.CohereConfig(**sizes(rng), attention_bias=maybe(rng), use_qk_norm=maybe(rng))


def cohere2(rng):
    return hf.Cohere2Config(
        **sizes(rng), attention_bias=maybe(rng), head_dim=rng.choice([8, 24]), sliding_window=rng.choice([4, 7]))


def smollm3(rng):
    return hf.SmolLM3Config(
        **sizes(rng), attention_bias=maybe(rng), mlp_bias=maybe(rng), use_sliding_window=maybe(rng),
        sliding_window=rng.choice([None, 5]), no_rope_layer_interval=rng.choice([2, 4]))


def nemotron(rng):
    return hf.NemotronConfig(
        **sizes(rng), head_dim=rng.choice([None, 8, 24]), attention_bias=maybe(rng), mlp_bias=maybe(rng))


def starcoder2(rng):
    return hf.Starcoder2Config(**sizes(rng), use_bias=maybe(rng), sliding_window=rng.choice([None, 5]))


def ernie4_5(rng):
    return hf.Ernie4_5Config(**sizes(rng), head_dim=rng.choice([None, 8, 24]), use_bias=maybe(rng))


def gpt_bigcode(rng):
    row = sizes(rng, grouped=False)
    return hf.GPTBigCodeConfig(
        vocab_size=row["vocab_size"], n_positions=64, n_embd=row["hidden_size"], n_layer=row["num_hidden_layers"],
        n_head=row["num_attention_heads"], n_inner=rng.choice([None, 40]), multi_query=maybe(rng),
        bos_token_id=None, eos_token_id=None)


def seed_oss(rng):
    return hf.SeedOssConfig(
        **sizes(rng), head_dim=rng.choice([None, 8, 24]), attention_bias=maybe(rng), attention_out_bias=maybe(rng),
        mlp_bias=maybe(rng))


def gpt_neo(rng):
    row = sizes(rng, grouped=False)
    kinds = [[[rng.choice(["global", "local"])], 1] for _ in range(row["num_hidden_layers"])]
    return hf.GPTNeoConfig(
        hidden_size=row["hidden_size"], num_layers=row["num_hidden_layers"], num_heads=row["num_attention_heads"],
        attention_types=kinds, intermediate_size=rng.choice([None, 40]), window_size=rng.choice([4, 7]),
        vocab_size=row["vocab_size"], max_position_embeddings=64, tie_word_embeddings=row["tie_word_embeddings"],
        bos_token_id=None, eos_token_id=None)


def exaone4(rng):
    row = sizes(rng)
    return hf.Exaone4Config(**row, **window(rng, row["num_hidden_layers"]), sliding_window_pattern=4)


def hunyuan_v1_dense(rng):
    return hf.HunYuanDenseV1Config(**sizes(rng), attention_bias=maybe(rng), head_dim=rng.choice([8, 24]))


def ministral3(rng):
    return hf.Ministral3Config(**sizes(rng), head_dim=rng.choice([8, 24]), sliding_window=rng.choice([None, 5]))


def arcee(rng):
    return hf.ArceeConfig(**sizes(rng), head_dim=rng.choice([None, 8, 24]), attention_bias=maybe(rng), mlp_bias=maybe(rng))


def helium(rng):
    row = sizes(rng)
    width = row["hidden_size"] // row["num_attention_heads"]  # the class has no other
    return hf.HeliumConfig(**row, head_dim=width, attention_bias=maybe(rng), mlp_bias=maybe(rng))


def jais2(rng):
    return hf.Jais2Config(
        **sizes(rng), head_dim=rng.choice([None, 8, 24]), attention_bias=maybe(rng), mlp_bias=maybe(rng))


def apertus(rng):
    return hf.ApertusConfig(**sizes(rng), attention_bias=maybe(rng), hidden_act=rng.choice(["xielu", "relu2"]))


MORE = [
    Family("granite", hf.GraniteForCausalLM, granite),
    Family("olmo", hf.OlmoForCausalLM, olmo),
    Family("olmo2", hf.Olmo2ForCausalLM, olmo2),
    Family("olmo3", hf.Olmo3ForCausalLM, olmo3),
    Family("stablelm", hf.StableLmForCausalLM, stablelm),
    Family("cohere", hf.CohereForCausalLM, cohere),
    Family("cohere2", hf.Cohere2ForCausalLM, cohere2),
    Family("smollm3", hf.SmolLM3ForCausalLM, smollm3),
    Family("nemotron", hf.NemotronForCausalLM, nemotron),
    Family("starcoder2", hf.Starcoder2ForCausalLM, starcoder2),
    Family("ernie4_5", hf.Ernie4_5ForCausalLM, ernie4_5),
    Family("gpt_bigcode", hf.GPTBigCodeForCausalLM, gpt_bigcode),
    Family("seed_oss", hf.SeedOssForCausalLM, seed_oss),
    Family("gpt_neo", hf.GPTNeoForCausalLM, gpt_neo, attention=("eager",)),
    Family("exaone4", hf.Exaone4ForCausalLM, exaone4),
    Family("hunyuan_v1_dense", hf.HunYuanDenseV1ForCausalLM, hunyuan_v1_dense),
    Family("ministral3", hf.Ministral3ForCausalLM, ministral3),
    Family("arcee", hf.ArceeForCausalLM, arcee),
    Family("helium", hf.HeliumForCausalLM, helium),
    Family("jais2", hf.Jais2ForCausalLM, jais2),
    Family("apertus", hf.ApertusForCausalLM, apertus),
]
