"""Landscapes of several problems kept in one Dataset, and what their start is like: for figures 1, 2 and 6."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from seqindex.model.problem import Problem
from seqindex.order import Order
from seqindex.theory.escape import escape_order, flatness
from seqindex.theory.exponents import sequence_information_exponent
from seqindex.theory.landscape import landscape


def packed(problems: Mapping[str, Problem], points: int, critical: bool = True) -> xr.Dataset:
    """Landscapes and orders of all problems; variables and dimensions of each carry its name."""
    return together(
        {
            name: landscape(problem, points=points, critical=critical).assign(_orders(problem))
            for name, problem in problems.items()
        }
    )


def together(parts: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Several Datasets as one: variables and dimensions carry the name of their part; ``unpacked`` undoes it.

    Example:
        >>> data = together({"a": xr.Dataset({"x": ("n", [1])}), "b": xr.Dataset({"x": ("n", [2, 3])})})
        >>> unpacked(data, "b")["x"].values.tolist()
        [2, 3]
    """
    return xr.merge(
        [
            data.drop_attrs(deep=False).rename({old: f"{name}.{old}" for old in {*data.variables, *data.dims}})
            for name, data in parts.items()
        ]
    )


def unpacked(data: xr.Dataset, name: str) -> xr.Dataset:
    """One part of what ``together`` made, under plain names."""
    own = data[[variable for variable in data.variables if str(variable).startswith(f"{name}.")]]
    return own.rename({old: str(old).split(".", 1)[1] for old in {*own.variables, *own.dims}})


def _orders(problem: Problem) -> dict[str, Any]:
    """SIE, flatness and escape order (infinity for none, NaN for undecided) and the coefficient of the escape."""
    escape = escape_order(problem)
    return {
        "exponent": _value(sequence_information_exponent(problem.target)),
        "flatness": _value(flatness(problem)),
        "escape": _value(escape),
        "leading": np.nan if escape.coefficient is None else escape.coefficient,
    }


def _value(order: Order) -> float:
    return math.nan if order.value is None else float(order.value)


def shown(value: Any) -> str:
    """An order in words.

    Example:
        >>> shown(2.0), shown(np.inf), shown(np.nan)
        ('2', 'none', 'undecided')
    """
    value = float(value)
    return "undecided" if math.isnan(value) else "none" if math.isinf(value) else f"{value:.0f}"
