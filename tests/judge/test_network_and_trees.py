"""The small network against numerical derivatives, and tree ensembles against scikit-learn."""

import numpy as np
import pytest

from argus_edge.judge.encoding import decode, encode
from argus_edge.judge.network import Perceptron, softmax
from argus_edge.judge.pinball import pinball_gradient
from argus_edge.judge.trees import Forest


def test_backward_pass_is_the_numerical_derivative():
    rng = np.random.default_rng(0)
    network = Perceptron([3, 7, 5, 2], rng)
    inputs = rng.standard_normal((11, 3)).astype(np.float32)
    target = rng.standard_normal((11, 2)).astype(np.float32)
    # In double precision, so that a small step shows the derivative and not rounding.
    network.parameters = network.parameters.astype(np.float64)

    def gradient(outputs, wanted):
        return 2 * (outputs - wanted) / outputs.size

    grad = np.empty_like(network.parameters)
    network._backward(inputs, target, gradient, network._views(network.parameters), network._views(grad), 0.0, rng)
    for index in rng.integers(0, len(grad), 40):
        keep = network.parameters[index]
        losses = []
        for shift in (1e-5, -1e-5):
            network.parameters[index] = keep + shift
            losses.append(float(np.mean((network(inputs) - target) ** 2)))
        network.parameters[index] = keep
        assert grad[index] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-3, abs=1e-6)


def test_training_learns_a_function_and_survives_encoding():
    rng = np.random.default_rng(1)
    inputs = rng.uniform(-2, 2, (800, 2))
    target = np.sin(inputs[:, 0]) + inputs[:, 1]

    def gradient(outputs, wanted):
        return (outputs - wanted[:, None]) * np.float32(2 / len(outputs))

    network = Perceptron([2, 32, 32, 1], rng).fit(
        inputs, target.astype(np.float32), gradient, rng, epochs=60, batch_size=32, learning_rate=3e-3
    )
    assert np.mean((network(inputs)[:, 0] - target) ** 2) < 0.02 * target.var()
    again = Perceptron.from_state(decode(encode(network.state())))
    assert np.array_equal(again(inputs), network(inputs))


def test_pinball_network_finds_quantiles():
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((4000, 1))
    target = rng.standard_normal(4000).astype(np.float32)
    network = Perceptron([1, 16, 3], rng).fit(
        inputs, target, pinball_gradient(np.array([0.1, 0.5, 0.9])), rng, epochs=30, batch_size=64, learning_rate=3e-3
    )
    assert np.sort(network(inputs), axis=1).mean(axis=0) == pytest.approx([-1.28, 0, 1.28], abs=0.15)


def test_softmax_sums_to_one_for_large_logits():
    assert softmax(np.array([[1000.0, 999.0, -1000.0]])).sum() == pytest.approx(1)


def test_forest_equals_scikit_learn():
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    rng = np.random.default_rng(3)
    inputs, target = rng.standard_normal((300, 4)), rng.standard_normal(300)
    new = rng.standard_normal((200, 4))
    boosted = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(inputs, target)
    ours = Forest.from_sklearn(
        list(boosted.estimators_[:, 0]), offset=float(boosted.init_.constant_[0, 0]), scale=boosted.learning_rate
    )
    assert ours(new) == pytest.approx(boosted.predict(new))
    forest = RandomForestRegressor(10, random_state=0).fit(inputs, target)
    ours = Forest.from_state(decode(encode(Forest.from_sklearn(list(forest), scale=0.1).state())))
    assert ours(new) == pytest.approx(forest.predict(new))


@pytest.mark.parametrize("left", [[0, -1, -1], [1, -1, -1, 5], [7, -1, -1]])
def test_trees_that_would_not_end_are_refused(left):
    arrays = {
        "roots": [0],
        "left": left,
        "right": [2, -1, -1],
        "feature": [0, -2, -2],
        "threshold": [0.0, 0, 0],
        "value": [0.0, 1, 2],
    }
    with pytest.raises(ValueError, match="hold together"):
        Forest.from_state({**arrays, "offset": 0.0, "scale": 1.0})


@pytest.mark.parametrize(
    "broken",
    [
        {"dtype": "<f8", "shape": [2], "base64": "AAAA"},
        {"dtype": "|O", "shape": [1], "base64": ""},
        {"dtype": "<f8", "shape": [-1], "base64": ""},
        {"dtype": "<f8", "shape": [1], "base64": "not base64!"},
    ],
)
def test_arrays_that_do_not_hold_are_refused(broken):
    with pytest.raises(ValueError, match="array of the state"):
        decode({"weights": broken})
