"""Tiny models of the five families: real code of transformers, random weights."""

import transformers

from argus_edge.exporters.weights import randomise

VOCABULARY = 128
_SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
_VISION = {**_SIZE, "image_size": 32, "patch_size": 8}


def clip():
    config = transformers.CLIPConfig(
        text_config={
            **_SIZE,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": 20,
            "eos_token_id": 98,
            "bos_token_id": 97,
            "pad_token_id": 1,
        },
        vision_config=_VISION,
        projection_dim=16,
    )
    return transformers.CLIPModel(config)


def blip_config():
    return transformers.BlipConfig(
        text_config={
            **_SIZE,
            "vocab_size": VOCABULARY,
            "encoder_hidden_size": 32,
            "projection_dim": 16,
            "max_position_embeddings": 40,
            "bos_token_id": 97,
            "eos_token_id": 2,
            "sep_token_id": 98,
            "pad_token_id": 0,
            "is_decoder": True,
        },
        vision_config={**_VISION, "projection_dim": 16},
        projection_dim=16,
        image_text_hidden_size=16,
    )


def blip():
    return transformers.BlipForConditionalGeneration(blip_config())


def blip_itm():
    return transformers.BlipForImageTextRetrieval(blip_config())


def lxmert():
    return transformers.LxmertForQuestionAnswering(
        transformers.LxmertConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_attention_heads=4,
            intermediate_size=64,
            l_layers=2,
            x_layers=2,
            r_layers=2,
            max_position_embeddings=40,
            num_qa_labels=30,
            visual_feat_dim=24,
        )
    )


def gemma3():
    config = transformers.Gemma3Config(
        text_config={
            **_SIZE,
            "vocab_size": VOCABULARY,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 128,
            "sliding_window": 6,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "query_pre_attn_scalar": 8,
        },
        vision_config={**_VISION, "vision_use_head": False},
        mm_tokens_per_image=4,
        image_token_index=130,
        boi_token_index=131,
        eoi_token_index=132,
    )
    return transformers.Gemma3ForConditionalGeneration(config)


def qwen2_5_vl():
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            "vocab_size": 160,
            "hidden_size": 64,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "bos_token_id": 155,
            "eos_token_id": 156,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "patch_size": 4,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 16,
            "fullatt_block_indexes": [1],
            "out_hidden_size": 64,
        },
        image_token_id=151,
        video_token_id=152,
        vision_start_token_id=153,
        vision_end_token_id=154,
    )
    return transformers.Qwen2_5_VLForConditionalGeneration(config)


BUILDERS = {
    "clip": clip,
    "blip": blip,
    "blip-itm": blip_itm,
    "lxmert": lxmert,
    "gemma3": gemma3,
    "qwen2_5_vl": qwen2_5_vl,
}


def save(name, folder):
    """Save a tiny model whose every weight is drawn, so that signals do not die out on their way."""
    model = BUILDERS[name]().eval()
    randomise(model, seed=0)
    model.save_pretrained(folder)
