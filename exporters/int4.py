"""4-bit weights: matrices as onnxruntime's MatMulNBits, the embedding table as GatherBlockQuantized or in fp16.

The module is changed before it is exported, so that no fp32 copy of a model with billions of weights is ever made:
neither in memory nor in a file.
"""

from __future__ import annotations

import torch
from torch import nn

from argus_edge.exporters.plan import Piece
from argus_edge.exporters.stored import widened

BLOCK = 32
# Activations are scaled to int8 at run time (accuracy level 4), which is what makes 4-bit weights fast on a CPU.
ACCURACY_LEVEL = 4
_ROWS_AT_ONCE = 1 << 14


def quantise_blockwise(weight: torch.Tensor, block: int = BLOCK) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Quantise a matrix to unsigned 4 bits with a scale and a zero point for each block of a row.

    The rule is round-to-nearest between each block's extremes, zero included: ``w ~ (q - zero) * scale``.

    Parameters
    ----------
    weight
        Shape (rows, columns), any float type; columns are padded with zeros to a multiple of ``block``.

    Returns
    -------
    values
        uint8 of shape (rows, blocks, block / 2), two values a byte, the first in the low half.
    scales
        float32 of shape (rows, blocks).
    zeros
        uint8 of shape (rows, ceil(blocks / 2)), two zero points a byte.
    """
    rows, columns = weight.shape
    blocks = -(-columns // block)
    values = torch.empty(rows, blocks, block // 2, dtype=torch.uint8)
    scales = torch.empty(rows, blocks, dtype=torch.float32)
    zeros = torch.empty(rows, -(-blocks // 2), dtype=torch.uint8)
    for start in range(0, rows, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, rows))
        wide = nn.functional.pad(weight[part].float(), (0, blocks * block - columns))
        grouped = wide.view(-1, blocks, block)
        low = grouped.amin(-1).clamp(max=0)
        high = grouped.amax(-1).clamp(min=0)
        scale = (high - low) / 15
        scale[scale == 0] = 1.0
        zero = (-low / scale).round().clamp(0, 15)
        quantised = (grouped / scale[..., None] + zero[..., None]).round().clamp(0, 15).to(torch.uint8)
        values[part] = quantised[..., 0::2] | (quantised[..., 1::2] << 4)
        scales[part] = scale
        packed = nn.functional.pad(zero.to(torch.uint8), (0, blocks % 2))
        zeros[part] = packed[..., 0::2] | (packed[..., 1::2] << 4)
    return values, scales, zeros


class MatMulNBits(nn.Module):
    """A linear layer with 4-bit weights."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        weight = linear.weight
        assert isinstance(weight, torch.Tensor)
        self.out_features, self.in_features = weight.shape
        values, scales, zeros = quantise_blockwise(weight.detach())
        self.register_buffer("values", values)
        self.register_buffer("scales", scales.flatten())
        self.register_buffer("zeros", zeros.flatten())
        bias = getattr(linear, "bias", None)
        self.bias = None if bias is None else nn.Parameter(bias.detach().float(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Emit the operator; the values exist in the exported file only."""
        y: torch.Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::MatMulNBits",
            (x, self.values, self.scales, self.zeros),
            attrs={
                "K": self.in_features,
                "N": self.out_features,
                "bits": 4,
                "block_size": BLOCK,
                "accuracy_level": ACCURACY_LEVEL,
            },
            dtype=x.dtype,
            shape=(*x.shape[:-1], self.out_features),
            version=1,
        )
        return y if self.bias is None else y + self.bias


class Int4Embedding(nn.Module):
    """An embedding table with 4-bit values."""

    def __init__(self, embedding: nn.Module, scale: float) -> None:
        super().__init__()
        weight = embedding.weight
        assert isinstance(weight, torch.Tensor)
        self.width = weight.shape[1]
        values, scales, zeros = quantise_blockwise(weight.detach())
        self.register_buffer("values", values.flatten(1))
        self.register_buffer("scales", scales * scale)
        self.register_buffer("zeros", zeros)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Emit the operator; the values exist in the exported file only."""
        rows: torch.Tensor = torch.onnx.ops.symbolic(
            "com.microsoft::GatherBlockQuantized",
            (self.values, ids, self.scales, self.zeros),
            attrs={"bits": 4, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1},
            dtype=torch.float32,
            shape=(*ids.shape, self.width),
            version=1,
        )
        return rows


class Fp16Embedding(nn.Module):
    """An embedding table in fp16, widened after the look-up."""

    def __init__(self, embedding: nn.Module, scale: float) -> None:
        super().__init__()
        weight = embedding.weight
        assert isinstance(weight, torch.Tensor)
        self.weight = nn.Parameter(weight.detach().to(torch.float16), requires_grad=False)
        self.scale = scale

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows in fp32."""
        rows = nn.functional.embedding(ids, self.weight).float()
        return rows if self.scale == 1.0 else rows * self.scale


@torch.no_grad()
def quantise_module(piece: Piece, *, fp16_embeddings: bool) -> tuple[str, ...]:
    """Replace, in place, a module's linear layers and embedding tables by 4-bit ones.

    Tables of positions and token types are small and stay as they are; so do convolutions, norms and biases.

    Returns
    -------
    tuple of str
        Notes for the manifest.
    """
    for parent in list(piece.modules()):
        for name, child in list(parent.named_children()):
            if is_linear(child):
                setattr(parent, name, MatMulNBits(child))
            elif is_token_table(child):
                scale = float(getattr(child, "scalar_embed_scale", 1.0))
                setattr(parent, name, (Fp16Embedding if fp16_embeddings else Int4Embedding)(child, scale))
    widened(piece)
    table = "in fp16" if fp16_embeddings else "in 4 bits"
    return (
        f"weights of linear layers in 4 bits, blocks of {BLOCK} with scale and zero point; embedding table {table}; "
        "convolutions, norms, biases and activations in fp32 (activations scaled to int8 inside MatMulNBits)",
    )


def is_linear(module: nn.Module) -> bool:
    """Tell whether a module is a linear layer."""
    return type(module).__name__ in ("Linear", "StoredLinear")


def is_token_table(module: nn.Module) -> bool:
    """Tell whether a module is an embedding table large enough to matter: a vocabulary, not positions."""
    weight = getattr(module, "weight", None)
    named = "Embedding" in type(module).__name__ and isinstance(weight, torch.Tensor) and weight.ndim == 2
    return bool(named and weight is not None and weight.shape[0] > 2 * 1024 and weight.shape[1] % BLOCK == 0)
