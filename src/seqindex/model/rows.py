"""Rows: the geometry of a student with one weight vector a position.

Row l enters through its own field z_l = x_l.w_l; the state is the vector of overlaps m_l = w_l.w*/d.
"""

from __future__ import annotations

from dataclasses import dataclass

from seqindex import check
from seqindex.model.frame import Frame


@dataclass(frozen=True)
class Rows:
    """L weight vectors on spheres: rows 1 to n together on the first, the next n on the second, and so on.

    After a step the rows of a sphere are rescaled by one factor, to |w_1|^2 + ... + |w_n|^2 = n d.

    Attributes:
        length: number L of rows.
        together: number n of rows on one sphere, a divisor of L.

    Raises:
        TypeError: an argument that is no integer.
        ValueError: numbers below 1, or rows that do not fill the spheres.

    Example:
        >>> Rows(length=6, together=1).spheres, Rows(length=6, together=6).spheres
        (6, 1)
    """

    length: int
    together: int

    def __post_init__(self) -> None:
        check.integer("length", self.length, 1)
        check.integer("together", self.together, 1)
        if self.length % self.together:
            raise ValueError(f"together must divide the length {self.length}, got {self.together}")

    @property
    def spheres(self) -> int:
        """Number of spheres."""
        return self.length // self.together

    @property
    def row(self) -> Frame:
        """Frame of a single row: w* alone."""
        return Frame.of(1, None)
