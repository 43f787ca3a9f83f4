"""Every method: coverage, groups, determinism, and a state that survives JSON; where a library has it, its figures."""

import json

import numpy as np
import pytest
from judge_simulation import simulate

from argus_edge.judge.encoding import decode, encode
from argus_edge.judge.methods import METHODS, base
from argus_edge.judge.methods.base import Rows
from argus_edge.judge.methods.chr import histogram_of_quantiles, nested_windows
from argus_edge.judge.methods.integer import Multinomial
from argus_edge.judge.methods.lvd import weighted_quantiles
from argus_edge.judge.methods.r2ccp import density_hull
from argus_edge.judge.scale import Scale

ALL = list(METHODS)
QUICK = ["integer", "integer-cross", "naive", "ordinal-aps"]
NEEDS = {"naive": "crepes", "boosted-cqr": "crepes", "boosted-lcp": "crepes", "cqr": "mapie", "cqr-asymmetric": "mapie"}


def fitted(name, rows=400, groups=1, alpha=0.2, levels=5, seed=0):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    logs, _, human, task = simulate(2 * rows, seed, levels, tasks=groups)
    numbers = np.array([int(name[5:]) for name in task])
    known, new = Rows(logs[:rows], numbers[:rows]), Rows(logs[rows:], numbers[rows:])
    method = METHODS[name](Scale(levels), alpha, groups).fit(known, human[:rows], seed)
    return method, new, human[rows:]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_a_method_covers_and_survives_json(name):
    method, new, human = fitted(name)
    found = method.predict(new)
    # 0.8 wanted; four standard deviations of the beta-binomial law at these sizes allow 0.8 − 0.15.
    assert found.covers(human).mean() >= 0.65
    assert (found.lower >= 1).all()
    assert (found.upper <= 5).all()
    again = METHODS[name](Scale(5), 0.2).load(decode(json.loads(json.dumps(encode(method.state()), allow_nan=True))))
    other = again.predict(new)
    assert np.allclose(found.lower, other.lower)
    assert np.allclose(found.upper, other.upper)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_groups_are_calibrated_apart_and_an_unknown_one_is_infinite(name):
    method, new, human = fitted(name, groups=2)
    groups = new.groups.copy()
    groups[:5] = -1
    found = method.predict(Rows(new.features, groups))
    assert found.unbounded[:5].all()
    assert found.unbounded[5:].mean() < 0.5
    for group in (0, 1):
        assert found.covers(human)[groups == group].mean() >= 0.6


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("levels", [2, 3, 7, 10])
def test_any_scale(name, levels):
    method, new, human = fitted(name, rows=200, levels=levels)
    found = method.predict(new)
    assert found.covers(human).mean() >= 0.6
    assert (found.upper <= levels).all()


@pytest.mark.parametrize("name", QUICK)
def test_the_same_seed_gives_the_same_intervals(name):
    first, new, _ = fitted(name, rows=150)
    second, _, _ = fitted(name, rows=150)
    assert np.array_equal(first.predict(new).lower, second.predict(new).lower)


