"""Runs the package imagecorruptions on PNG images; needs a Python that has it (3.8, numpy 1.23, scikit-image 0.19 do).

usage: python reference_corruptions.py result.json DRAWS NAME,…|all image.png…

The result has, for each corruption and severity, the PSNR of every draw on every image, and the median seconds a call.
"""

import json
import statistics
import sys
import time
import warnings

import numpy as np
from imagecorruptions import corrupt, get_corruption_names
from PIL import Image

warnings.filterwarnings("ignore")


def psnr(image, changed):
    error = np.mean((image.astype(np.float64) - changed) ** 2)
    return float(10 * np.log10(255**2 / error))


def main(target, draws, only, *paths):
    images = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    result = {}
    for name in get_corruption_names("all") if only == "all" else only.split(","):
        # Glass blur takes half a minute a call, and one large image averages over many pixels.
        slow = name == "glass_blur"
        for severity in range(1, 6):
            np.random.seed(0)
            seconds, figures = [], []
            for image in images[:1] if slow else images:
                for _ in range(1 if slow else int(draws)):
                    start = time.perf_counter()
                    changed = corrupt(image, corruption_name=name, severity=severity)
                    seconds.append(time.perf_counter() - start)
                    figures.append(psnr(image, changed))
            result[f"{name} {severity}"] = {"psnr": figures, "seconds": statistics.median(seconds)}
        print(name, file=sys.stderr, flush=True)
    with open(target, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
