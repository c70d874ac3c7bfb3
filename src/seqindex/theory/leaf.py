"""Functions of fields that cannot be taken apart: their Hermite coefficients by quadrature.

A function of at most four combinations of the fields, such as tanh(z1 + ... + zL), is integrated over these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy.optimize import brentq

from seqindex.gaussian.adaptive import Coefficients, line_coefficients
from seqindex.gaussian.product import product_coefficients
from seqindex.model.evaluate import evaluate, evaluate_at
from seqindex.model.formula import INPUT, PositionProduct, PositionSum, field
from seqindex.theory.factors import DenseFactor, Factor
from seqindex.theory.forms import VARIABLES, directions, kink_arguments, single_form, support, unrolled
from seqindex.theory.sampled_factor import SampledFactor, Samples

Array = NDArray[np.float64]
_GRID = np.linspace(-13.0, 13.0, 2601) + 1e-4 * np.pi


def leaf(tree: sympy.Expr, order: int) -> Factor:
    """A factor for a tree, with coefficients up to a total order.

    Raises:
        ValueError: a function that is not finite at a node or has no finite square mean.
    """
    positions = sorted(support(tree))
    if len(positions) <= VARIABLES:
        tree = unrolled(tree)
    try:
        if len(positions) == 1:
            return _one_field(tree.xreplace({field(positions[0]): INPUT}), order).moved(positions[0])
        basis = directions(tree, positions)
        if basis is None:
            return SampledFactor(Samples(positions, lambda z: values(tree, z, positions)[:, None]))
        return DenseFactor(positions, basis, _coefficients(tree, positions, basis, order))
    except ValueError as error:
        raise ValueError(f"target {error}: its part {_shown(tree)}") from None


def values(tree: sympy.Expr, z: Array, positions: Sequence[int]) -> Array:
    """Values (n,) of a tree at fields (n, r) of some positions; a sum over positions needs all of them."""
    if tree.has(PositionSum, PositionProduct):
        return evaluate([tree], z)[..., 0]
    return evaluate_at(tree, {field(position): column for position, column in zip(positions, z.T, strict=True)})


def _shown(tree: sympy.Expr) -> str:
    text = str(tree)
    return text if len(text) <= 60 else text[:57] + "..."


@lru_cache(maxsize=256)
def _one_field(tree: sympy.Expr, order: int) -> DenseFactor:
    """Of a function of ``INPUT`` alone; sums over positions need it once."""
    coefficients = line_coefficients(lambda x: evaluate_at(tree, {INPUT: x})[None], order)
    return DenseFactor((1,), np.eye(1), coefficients)


def callable_factors(function: Callable[[Array], Array], length: int, order: int) -> list[Factor]:
    """Factors, one an output, of a function that maps fields (n, L) to (n, k).

    Raises:
        ValueError: a function that is not finite at a node or has no finite square mean.
    """
    positions = range(1, length + 1)
    with np.errstate(all="ignore"):
        outputs = function(np.full((1, length), 0.5)).shape[-1]
    try:
        if length > VARIABLES:
            samples = Samples(positions, function)
            return [SampledFactor(samples, output) for output in range(outputs)]
        if length == 1:
            found = line_coefficients(lambda x: function(x[:, None]).T, order)
        else:
            found = product_coefficients(lambda z: function(z).T, length, order)
    except ValueError as error:
        raise ValueError(f"target {error}") from None
    return [DenseFactor(positions, np.eye(length), found, output) for output in range(outputs)]


def _coefficients(tree: sympy.Expr, positions: Sequence[int], basis: Array, order: int) -> Coefficients:
    rank = len(basis)

    def function(y: Array) -> Array:
        return values(tree, y.reshape(len(y), rank) @ basis, positions)[None]

    if rank == 1:
        return line_coefficients(function, order)
    breaks, smooth = _breaks(tree, positions, basis)
    return product_coefficients(function, rank, order, breaks, smooth)


def _breaks(tree: sympy.Expr, positions: Sequence[int], basis: Array) -> tuple[list[list[float]], bool]:
    """For every direction the places of kinks across it, and whether there are no others."""
    places: list[list[float]] = [[] for _ in basis]
    smooth = True
    for argument in kink_arguments(tree):
        row = single_form(argument, positions)
        axis = None if row is None else int(np.argmax(np.abs(basis @ row)))
        if axis is None or row is None or abs(basis[axis] @ row) < 1.0 - 1e-12:
            smooth = smooth and _positive(argument, positions)
            continue

        def along(y: Any, axis: int = axis, argument: sympy.Expr = argument) -> Array:
            return values(argument, np.atleast_1d(y)[:, None] * basis[axis], positions)

        heights = along(_GRID)
        for left in np.flatnonzero(heights[:-1] * heights[1:] < 0.0):
            places[axis].append(brentq(lambda y: along(y)[0], _GRID[left], _GRID[left + 1], xtol=1e-15))
    return places, smooth


def _positive(tree: sympy.Expr, positions: Sequence[int]) -> bool:
    """Whether the tree stays away from zero, as far as random points show."""
    z = 2.0 * np.random.default_rng(0).standard_normal((4096, len(positions)))
    height = values(tree, np.concatenate([z, np.zeros((1, len(positions)))]), positions)
    return bool((height > 1e-3).all() or (height < -1e-3).all())
