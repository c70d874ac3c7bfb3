"""Homogeneous forms of several variables: values, gradients, extrema on the sphere, eigenvectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Array = NDArray[np.float64]

_STEPS = 2000
_SCOUTING = 60
"""Steps that all starts make."""
_FINALISTS = 8
_CHUNK = 2**22


class SymmetricForm:
    """f(x) = <C, x^{(x) k}> = sum_j weights_j x^{alpha_j} of n variables, degree k.

    Args:
        size: n.
        order: k.
        indices: for every term its pairs (variable, degree >= 1).
        weights: (k! / alpha!) C_alpha of every term.

    Example:
        >>> form = SymmetricForm(2, 3, [[(0, 2), (1, 1)]], np.array([3.0]))  # 3 x^2 y
        >>> round(form.largest(starts=16, seed=0), 12)  # at x^2 = 2/3
        1.154700538379
    """

    def __init__(self, size: int, order: int, indices: Sequence[Sequence[tuple[int, int]]], weights: Array) -> None:
        self.size, self.order, self.weights = size, order, weights
        width = max(map(len, indices), default=0)
        # Padded to one width: a variable to the power zero changes nothing.
        self._variables = np.zeros((len(indices), width), dtype=np.int64)
        self._degrees = np.zeros((len(indices), width), dtype=np.int64)
        for row, index in enumerate(indices):
            for column, (variable, degree) in enumerate(index):
                self._variables[row, column], self._degrees[row, column] = variable, degree

    def terms(self, x: Array) -> Array:
        """Terms of f at x (..., n), shape (..., terms)."""
        return np.asarray(self.weights * (x[..., self._variables] ** self._degrees).prod(-1))

    def value(self, x: Array) -> Array:
        """F at x, shape (..., n) -> (...)."""
        return np.asarray(self.terms(x).sum(-1))

    def gradient(self, x: Array) -> Array:
        """Gradient of f at x, shape (m, n) -> (m, n): k C(x, ..., x, .)."""
        result = np.zeros_like(x)
        for part in self._parts(len(x)):
            powers, lowered = self._powers(x, part)
            for column in range(powers.shape[-1]):
                others = np.delete(powers, column, axis=-1).prod(-1)
                pieces = self.weights[part] * lowered[..., column] * others
                count = pieces.shape[1]
                collect = csr_array(
                    (np.ones(count), (self._variables[part, column], np.arange(count))), shape=(self.size, count)
                )
                result += (collect @ pieces.T).T
        return result

    def matrix(self, w: Array | None) -> Array:
        """The matrix C(w, ..., w, ., .), (n, n): the Hessian of f at w over k (k - 1); w is not needed at k = 2."""
        x = np.zeros((1, self.size)) if w is None else w[None]
        result = np.zeros((self.size, self.size))
        powers, lowered = (array[0] for array in self._powers(x, slice(None)))
        base = x[0][self._variables]
        width = powers.shape[-1]
        for i in range(width):
            others = np.delete(powers, i, axis=-1).prod(-1)
            d = self._degrees[:, i]
            twice = np.where(d >= 2, d * (d - 1) * base[:, i] ** np.maximum(d - 2, 0), 0.0)
            np.add.at(result, (self._variables[:, i], self._variables[:, i]), self.weights * twice * others)
            for j in range(i + 1, width):
                rest = np.delete(powers, [i, j], axis=-1).prod(-1)
                pieces = self.weights * lowered[:, i] * lowered[:, j] * rest
                np.add.at(result, (self._variables[:, i], self._variables[:, j]), pieces)
                np.add.at(result, (self._variables[:, j], self._variables[:, i]), pieces)
        return result / (self.order * (self.order - 1))

    def largest(self, starts: int, seed: int) -> float:
        """max |f| on the sphere; see ``peak``."""
        return self.peak(starts, seed, (1.0, -1.0))[0]

    def peak(self, starts: int, seed: int, signs: Sequence[float]) -> tuple[float, Array]:
        """max s f over the sphere and the given signs s, with the point (n,), by ascent from random and other starts.

        x <- s grad f(x) / k + shift x, normalised, raises s f at every step where the shift is at least (k - 1) times
        the largest value of |f| (the shifted symmetric higher-order power method of Kolda and Mayo, 2011).
        """
        first = self._starts(starts, seed)
        x = np.concatenate([first] * len(signs))
        sign = np.repeat(np.asarray(signs, dtype=np.float64), len(first))[:, None]
        size = float(np.abs(self.value(x)).max())
        values = sign[:, 0] * self.value(x)
        top = int(values.argmax())
        best, point = float(values[top]), x[top]
        for step in range(_STEPS):
            gradient = self.gradient(x) / self.order
            value = (gradient * x).sum(-1)
            size = max(size, float(np.abs(value).max()))
            top = int((sign[:, 0] * value).argmax())
            if sign[top, 0] * value[top] > best:
                best, point = float(sign[top, 0] * value[top]), x[top]
            rest = np.linalg.norm(gradient - value[:, None] * x, axis=-1)
            if step == _SCOUTING:  # the highest go on
                kept = np.argsort(-sign[:, 0] * value, kind="stable")[:_FINALISTS]
                x, sign, gradient, rest = x[kept], sign[kept], gradient[kept], rest[kept]
            if (rest <= 1e-8 * size).all():
                break
            moved = sign * gradient + (self.order - 1) * size * x
            x = moved / np.linalg.norm(moved, axis=-1, keepdims=True)
        return best, point

    def _starts(self, count: int, seed: int) -> Array:
        rng = np.random.default_rng(seed)
        random = rng.standard_normal((count, self.size))
        # Coordinates that carry the most weight, at most so many that large sizes stay quick.
        strength = np.bincount(
            self._variables.ravel(), (np.abs(self.weights)[:, None] * (self._degrees > 0)).ravel(), minlength=self.size
        )
        coordinates = np.eye(self.size)[np.argsort(-strength, kind="stable")[: max(count, 16)]]
        leading = np.linalg.eigh(self.matrix(random[0]))[1].T if self.size <= 64 else coordinates[:0]
        x = np.concatenate(
            [random, rng.choice([-1.0, 1.0], (4, self.size)), np.ones((1, self.size)), coordinates, leading]
        )
        return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))

    def eigenvectors(self) -> tuple[Array, Array]:
        """<C, q_i^{(x) k}> and the rows q_i, the eigenvectors of C(w, ..., w, ., .) at the best of a few random w."""
        rng = np.random.default_rng(1)
        best: tuple[Array, Array] | None = None
        for _ in range(1 if self.order == 2 else 4):
            w = rng.standard_normal(self.size)
            vectors = np.linalg.eigh(self.matrix(w / np.linalg.norm(w)))[1].T
            weights = self.value(vectors)
            if best is None or (weights**2).sum() > (best[0] ** 2).sum():
                best = weights, vectors
        assert best is not None
        return best

    def _powers(self, x: Array, part: slice) -> tuple[Array, Array]:
        """x_l^alpha_l and alpha_l x_l^(alpha_l - 1), shape (m, terms, width)."""
        degrees = self._degrees[part]
        base = x[:, self._variables[part]]
        return base**degrees, degrees * base ** np.maximum(degrees - 1, 0)

    def _parts(self, count: int) -> list[slice]:
        step = max(1, _CHUNK // max(count * self._variables.shape[1], 1))
        return [slice(start, start + step) for start in range(0, len(self.weights), step)]
