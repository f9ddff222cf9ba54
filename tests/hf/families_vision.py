# SPDX-License-Identifier: Apache-2.0
"""Families with a vision tower: keys of the text model and the tower, and images for the batch."""

import torch
import transformers as hf

from families import Family, maybe, sizes, token_ids, without
from families_hybrid import gated_experts, qwen3_5_sizes
from families_moe import experts, llama4

IMAGE = 2  # ID of a visual token; other IDs start at 3
GRIDS = [[(1, 4, 4)], [(1, 4, 8)], [(1, 8, 6)], [(2, 4, 6)], [(1, 4, 4), (1, 6, 4)]]


def text_sizes(rng):
    """Dimensions of the text model and section sizes of its three-part rotary embedding."""
    row = without(sizes(rng), "tie_word_embeddings")
    half = row["hidden_size"] // row["num_attention_heads"] // 2
    sections = [half - 2 * (half // 3), half // 3, half // 3]
    return {**row, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}}


def tower(rng):
    """Common keys of the vision towers of Qwen2-VL and Qwen2.5-VL."""
    return {
        "depth": rng.randint(1, 4), "num_heads": rng.choice([1, 2, 3]), "in_channels": rng.choice([1, 3]),
        "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": rng.choice([1, 2]),
    }


def special_tokens():
    """IDs of the image markers, below the other IDs because the vocabularies are tiny."""
    return {"image_token_id": IMAGE, "video_token_id": 1, "vision_start_token_id": 0, "vision_end_token_id": 0}


def qwen2_vl(rng):
    text, vision = text_sizes(rng), tower(rng)
    vision.update(embed_dim=vision["num_heads"] * 8, hidden_size=text["hidden_size"], mlp_ratio=rng.choice([2, 4]))
    return hf.Qwen2VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=maybe(rng), **special_tokens())


def qwen2_5_vl(rng):
    text, vision = text_sizes(rng), tower(rng)
    full = sorted(rng.sample(range(vision["depth"]), rng.randint(0, vision["depth"])))
    vision.update(
        hidden_size=vision["num_heads"] * 8, out_hidden_size=text["hidden_size"], intermediate_size=rng.choice([20, 36]),
        window_size=16, fullatt_block_indexes=full)
    return hf.Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, tie_word_embeddings=maybe(rng), **special_tokens())


def qwen3_tower(rng, text):
    """Qwen3-VL's tower; at most as many deepstack mergers as the text model has layers."""
    vision = tower(rng)
    stacked = rng.randint(0, min(vision["depth"], text["num_hidden_layers"]))
    vision.update(
        hidden_size=vision["num_heads"] * 8, out_hidden_size=text["hidden_size"], intermediate_size=rng.choice([20, 36]),
        num_position_embeddings=rng.choice([16, 49]),
        deepstack_visual_indexes=sorted(rng.sample(range(vision["depth"]), stacked)))
    return vision


