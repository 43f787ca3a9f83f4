"""From a camera's picture to a model's input: with Pillow where the board has it, else in numpy, which runtimes bring.

Timed apart from the model, since an application may do it elsewhere or with another library. Both resample alike:
separable, columns first, with a support that grows as the picture shrinks, to 8 bits after each pass.
"""

from time import perf_counter

WARMUP_CALLS = 3
CALLS = 64
LONGEST_S = 3.0


def nearest(x):
    """Return the box filter, for the nearest pixel."""
    return (x > -0.5) & (x <= 0.5)


def bilinear(x):
    """Return the triangle filter."""
    return 1.0 - abs(x)


def bicubic(x):
    """Return Keys' cubic with a = -0.5 (R. Keys, 1981)."""
    x = abs(x)
    near, far = (1.5 * x - 2.5) * x * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return near * (x < 1) + far * (x >= 1)


def lanczos(x):
    """Return the sinc filter with three lobes."""
    import numpy

    return numpy.sinc(x) * numpy.sinc(x / 3.0)


FILTERS = {"nearest": (0.5, nearest), "bilinear": (1.0, bilinear), "bicubic": (2.0, bicubic), "lanczos": (3.0, lanczos)}


def weights(size, target, name):
    """Return the matrix of shape (target, size), float32, that resamples one axis."""
    import numpy

    reach, function = FILTERS[name]
    scale = size / float(target)
    stretch = max(scale, 1.0) if name != "nearest" else 1.0
    centres = (numpy.arange(target) + 0.5) * scale
    distance = (numpy.arange(size) + 0.5 - centres[:, None]) / stretch
    if name == "nearest":
        # Of two equally near pixels Pillow's sum decides: added up step by step.
        centres = numpy.cumsum([scale * 0.5] + [scale] * (target - 1))
        distance = numpy.arange(size) - numpy.floor(centres)[:, None]
    matrix = numpy.where(abs(distance) <= reach, function(distance), 0.0)
    return (matrix / matrix.sum(axis=1, keepdims=True)).astype(numpy.float32)


def layout(how, height, width):
    """Return (height, width) after resizing, and (top, left) of what is cut from its centre."""
    if how["resize"] == "stretch":
        return (how["height"], how["width"]), (0, 0)
    edge = max(how["height"], how["width"])
    longer = int(edge * max(height, width) / min(height, width))
    size = (edge, longer) if height <= width else (longer, edge)
    return size, ((size[0] - how["height"]) // 2, (size[1] - how["width"]) // 2)


def with_pillow(how, height, width):
    """Return as ``preparer``, by Pillow. Raises ImportError without it."""
    import numpy
    from PIL import Image

    # Its numbers of the filters, which are older than their names.
    filters = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3}
    size, (top, left) = layout(how, height, width)
    chosen = filters[how["resample"]]
    mean, std = (numpy.array(how[name], numpy.float32) for name in ("mean", "std"))
    scale, shift = numpy.float32(how["rescale"]) / std, mean / std

    def prepare(picture):
        resized = Image.fromarray(picture).resize((size[1], size[0]), chosen)
        cut = resized.crop((left, top, left + how["width"], top + how["height"]))
        values = numpy.asarray(cut, numpy.float32) * scale - shift
        return numpy.ascontiguousarray(values.transpose(2, 0, 1))

    return prepare


def preparer(how, height, width):
    """Return a function from an RGB picture, uint8 of shape (height, width, 3), to float32 of shape (3, …, …)."""
    import numpy

    size, (top, left) = layout(how, height, width)
    rows = weights(height, size[0], how["resample"])[top : top + how["height"]]
    columns = weights(width, size[1], how["resample"])[left : left + how["width"]]
    columns = numpy.ascontiguousarray(columns.T)
    mean, std = (numpy.array(how[name], numpy.float32)[:, None, None] for name in ("mean", "std"))
    scale, shift = numpy.float32(how["rescale"]) / std, mean / std

    def levels(values):
        numpy.clip(values, 0, 255, out=values)
        return numpy.rint(values, out=values)

    def prepare(picture):
        planes = numpy.ascontiguousarray(picture.transpose(2, 0, 1)).astype(numpy.float32)
        resized = levels(numpy.matmul(rows, levels(numpy.matmul(planes, columns))))
        return resized * scale - shift

    return prepare


def measure(how):
    """Return figures of ``PartResult``: the seconds of each call on a made-up picture, and what was timed."""
    import numpy

    height, width = how["picture"]
    picture = numpy.random.RandomState(1).randint(0, 256, (height, width, 3)).astype(numpy.uint8)
    try:
        import PIL

        prepare, library = with_pillow(how, height, width), "Pillow " + PIL.__version__
    except ImportError:
        prepare, library = preparer(how, height, width), "numpy " + numpy.__version__
    for _ in range(WARMUP_CALLS):
        prepare(picture)
    times, begin = [], perf_counter()
    while len(times) < CALLS and perf_counter() - begin < LONGEST_S:
        start = perf_counter()
        prepare(picture)
        times.append(perf_counter() - start)
    return {"preprocess_s": times, "preprocess_with": library}
