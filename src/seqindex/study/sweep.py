"""Values of a swept field: written out, or as linspace(...), geomspace(...), range(...)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from seqindex import check

Values = list[Any] | str
_RANGE = re.compile(r"\s*(linspace|geomspace|range)\s*\(([^()]*)\)\s*")
_MOST = 100_000
_WHOLE = ("dim", "length", "steps", "replicas", "seed", "batch")
"""Fields of whole numbers, to which a range of them is rounded."""


def expanded(name: str, values: Values) -> list[Any]:
    """The values of a field.

    Args:
        name: the field, for messages.
        values: a list, or one of "linspace(first, last, n)", "geomspace(first, last, n)" and "range(first, end, step)"
            with whole numbers.

    Raises:
        ValueError: anything else, or no value.

    Example:
        >>> expanded("omega", "linspace(0.4, 1, 4)"), expanded("dim", "geomspace(100, 10000, 3)")
        ([0.4, 0.6, 0.8, 1.0], [100, 1000, 10000])
    """
    if not isinstance(values, str):
        if not values:
            raise ValueError(f"sweep of {name} must hold at least one value, got none")
        return list(values)
    found = _RANGE.fullmatch(values)
    if found is None:
        raise ValueError(
            f"sweep of {name} must be a list or a range such as linspace(0.4, 1, 41), got {check.shown(values)}"
        )
    kind, text = found.groups()
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 and not (kind == "range" and len(numbers) in (1, 2)):
        raise ValueError(f"{kind} must have three numbers, got {check.shown(values)}")
    if kind == "range":
        result: Any = range(*(check.integer("range", number, -(2**62)) for number in numbers))
    else:
        count = check.integer(f"number of values in {kind}", numbers[2], 1, _MOST)
        if kind == "geomspace" and numbers[0] * numbers[1] <= 0.0:
            raise ValueError(f"geomspace must have two positive ends, got {check.shown(values)}")
        first, last = numbers[:2]
        spaced = np.linspace(first, last, count) if kind == "linspace" else np.geomspace(first, last, count)
        result = [float(f"{value:.14g}") for value in spaced.tolist()]  # 0.7, not 0.7000000000000001
        if name in _WHOLE:
            result = list(dict.fromkeys(round(value) for value in result))
    if len(result) == 0:
        raise ValueError(f"sweep of {name} must hold at least one value, got {check.shown(values)}")
    return list(result)
