"""Trees of link functions and activations evaluated by NumPy, with their derivatives in the fields.

Derivatives are carried forward node by node.  A node's derivatives are kept apart by field, and those of sums and
products over positions as one array over positions, so that a thousand positions cost a thousand numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy.special import erf, expit

from seqindex.model.formula import FIELD, PositionProduct, PositionSum, Relu, Sigmoid, Softplus, field

Array = NDArray[np.float64]
_ALL = "all"
"""Key of the derivatives in all fields, shape (..., L)."""
_Dual = tuple[Array, dict[Any, Array]]

FUNCTIONS: dict[Any, Callable[[Array], Array]] = {
    sympy.exp: np.exp,
    sympy.log: np.log,
    sympy.Abs: np.abs,
    sympy.sign: np.sign,
    sympy.sin: np.sin,
    sympy.cos: np.cos,
    sympy.tan: np.tan,
    sympy.cot: lambda x: 1.0 / np.tan(x),  # SymPy's own, from tan(x + pi/2)
    sympy.sinh: np.sinh,
    sympy.cosh: np.cosh,
    sympy.tanh: np.tanh,
    sympy.erf: erf,
    Relu: lambda x: np.maximum(x, 0.0),
    Sigmoid: expit,
    Softplus: lambda x: np.logaddexp(x, 0.0),
    sympy.Heaviside: lambda x: np.where(np.isnan(x), np.nan, (x > 0.0).astype(np.float64)),
}
SLOPES: dict[Any, Callable[[Array], Array]] = {
    sympy.exp: np.exp,
    sympy.log: lambda x: 1.0 / x,
    sympy.Abs: np.sign,
    sympy.sign: np.zeros_like,
    sympy.sin: np.cos,
    sympy.cos: lambda x: -np.sin(x),
    sympy.tan: lambda x: 1.0 + np.tan(x) ** 2,
    sympy.cot: lambda x: -1.0 / np.sin(x) ** 2,
    sympy.sinh: np.cosh,
    sympy.cosh: np.sinh,
    sympy.tanh: lambda x: 1.0 - np.tanh(x) ** 2,
    sympy.erf: lambda x: 2.0 / math.sqrt(math.pi) * np.exp(-x * x),
    Relu: lambda x: np.where(x > 0.0, 1.0, 0.0),
    Sigmoid: lambda x: expit(x) * expit(-x),
    Softplus: expit,
    sympy.Heaviside: np.zeros_like,
}


def evaluate(trees: Sequence[sympy.Expr], z: Array) -> Array:
    """Values of link functions at fields, shape (..., L) -> (..., k).

    Args:
        trees: one tree an output.
        z: fields.

    Example:
        >>> from seqindex.model.grammar import parse_link
        >>> evaluate(parse_link("[z1*z2, sum(z**2)]", 3), np.array([1.0, 2.0, 3.0])).tolist()
        [2.0, 14.0]
    """
    z = np.asarray(z, dtype=np.float64)
    symbols = {field(i + 1): z[..., i] for i in _positions(trees)}
    memory: dict[sympy.Expr, Array] = {}
    with np.errstate(all="ignore"):
        return np.stack([np.broadcast_to(_value(tree, symbols, z, memory), z.shape[:-1]) for tree in trees], axis=-1)


def evaluate_at(tree: sympy.Expr, values: Mapping[sympy.Symbol, Array]) -> Array:
    """Values of a tree at given values of its symbols, which broadcast.

    Example:
        >>> from seqindex.model.formula import INPUT
        >>> evaluate_at(INPUT**2, {INPUT: np.array([1.0, 3.0])}).tolist()
        [1.0, 9.0]
    """
    with np.errstate(all="ignore"):
        shape = np.broadcast_shapes(*(value.shape for value in values.values()))
        return np.array(np.broadcast_to(_value(tree, dict(values), np.empty(0), {}), shape))


def derivative(trees: Sequence[sympy.Expr], z: Array) -> Array:
    """Derivatives of link functions in all fields, shape (..., L) -> (..., k, L).

    Example:
        >>> from seqindex.model.grammar import parse_link
        >>> derivative(parse_link("z1 * prod(z)", 3), np.array([0.0, 2.0, 3.0])).tolist()
        [[0.0, 0.0, 0.0]]
    """
    z = np.asarray(z, dtype=np.float64)
    symbols = {field(i + 1): z[..., i] for i in _positions(trees)}
    result = np.zeros((*z.shape[:-1], len(trees), z.shape[-1]))
    with np.errstate(all="ignore"):
        for row, tree in enumerate(trees):
            for key, slope in _dual(tree, symbols, z)[1].items():
                if key == _ALL:
                    result[..., row, :] += slope
                else:
                    result[..., row, int(key.name[1:]) - 1] += slope
    return result


def _positions(trees: Sequence[sympy.Expr]) -> list[int]:
    """The positions, counted from 0, that occur by name."""
    names = {symbol.name for tree in trees for symbol in tree.free_symbols if symbol != FIELD}
    return sorted(int(name[1:]) - 1 for name in names)


def _value(tree: sympy.Expr, symbols: dict[Any, Array], z: Array, memory: dict[Any, Array]) -> Array:
    if tree in memory:
        return memory[tree]
    if tree.is_Symbol:
        result = symbols[tree]
    elif tree.is_number:
        result = np.asarray(float(tree))
    elif isinstance(tree, PositionSum | PositionProduct):
        inner = {symbol: value[..., None] for symbol, value in symbols.items()} | {FIELD: z}
        body = np.broadcast_to(_value(tree.args[0], inner, z, {}), z.shape)
        result = body.sum(-1) if isinstance(tree, PositionSum) else body.prod(-1)
    else:
        parts = [_value(part, symbols, z, memory) for part in tree.args]
        result = _applied(tree, parts)
    memory[tree] = result
    return result


def _applied(tree: sympy.Expr, parts: list[Array]) -> Array:
    if tree.is_Add:
        return sum(parts[1:], parts[0])
    if tree.is_Mul:
        return math.prod(parts[1:], start=parts[0])
    if tree.is_Pow:
        return _power(parts[0], tree.args[1], parts[1])
    return FUNCTIONS[tree.func](parts[0])


def _power(base: Array, tree: sympy.Expr, exponent: Array) -> Array:
    if tree.is_Integer:
        return base ** int(tree)
    return np.sqrt(base) if tree == sympy.Rational(1, 2) else base**exponent


def _dual(tree: sympy.Expr, symbols: dict[Any, Array], z: Array) -> _Dual:
    """A tree's value and its derivatives, by field or in all fields at once."""
    if tree.is_Symbol:
        return symbols[tree], {tree: np.ones_like(symbols[tree])}
    if tree.is_number:
        return np.asarray(float(tree)), {}
    if isinstance(tree, PositionSum | PositionProduct):
        return _dual_over_positions(tree, symbols, z)
    parts = [_dual(part, symbols, z) for part in tree.args]
    values = [value for value, _ in parts]
    result = _applied(tree, values)
    if tree.is_Add:
        factors: list[Array] = [np.ones_like(result)] * len(parts)
    elif tree.is_Mul:
        factors = [math.prod(values[:i] + values[i + 1 :], start=np.ones(())) for i in range(len(values))]
    elif tree.is_Pow:
        base, exponent = values
        factors = [exponent * _power(base, tree.args[1] - 1, exponent - 1.0)]
        factors += [] if tree.args[1].is_number else [result * np.log(base)]
    else:
        factors = [SLOPES[tree.func](values[0])]
    slopes: dict[Any, Array] = {}
    for factor, (_, inner) in zip(factors, parts, strict=False):
        for key, slope in inner.items():
            term = (factor[..., None] if key == _ALL else factor) * slope
            slopes[key] = slopes[key] + term if key in slopes else term
    return result, slopes


def _dual_over_positions(tree: sympy.Expr, symbols: dict[Any, Array], z: Array) -> _Dual:
    inner = {symbol: value[..., None] for symbol, value in symbols.items()} | {FIELD: z}
    value, inside = _dual(tree.args[0], inner, z)
    value = np.broadcast_to(value, z.shape)
    if isinstance(tree, PositionSum):
        result, others = value.sum(-1), np.ones_like(z)
    else:  # the product of all others, right also where a factor is 0
        before = np.cumprod(value, axis=-1)
        after = np.cumprod(value[..., ::-1], axis=-1)[..., ::-1]
        others = np.ones_like(z)
        others[..., 1:] *= before[..., :-1]
        others[..., :-1] *= after[..., 1:]
        result = before[..., -1]
    slopes: dict[Any, Array] = {}
    for key, slope in inside.items():
        moved = np.broadcast_to(slope, z.shape) * others
        slopes[_ALL if key == FIELD else key] = moved if key == FIELD else moved.sum(-1)
    return result, slopes
