"""Smooth functions over the disc of overlaps, tabulated once on Chebyshev nodes and then cheap everywhere.

On the disc m^2 + e^2 <= 1 the coordinates are x and phi with e = sin(phi), m = cos(phi) x, in which a function that is
smooth up to the circle stays smooth, and all nodes with the same e share one set of integrals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Chart:
    """Interpolates functions of states (m,) or (m, e).

    Args:
        size: number p of coordinates, 1 or 2.
        degree: of the Chebyshev polynomials in each coordinate.

    Raises:
        ValueError: more than two coordinates.

    Example:
        >>> chart = Chart(2, degree=24)
        >>> function = chart.interpolate(lambda s: np.exp(s[..., :1]) * s[..., 1:] ** 3)
        >>> bool(abs(function(np.array([0.3, -0.4]))[0] - np.exp(0.3) * -0.4**3) < 1e-10)
        True
    """

    def __init__(self, size: int, degree: int = 32) -> None:
        if size not in (1, 2):
            raise ValueError(f"state must have one or two coordinates here, (m,) or (m, e), got {size}")
        self.size = size
        self.degree = degree
        self._nodes = np.cos(np.linspace(np.pi, 0.0, degree + 1))  # both ends included
        self._inverse = np.linalg.inv(chebyshev.chebvander(self._nodes, degree))

    @property
    def states(self) -> Array:
        """The nodes, (n, p)."""
        if self.size == 1:
            return self._nodes[:, None]
        phi, x = np.meshgrid(0.5 * np.pi * self._nodes, self._nodes, indexing="ij")
        return np.stack([np.cos(phi) * x, np.sin(phi)], axis=-1).reshape(-1, 2)

    def interpolate(self, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """The interpolant of a function (n, p) -> (n, ...), itself (..., p) -> (..., ...)."""
        values = np.asarray(function(self.states))
        shape = values.shape[1:]
        table = values.reshape(*(self.degree + 1,) * self.size, -1)
        for axis in range(self.size):
            table = np.moveaxis(np.tensordot(self._inverse, table, axes=(1, axis)), 0, axis)

        def interpolant(state: Array) -> Array:
            flat = state.reshape(-1, self.size)
            if self.size == 1:
                result = chebyshev.chebvander(flat[:, 0], self.degree) @ table
            else:
                phi = np.arcsin(np.clip(flat[:, 1], -1.0, 1.0))
                x = np.clip(flat[:, 0] / np.maximum(np.cos(phi), 1e-12), -1.0, 1.0)
                # As products of matrices, which are several times faster than one sum over three indices.
                by_e = chebyshev.chebvander(phi / (0.5 * np.pi), self.degree) @ table.reshape(self.degree + 1, -1)
                by_e = by_e.reshape(len(flat), self.degree + 1, -1)
                result = (chebyshev.chebvander(x, self.degree)[:, None] @ by_e)[:, 0]
            return np.asarray(result.reshape(*state.shape[:-1], *shape))

        return interpolant
