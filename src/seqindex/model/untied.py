"""The untied network: one weight vector a position (the paper, section 3 and appendix E)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model import blocks
from seqindex.model.activation import Activation
from seqindex.model.rows import Rows
from seqindex.model.tied import TiedNetwork

Array = NDArray[np.float64]

SPHERES = ("rows", "joint")
"""What a step rescales: each row by itself, or all rows by one factor."""


class UntiedNetwork:
    """f(X) = sigma(u), u = L^{-1/2} sum_l w_l.x_l, one output and no encoding (the paper, section 3).

    As a function of its fields z_l = w_l.x_l it is the plain tied network, but each has its own weight vector.

    Args:
        length: sequence length L.
        activation: sigma, a name such as "relu" or an expression in u; see ``Activation``.
        sphere: "rows" rescales every row to |w_l| = sqrt(d) after a step (the paper), so that |m_l| <= 1, and with a
            target of k tokens ||m|| / sqrt(L) stays about sqrt(k / L) or below.  "joint" rescales all rows by one
            factor, to sum_l |w_l|^2 = L d (the released code): one row may take all the norm, |m_l| <= sqrt(L).

    Raises:
        TypeError: an argument of the wrong type.
        ValueError: a length below 1, an activation outside the grammar, or an unknown sphere.

    Example:
        >>> student = UntiedNetwork(length=4, activation="relu")
        >>> student([1.0, 2.0, 3.0, -1.0]).tolist(), student.frame.spheres
        ([2.5], 4)
    """

    outputs = 1

    def __init__(self, length: int, activation: str | Activation = "relu", sphere: str = "rows") -> None:
        self._of_fields = TiedNetwork(length, activation)
        self.length = self._of_fields.length
        self.activation = self._of_fields.activation
        self.sphere = check.choice("sphere", sphere, SPHERES)

    @property
    def frame(self) -> Rows:
        """Geometry of the weights."""
        return Rows(self.length, self.length if self.sphere == "joint" else 1)

    @property
    def combinations(self) -> Array:
        """(1, ..., 1) / sqrt(L), shape (1, L): the output depends on u alone."""
        return self._of_fields.combinations

    @property
    def core(self) -> TiedNetwork:
        """sigma(x) of one field x."""
        return self._of_fields.core

    def __call__(self, z: ArrayLike) -> Array:
        """Outputs of fields, shape (..., L) -> (..., 1).

        Raises:
            ValueError: fields of another length.
        """
        return self._of_fields(z)

    def pull_back(self, z: ArrayLike, r: ArrayLike) -> Array:
        """J^T r, J the Jacobian of the output in the fields: shapes (..., L), (..., 1) -> (..., L).

        Raises:
            ValueError: fields of another length, or r of more than one output.
        """
        return self._of_fields.pull_back(z, r)

    def jacobian(self, z: ArrayLike) -> Array:
        """Jacobian of the output in the fields, shape (..., L) -> (..., 1, L)."""
        return self._of_fields.jacobian(z)

    @property
    def kernel(self) -> blocks.StudentKernel:
        """Compiled block functions for the simulation."""
        return self._of_fields.kernel

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {
            "kind": "UntiedNetwork",
            "length": self.length,
            "activation": self.activation.text,
            "sphere": self.sphere,
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> UntiedNetwork:
        """Inverse of ``spec``."""
        return cls(spec["length"], spec["activation"], spec["sphere"])

    def __repr__(self) -> str:
        return f"UntiedNetwork(length={self.length}, activation={self.activation.text!r}, sphere={self.sphere!r})"
