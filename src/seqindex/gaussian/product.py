"""Hermite coefficients of functions of two to four normal variables on product grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from seqindex.gaussian.adaptive import ROUNDING, Coefficients, finite_values
from seqindex.gaussian.hermite import degrees, hermite_factor, tensor_coefficients
from seqindex.gaussian.quadrature import Rule, split_panels, trapezoid

Array = NDArray[np.float64]
Breaks = Sequence[Sequence[float]]

_STEPS = {2: (1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64), 3: (0.45, 0.3, 0.2, 0.15), 4: (0.65, 0.5)}
"""Steps of the trapezoid rule by number of variables, grid after grid."""
_PANELS = {2: (1.0, 0.5, 0.25, 0.125, 1 / 16), 3: (2.4, 1.6, 1.2, 0.9), 4: (6.0, 4.5)}
"""Widths of the panels; each holds 10 nodes."""
_CONVERGED = 3e-14
_POINTS = 2**24
"""Values on a grid, at most, but for the first two grids."""
_SMOOTH = 1e-6
"""Two grids never agree so well across a kink at an unknown place."""
_CHUNK = 2**20
_OUTER = 1e-6
"""Part of the square mean that may sit at the border of the grid."""
_GROWTH = 0.1
_DIVERGES = "must have a finite square mean over normal fields, got one that does not converge"


def product_coefficients(
    function: Callable[[Array], Array],
    variables: int,
    order: int,
    breaks: Breaks | None = None,
    smooth: bool = True,
) -> Coefficients:
    """E[f(y) h_beta(y)] for |beta| <= order, y ~ N(0, I), for a function that maps (n, r) to (k, n).

    The trapezoid rule serves the variables in which f is analytic, panels those with kinks or jumps.  Two grids are
    compared; the largest change of a coefficient up to a total order is the error of those of this order.

    Args:
        function: f.
        variables: r, from 2 to 4.
        order: highest total order; coefficients beyond it are left at zero.
        breaks: for every variable the places of its kinks or jumps; None where they are not known: then zero is tried.
        smooth: False where there are kinks along other lines, so that convergence is slow and erratic.

    Raises:
        ValueError: a function that is not finite at a node, or whose square mean is not.

    Example:
        >>> result = product_coefficients(lambda y: (y[:, 0] * np.tanh(y[:, 1]))[None], 2, 2)
        >>> round(float(result.values[0, 1, 1]), 12)
        0.605705509602
    """
    if breaks is not None:
        best, changes = _refined(function, variables, order, breaks)
        return _result(best, (1.0 if smooth else 10.0) * changes)
    plain, changes = _refined(function, variables, order, ((),) * variables)
    if changes[-1] <= (1e-11 if variables == 2 else _SMOOTH) * _size(plain) or variables == 4:
        return _result(plain, 10.0 * changes)
    split, others = _refined(function, variables, order, ((0.0,),) * variables)
    better, least = (plain, changes) if changes[-1] < others[-1] else (split, others)
    if least[-1] <= _SMOOTH * _size(split):
        return _result(better, 10.0 * least)
    # Neither rule fits: agreement of two grids may be luck, that of the two rules is hardly.
    return _result(better, 10.0 * np.maximum(np.maximum(changes, others), _changes(split, plain, order)))


Table = tuple[Array, Array]
"""Coefficients (k, K + 1, ...) and square mean (k,)."""


def _size(table: Table) -> float:
    return float(np.sqrt(table[1].max()))


def _changes(a: Table, b: Table, order: int) -> Array:
    """Largest difference of coefficients up to every total order, (order + 1,)."""
    total = degrees(a[0].shape[1:])
    difference = np.abs(a[0] - b[0]).max(0)
    return np.array([difference[total <= top].max() for top in range(order + 1)])


def _result(table: Table, changes: Array) -> Coefficients:
    values, square = table
    norm = np.sqrt(square)
    total = degrees(values.shape[1:])
    allowed = total < len(changes)
    rounding = ROUNDING * norm.reshape(-1, *(1,) * total.ndim)
    errors = changes[np.minimum(total, len(changes) - 1)] + rounding
    return Coefficients(np.where(allowed, values, 0.0), np.where(allowed, errors, 0.0), norm)


def _refined(function: Callable[[Array], Array], variables: int, order: int, breaks: Breaks) -> tuple[Table, Array]:
    """Coefficients on ever finer grids until two agree or the grid is too large, and the last changes."""
    previous: Table | None = None
    growing = False
    changes = np.full(order + 1, math.inf)
    for level, (step, width) in enumerate(zip(_STEPS[variables], _PANELS[variables], strict=True)):
        rules = [_rule(places, step, width, _extent(order)) for places in breaks]
        size = math.prod(len(rule.nodes) for rule in rules)
        if previous is not None and level > 1 and size * len(previous[1]) > _POINTS:
            break
        table = _table(function, rules, order)
        if previous is not None:
            changes = _changes(table, previous, order)
            size_now = np.maximum(table[1], 1e-12 * table[1].max())
            growing = bool((np.abs(table[1] - previous[1]) > _GROWTH * size_now).any())
        previous = table
        if changes[-1] <= _CONVERGED * _size(table):
            break
    assert previous is not None
    # Near a pole finer grids come closer; a kink or a jump hardly changes the square mean.
    if growing:
        raise ValueError(_DIVERGES)
    return previous, changes


def _rule(breaks: Sequence[float], step: float, width: float, extent: float) -> Rule:
    return split_panels(breaks, width, 10, extent) if breaks else trapezoid(step, extent)


def _extent(order: int) -> float:
    """Where the weight times h_order has fallen to 1e-16; all orders have by 12.2."""
    extent = 8.5
    while extent < 12.2:
        size = order * math.log(extent) - 0.5 * math.lgamma(order + 1.0) - 0.5 * extent**2
        if size < -37.0:
            break
        extent += 0.1
    return extent


def _table(function: Callable[[Array], Array], rules: Sequence[Rule], order: int) -> Table:
    factors = [hermite_factor(rule, order) for rule in rules]
    total: Array | float = 0.0
    square: Array | float = 0.0
    outer: Array | float = 0.0
    for part, values in _slices(function, rules):
        total = total + tensor_coefficients(values, [factors[0][:, part], *factors[1:]])
        mass = values**2
        border = np.zeros(values.shape[1:], dtype=bool)
        for axis, rule in enumerate(rules):
            nodes = rule.nodes[part] if axis == 0 else rule.nodes
            weights = rule.weights[part] if axis == 0 else rule.weights
            shape = [-1 if i == axis else 1 for i in range(len(rules))]
            mass = mass * weights.reshape(shape)
            border |= (np.abs(nodes) > 0.9 * np.abs(rule.nodes).max()).reshape(shape)
        square = square + mass.reshape(len(mass), -1).sum(-1)
        outer = outer + (mass * border).reshape(len(mass), -1).sum(-1)
    if (np.asarray(outer) > _OUTER * np.asarray(square)).any():
        raise ValueError(_DIVERGES)
    return np.asarray(total), np.asarray(square)


def _slices(function: Callable[[Array], Array], rules: Sequence[Rule]) -> Iterator[tuple[slice, Array]]:
    """Values (k, c, n_2, ...) on slices of the first axis."""
    inner = math.prod(len(rule.nodes) for rule in rules[1:])
    count = max(1, _CHUNK // inner)
    rest = np.meshgrid(*(rule.nodes for rule in rules[1:]), indexing="ij")
    for start in range(0, len(rules[0].nodes), count):
        part = slice(start, start + count)
        first = rules[0].nodes[part]
        columns = [np.repeat(first, inner), *(np.tile(x.ravel(), len(first)) for x in rest)]
        values = finite_values(function, np.stack(columns, axis=-1))
        yield part, values.reshape(-1, len(first), *(len(rule.nodes) for rule in rules[1:]))
