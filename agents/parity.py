"""Parity on the board: golden inputs are run once, the outputs compared with those that the host recorded."""

from .home import Fault


def cases_of(golden):
    """Group the arrays in/<input>/<k> and out/<output>/<k> of a golden file.

    Returns
    -------
    list of (inputs, outputs)
        One pair of dicts a case, in the order of their names k.
    """
    cases = {}
    for name, array in golden.items():
        side, _, rest = name.partition("/")
        value, _, case = rest.rpartition("/")
        if side not in ("in", "out") or not value:
            raise Fault(
                "input-rejected", "a golden array is named %r, not in/<input>/<k> or out/<output>/<k>" % name[:200]
            )
        cases.setdefault(case, ({}, {}))[side == "out"][value] = array
    if not cases or not all(inputs and outputs for inputs, outputs in cases.values()):
        raise Fault("input-rejected", "a golden case lacks its inputs or its outputs")
    return [cases[case] for case in sorted(cases, key=lambda case: (len(case), case))]


def difference(found, expected):
    """Return (largest absolute error, cosine) of two arrays of any type, computed in float64.

    Two arrays of zeros have cosine 1, zeros against anything else 0. Where one is not finite and the other differs
    there, the error is infinite in principle; it is given as the largest float and the cosine as -1, since JSON has
    no infinity.
    """
    import numpy

    if tuple(found.shape) != tuple(expected.shape):
        raise Fault("runtime-error", "an output has shape %s, its golden %s" % (found.shape, expected.shape))
    if not found.size:
        return 0.0, 1.0
    found, expected = (numpy.asarray(array, dtype=numpy.float64).ravel() for array in (found, expected))
    same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
    if not numpy.isfinite(found[~same]).all() or not numpy.isfinite(expected[~same]).all():
        return float(numpy.finfo(numpy.float64).max), -1.0
    if same.all():
        return 0.0, 1.0
    keep = numpy.isfinite(found) & numpy.isfinite(expected)
    found, expected = found[keep], expected[keep]
    error = float(numpy.abs(found - expected).max())
    # Scaled first, so that the squares of large values do not overflow.
    found, expected = (array / (numpy.abs(array).max() or 1.0) for array in (found, expected))
    norms = float(numpy.sqrt((found**2).sum()) * numpy.sqrt((expected**2).sum()))
    return error, float((found * expected).sum()) / norms if norms else 0.0


def compare_golden(infer, golden):
    """Return ``ParityFigures`` of a model, the worst over all cases and outputs.

    Parameters
    ----------
    infer
        Function from a dict of inputs to a dict of outputs.
    golden
        Arrays of the golden file by name.
    """
    errors, cosines = {}, []
    cases = cases_of(golden)
    for inputs, outputs in cases:
        found = infer(inputs)
        for name, expected in outputs.items():
            if name not in found:
                raise Fault("runtime-error", "the model gives no output named %s" % name[:200])
            error, cosine = difference(found[name], expected)
            errors[name[:128]] = max(error, errors.get(name[:128], 0.0))
            cosines.append(cosine)
    return {
        "cases": len(cases),
        "max_abs_error": max(errors.values()),
        "cosine_min": min(cosines),
        "outputs": errors,
    }
