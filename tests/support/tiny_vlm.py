"""The five families at tiny size with random weights, saved as a user's model folder would be."""

from __future__ import annotations

from pathlib import Path

WORDS = [
    "a",
    "picture",
    "of",
    "the",
    "cat",
    "dog",
    "red",
    "blue",
    "on",
    "table",
    "is",
    "what",
    "colour",
    "how",
    "many",
    "yes",
    "no",
    "Yes",
    "No",
    "A",
    "B",
    "C",
    "D",
    "describe",
    "this",
    "image",
    "in",
    "one",
    "short",
    "sentence",
    "answer",
    "question",
    "using",
    "single",
    "word",
    "or",
    "phrase",
    "does",
    "caption",
    "with",
    "letter",
    "right",
    "choice",
    "only",
    "user",
    "model",
]

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }} {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE {% else %}{{ part['text'] }} {% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}model {% endif %}"
)


def tokenizer(folder: Path, *, chat: str = "", specials: tuple[str, ...] = ()) -> dict[str, int]:
    """Save a word-level tokenizer with BERT's special tokens; return the ids by token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *specials, *dict.fromkeys(WORDS)]
    vocabulary = {name: index for index, name in enumerate(names)}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.add_special_tokens(list(specials))
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    extra = {"boi_token": "<boi>", "eoi_token": "<eoi>", "image_token": "<img>"} if "<boi>" in specials else {}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        extra_special_tokens=extra or None,
    )
    if chat:
        fast.chat_template = chat
    fast.save_pretrained(folder)
    return vocabulary


def _save(model: object, folder: Path) -> None:
    """Save a model whose every weight is drawn: some start at zero and would hide mistakes."""
    import torch

    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():  # type: ignore[attr-defined]
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    model.eval().save_pretrained(folder)  # type: ignore[attr-defined]


_SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_VISION = {**_SIZE, "image_size": 32, "patch_size": 8}
_DECODER = {**_SIZE, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}


def clip(folder: Path) -> Path:
    """Return a folder with a CLIPModel."""
    import torch
    from transformers import CLIPConfig, CLIPModel
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    torch.manual_seed(0)
    vocabulary = tokenizer(folder)
    text = {**_SIZE, "vocab_size": len(vocabulary), "max_position_embeddings": 20, "bos_token_id": 2}
    config = CLIPConfig(
        text_config={**text, "eos_token_id": 3, "pad_token_id": 0},
        vision_config=_VISION,
        projection_dim=16,
    )
    _save(CLIPModel(config), folder)
    CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def blip(folder: Path, architecture: str = "BlipForConditionalGeneration") -> Path:
    """Return a folder with a BLIP of one of three kinds."""
    import torch
    import transformers
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    torch.manual_seed(0)
    vocabulary = tokenizer(folder)
    text = {**_SIZE, "vocab_size": len(vocabulary), "max_position_embeddings": 64, "encoder_hidden_size": 32}
    config = transformers.BlipConfig(
        text_config={**text, "bos_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "pad_token_id": 0},
        vision_config=_VISION,
        projection_dim=16,
        image_text_hidden_size=16,
    )
    _save(getattr(transformers, architecture)(config), folder)
    BlipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def lxmert(folder: Path, architecture: str = "LxmertForQuestionAnswering") -> Path:
    """Return a folder with an LXMERT."""
    import torch
    import transformers

    torch.manual_seed(0)
    vocabulary = tokenizer(folder)
    answers = ("yes", "no", "red", "blue")
    config = transformers.LxmertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_attention_heads=4,
        l_layers=1,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=8,
        num_qa_labels=len(answers),
        num_labels=len(answers),
    )
    config.id2label = dict(enumerate(answers))
    _save(getattr(transformers, architecture)(config), folder)
    return folder


def gemma3(folder: Path) -> Path:
    """Return a folder with a Gemma-3 that sees images of 32 x 32 pixels as 4 tokens."""
    import torch
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    torch.manual_seed(0)
    vocabulary = tokenizer(folder, chat=CHAT_TEMPLATE.replace("IMAGE", "<boi>"), specials=("<boi>", "<eoi>", "<img>"))
    config = Gemma3Config(
        text_config={
            **_DECODER,
            "vocab_size": len(vocabulary),
            "head_dim": 8,
            "sliding_window": 8,
            "max_position_embeddings": 256,
        },
        vision_config=_VISION,
        mm_tokens_per_image=4,
        boi_token_index=vocabulary["<boi>"],
        eoi_token_index=vocabulary["<eoi>"],
        image_token_index=vocabulary["<img>"],
        image_token_id=vocabulary["<img>"],
    )
    _save(Gemma3ForConditionalGeneration(config), folder)
    Gemma3ImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def qwen2_5_vl(folder: Path) -> Path:
    """Return a folder with a Qwen2.5-VL."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    torch.manual_seed(0)
    specials = ("<vs>", "<img>", "<ve>", "<video>")
    vocabulary = tokenizer(folder, chat=CHAT_TEMPLATE.replace("IMAGE", "<vs> <img> <ve>"), specials=specials)
    config = Qwen2_5_VLConfig(
        text_config={
            **_DECODER,
            "vocab_size": len(vocabulary),
            "max_position_embeddings": 1024,
            "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1000000.0},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 4,
            "out_hidden_size": 32,
            "patch_size": 4,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 16,
            "fullatt_block_indexes": [1],
        },
        image_token_id=vocabulary["<img>"],
        video_token_id=vocabulary["<video>"],
        vision_start_token_id=vocabulary["<vs>"],
        vision_end_token_id=vocabulary["<ve>"],
    )
    _save(Qwen2_5_VLForConditionalGeneration(config), folder)
    Qwen2VLImageProcessorPil(patch_size=4, merge_size=2, min_pixels=256, max_pixels=4096).save_pretrained(folder)
    return folder