def qwen3_text(rng):
    """Dimensions of the text model with an independent head size."""
    row = text_sizes(rng)
    return {**row, "head_dim": row["hidden_size"] // row["num_attention_heads"], "attention_bias": maybe(rng)}


def qwen3_vl(rng):
    text = qwen3_text(rng)
    return hf.Qwen3VLConfig(
        text_config=text, vision_config=qwen3_tower(rng, text), tie_word_embeddings=maybe(rng), **special_tokens())


def qwen3_vl_moe(rng):
    text = {
        **qwen3_text(rng), **experts(rng, "num_experts"), "moe_intermediate_size": rng.choice([16, 20]),
        "decoder_sparse_step": rng.choice([1, 2]), "tie_word_embeddings": maybe(rng)}
    return hf.Qwen3VLMoeConfig(
        text_config=text, vision_config=qwen3_tower(rng, text), tie_word_embeddings=maybe(rng), **special_tokens())


def qwen3_5_words(rng, *left_out):
    """A text model with both kinds of layers; its attention and the tower's determine the kernel."""
    text = qwen3_5_sizes(rng, "tie_word_embeddings", *left_out)
    kinds = [*text["layer_types"], "full_attention"]
    return {**text, "layer_types": kinds, "num_hidden_layers": len(kinds)}


def qwen3_5(rng):
    text = qwen3_5_words(rng)
    return hf.Qwen3_5Config(
        text_config=text, vision_config=without(qwen3_tower(rng, text), "deepstack_visual_indexes"),
        tie_word_embeddings=maybe(rng), **special_tokens())


def qwen3_5_moe(rng):
    text = {**qwen3_5_words(rng, "intermediate_size"), **gated_experts(rng)}
    return hf.Qwen3_5MoeConfig(
        text_config=text, vision_config=without(qwen3_tower(rng, text), "deepstack_visual_indexes"),
        tie_word_embeddings=maybe(rng), **special_tokens())


def llama4_vision(rng):
    heads, patch = rng.choice([1, 2, 3]), rng.choice([4, 8])
    projected = rng.choice([16, 24])
    # Pixel shuffle by one half merges four patches, so the adapter reads four widths.
    vision = hf.Llama4VisionConfig(
        hidden_size=heads * 8, num_attention_heads=heads, num_hidden_layers=rng.randint(1, 3), image_size=16,
        patch_size=patch, intermediate_size=heads * 32, projector_input_dim=projected, projector_output_dim=projected,
        vision_output_dim=projected)
    text = hf.Llama4TextConfig(**without(llama4(rng), "tie_word_embeddings"))
    return hf.Llama4Config(text_config=text, vision_config=vision, image_token_index=IMAGE)


def llama4_batch(config, sequences, length):
    """One image per sequence, with a quarter as many visual tokens as patches."""
    vision = config.vision_config
    visual = (vision.image_size // vision.patch_size) ** 2 // 4
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [visual])
    shape = (sequences, 3, vision.image_size, vision.image_size)
    return {**batch, "pixel_values": torch.randn(shape, generator=torch.Generator().manual_seed(0))}


def llava(rng):
    row = sizes(rng)
    text = hf.LlamaConfig(**without(row, "tie_word_embeddings"))
    heads, patch = rng.choice([1, 2, 3]), rng.choice([4, 8])
    layers = rng.randint(2, 4)
    vision = hf.CLIPVisionConfig(
        hidden_size=heads * 8, num_attention_heads=heads, num_hidden_layers=layers, intermediate_size=24,
        image_size=16, patch_size=patch, projection_dim=16)
    return hf.LlavaConfig(
        text_config=text, vision_config=vision, image_token_index=IMAGE, tie_word_embeddings=row["tie_word_embeddings"],
        image_seq_length=(16 // patch) ** 2, multimodal_projector_bias=maybe(rng),
        vision_feature_layer=rng.choice([-1, -2]), vision_feature_select_strategy=rng.choice(["default", "full"]))


def tiled(rng, config, vision):
    """A model that splits images into tiles; two tiles plus the full image."""
    row = sizes(rng)
    kind, more = rng.choice([(hf.LlamaConfig, {}), (hf.Qwen2Config, {}), (hf.MistralConfig, {"sliding_window": None})])
    return config(
        text_config=kind(**without(row, "tie_word_embeddings"), **more), vision_config=vision, image_token_index=IMAGE,
        tie_word_embeddings=row["tie_word_embeddings"], multimodal_projector_bias=maybe(rng),
        vision_feature_layer=rng.choice([-1, -2]), image_grid_pinpoints=[rng.choice([[16, 32], [32, 16]])])


def small_tower(rng):
    """Sizes of a CLIP or SigLIP tower with four patches."""
    heads = rng.choice([1, 2, 3])
    return {
        "hidden_size": heads * 8, "num_attention_heads": heads, "num_hidden_layers": rng.randint(2, 4),
        "intermediate_size": 24, "image_size": 16, "patch_size": 8,
    }


def llava_next(rng):
    return tiled(rng, hf.LlavaNextConfig, hf.CLIPVisionConfig(**small_tower(rng), projection_dim=16))


def llava_onevision(rng):
    return tiled(rng, hf.LlavaOnevisionConfig, hf.SiglipVisionConfig(**small_tower(rng), vision_use_head=False))


def tiled_batch(config, sequences, length):
    """One image per sequence with the size of two tiles: two by two patches and a newline token per row."""
    rows, columns = (side // 8 for side in config.image_grid_pinpoints[0])
    visual = 4 + rows * (columns + 1)
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [visual])
    pixels = torch.randn((sequences, 3, 3, 16, 16), generator=torch.Generator().manual_seed(0))
    return {**batch, "pixel_values": pixels, "image_sizes": torch.tensor(config.image_grid_pinpoints * sequences)}


def tiled_arguments(config, inputs):
    """Three images per sequence for the tower."""
    return ["--image-grid-thw", ";".join(["3,1,1"] * len(inputs["image_sizes"]))]


def mistral3(rng):
    row = without(sizes(rng), "tie_word_embeddings")
    heads = rng.choice([1, 2, 3])
    vision = hf.PixtralVisionConfig(
        hidden_size=heads * 8, num_attention_heads=heads, num_hidden_layers=rng.randint(2, 4), intermediate_size=24,
        image_size=32, patch_size=4)
    return hf.Mistral3Config(
        text_config=hf.MistralConfig(**row, sliding_window=rng.choice([None, 16])), vision_config=vision,
        image_token_index=IMAGE, spatial_merge_size=rng.choice([1, 2]), multimodal_projector_bias=maybe(rng),
        vision_feature_layer=rng.choice([-1, -2]), tie_word_embeddings=maybe(rng))


def mistral3_batch(config, sequences, length):
    """One image per sequence with four by four or two by four patches, so that no padding is needed."""
    rows = 2 + config.text_config.num_hidden_layers % 2 * 2
    visual = rows // config.spatial_merge_size * 4 // config.spatial_merge_size
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [visual])
    pixels = torch.randn((sequences, 3, rows * 4, 16), generator=torch.Generator().manual_seed(0))
    return {**batch, "pixel_values": pixels, "image_sizes": torch.tensor([[rows * 4, 16]] * sequences)}


def mistral3_arguments(config, inputs):
    """The images in patches of four by four pixels."""
    return ["--image-grid-thw", ";".join(f"1,{height // 4},{width // 4}" for height, width in inputs["image_sizes"].tolist())]


def paligemma(rng, text=hf.GemmaConfig, **more):
    row = without(sizes(rng), "tie_word_embeddings")
    if row["num_key_value_heads"] == 1:  # PaliGemma's default; without it, Gemma's default of sixteen applies
        row.update(num_attention_heads=4, num_key_value_heads=2, hidden_size=32)
    vision = hf.SiglipVisionConfig(**small_tower(rng), vision_use_head=False)
    return hf.PaliGemmaConfig(
        text_config=text(**row, **more, head_dim=rng.choice([8, 24]), attention_bias=maybe(rng)), vision_config=vision,
        projection_dim=row["hidden_size"], image_token_index=IMAGE, tie_word_embeddings=maybe(rng))


def paligemma2(rng):
    return paligemma(rng, hf.Gemma2Config, sliding_window=rng.choice([8, 4096]))


def paligemma_batch(config, sequences, length):
    """An image of four patches and a prompt with bidirectional attention, and an answer."""
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [4])
    kinds = (torch.arange(length) >= length // 2).long().repeat(sequences, 1)
    pixels = torch.randn((sequences, 3, 16, 16), generator=torch.Generator().manual_seed(0))
    return {**batch, "pixel_values": pixels, "token_type_ids": kinds}


def idefics3(rng, config=hf.Idefics3Config):
    row = without(sizes(rng), "tie_word_embeddings")
    return config(
        text_config=hf.LlamaConfig(**row), vision_config=small_tower(rng), image_token_id=IMAGE,
        tie_word_embeddings=maybe(rng), scale_factor=rng.choice([1, 2]))


def smolvlm(rng):
    return idefics3(rng, hf.SmolVLMConfig)


def idefics3_batch(config, sequences, length):
    """Two images of four patches per sequence, merged or not."""
    visual = [4 // config.scale_factor**2] * 2
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], visual)
    return {**batch, "pixel_values": torch.randn((sequences, 2, 3, 16, 16), generator=torch.Generator().manual_seed(0))}


