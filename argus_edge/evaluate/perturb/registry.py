"""The perturbations by name: a new one is a function in a module of its own and one line here."""

from __future__ import annotations

from argus_edge.registry import Registry

__all__ = ["IMAGE_PERTURBATIONS", "SEVERITIES", "TEXT_PERTURBATIONS"]

SEVERITIES = (1, 2, 3, 4, 5)

_HERE = "argus_edge.evaluate.perturb"

# name -> function(image: uint8 (height, width, 3), severity, generator) -> image of the same shape.
IMAGE_PERTURBATIONS = Registry(
    "image perturbation",
    {
        "gaussian_noise": f"{_HERE}.noise:gaussian_noise",
        "shot_noise": f"{_HERE}.noise:shot_noise",
        "impulse_noise": f"{_HERE}.noise:impulse_noise",
        "speckle_noise": f"{_HERE}.noise:speckle_noise",
        "defocus_blur": f"{_HERE}.blur:defocus_blur",
        "motion_blur": f"{_HERE}.blur:motion_blur",
        "zoom_blur": f"{_HERE}.blur:zoom_blur",
        "glass_blur": f"{_HERE}.blur:glass_blur",
        "gaussian_blur": f"{_HERE}.blur:gaussian_blur",
        "snow": f"{_HERE}.weather:snow",
        "frost": f"{_HERE}.frost:frost",
        "fog": f"{_HERE}.weather:fog",
        "brightness": f"{_HERE}.digital:brightness",
        "contrast": f"{_HERE}.digital:contrast",
        "saturate": f"{_HERE}.digital:saturate",
        "elastic_transform": f"{_HERE}.digital:elastic_transform",
        "pixelate": f"{_HERE}.digital:pixelate",
        "jpeg_compression": f"{_HERE}.digital:jpeg_compression",
        "spatter": f"{_HERE}.spatter:spatter",
    },
)

# name -> function(text, severity, generator) -> text.
TEXT_PERTURBATIONS = Registry(
    "text perturbation",
    {
        "keyboard": f"{_HERE}.characters:keyboard",
        "ocr": f"{_HERE}.characters:ocr",
        "insert": f"{_HERE}.characters:insert",
        "delete": f"{_HERE}.characters:delete",
        "swap": f"{_HERE}.characters:swap",
        "case": f"{_HERE}.characters:case",
        "word_delete": f"{_HERE}.words:word_delete",
        "word_swap": f"{_HERE}.words:word_swap",
        "synonym": f"{_HERE}.words:synonym",
        "punctuation": f"{_HERE}.words:punctuation",
    },
)
