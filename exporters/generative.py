"""What vision-language models that write text have in common as families."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from argus_edge.exporters.decoder import lengths
from argus_edge.exporters.plan import Family
from argus_edge.schema.bundle import Generation, KvCache, Step, UnitOfWork

# Text tokens around the image in a typical prompt: template, question, turn marks.
TEXT_TOKENS = 32


def id_list(value: Any) -> list[int]:
    """Return an id, a list of ids or nothing as a list."""
    if value is None:
        return []
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]


class GenerativeFamily(Family):
    """Vision, then a decoder that sees image features in its prompt."""

    @abstractmethod
    def kv(self) -> KvCache:
        """Return the cache's layout."""

    @abstractmethod
    def image_tokens(self) -> int:
        """Return the placeholders per image."""

    def prompt_tokens(self) -> int:
        """Return the length of a typical prompt with one image."""
        return self.image_tokens() + TEXT_TOKENS

    def plain_vocabulary(self) -> int:
        """Return an id below which there are only plain tokens: image placeholders lie above."""
        vocabulary, image = int(self.config.text_config.vocab_size), int(self.config.image_token_id)
        return min(vocabulary, image) if image > vocabulary // 2 else vocabulary

    def cases(self) -> tuple[dict[str, int], ...]:
        """Return a prefill with image tokens, a decode step, and a batch with padding and a past."""
        image = min(8, self.image_tokens())
        return (lengths(1, 0, image + 4, image), lengths(1, 9, 1, 0), lengths(2, 3, 4, 2))

    def mac_dims(self) -> tuple[dict[str, int], ...]:
        """Return a typical prefill and the first decode step after it."""
        prompt = self.prompt_tokens()
        return (lengths(1, 0, prompt, self.image_tokens()), lengths(1, prompt, 1, 0))

    def generation(self) -> Generation:
        """Return how to generate with the decoder."""
        text = self.config.text_config
        eos = id_list(getattr(self.config, "eos_token_id", None)) or id_list(getattr(text, "eos_token_id", None))
        return Generation(
            decoder="decoder",
            kv=self.kv(),
            attention_mask="attention_mask",
            image_features="image_features",
            image_features_dim="image_tokens",
            vocab_size=text.vocab_size,
            bos_token_id=getattr(text, "bos_token_id", None),
            eos_token_ids=eos,
            pad_token_id=getattr(text, "pad_token_id", None),
            image_token_id=self.config.image_token_id,
            image_tokens=self.image_tokens(),
            context_length=text.max_position_embeddings,
        )

    def unit_of_work(self) -> UnitOfWork:
        """Answering: vision, prefill and decoding."""
        fed = {"image_features": "vision.image_features"}
        return UnitOfWork(
            task="answering",
            description="one image seen, one prompt read, output tokens written (32 unless set); batch 1, "
            "image preprocessing apart",
            steps=[
                Step(component="vision", phase="encode"),
                Step(component="decoder", phase="prefill", bindings=fed),
                Step(component="decoder", phase="decode"),
            ],
        )