def idefics3_arguments(config, inputs):
    """Two images per sequence."""
    return ["--image-grid-thw", ";".join(["2,1,1"] * len(inputs["pixel_values"]))]


def connector_names(config, module):
    """Renames the connector to the name of other families."""
    return module.replace("model.connector", "model.multi_modal_projector")


def internvl(rng):
    row = without(sizes(rng), "tie_word_embeddings")
    text = rng.choice([hf.Qwen2Config(**row), hf.Qwen3Config(**row, head_dim=rng.choice([8, 24])), hf.LlamaConfig(**row)])
    heads, patch, layers = rng.choice([1, 2, 3]), rng.choice([4, 8]), rng.randint(1, 4)
    vision = hf.InternVLVisionConfig(
        hidden_size=heads * 8, num_attention_heads=heads, num_hidden_layers=layers, intermediate_size=24, image_size=16,
        patch_size=patch, attention_bias=maybe(rng), use_qk_norm=maybe(rng), use_mask_token=maybe(rng),
        norm_type=rng.choice(["layer_norm", "rms_norm"]), use_absolute_position_embeddings=maybe(rng),
        use_mean_pooling=maybe(rng))
    return hf.InternVLConfig(
        text_config=text, vision_config=vision, image_token_id=IMAGE, tie_word_embeddings=maybe(rng),
        downsample_ratio=rng.choice([0.5, 1.0]), vision_feature_layer=rng.choice([-1, -2]))


