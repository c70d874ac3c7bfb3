"""The border between the two basins of the positional-semantic flow, followed from its saddle back to the start.

With m and e both of one sign, the flow of (log m, log e) is linear near the start, d log m / dt = lambda_m and
d log e / dt = lambda_e, and its points of rest with m, e > 0 lie where neither changes.  Between a semantic and a
positional minimum there is one such point, a saddle.  The path that ends in it is the border of the two basins.
Followed backwards it attracts its neighbours, and log m - (lambda_m / lambda_e) log e tends to the logarithm of kappa.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Speed = Callable[[Array, Places], Array]
"""d(log m, log e)/dt at states (..., n, 2), for n of the values of omega by their indices; of the same shape."""

_ANGLES = 33
_HALVINGS = 20
_NEWTON = 12
_SHIFT = 1e-5
_AWAY = 1e-4
"""Distance from the saddle, in the logarithms, at which its border is picked up."""
_NEAR = 5e-3
"""Size of m and e below which the border is the power law, to a relative error of about its square."""
_SHARE = 0.1
_STEPS = 4000


class Minima(IntEnum):
    """Which minima the flow can end in."""

    SEMANTIC = 0
    POSITIONAL = 1
    BOTH = 2
    BETWEEN = 3
    NONE = 4

    @classmethod
    def flags(cls) -> dict[str, object]:
        """The CF attributes of a variable that holds them."""
        return {
            "flag_values": np.array([int(one) for one in cls], dtype=np.int8),
            "flag_meanings": " ".join(one.name.lower() for one in cls),
        }


class Basins(NamedTuple):
    """What the flow ends in, over n values of omega.

    Attributes:
        minima: one of ``Minima``, (n,).
        kappa: the border at the start is m = kappa e^rho, rho = lambda_m / lambda_e, (n,); 0 where all starts end
            semantic, infinite where all end positional, and NaN where there is a minimum with m and e both or no way
            out of the start.
        saddle: where the border ends, (n, 2); NaN without one.
    """

    minima: NDArray[np.int8]
    kappa: Array
    saddle: Array


def basins(speed: Speed, growth: Array) -> Basins:
    """The minima in m, e >= 0 and the border of their basins.

    Args:
        speed: the flow, at n values of omega.
        growth: lambda_m and lambda_e, (n, 2).

    Example:
        >>> def speed(s, places):  # two species that compete: m' = m (1 - m - 2 e), e' = e (1 - e - 2 m)
        ...     return 1.0 - s - 2.0 * s[..., ::-1]
        >>> found = basins(speed, np.ones((1, 2)))
        >>> Minima(int(found.minima[0])).name, found.kappa.round(6).tolist(), found.saddle.round(6).tolist()
        ('BOTH', [1.0], [[0.333333, 0.333333]])
    """
    growing = growth > 0.0
    minima = np.select(
        [growing.all(1), growing[:, 0], growing[:, 1]],
        [Minima.BOTH, Minima.SEMANTIC, Minima.POSITIONAL],
        Minima.NONE,
    ).astype(np.int8)
    places = np.nonzero(growing.all(1))[0]
    kappa, saddle = np.full(len(growth), np.nan), np.full((len(growth), 2), np.nan)
    if places.size:
        rim = _rim(speed, places)
        gains = _gain(speed, rim, places) > 0.0
        turns = gains[1:] != gains[:-1]
        minima[places[~turns.any(0) & gains[0]]] = Minima.SEMANTIC
        minima[places[~turns.any(0) & ~gains[0]]] = Minima.POSITIONAL
        minima[places[(turns & gains[1:]).any(0)]] = Minima.BETWEEN
        two = minima[places] == Minima.BOTH
        places, rim = places[two], rim[:, two]
    if places.size:
        logs = _saddle(speed, rim, places)
        kappa[places], saddle[places] = _kappa(speed, growth[places], logs, places), np.exp(logs)
    kappa[minima == Minima.SEMANTIC] = 0.0
    kappa[minima == Minima.POSITIONAL] = np.inf
    return Basins(minima, kappa, saddle)


def _rim(speed: Speed, places: Places) -> Array:
    """Where the flow neither grows nor shrinks, at angles from the m axis, (k, n, 2): near the unit circle."""
    angles = np.linspace(0.0, 0.5 * np.pi, _ANGLES)
    rays = np.stack([np.cos(angles), np.sin(angles)], axis=-1)[:, None, :]
    low, high = np.zeros((_ANGLES, len(places), 1)), np.ones((_ANGLES, len(places), 1))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        grows = (rays**2 * speed(middle * rays, places)).sum(-1, keepdims=True) > 0.0
        low, high = np.where(grows, middle, low), np.where(grows, high, middle)
    return np.asarray(0.5 * (low + high) * rays)


def _gain(speed: Speed, states: Array, places: Places) -> Array:
    """How fast m / e grows."""
    change = speed(states, places)
    return np.asarray(change[..., 0] - change[..., 1])


def _saddle(speed: Speed, rim: Array, places: Places) -> Array:
    """Logarithms of the point of rest, (n, 2): Newton's method from where m stops to gain on e along the rim."""
    gain = _gain(speed, rim, places)
    column = np.arange(len(places))
    first = (gain <= 0.0).argmax(0) - 1
    before, after = gain[first, column], gain[first + 1, column]
    part = (before / (before - after))[:, None]
    logs = np.log((1.0 - part) * rim[first, column] + part * rim[first + 1, column])
    for _ in range(_NEWTON):
        residue = speed(np.exp(logs), places)[..., None]
        logs = logs - np.clip(np.linalg.solve(_jacobian(speed, logs, places), residue)[..., 0], -0.3, 0.3)
    return np.asarray(logs)


def _kappa(speed: Speed, growth: Array, saddle: Array, places: Places) -> Array:
    """|m| / |e|^rho near the start on the path into the saddle, which is followed backwards."""
    rates, vectors = (array.real for array in np.linalg.eig(_jacobian(speed, saddle, places)))
    path = vectors[np.arange(len(places)), :, rates.argmin(1)]
    logs = saddle - _AWAY * path * np.sign(path.sum(1, keepdims=True))
    step = -_SHARE / np.maximum(np.abs(rates).max(1), growth.max(1))[:, None]
    for _ in range(_STEPS):
        if (logs < np.log(_NEAR)).all():
            break
        k1 = speed(np.exp(logs), places)
        k2 = speed(np.exp(logs + 0.5 * step * k1), places)
        k3 = speed(np.exp(logs + 0.5 * step * k2), places)
        k4 = speed(np.exp(logs + step * k3), places)
        logs = logs + step * (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 6.0
    return np.asarray(np.exp(logs[:, 0] - growth[:, 0] / growth[:, 1] * logs[:, 1]))


def _jacobian(speed: Speed, logs: Array, places: Places) -> Array:
    """By central differences in the logarithms, (n, 2, 2)."""
    shifts = _SHIFT * np.eye(2)[:, None, :]
    change = speed(np.exp(logs + shifts), places) - speed(np.exp(logs - shifts), places)
    return np.asarray(np.moveaxis(change, 0, -1) / (2.0 * _SHIFT))
