"""Checks of arguments: every message names the argument, the value got and what would be right."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shown(value: Any) -> str:
    """``value`` on one line of at most 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _real(value: Any) -> float | None:
    """``value`` as a float (NaN included, infinity where it is too large), or None where it is no real number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int, or raise TypeError or ValueError naming ``name``.

    Raises:
        TypeError: a value that is no whole number.
        ValueError: one outside [minimum, maximum].
    """
    real = _real(value)
    if real is None or not (isinstance(value, Integral) or real.is_integer()):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    result = int(value)
    if result < minimum or (maximum is not None and result > maximum):
        wanted = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be {wanted}, got {shown(result)}")
    return result


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, positive: bool = False) -> float:
    """Return ``value`` as a finite float in [low, high], or raise TypeError or ValueError naming ``name``.

    Raises:
        TypeError: a value that is no real number.
        ValueError: one that is not finite, not positive where ``positive``, or outside [low, high].
    """
    result = _real(value)
    if result is None:
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {result}")
    if positive and result <= 0:
        raise ValueError(f"{name} must be positive, got {result:g}")
    if not low <= result <= high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {result:.12g}")
    return result


def array(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Return ``value`` as a finite, read-only float64 array of ``shape`` (None: any size), or raise naming ``name``.

    Raises:
        TypeError: a value that is no array of real numbers.
        ValueError: a wrong shape, or an entry that is not finite.
    """
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "iuf" and any(_real(entry) is None for entry in raw.flat):
            raise TypeError
        result = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be an array of numbers of shape {wanted}, got {shown(value)}") from None
    if result.ndim != len(shape) or any(n is not None and n != m for n, m in zip(shape, result.shape, strict=True)):
        raise ValueError(f"{name} must have shape {wanted}, got {result.shape}")
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got {result[~np.isfinite(result)][0]} in it")
    result.setflags(write=False)
    return result


def fields(name: str, value: ArrayLike, length: int) -> NDArray[Any]:
    """Return ``value`` as a floating-point array of fields, shape (..., length); NaN and infinity pass.

    Raises:
        TypeError: a value that is no array of real numbers.
        ValueError: a last axis of another length.
    """
    try:
        result: NDArray[Any] = np.asarray(value)
        if result.dtype.kind in "iu":
            result = result.astype(np.float64)
        if result.dtype.kind != "f":
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers of shape (..., {length}), got {shown(value)}") from None
    if result.ndim == 0 or result.shape[-1] != length:
        raise ValueError(f"{name} must have shape (..., {length}), got {result.shape}")
    return result


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``allowed``, else raise ValueError that lists them and the nearest.

    Raises:
        ValueError: any other value, whatever its type.
    """
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return str(value)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {shown(value)}{hint}")
