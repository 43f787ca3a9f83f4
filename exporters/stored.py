"""Weights stored in bfloat16 and widened at use, so that a large model computes in fp32 in half the memory."""

from __future__ import annotations

import torch
from torch import nn

# A vocabulary's projection is widened in pieces of this many values, or it alone would need gigabytes.
_VALUES_AT_ONCE = 1 << 26


class StoredLinear(nn.Module):
    """A linear layer whose weight keeps its stored type; the arithmetic is that of the input."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = linear.weight
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x @ weight.T + bias``."""
        rows = max(1, _VALUES_AT_ONCE // self.weight.shape[1])
        parts = [nn.functional.linear(x, part.to(x.dtype)) for part in self.weight.split(rows)]
        y = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return y if self.bias is None else y + self.bias.to(x.dtype)


class StoredEmbedding(nn.Module):
    """An embedding table that keeps its stored type; its rows come out in fp32."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        self.weight = embedding.weight
        self.scalar_embed_scale = float(getattr(embedding, "scalar_embed_scale", 1.0))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows, scaled where the model scales them."""
        rows = nn.functional.embedding(ids, self.weight).float()
        return rows if self.scalar_embed_scale == 1.0 else rows * self.scalar_embed_scale


@torch.no_grad()
def store(module: nn.Module) -> None:
    """Let, in place, a bfloat16 module compute in fp32: large weights are widened at use, the rest once."""
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, StoredLinear(child))
            elif isinstance(child, nn.Embedding):
                setattr(parent, name, StoredEmbedding(child))
    widened(module)


@torch.no_grad()
def widened(module: nn.Module) -> None:
    """Widen, in place, to fp32 every floating parameter and buffer that is not a stored weight."""
    for child in module.modules():
        stored = isinstance(child, (StoredLinear, StoredEmbedding)) or type(child).__name__ == "Fp16Embedding"
        for name, parameter in child.named_parameters(recurse=False):
            if parameter.dtype in (torch.bfloat16, torch.float16) and not (stored and name == "weight"):
                parameter.data = parameter.data.float()
        for name, buffer in child.named_buffers(recurse=False):
            if buffer.dtype in (torch.bfloat16, torch.float16):
                setattr(child, name, buffer.float())
