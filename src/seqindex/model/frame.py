"""The frame: the low-dimensional subspace span(w*, P) through which alone a student enters.

Write w = sqrt(d) (B s + nu v) with B (d x R) orthonormal, B[:, 0] = w*/sqrt(d), and v a unit vector orthogonal to B.
The state s in R^R, |s|^2 + nu^2 = 1, holds the overlap m = s[0] with the target and the coordinates e = s[1:] along the
encoding directions.  A student's fields are z = X w + Q s + c with Q = P B (L x R) and the constants c of an injected
encoding.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.encoding import Encoding


@dataclass(frozen=True)
class Frame:
    """Coordinates Q = P B of the encoding's rows in the orthonormal basis B of span(w*, P).

    Attributes:
        positions: Q, shape (L, R); the first column belongs to w*/sqrt(d).
        injection: c, shape (L,), constant shifts of the fields; None for zeros.

    Example:
        >>> Frame.of(3, None).positions.tolist()
        [[0.0], [0.0], [0.0]]
    """

    positions: NDArray[np.float64]
    injection: NDArray[np.float64] = None  # type: ignore[assignment]  # an array once made

    def __post_init__(self) -> None:
        positions = check.array("positions", self.positions, (None, None))
        if 0 in positions.shape:
            raise ValueError(f"positions must have at least one row and one column, got shape {positions.shape}")
        constants = np.zeros(len(positions)) if self.injection is None else self.injection
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "injection", check.array("injection", constants, (len(positions),)))

    @classmethod
    def of(cls, length: int, encoding: Encoding | None) -> Frame:
        """Frame of an encoding; without one it is w* alone."""
        if encoding is None:
            return cls(np.zeros((length, 1)))
        return cls(np.column_stack([encoding.target_component, encoding.matrix]), encoding.injection)

    @property
    def rank(self) -> int:
        """Number R of basis vectors; the dimension d must be at least R + 1."""
        return int(self.positions.shape[1])

    @property
    def directions(self) -> int:
        """Number r = R - 1 of encoding directions."""
        return self.rank - 1

    def state(self, m: float, e: ArrayLike | None = None) -> NDArray[np.float64]:
        """State s, shape (R,), of given overlaps m and e (zeros where e is None).

        Raises:
            TypeError: m or e that are no real numbers.
            ValueError: e of the wrong size, or m^2 + |e|^2 > 1.
        """
        scalar = isinstance(e, Real) or (isinstance(e, np.ndarray) and e.ndim == 0)
        given: Any = np.zeros(self.directions) if e is None else [e] if scalar else e
        coordinates = check.array("e", given, (self.directions,))
        s = np.concatenate([[check.number("m", m, -1.0, 1.0)], coordinates])
        if s @ s > 1.0 + 1e-12:
            raise ValueError(f"m^2 + |e|^2 must be at most 1, got {s @ s:.6g}")
        return s

    def offsets(self, s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shifts e_l + c_l of the fields, e_l = P_l.w / sqrt(d), shape (..., L), of states (..., R)."""
        shifts: NDArray[np.float64] = check.fields("s", s, self.rank) @ self.positions.T + self.injection
        return shifts

    def basis(self, dim: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """A uniformly random orthonormal basis B, shape (dim, R).

        Raises:
            ValueError: a dimension below R.
        """
        dim = check.integer("dim", dim, self.rank)
        q, upper = np.linalg.qr(rng.standard_normal((dim, self.rank)))
        signs = np.sign(np.diag(upper))
        basis: NDArray[np.float64] = q * signs
        return basis
