"""A picture with edges, gradients, texture and colours, the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest


def draw_picture(height: int, width: int) -> np.ndarray:
    """Waves of several lengths in three colours, a dark disk and a bright bar."""
    y, x = np.mgrid[0:height, 0:width] / height
    waves = [
        np.sin(7 * x + 3 * y) + 0.5 * np.sin(60 * x * y) + 0.3 * np.sin(150 * (x + phase)) for phase in (0, 0.3, 0.6)
    ]
    picture = 120 + 50 * np.stack(waves, axis=2) * np.array([1.0, 0.7, 0.4])
    picture[(x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.05] *= 0.3
    picture[(np.abs(x - 1) < 0.06)] = (230, 220, 90)
    return np.clip(picture, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def picture() -> np.ndarray:
    """120 x 160 pixels."""
    image = draw_picture(120, 160)
    image.setflags(write=False)
    return image
