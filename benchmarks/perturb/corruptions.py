"""Our image perturbations against the package imagecorruptions: PSNR by severity, and time.

usage: python corruptions.py --reference-python /path/to/python [--draws 3] [--only fog,spatter] [--out corruptions.md]

The photographs are scikit-image's and scikit-learn's, at 640 x 480. The reference runs in a Python of its own, as it
needs old versions of numpy and scikit-image. Writes a table and the raw figures beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy
import skimage.data
from PIL import Image
from sklearn.datasets import load_sample_image

from argus_edge.evaluate.perturb import IMAGE_PERTURBATIONS, SEVERITIES, perturb_image

SIZE = (640, 480)


def photographs() -> dict[str, np.ndarray]:
    found = {name: getattr(skimage.data, name)() for name in ("chelsea", "astronaut")}
    found |= {name: load_sample_image(f"{name}.jpg") for name in ("china", "flower")}
    return {name: np.asarray(Image.fromarray(pixels).convert("RGB").resize(SIZE)) for name, pixels in found.items()}


def psnr(image: np.ndarray, changed: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean((image.astype(np.float64) - changed) ** 2)))


def ours(images: dict[str, np.ndarray], draws: int, names: list[str]) -> dict[str, dict]:
    result = {}
    for name in names:
        for severity in SEVERITIES:
            seconds, figures = [], []
            # The reference's glass blur is so slow that it is tried on the first photograph only.
            chosen = list(images.items())[: 1 if name == "glass_blur" else None]
            for key, image in chosen:
                for draw in range(draws):
                    start = time.perf_counter()
                    changed = perturb_image(image, name, severity, f"{key} {draw}")
                    seconds.append(time.perf_counter() - start)
                    figures.append(psnr(image, changed))
            result[f"{name} {severity}"] = {"psnr": figures, "seconds": statistics.median(seconds)}
    return result


def standard_error(figures: list[float]) -> float:
    """Of the mean over photographs, from the spread of the draws of each (they lie together)."""
    images = 1 if len(figures) < 4 else 4
    draws = np.array(figures).reshape(images, -1)
    return float(np.sqrt(draws.var(axis=1, ddof=1).mean() / draws.size)) if draws.shape[1] > 1 else 0.0


def table(own: dict[str, dict], reference: dict[str, dict]) -> str:
    lines = [
        "| corruption | PSNR difference by severity 1 to 5, dB | ms, imagecorruptions | ms, ours | faster |",
        "|---|---|---|---|---|",
    ]
    sums = [0.0, 0.0]
    beyond = []
    for name in (name for name in IMAGE_PERTURBATIONS if f"{name} 1" in own):
        keys = [f"{name} {severity}" for severity in SEVERITIES]
        gaps = [statistics.mean(own[key]["psnr"]) - statistics.mean(reference[key]["psnr"]) for key in keys]
        if name != "frost":
            for key, gap in zip(keys, gaps, strict=True):
                chance = 3 * np.hypot(standard_error(own[key]["psnr"]), standard_error(reference[key]["psnr"]))
                if abs(gap) > 0.5:
                    beyond += [f"{key} {gap:+.2f} dB ({'within' if abs(gap) < chance else 'beyond'} ±{chance:.2f})"]
        theirs, mine = (sum(run[key]["seconds"] for key in keys) for run in (reference, own))
        sums = [sums[0] + theirs, sums[1] + mine]
        lines.append(
            f"| {name} | {' '.join(f'{gap:+.2f}' for gap in gaps)} | {theirs / 5 * 1e3:.0f} | {mine / 5 * 1e3:.0f} "
            f"| {theirs / mine:.1f}x |"
        )
    if "glass_blur 1" not in own:
        return "\n".join([*lines, "", verdict(beyond)])
    glass = [sum(run[f"glass_blur {s}"]["seconds"] for s in SEVERITIES) for run in (reference, own)]
    lines.append(f"| sum of all | | {sums[0] / 5 * 1e3:.0f} | {sums[1] / 5 * 1e3:.0f} | {sums[0] / sums[1]:.1f}x |")
    rest = [sums[0] - glass[0], sums[1] - glass[1]]
    lines.append(
        f"| sum without glass blur | | {rest[0] / 5 * 1e3:.0f} | {rest[1] / 5 * 1e3:.0f} | {rest[0] / rest[1]:.1f}x |"
    )
    return "\n".join([*lines, "", verdict(beyond)])


def verdict(beyond: list[str]) -> str:
    return (
        "Beyond 0.5 dB (frost, our own texture, apart), and what three standard errors of the random draws allow: "
        f"{', '.join(beyond) or 'none'}."
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference-python", required=True)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", default="all", metavar="NAME,…", help="of the corruptions")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    images = photographs()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{name}.png") for name in images]
        for path, pixels in zip(paths, images.values(), strict=True):
            Image.fromarray(pixels).save(path)
        script = Path(__file__).with_name("reference_corruptions.py")
        target = Path(folder, "reference.json")
        subprocess.run([options.reference_python, script, target, str(options.draws), options.only, *paths], check=True)
        reference = json.loads(target.read_text())
    own = ours(images, options.draws, list(IMAGE_PERTURBATIONS) if options.only == "all" else options.only.split(","))
    report = [
        "# Image perturbations against imagecorruptions 1.1.2",
        "",
        f"Four photographs at 640 x 480, {options.draws} draws each (the reference's glass blur: one, on one "
        "photograph), mean PSNR against the clean image, median time a call. Random draws differ between the two, so "
        "that differences of snow, fog, spatter and motion blur hold chance too.",
        f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, scipy {scipy.__version__}.",
        "",
        table(own, reference),
        "",
    ]
    options.out.write_text("\n".join(report))
    options.out.with_suffix(".json").write_text(json.dumps({"ours": own, "imagecorruptions": reference}))
    print("\n".join(report))


if __name__ == "__main__":
    main()
