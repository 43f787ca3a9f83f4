"""A chat model in torch: prompts of a batch padded on the left, greedy decoding by transformers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from argus_edge.evaluate.models.base import Array, ModelSpec
from argus_edge.evaluate.models.chat import Chat, ChatTokens
from argus_edge.evaluate.models.torch_base import (
    Torch,
    load_image_processor,
    load_tokenizer,
    only_greedy,
    stacked,
    to_numpy,
)

__all__ = ["TorchChat"]


class TorchChat(Torch, Chat):
    """What Gemma-3 and Qwen2.5-VL share."""

    def __init__(self, spec: ModelSpec, model: Any) -> None:
        super().__init__(spec, model)
        self.processor = load_image_processor(self.location)
        self.image_token = model.config.image_token_id
        self.tokens = ChatTokens(load_tokenizer(self.location), self.image_token, Path(self.location))
        pad = self.tokens.tokenizer.pad_token_id
        self.padding = pad if pad is not None else 0
        only_greedy(model)

    @abstractmethod
    def image_inputs(self, images: Sequence[Image.Image]) -> tuple[dict[str, torch.Tensor], list[int]]:
        """Return the vision inputs and how many placeholders each image takes."""

    @abstractmethod
    def token_types(self, is_image: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the input that tells image tokens from text."""

    def _inputs(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> dict[str, torch.Tensor]:
        vision, counts = self.image_inputs(images)
        rows = [self.tokens.encode(prompt, count) for prompt, count in zip(prompts, counts, strict=True)]
        length = max(map(len, rows))
        ids = torch.tensor([[self.padding] * (length - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in rows])
        types = self.token_types((ids == self.image_token) & mask.bool())
        return self.on_device({"input_ids": ids, "attention_mask": mask, **types, **vision})

    def generate(self, images: Sequence[Image.Image], prompts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the ids that are generated greedily after each prompt."""

        def call(batch: Sequence[Image.Image], asked: Sequence[str]) -> list[list[int]]:
            inputs = self._inputs(batch, asked)
            out = self.model.generate(**inputs, max_new_tokens=limit, pad_token_id=self.padding)
            new = out[:, inputs["input_ids"].shape[1] :].tolist()
            return [[token for token in row if token != self.padding] for row in new]

        return self.fitting(call, images, prompts)

    def next_token(self, images: Sequence[Image.Image], prompts: Sequence[str]) -> Array:
        """Return the log-probabilities of the first token after each prompt."""

        def call(batch: Sequence[Image.Image], asked: Sequence[str]) -> list[Array]:
            logits = self.model(**self._inputs(batch, asked), logits_to_keep=1).logits[:, -1]
            return list(to_numpy(logits.float().log_softmax(dim=-1)))

        return stacked(self.fitting(call, images, prompts))