@pytest.mark.parametrize("name", ["integer", "naive", "ordinal-aps", "integer-cross"])
def test_a_group_with_too_few_rows_is_infinite(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    logs, _, human, _ = simulate(203, 1)
    groups = np.zeros(203, int)
    groups[:3] = 1
    found = METHODS[name](Scale(5), 0.1, 2).fit(Rows(logs, groups), human, 0).predict(Rows(logs, groups))
    assert found.unbounded[:3].all()
    assert not found.unbounded[3:].any()


@pytest.mark.parametrize("name", ["integer", "naive"])
def test_of_a_huge_table_some_rows_train_and_all_others_calibrate(name, monkeypatch):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.setattr(base, "MOST_TRAINING_ROWS", 60)
    trained = []
    kind = METHODS[name]
    train = kind.train
    monkeypatch.setattr(kind, "train", lambda self, rows, *rest: (trained.append(len(rows)), train(self, rows, *rest)))
    logs, _, human, _ = simulate(1000, 3)
    groups = np.arange(1000) % 2
    method = kind(Scale(5), 0.1, 2).fit(Rows(logs, groups), human, 0)
    assert trained == [60]
    assert method.group_rows.sum() == 940
    assert method.predict(Rows(logs, groups)).covers(human).mean() == pytest.approx(0.9, abs=0.04)


def test_each_fold_of_a_huge_table_is_trained_on_some_of_the_others(monkeypatch):
    monkeypatch.setattr(base, "MOST_TRAINING_ROWS", 60)
    trained = []
    fit = Multinomial.fit
    monkeypatch.setattr(
        Multinomial, "fit", lambda self, rows, *rest: (trained.append(len(rows)), fit(self, rows, *rest))[1]
    )
    method, new, human = fitted("integer-cross", rows=600)
    assert trained == [60] * 10
    assert method.group_rows.sum() == 600
    assert method.predict(new).covers(human).mean() >= 0.75


@pytest.mark.parametrize("labels", [[3], [2, 4]])
def test_few_distinct_labels_are_no_obstacle(labels):
    logs, _, _, _ = simulate(100, 0)
    human = np.array(labels)[np.arange(100) % len(labels)]
    rows = Rows(logs, np.zeros(100, int))
    found = METHODS["integer"](Scale(5), 0.1).fit(rows, human, 0).predict(rows)
    assert found.covers(human).mean() >= 0.85


@pytest.mark.parametrize("symmetric", [True, False])
def test_cqr_is_mapie(symmetric):
    pytest.importorskip("mapie")
    from mapie.regression import ConformalizedQuantileRegressor

    name = "cqr" if symmetric else "cqr-asymmetric"
    logs, _, human, _ = simulate(300, 4)
    method = METHODS[name](Scale(5), 0.2)
    rows = Rows(logs, np.zeros(300, int))
    rng = np.random.default_rng(0)
    method.train(rows.take(np.arange(150)), human[:150], rng)
    method.calibrate(rows.take(np.arange(150, 300)), human[150:])
    reference = ConformalizedQuantileRegressor(method._fitted, confidence_level=0.8, prefit=True)
    reference.conformalize(logs[150:], human[150:])
    _, wanted = reference.predict_interval(logs[:50], symmetric_correction=symmetric)
    lower, upper = method.ends(rows.take(np.arange(50)), np.repeat(method.thresholds, 50, axis=0))
    assert lower == pytest.approx(wanted[:, 0, 0])
    assert upper == pytest.approx(wanted[:, 1, 0])


def test_naive_split_is_mapie_too():
    pytest.importorskip("crepes")
    pytest.importorskip("mapie")
    from mapie.regression import SplitConformalRegressor
    from sklearn.dummy import DummyRegressor

    logs, _, human, _ = simulate(300, 5)
    method = METHODS["naive"](Scale(5), 0.1)
    rows = Rows(logs, np.zeros(300, int))
    method.train(rows.take(np.arange(150)), human[:150], np.random.default_rng(0))
    method.calibrate(rows.take(np.arange(150, 300)), human[150:])

    class Ours(DummyRegressor):
        def predict(self, features):
            return method.mean(features)

    reference = SplitConformalRegressor(Ours().fit(logs, human), confidence_level=0.9, prefit=True)
    reference.conformalize(logs[150:], human[150:])
    _, wanted = reference.predict_interval(logs[:50])
    lower, upper = method.ends(rows.take(np.arange(50)), np.repeat(method.thresholds, 50))
    assert lower == pytest.approx(wanted[:, 0, 0])
    assert upper == pytest.approx(wanted[:, 1, 0])


def test_hull_of_a_density_by_hand():
    grid = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    density = np.array([[0.0, 0.2, 0.4, 0.2, 0.0], [0.4, 0.1, 0.0, 0.1, 0.4], [0.1, 0.1, 0.1, 0.1, 0.1]])
    lower, upper = density_hull(grid, density, np.array([0.3, 0.2, 0.5]))
    assert lower == pytest.approx([2.5, 1, 1])  # two peaks: their hull; nowhere high enough: everything
    assert upper == pytest.approx([3.5, 5, 5])


def test_nested_windows_are_shortest_and_nested():
    mass = np.array([[0.1, 0.4, 0.3, 0.1, 0.1]])
    levels = np.array([0.3, 0.6, 0.85])
    low, high = nested_windows(mass, levels, 0.6)
    assert (low[:, 0].tolist(), high[:, 0].tolist()) == ([1, 1, 0], [1, 2, 3])  # of two equally short ones the first
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.ones(12), 50)
    levels = np.linspace(0.1, 0.95, 18)
    low, high = nested_windows(mass, levels, 0.5)
    assert (np.diff(low, axis=0) <= 0).all()
    assert (np.diff(high, axis=0) >= 0).all()
    for level, first, last in zip(levels, low, high, strict=True):
        held = [mass[row, first[row] : last[row] + 1].sum() for row in range(len(mass))]
        assert min(held) >= level - 1e-5


def test_histogram_holds_all_mass_where_the_quantiles_are():
    quantiles = np.full((1, 99), 3.0)
    mass = histogram_of_quantiles(quantiles, np.linspace(0, 6, 61))
    assert mass.sum() == pytest.approx(1)
    assert mass[0, 29:32].sum() > 0.97


def test_weighted_quantiles_by_hand():
    values = np.array([1.0, 2.0, 3.0])
    weights = np.array([[0.5, 0.2, 0.2], [0.3, 0.3, 0.3], [0.1, 0.1, 0.1]])
    assert weighted_quantiles(values, weights, 0.7).tolist() == [2.0, 3.0, np.inf]


def test_similar_rows_are_looked_for_among_so_many_at_most(monkeypatch):
    whole, _, _ = fitted("lvd", rows=800, groups=2)
    assert len(whole.residuals) == whole.group_rows.sum() == 400
    monkeypatch.setattr(METHODS["lvd"], "most_kept", 200)
    monkeypatch.setattr(METHODS["lvd"], "most_of_group", 80)
    method, new, human = fitted("lvd", rows=800, groups=2)
    assert np.bincount(method.point_groups).tolist() == [100, 100]
    assert (np.diff(method.residuals) >= 0).all()
    assert method.predict(new).covers(human).mean() >= 0.7
    monkeypatch.setattr(METHODS["lvd"], "most_kept", 100)
    method, _, _ = fitted("lvd", rows=800, groups=2)
    assert np.bincount(method.point_groups).tolist() == [80, 80]


@pytest.mark.slow
def test_boosting_shortens_intervals_where_there_is_something_to_gain():
    from argus_edge.judge.boosting import boost_lengths
    from argus_edge.judge.conformal import conformal_quantile

    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (1500, 2))
    labels = 2 * (features[:, 0] > 0) + (0.2 + 0.8 * (features[:, 1] > 0)) * rng.standard_normal(1500)
    flat, unit = np.full(1500, labels.mean()), np.ones(1500)

    def length(center, spread):
        return 2 * spread.mean() * conformal_quantile(np.abs(labels - center) / spread, 0.1)

    boosted = boost_lengths(features, labels, flat, unit, 0.1, 0.02, rounds=200)
    assert length(*boosted.apply(features, flat, unit)) < 0.85 * length(flat, unit)
