"""A judge run on this machine through transformers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argus_edge.errors import InputError, MissingDependencyError, RunFailedError, UsageError
from argus_edge.judge.asking.base import Answer, Judge
from argus_edge.judge.asking.pictures import open_picture
from argus_edge.judge.asking.position import plain
from argus_edge.text import first_line

__all__ = ["LocalJudge"]


class LocalJudge(Judge):
    """An image-text-to-text model from a folder or a hub id, decoded greedily, no code of the model's own run.

    Parameters
    ----------
    model
        Local folder or id.
    levels
        The ratings whose log-probabilities are kept.
    compute
        ``"cpu"`` or ``"cuda:0"``.

    Raises
    ------
    MissingDependencyError
        No torch or transformers.
    InputError
        The model cannot be loaded.
    """

    def __init__(self, model: str, levels: int, *, compute: str = "cpu", max_new_tokens: int = 512) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingDependencyError("transformers", "models", needed_for="a local judge") from error
        from argus_edge.evaluate.models.torch_base import only_greedy

        self.name = Path(model).name if Path(model).is_dir() else model
        self._torch = torch
        options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": Path(model).is_dir()}
        try:
            self.processor = transformers.AutoProcessor.from_pretrained(model, **options)
            self.model = transformers.AutoModelForImageTextToText.from_pretrained(
                model, dtype=_dtype(torch, compute), **options
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise InputError(
                f"The judge cannot be loaded: {first_line(error)}",
                where=model,
                next_step="give a folder or id of an image-text-to-text model, or --server for an API",
            ) from error
        try:
            self.model = self.model.to(compute).eval()
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"The judge cannot run on {compute[:40]!r}: {first_line(error, 200)}",
                next_step="--compute cpu, or cuda:N of a GPU that this torch can use",
            ) from error
        only_greedy(self.model)
        self._most = max_new_tokens
        self.tokenizer = getattr(self.processor, "tokenizer", self.processor)
        ratings = {str(label) for label in range(1, levels + 1)}
        # Every spelling of a rating: "4", " 4", "▁4".
        self._ids = {
            token: index for token, index in self.tokenizer.get_vocab().items() if plain(token).strip() in ratings
        }
        missing = sorted(ratings - {plain(token).strip() for token in self._ids})
        if missing:
            raise InputError(
                f"The judge's tokeniser has no token of its own for the rating(s) {', '.join(missing)}.",
                where=model,
                next_step="use a scale of single digits",
            )

    def _inputs(self, prompt: str, images: Sequence[Path]) -> Any:
        pictures = [open_picture(image) for image in images]
        options: dict[str, Any] = {}
        if getattr(self.processor, "chat_template", None):
            content: list[dict[str, str]] = [{"type": "image"} for _ in pictures]
            content.append({"type": "text", "text": prompt})
            messages = [{"role": "user", "content": content}]
            text = self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            start = self.tokenizer.bos_token
            if start and text.startswith(start):
                # Gemma's template, as most, writes the start token itself; a second one costs accuracy.
                options["add_special_tokens"] = False
        else:
            mark = getattr(self.processor, "image_token", "<image>")
            text = f"USER: {(mark + chr(10)) * len(pictures)}{prompt}\nASSISTANT:"
        inputs = self.processor(text=[text], images=pictures or None, return_tensors="pt", **options)
        return inputs.to(self.model.device, self.model.dtype)  # pixels in the weights' type

    def ask(self, prompt: str, images: Sequence[Path]) -> Answer:
        """Generate greedily and keep, at each step, the ratings' log-probabilities over the full vocabulary."""
        torch = self._torch
        inputs = self._inputs(prompt, images)
        ids = list(self._ids.values())
        kept: list[Any] = []

        def keep(_: Any, scores: Any) -> Any:
            kept.append(torch.log_softmax(scores[0].float(), dim=-1)[ids].cpu())
            return scores

        try:
            with torch.inference_mode():
                generated = self.model.generate(**inputs, max_new_tokens=self._most, logits_processor=[keep])
        except (RuntimeError, ValueError, IndexError) as error:
            raise RunFailedError(
                f"The judge failed: {type(error).__name__}: {str(error)[:300]}",
                where=self.name,
                next_step="mend the cause and give the same command again: what was answered is kept",
            ) from error
        new = generated[0, -len(kept) :].tolist() if kept else []
        tokens = self.tokenizer.convert_ids_to_tokens(new)
        alternatives = [dict(zip(self._ids, step.tolist(), strict=True)) for step in kept]
        return Answer([str(token) for token in tokens], alternatives)


def _dtype(torch: Any, compute: str) -> Any:
    """As `argus-edge eval`: bfloat16 on a GPU that has it, since some judges overflow in float16."""
    if not compute.startswith("cuda"):
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else torch.float16
