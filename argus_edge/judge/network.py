"""A small multilayer perceptron in numpy, trained by Adam on any loss whose gradient is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LossGradient = Callable[[Array, Array], Array]

__all__ = ["LossGradient", "Perceptron", "softmax"]


def softmax(logits: Array) -> Array:
    """Return the softmax over the last axis, shape unchanged."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


class Perceptron:
    """Fully connected layers with ReLU between them; inputs are standardised with the training set's mean and spread.

    Parameters
    ----------
    sizes
        Width of the input, of each hidden layer, and of the output.
    rng
        Draws the initial weights: uniform within ±1/sqrt(fan-in).
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        self.sizes = list(sizes)
        self.center = np.zeros(self.sizes[0], dtype=np.float32)
        self.spread = np.ones(self.sizes[0], dtype=np.float32)
        # One flat vector, with a view for each layer, so that a step of Adam is a handful of array operations.
        self.parameters = np.empty(sum((a + 1) * b for a, b in self._shapes()), dtype=np.float32)
        for weight, bias in self._views(self.parameters):
            bound = weight.shape[0] ** -0.5
            weight[:] = rng.uniform(-bound, bound, weight.shape)
            bias[:] = rng.uniform(-bound, bound, bias.shape)

    def _shapes(self) -> list[tuple[int, int]]:
        return list(pairwise(self.sizes))

    def _views(self, flat: Array) -> list[tuple[Array, Array]]:
        views, start = [], 0
        for fan_in, fan_out in self._shapes():
            weight = flat[start : start + fan_in * fan_out].reshape(fan_in, fan_out)
            start += fan_in * fan_out
            views.append((weight, flat[start : start + fan_out]))
            start += fan_out
        return views

    def hidden(self, features: Array) -> Array:
        """Return the last hidden layer's activations, shape (n, sizes[-2])."""
        values = (np.asarray(features, dtype=np.float32) - self.center) / self.spread
        for weight, bias in self._views(self.parameters)[:-1]:
            values = np.maximum(values @ weight + bias, 0)
        return values

    def __call__(self, features: Array) -> Array:
        """Return the outputs, shape (n, sizes[-1])."""
        weight, bias = self._views(self.parameters)[-1]
        return self.hidden(features) @ weight + bias

    def fit(
        self,
        features: Array,
        target: Array,
        gradient: LossGradient,
        rng: np.random.Generator,
        *,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        dropout: float = 0.0,
        standardise: bool = True,
    ) -> Perceptron:
        """Train in place by Adam (Kingma & Ba 2015) with a cosine decay of the learning rate to zero.

        Parameters
        ----------
        features, target
            Shapes (n, d) and (n,) or (n, m).
        gradient
            ``gradient(outputs, target)``: derivative of the batch's mean loss by the outputs, shape of the outputs.
        dropout
            Probability with which a hidden unit is left out of a step.
        standardise
            Whether the inputs are centred and scaled; ``False`` feeds them as they are.
        """
        features = np.asarray(features, dtype=np.float32)
        if standardise:
            self.center = features.mean(axis=0)
            self.spread = np.maximum(features.std(axis=0), np.float32(1e-6))
        inputs = (features - self.center) / self.spread
        layers = self._views(self.parameters)
        grad = np.empty_like(self.parameters)
        grads = self._views(grad)
        first, second, scratch = np.zeros_like(grad), np.zeros_like(grad), np.empty_like(grad)
        total = epochs * -(-len(inputs) // batch_size)
        step = 0
        for _ in range(epochs):
            order = rng.permutation(len(inputs))
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                self._backward(inputs[batch], target[batch], gradient, layers, grads, dropout, rng)
                step += 1
                rate = learning_rate * 0.5 * (1 + np.cos(np.pi * (step - 1) / total))
                first *= 0.9
                np.multiply(grad, 0.1, out=scratch)
                first += scratch
                second *= 0.999
                np.multiply(grad, grad, out=scratch)
                scratch *= 0.001
                second += scratch
                np.sqrt(second, out=scratch)
                scratch *= (1 - 0.999**step) ** -0.5
                scratch += 1e-8
                np.divide(first, scratch, out=scratch)
                scratch *= rate / (1 - 0.9**step)
                self.parameters -= scratch
        return self

    @staticmethod
    def _backward(
        inputs: Array,
        target: Array,
        gradient: LossGradient,
        layers: list[tuple[Array, Array]],
        grads: list[tuple[Array, Array]],
        dropout: float,
        rng: np.random.Generator,
    ) -> None:
        """Fill ``grads`` with the derivative of one batch's loss."""
        activations = [inputs]
        masks: list[Array] = []
        for index, (weight, bias) in enumerate(layers):
            values = activations[-1] @ weight
            values += bias
            if index < len(layers) - 1:
                mask = (values > 0).astype(np.float32)
                if dropout:
                    mask *= (rng.random(values.shape, dtype=np.float32) >= dropout) / np.float32(1 - dropout)
                values *= mask
                masks.append(mask)
            activations.append(values)
        delta = gradient(activations[-1], target).astype(np.float32, copy=False)
        for index in range(len(layers) - 1, -1, -1):
            np.matmul(activations[index].T, delta, out=grads[index][0])
            np.sum(delta, axis=0, out=grads[index][1])
            if index:
                delta = delta @ layers[index][0].T
                delta *= masks[index - 1]

    def state(self) -> dict[str, Any]:
        """Return what :meth:`from_state` needs: sizes and arrays."""
        return {
            "sizes": self.sizes,
            "center": self.center,
            "spread": self.spread,
            "parameters": self.parameters,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Perceptron:
        """Rebuild a network from :meth:`state`."""
        sizes = [int(size) for size in state["sizes"]]
        count = sum((a + 1) * b for a, b in pairwise(sizes))
        if min(sizes, default=0) < 1 or count != len(state["parameters"]):
            raise ValueError("the network's sizes do not match its parameters")
        network = cls(sizes, np.random.default_rng(0))
        for name in ("center", "spread", "parameters"):
            array = np.asarray(state[name], dtype=np.float32)
            if array.shape != getattr(network, name).shape:
                raise ValueError(f"the network's {name} has shape {array.shape}")
            setattr(network, name, array)
        return network
