"""Functions of many fields by scrambled Sobol points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from seqindex.gaussian.adaptive import finite_values
from seqindex.gaussian.hermite import normalised_hermite
from seqindex.gaussian.sobol import sobol_normals
from seqindex.theory.factors import Entries, Entry, TooManyEntriesError

Array = NDArray[np.float64]

FALSE_ALARM = 3e-7
"""Chance that a sampled coefficient that is zero exceeds its error, one-sided: five standard errors of a normal law."""
_SAMPLES = 2**16
_SCRAMBLES = 32


class Samples:
    """A function of many fields at scrambled Sobol points.

    Args:
        positions: the n positions, counted from 1.
        function: maps their fields (m, n) to values (m, k).

    Attributes:
        points: (scrambles, m, n).
        values: (k, scrambles, m).
        parity: for every output 1 where it is even in all fields at once, -1 where it is odd, else 0.
        parities: the same for every single field, (n, k).
    """

    def __init__(self, positions: Sequence[int], function: Callable[[Array], Array]) -> None:
        self.positions = tuple(positions)
        n = len(self.positions)
        self.points = sobol_normals(n, min(_SAMPLES, 2**23 // n), _SCRAMBLES, seed=2506)
        flat = self.points.reshape(-1, n)
        self.values = finite_values(lambda z: function(z).T, flat).reshape(-1, *self.points.shape[:2])
        probe = flat[:256]
        flips = np.where(np.eye(n, dtype=bool), -1.0, 1.0)
        with np.errstate(all="ignore"):
            labels = function(probe)
            self.parity = _parity(labels, function(-probe))
            self.parities = np.array([_parity(labels, function(probe * flip)) for flip in flips])


def _parity(labels: Array, mirrored: Array) -> Array:
    size = 1e-12 * np.abs(labels).max(0)
    even, odd = np.abs(labels - mirrored).max(0) <= size, np.abs(labels + mirrored).max(0) <= size
    return np.where(even, 1, np.where(odd, -1, 0))


class SampledFactor:
    """A function of many fields, by scrambled Sobol points.

    Errors are about five standard errors over the scrambles.  Coefficients that a parity of the function (in all fields
    at once or in one of them, found at random points) forces to be zero are zero.

    Args:
        samples: the function at the points.
        output: which output.
    """

    exact = False
    sampled = True

    def __init__(self, samples: Samples, output: int = 0) -> None:
        self.positions, self._z, self._f = samples.positions, samples.points, samples.values[output]
        self.norm = float(np.sqrt((self._f**2).mean()))
        self._parity = int(samples.parity[output])
        self._parities = samples.parities[:, output].tolist()

    def taylor(self, vector: Array, order: int) -> tuple[Array, Array]:
        """See ``Factor``."""
        v = vector[np.array(self.positions) - 1]
        length = float(np.linalg.norm(v))
        values, errors = np.zeros((2, order + 1))
        h = normalised_hermite(self._z @ (v / length if length else v), order)
        for k in range(order + 1 if length else 1):
            if self._parity * (-1) ** k >= 0:
                scale = length**k * math.exp(-0.5 * math.lgamma(k + 1.0))
                values[k], errors[k] = (scale * x for x in self._mean(h[k], order + 1))
        return values, errors

    def entries(self, order: int) -> Entries:
        """See ``Factor``."""
        n = len(self.positions)
        count = math.comb(n + order - 1, order)
        if count * self._f.size > 2**30:
            raise TooManyEntriesError(f"C_{order} has {count:,} entries, more than can be sampled")
        h = normalised_hermite(self._z, order)
        result: Entries = {}
        for places in itertools.combinations_with_replacement(range(n), order):
            degree = [places.count(i) for i in sorted(set(places))]
            if self._parity * (-1) ** order < 0 or self._odd_out(places):
                continue
            product = math.prod(h[d][..., i] for i, d in zip(sorted(set(places)), degree, strict=True))
            scale = math.sqrt(math.prod(map(math.factorial, degree)))
            value, error = self._mean(np.asarray(product), count)
            index = tuple((self.positions[i], d) for i, d in zip(sorted(set(places)), degree, strict=True))
            result[index] = Entry(value * scale, error * scale, self.norm * scale)
        return result

    def _odd_out(self, places: Sequence[int]) -> bool:
        return any(parity * (-1) ** places.count(i) < 0 for i, parity in enumerate(self._parities))

    def _mean(self, weight: Array, count: int) -> tuple[float, float]:
        means = (self._f * weight).mean(1)
        quantile = -stdtrit(_SCRAMBLES - 1, FALSE_ALARM / count)
        return float(means.mean()), float(quantile * means.std(ddof=1) / math.sqrt(_SCRAMBLES))
