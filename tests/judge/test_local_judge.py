"""A local judge: a tiny LLaVA with random weights, its log-probabilities against a forward pass of our own."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="a local judge needs torch")
transformers = pytest.importorskip("transformers", reason="a local judge needs transformers")
pytest.importorskip("PIL", reason="a local judge needs pillow")

from argus_edge.errors import InputError, UsageError
from argus_edge.judge.asking.base import ItemRefusedError
from argus_edge.judge.asking.items import Item
from argus_edge.judge.asking.local import LocalJudge
from argus_edge.judge.asking.run import read_answer
from argus_edge.judge.scale import Scale

WORDS = ["<unk>", "<s>", "</s>", "<pad>", "<image>", "Score", ":", "USER", "ASSISTANT", *"12345", "▁1", "▁4", "cat"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A LLaVA of a few thousand weights, saved with its processor."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    target = tmp_path_factory.mktemp("judge") / "tiny-llava"
    vocabulary = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<unk>"))
    vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=vocabulary, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        additional_special_tokens=["<image>"],
    )  # fmt: skip
    processor = transformers.LlavaProcessor(
        image_processor=transformers.CLIPImageProcessor(
            size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
        ),
        tokenizer=tokenizer, patch_size=14, vision_feature_select_strategy="default", image_token="<image>",
        num_additional_image_tokens=1,
    )  # fmt: skip
    torch.manual_seed(0)
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(
            hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=28,
            patch_size=14,
        ),
        text_config=transformers.LlamaConfig(
            vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, pad_token_id=3, bos_token_id=1, eos_token_id=2, initializer_range=0.5,
        ),
        image_token_index=4, vision_feature_layer=-1,
    )  # fmt: skip
    model = transformers.LlavaForConditionalGeneration(config).eval()
    # A model's own settings must not bend the probabilities.
    model.generation_config.repetition_penalty = 1.7
    model.generation_config.num_beams = 3
    model.generation_config.suppress_tokens = [WORDS.index("5")]
    model.save_pretrained(target)
    processor.save_pretrained(target)
    return target


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    from PIL import Image

    path = tmp_path_factory.mktemp("pictures") / "cat.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 30, 3), dtype=np.uint8)).save(path)
    return path


@pytest.mark.slow
def test_log_probabilities_are_those_of_a_forward_pass(folder, picture):
    judge = LocalJudge(str(folder), 5, max_new_tokens=6)
    answer = judge.ask("cat", [picture])
    assert 1 <= len(answer.tokens) <= 6
    assert len(answer.alternatives) == len(answer.tokens)
    inputs = judge._inputs("cat", [picture])
    ids = inputs["input_ids"]
    for token, shown in zip(answer.tokens, answer.alternatives, strict=True):
        with torch.inference_mode():
            logits = judge.model(**{**inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}).logits[0, -1]
        wanted = torch.log_softmax(logits.float(), -1)
        for spelling in ("1", "▁1", "5"):
            assert shown[spelling] == pytest.approx(float(wanted[WORDS.index(spelling)]), abs=1e-4)
        assert WORDS.index(token) == int(wanted.argmax())
        if token == "<image>":  # random weights may say so; a forward pass would look for a second picture
            break
        ids = torch.cat([ids, torch.tensor([[WORDS.index(token)]])], dim=1)


@pytest.mark.slow
def test_an_answer_becomes_a_row(folder, picture):
    row = read_answer(LocalJudge(str(folder), 5, max_new_tokens=8).ask("cat", [picture]), Scale(5))
    if row["judge_score"] == -1:
        assert row["logprobs"] is None
        assert row["note"]
    else:
        total = sum(math.exp(value) for value in row["logprobs"])
        assert 0 < total <= 1 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("template", ["<s>USER: cat ASSISTANT:", "USER: cat ASSISTANT:"])
def test_a_prompt_starts_with_one_start_token(folder, template):
    from tokenizers import processors

    judge = LocalJudge(str(folder), 5)
    # Gemma's tokeniser writes a start token, and so does its chat template.
    judge.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    judge.tokenizer.backend_tokenizer.add_special_tokens(["<s>"])
    judge.processor.chat_template = template
    assert (judge._inputs("cat", [])["input_ids"] == WORDS.index("<s>")).sum() == 1


@pytest.mark.slow
def test_pixels_have_the_type_of_the_weights(folder, picture):
    judge = LocalJudge(str(folder), 5)
    judge.model.bfloat16()  # as on a GPU
    inputs = judge._inputs("cat", [picture])
    assert inputs["pixel_values"].dtype == torch.bfloat16
    assert inputs["input_ids"].dtype == torch.int64


@pytest.mark.slow
def test_a_scale_without_tokens_is_refused(folder):
    with pytest.raises(InputError, match="no token of its own for the rating"):
        LocalJudge(str(folder), 7)


def test_what_is_no_model_is_said_so(tmp_path):
    with pytest.raises(InputError, match="cannot be loaded"):
        LocalJudge(str(tmp_path), 5)


@pytest.mark.slow
def test_a_place_that_is_not_there_and_a_picture_that_is_none(folder, tmp_path):
    with pytest.raises(UsageError, match="cannot run on"):
        LocalJudge(str(folder), 5, compute="nowhere")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    with pytest.raises(ItemRefusedError, match="image cannot be read"):
        LocalJudge(str(folder), 5).ask("cat", [broken])


def test_items_without_images_are_text_only():
    assert Item("1", "", "q", "a", (), "", {}).images == ()
