"""Symmetric tensors C_k(g) = E[g H_k] = E[grad^k g], held by their different entries (the paper, section 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from seqindex import check
from seqindex.gaussian.exact import Number, to_float
from seqindex.gaussian.hermite_polynomial import MultiIndex, factorial
from seqindex.theory.symmetric import SymmetricForm

Array = NDArray[np.float64]

ODECO_TOLERANCE = 1e-5
"""A tensor counts as orthogonally decomposable if it differs from its decomposition by less than this, relative to its
norm."""


@dataclass(frozen=True)
class Decomposition:
    """C = sum_i weights_i q_i^{(x) k} with orthonormal q_i.

    Attributes:
        weights: (n,), by decreasing size; positive where k is odd.
        vectors: (n, L), one q_i a row.
        residual: norm of what is left, relative to that of C.
    """

    weights: Array
    vectors: Array
    residual: float


class HermiteTensor:
    """C_k(g) of one output.  The entry at (l_1, ..., l_k) is g_alpha = E[g He_alpha], alpha_l the multiplicity of l.

    Args:
        length: L.
        order: k >= 1.
        entries: g_alpha by sparse multi-index (pairs of position, counted from 1, and degree); zeros may be left out.
        errors: absolute errors by the same indices; None for exact numbers.

    Attributes:
        length, order, entries, errors: as given.
        exact: whether the entries are exact numbers.

    Example:
        >>> tensor = HermiteTensor(3, 3, {((1, 1), (2, 1), (3, 1)): 1})  # z1 z2 z3
        >>> tensor.contract([1, 1, 1]), round(tensor.operator_norm(), 8), tensor.decomposition() is None
        (6.0, 1.15470054, True)
    """

    def __init__(
        self,
        length: int,
        order: int,
        entries: Mapping[MultiIndex, Number],
        errors: Mapping[MultiIndex, float] | None = None,
    ) -> None:
        self.length = check.integer("length", length, 1)
        self.order = check.integer("order", order, 1)
        self.entries = dict(entries)
        self.exact = errors is None
        self.errors = dict(errors or {})

    @cached_property
    def _values(self) -> Array:
        return np.array([to_float(value) for value in self.entries.values()])

    @cached_property
    def _multiplicities(self) -> Array:
        """k! / alpha!: how often an entry occurs among the L^k."""
        total = math.factorial(self.order)
        return np.array([total // factorial(index) for index in self.entries], dtype=np.float64)

    @property
    def error(self) -> float:
        """Bound of the norm of the error; 0 where exact."""
        errors = np.array([self.errors.get(index, 0.0) for index in self.entries])
        return float(np.sqrt((self._multiplicities * errors**2).sum()))

    @cached_property
    def frobenius_norm(self) -> float:
        """sqrt(sum over all L^k entries of their squares)."""
        return math.sqrt(math.fsum(self._multiplicities * self._values**2))

    def inner(self, other: HermiteTensor) -> float:
        """<C, D> = sum_alpha (k! / alpha!) C_alpha D_alpha.

        Raises:
            ValueError: tensors of different order or length.
        """
        if (other.order, other.length) != (self.order, self.length):
            raise ValueError(
                f"other must have order {self.order} and length {self.length}, got {other.order} and {other.length}"
            )
        total = math.factorial(self.order)
        return math.fsum(
            total // factorial(index) * to_float(value) * to_float(other.entries[index])
            for index, value in self.entries.items()
            if index in other.entries
        )

    def contract(self, vector: ArrayLike) -> float:
        """<C, v^{(x) k}> = sum_alpha (k! / alpha!) C_alpha v^alpha."""
        v = check.array("vector", vector, (self.length,))
        return math.fsum(self._form.terms(v[self._positions])) if self.entries else 0.0

    @cached_property
    def _positions(self) -> NDArray[np.int64]:
        """Positions in the support, counted from 0."""
        return np.array(sorted({p - 1 for index in self.entries for p, _ in index}), dtype=np.int64)

    @cached_property
    def _form(self) -> SymmetricForm:
        place = {int(position) + 1: i for i, position in enumerate(self._positions)}
        indices = [[(place[p], degree) for p, degree in index] for index in self.entries]
        return SymmetricForm(len(self._positions), self.order, indices, self._multiplicities * self._values)

    @cached_property
    def _components(self) -> list[HermiteTensor]:
        """Parts on disjoint sets of positions; C is their direct sum."""
        size = len(self._positions)
        place = {int(position) + 1: i for i, position in enumerate(self._positions)}
        pairs = [(place[index[0][0]], place[p]) for index in self.entries for p, _ in index]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size))
        count, labels = connected_components(graph, directed=False)
        parts: list[dict[MultiIndex, Number]] = [{} for _ in range(count)]
        for index, value in self.entries.items():
            parts[labels[place[index[0][0]]]][index] = value
        return [HermiteTensor(self.length, self.order, part) for part in parts]

    def operator_norm(self, starts: int = 64, seed: int = 0) -> float:
        """max over unit vectors of |<C, v^{(x) k}>|, the norm of Theorem 2.

        Exact for k <= 2.  For k >= 3 the largest value that a shifted power iteration finds from random and structured
        starts on each part of the support: a lower bound, in practice the maximum.

        Args:
            starts: random starts for each part.
            seed: their seed.
        """
        if not self.entries:
            return 0.0
        if self.order == 1:
            return float(np.linalg.norm(self._values))
        return max(part._largest(starts, seed) for part in self._components)  # noqa: SLF001 - the same class

    def _largest(self, starts: int, seed: int) -> float:
        if len(self._positions) == 1:
            return float(np.abs(self._values).max())
        if self.order == 2:
            return float(np.abs(np.linalg.eigvalsh(self._form.matrix(None))).max())
        return self._form.largest(starts, seed)

    def steepest(self, sign: float = 1.0, starts: int = 64, seed: int = 0) -> tuple[float, Array]:
        """max over unit vectors of sign * <C, v^{(x) k}> among those on the support, and such a v, (L,).

        As sure as ``operator_norm``, which is the larger of the values for the two signs.

        Args:
            sign: 1 or -1; for odd k both give the same value.
            starts: random starts for each part.
            seed: their seed.

        Example:
            >>> value, v = HermiteTensor(2, 2, {((1, 2),): 2, ((1, 1), (2, 1)): 1}).steepest()  # He2(z1) + z1 z2
            >>> round(value, 8), v.round(4).tolist()
            (2.41421356, [0.9239, 0.3827])
        """
        best, vector = 0.0, np.zeros(self.length)
        if self.order == 1 and self.entries:
            vector[self._positions] = sign * self._form.gradient(np.zeros((1, len(self._positions))))[0]
            best = float(np.linalg.norm(vector))
            return best, vector / (best or 1.0)
        for i, part in enumerate(self._components if self.entries else []):
            value, point = part._steepest(sign, starts, seed)  # noqa: SLF001 - the same class
            if i == 0 or value > best:
                best, vector = value, np.zeros(self.length)
                vector[part._positions] = point  # noqa: SLF001 - the same class
        return best, vector

    def _steepest(self, sign: float, starts: int, seed: int) -> tuple[float, Array]:
        if len(self._positions) == 1:
            value = sign * float(self._values[0])
            turned = self.order % 2 == 1 and value < 0.0
            return (-value, -np.ones(1)) if turned else (value, np.ones(1))
        if self.order == 2:
            values, vectors = np.linalg.eigh(sign * self._form.matrix(None))
            vector = vectors[:, -1]
            return float(values[-1]), vector * np.sign(vector[np.abs(vector).argmax()])
        return self._form.peak(starts, seed, (sign,))

    def decomposition(self) -> Decomposition | None:
        """The orthogonal decomposition of C, or None where it has none.

        It always exists for k <= 2.  For k >= 3 its vectors are eigenvectors of the matrix C(w, ..., w, ., .) at a
        random w; the tensor counts as decomposable if what is left is below ``ODECO_TOLERANCE`` of its norm.

        Example:
            >>> tensor = HermiteTensor(2, 4, {((1, 4),): 24, ((2, 4),): -48})
            >>> tensor.decomposition().weights.tolist()
            [-48.0, 24.0]
        """
        if not self.entries or not self._values.any():
            return Decomposition(np.zeros(0), np.zeros((0, self.length)), 0.0)
        if self.order == 1:
            norm = self.frobenius_norm
            vector = np.zeros((1, self.length))
            vector[0, self._positions] = self._form.gradient(np.zeros((1, len(self._positions))))[0] / norm
            return Decomposition(np.array([norm]), vector, 0.0)
        weights, vectors = [], []
        for part in self._components:
            found, rows = part._eigenvectors()  # noqa: SLF001 - the same class
            weights.append(found)
            vectors.append(rows)
        all_weights, all_vectors = np.concatenate(weights), np.concatenate(vectors)
        square = self.frobenius_norm**2
        # The residual is orthogonal to the decomposition, so its square is the rest of the square of the norm.
        residual = math.sqrt(max(square - math.fsum(all_weights**2), 0.0) / square)
        if self.order > 2 and residual > ODECO_TOLERANCE:
            return None
        if self.order % 2:  # a vector and its weight may both change their sign
            all_vectors = all_vectors * np.where(all_weights < 0.0, -1.0, 1.0)[:, None]
            all_weights = np.abs(all_weights)
        kept = np.abs(all_weights) > ODECO_TOLERANCE * np.abs(all_weights).max()
        ranks = np.argsort(-np.abs(all_weights[kept]), kind="stable")
        return Decomposition(all_weights[kept][ranks], all_vectors[kept][ranks], residual)

    def _eigenvectors(self) -> tuple[Array, Array]:
        """Weights and vectors (n, L) of the part, for a connected part."""
        n = len(self._positions)
        if n == 1:
            weights, rows = self._values, np.eye(1)
        else:
            weights, rows = self._form.eigenvectors()
        vectors = np.zeros((len(rows), self.length))
        vectors[:, self._positions] = rows
        return weights, vectors

    def __repr__(self) -> str:
        kind = "exact" if self.exact else f"error {self.error:.1g}"
        return f"HermiteTensor(order={self.order}, length={self.length}, {len(self.entries)} entries, {kind})"