def internvl_batch(config, sequences, length):
    """One image per sequence with merged patches."""
    vision = config.vision_config
    visual = int((vision.image_size[0] // vision.patch_size[0] * config.downsample_ratio) ** 2)
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [visual])
    shape = (sequences, 3, *vision.image_size)
    return {**batch, "pixel_values": torch.randn(shape, generator=torch.Generator().manual_seed(0))}


def grids(config, sequences):
    """(frames, height, width) of the images of a sequence in patches; the same for all sequences."""
    return GRIDS[config.vision_config.depth % len(GRIDS)] * sequences


def with_images(ids, images):
    """Replaces the first IDs with visual tokens: `images` gives their numbers, with one text token between images."""
    ids, start = ids.clone(), 1
    for visual in images:
        ids[:, start : start + visual] = IMAGE
        start += visual + 1
    return {"input_ids": ids, "labels": ids}


def qwen_batch(config, sequences, length):
    """Token IDs with space for all visual tokens, and patches in the layout of the image processor."""
    vision = config.vision_config
    images = grids(config, sequences)
    visual = [t * h * w // vision.spatial_merge_size**2 for t, h, w in images[: len(images) // sequences]]
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], visual)
    patches = sum(t * h * w for t, h, w in images)
    features = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    pixels = torch.randn(patches, features, generator=torch.Generator().manual_seed(0))
    kinds = (batch["input_ids"] == IMAGE).long()
    return {**batch, "pixel_values": pixels, "image_grid_thw": torch.tensor(images), "mm_token_type_ids": kinds}


def qwen_arguments(config, inputs):
    """Command-line form of the images in a batch."""
    grid = ";".join(",".join(map(str, row)) for row in inputs["image_grid_thw"].tolist())
    return ["--image-grid-thw", grid]


def llava_batch(config, sequences, length):
    """One image per sequence; the feature strategy decides whether the class token counts."""
    vision = config.vision_config
    full = config.vision_feature_select_strategy == "full"
    visual = (vision.image_size // vision.patch_size) ** 2 + int(full)
    batch = with_images(token_ids(config.text_config.vocab_size, sequences, length)["input_ids"], [visual])
    shape = (sequences, 3, vision.image_size, vision.image_size)
    return {**batch, "pixel_values": torch.randn(shape, generator=torch.Generator().manual_seed(0))}


VISION = [
    Family("qwen2_vl", hf.Qwen2VLForConditionalGeneration, qwen2_vl, qwen_batch, qwen_arguments),
    Family("qwen2_5_vl", hf.Qwen2_5_VLForConditionalGeneration, qwen2_5_vl, qwen_batch, qwen_arguments),
    Family("qwen3_vl", hf.Qwen3VLForConditionalGeneration, qwen3_vl, qwen_batch, qwen_arguments),
    Family("qwen3_vl_moe", hf.Qwen3VLMoeForConditionalGeneration, qwen3_vl_moe, qwen_batch, qwen_arguments),
    Family(
        "qwen3_5", hf.Qwen3_5ForConditionalGeneration, qwen3_5, qwen_batch, qwen_arguments,
        by_kernel=("linear_attention",)),
    Family(
        "qwen3_5_moe", hf.Qwen3_5MoeForConditionalGeneration, qwen3_5_moe, qwen_batch, qwen_arguments,
        by_kernel=("linear_attention",)),
    Family("llama4", hf.Llama4ForConditionalGeneration, llama4_vision, llama4_batch),
    Family("llava", hf.LlavaForConditionalGeneration, llava, llava_batch),
    Family("llava_next", hf.LlavaNextForConditionalGeneration, llava_next, tiled_batch, tiled_arguments),
    Family("llava_onevision", hf.LlavaOnevisionForConditionalGeneration, llava_onevision, tiled_batch, tiled_arguments),
    Family("mistral3", hf.Mistral3ForConditionalGeneration, mistral3, mistral3_batch, mistral3_arguments),
    Family("paligemma", hf.PaliGemmaForConditionalGeneration, paligemma, paligemma_batch),
    Family("paligemma2", hf.PaliGemmaForConditionalGeneration, paligemma2, paligemma_batch, attention=("eager",)),
    Family(
        "idefics3", hf.Idefics3ForConditionalGeneration, idefics3, idefics3_batch, idefics3_arguments,
        rename=connector_names),
    Family(
        "smolvlm", hf.SmolVLMForConditionalGeneration, smolvlm, idefics3_batch, idefics3_arguments,
        rename=connector_names),
    Family("internvl", hf.InternVLForConditionalGeneration, internvl, internvl_batch),
]
