"""When a replica has converged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check


@dataclass(frozen=True)
class Near:
    """A replica has converged once its state (m, e) is within ``distance`` of one of ``points``.

    The points are the end points to be told apart, for instance the minima of the population risk, every sign listed;
    the distance is taken well below the distance from a minimum to the edge of its basin and well above the stationary
    noise around it, so that what is called converged no longer leaves.

    Args:
        points: (n, R) states (m, e_1, ...); (n, L) states (m_1, ..., m_L) of untied networks.
        distance: Euclidean distance.

    Raises:
        ValueError: a distance that is not positive, or points of a wrong shape.

    Example:
        >>> Near([(1.0, 0.0), (0.0, 1.0)], distance=0.3).reached(np.array([[0.9, 0.5], [0.1, 0.5]])).tolist()
        [True, False]
    """

    points: ArrayLike
    distance: float

    def __post_init__(self) -> None:
        check.array("points", self.points, (None, None))
        check.number("distance", self.distance, positive=True)

    def reached(self, s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the states s, shape (R, n), have converged, shape (n,)."""
        points = check.array("points", self.points, (None, len(s)))
        square = ((s[None] - points[:, :, None]) ** 2).sum(1)
        result: NDArray[np.bool_] = (square < self.distance**2).any(0)
        return result

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types; ``Near(**spec)`` gives it back."""
        return {"points": np.asarray(self.points).tolist(), "distance": float(self.distance)}
