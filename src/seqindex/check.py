"""Checks of arguments: every message names the argument, the value got and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int, or raise TypeError or ValueError naming ``name``."""
    if isinstance(value, bool) or not (
        isinstance(value, Integral) or (isinstance(value, Real) and value == int(value))
    ):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    result = int(value)
    if result < minimum or (maximum is not None and result > maximum):
        wanted = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be {wanted}, got {result}")
    return result


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, positive: bool = False) -> float:
    """Return ``value`` as a finite float in [low, high], or raise TypeError or ValueError naming ``name``."""
    if isinstance(value, bool) or not isinstance(value, Real | np.ndarray) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a number, got {value!r}")
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {result}")
    if positive and result <= 0:
        raise ValueError(f"{name} must be positive, got {result:g}")
    if not low <= result <= high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {result:g}")
    return result


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return ``value`` as a finite float64 array of the given shape (None: any size), or raise naming ``name``."""
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    try:
        result = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers of shape {wanted}, got {value!r:.80}") from error
    if result.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, result.shape, strict=True)):
        raise ValueError(f"{name} must have shape {wanted}, got {result.shape}")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got {result[~np.isfinite(result)][0]} in it")
    result.setflags(write=False)
    return result


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, else raise ValueError that lists them and the nearest."""
    names = list(allowed)
    if value not in names:
        import difflib

        near = difflib.get_close_matches(str(value), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}{hint}")
    return str(value)
