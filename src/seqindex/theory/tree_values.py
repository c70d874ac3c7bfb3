"""Trees of link functions evaluated by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy.special import erf, expit

from seqindex.model.formula import FIELD, PositionProduct, PositionSum, field

Array = NDArray[np.float64]

_FUNCTIONS: dict[str, Any] = {
    "Relu": lambda x: np.maximum(x, 0.0),
    "Sigmoid": expit,
    "Softplus": lambda x: np.logaddexp(x, 0.0),
    "erf": erf,
    "Heaviside": lambda x, at=0.0: np.heaviside(x, at),
}


def values(tree: sympy.Expr, z: Array, symbols: Sequence[sympy.Symbol]) -> Array:
    """Values (n,) of a tree at points (n, r), one column a symbol."""
    with np.errstate(all="ignore"):
        result = _function(tree, tuple(symbols))(*np.ascontiguousarray(z.T))
    return np.broadcast_to(np.asarray(result, dtype=np.float64), (len(z),))


@lru_cache(maxsize=512)
def _function(tree: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> Callable[..., Any]:
    function: Callable[..., Any] = sympy.lambdify(symbols, _unrolled(tree), modules=[_FUNCTIONS, "numpy"])
    return function


def _unrolled(tree: sympy.Expr) -> sympy.Expr:
    for node in tree.atoms(PositionSum, PositionProduct):
        body, length = node.args
        parts = [body.xreplace({FIELD: field(position)}) for position in range(1, int(length) + 1)]
        tree = tree.xreplace({node: (sympy.Add if isinstance(node, PositionSum) else sympy.Mul)(*parts)})
    return tree
