"""The frame: the low-dimensional subspace span(w*, P) through which alone a student enters.

Write w = sqrt(d) (B s + nu v) with B (d x R) orthonormal, B[:, 0] = w*/sqrt(d), and v a unit vector orthogonal to B.
The state s in R^R, |s|^2 + nu^2 = 1, holds the overlap m = s[0] with the target and the coordinates e = s[1:] along the
encoding directions.  A student's fields are z = X w + Q s with Q = P B (L x R).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.encoding import Encoding


@dataclass(frozen=True)
class Frame:
    """Coordinates Q = P B of the encoding's rows in the orthonormal basis B of span(w*, P).

    Attributes:
        positions: Q, shape (L, R); the first column belongs to w*/sqrt(d).

    Example:
        >>> Frame.of(3, None).positions.tolist()
        [[0.0], [0.0], [0.0]]
    """

    positions: NDArray[np.float64]

    @classmethod
    def of(cls, length: int, encoding: Encoding | None) -> Frame:
        """Frame of an encoding; without one it is w* alone."""
        if encoding is None:
            return cls(np.zeros((length, 1)))
        return cls(np.column_stack([encoding.target_component, encoding.matrix]))

    @property
    def rank(self) -> int:
        """Number R of basis vectors; the dimension d must be at least R + 1."""
        return int(self.positions.shape[1])

    @property
    def directions(self) -> int:
        """Number r = R - 1 of encoding directions."""
        return self.rank - 1

    def state(self, m: object, e: object = None) -> NDArray[np.float64]:
        """State s, shape (R,), of given overlaps m and e (zeros where e is None).

        Raises:
            ValueError: e of the wrong size, or m^2 + |e|^2 > 1.
        """
        coordinates = np.zeros(self.directions) if e is None else np.atleast_1d(np.asarray(e, dtype=np.float64))
        coordinates = check.array("e", coordinates, (self.directions,))
        s = np.concatenate([[check.number("m", m, -1.0, 1.0)], coordinates])
        if s @ s > 1.0 + 1e-12:
            raise ValueError(f"m^2 + |e|^2 must be at most 1, got {s @ s:.6g}")
        return s

    def offsets(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shifts e_l = P_l.w / sqrt(d) of the fields, shape (..., L), of states (..., R)."""
        return s @ self.positions.T

    def basis(self, dim: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """A uniformly random orthonormal basis B, shape (dim, R)."""
        q, upper = np.linalg.qr(rng.standard_normal((dim, self.rank)))
        signs: NDArray[np.float64] = np.sign(np.diag(upper))
        return q * signs
