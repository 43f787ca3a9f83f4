"""What several image perturbations need: rounding to bytes, Gaussian and disk filters, shifts, bilinear sampling."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import fft, ndimage

__all__ = ["convolve", "directional_blur", "gaussian", "luma", "resample_axis", "sample", "to_uint8"]

Image = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def to_uint8(values: npt.NDArray[np.floating]) -> Image:
    """Return values clipped to 0 … 255 and cut off to bytes, as ImageNet-C does; ``values`` is overwritten."""
    return np.clip(values, 0, 255, out=values).astype(np.uint8)


def luma(image: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the ITU-R BT.601 grey value, shape (height, width), of an RGB image."""
    return np.asarray(image @ np.array([0.299, 0.587, 0.114], image.dtype))


def gaussian(
    values: Floats, sigma: float | tuple[float, float], *, mode: str = "nearest", truncate: float = 4.0
) -> Floats:
    """Return an image or a plane under a Gaussian filter over its first two axes."""
    sigmas = (sigma, sigma) if isinstance(sigma, int | float) else sigma
    for axis, width in enumerate(sigmas):
        values = ndimage.gaussian_filter1d(values, width, axis=axis, mode=mode, truncate=truncate)
    return values


def convolve(image: Floats, kernel: Floats) -> Floats:
    """Return each channel convolved with a symmetric kernel of odd size, the image mirrored about its edge pixels.

    By the fast Fourier transform: the time does not grow with the kernel.
    """
    height, width = image.shape[:2]
    rows, columns = kernel.shape[0] // 2, kernel.shape[1] // 2
    padded = np.pad(
        image, ((rows, rows), (columns, columns), (0, 0)), mode="reflect" if min(height, width) > 1 else "edge"
    )
    shape = [fft.next_fast_len(size, real=True) for size in padded.shape[:2]]
    planes = np.ascontiguousarray(np.moveaxis(padded, 2, 0))
    spectrum = fft.rfft2(planes, shape)
    spectrum *= fft.rfft2(kernel, shape)
    result = fft.irfft2(spectrum, shape)
    # Circular, but the border that wraps around is the padding.
    inside = result[:, 2 * rows : 2 * rows + height, 2 * columns : 2 * columns + width]
    return np.moveaxis(inside, 0, 2)


def directional_blur(image: Floats, radius: int, sigma: float, angle: float) -> Floats:
    """Return the image smeared one way along a line: half a Gaussian of ``2 radius + 1`` whole-pixel steps.

    Parameters
    ----------
    image
        Shape (height, width) or (height, width, channels).
    radius, sigma
        In pixels.
    angle
        In degrees, from the x axis towards the top.
    """
    height, width = image.shape[:2]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights /= weights.sum()
    direction = np.deg2rad(angle)
    down = -np.ceil(steps * np.sin(direction) - 0.5).astype(int)
    right = -np.ceil(steps * np.cos(direction) - 0.5).astype(int)
    inside = (np.abs(down) < height) & (np.abs(right) < width)
    # The smear ends where the motion leaves the image.
    last = len(steps) if inside.all() else int(np.argmin(inside))
    margin = 2 * radius + 1
    padded = np.pad(image, [(margin, margin), (margin, margin)] + [(0, 0)] * (image.ndim - 2), mode="edge")
    result = np.zeros_like(image)
    for weight, dy, dx in zip(weights[:last].astype(image.dtype), down, right, strict=False):
        top, left = margin - dy, margin - dx
        result += weight * padded[top : top + height, left : left + width]
    return result


def resample_axis(values: Floats, axis: int, positions: npt.NDArray[np.floating]) -> Floats:
    """Return ``values`` at fractional positions along an axis, linearly interpolated."""
    low = np.clip(np.floor(positions).astype(np.int64), 0, max(0, values.shape[axis] - 2))
    high = np.minimum(low + 1, values.shape[axis] - 1)
    shape = [1] * values.ndim
    shape[axis] = len(positions)
    part = np.clip(positions - low, 0, 1).astype(values.dtype).reshape(shape)
    lower = np.take(values, low, axis)
    return lower + part * (np.take(values, high, axis) - lower)


def sample(image: Image, rows: Floats, columns: Floats) -> Floats:
    """Return an image at fractional positions, bilinearly; outside it is mirrored, edge pixels doubled.

    Parameters
    ----------
    image
        Shape (height, width, channels).
    rows, columns
        Shape (height', width').

    Returns
    -------
    numpy.ndarray
        Shape (height', width', channels), float32.
    """
    height, width = image.shape[:2]
    (top, bottom, down), (left, right, along) = _mirrored(rows, height), _mirrored(columns, width)
    flat = image.reshape(height * width, -1).astype(np.float32)
    upper = flat[top * width + left]
    upper += along[..., None] * (flat[top * width + right] - upper)
    lower = flat[bottom * width + left]
    lower += along[..., None] * (flat[bottom * width + right] - lower)
    lower -= upper
    lower *= down[..., None]
    upper += lower
    return upper


def _mirrored(positions: Floats, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return the pixels below and above each position, mirrored into 0 … size - 1, and the part of the way between."""
    below = np.floor(positions)
    part = positions - below
    low = below.astype(np.int64)

    def fold(index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        index = index % (2 * size)
        return np.where(index < size, index, 2 * size - 1 - index)

    return fold(low), fold(low + 1), part
