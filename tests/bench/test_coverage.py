"""The claim of the percentile intervals: they cover the true percentile, also where neighbours resemble each other."""

import math
import statistics

import numpy as np
import pytest

from argus_edge.bench.percentiles import percentile
from tests.support.series import ar1

SERIES = 150
SAMPLES = 3000


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("p", [0.5, 0.95])
def test_intervals_cover(phi, p):
    truth = statistics.NormalDist().inv_cdf(p)
    rng = np.random.default_rng([round(phi * 10), round(p * 100)])
    covered = 0
    for _ in range(SERIES):
        found = percentile(ar1(rng, SAMPLES, phi), p)
        covered += (found.low is None or found.low <= truth) and (found.high is None or truth <= found.high)
    # Three standard errors of 150 series around 95 %; at phi = .9 the design asks for 92-96 %.
    assert covered / SERIES >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / SERIES) - (0.03 if phi == 0.9 else 0.0)
