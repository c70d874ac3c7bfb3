"""The two phases of learning: escape from the start, then exponential alignment with the end point.

Escape is slow because it starts at s of order d^{-1/2} and grows like exp(lambda t) (or a power law where the start is
flatter); alignment takes a time that does not depend on d (the paper, section 1: after weak recovery the dynamics is
exponentially fast unless another critical point is in the way).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.theory.drift import Drift, drift_of, growth_rates, jacobian
from seqindex.theory.escape import escape_order
from seqindex.theory.flow import gradient_flow, states_of

Array = NDArray[np.float64]
_NUDGE = 1e-3
"""Distance from the start at which the path of escape begins, where it grows exponentially."""
_FLAT_NUDGE = 0.05
"""The same where the start is flatter."""
_FLAT = 1e-6


@dataclass(frozen=True)
class TwoPhases:
    """Escape and alignment of one problem at one learning rate; rates are in time t = gamma * step / d.

    Attributes:
        escape_rate: lambda, largest growth rate at s = 0; not positive where the escape is no exponential one.
        direction: unit vector along which the path begins, (p,).
        end: state in which it ends, (p,).
        end_rates: growth rates of small deviations there (real parts), (p,).
        alignment_rate: the rate at which this path approaches its end.
        path: the path, as ``gradient_flow`` returns it.
    """

    escape_rate: float
    direction: Array
    end: Array
    end_rates: Array
    alignment_rate: float
    path: xr.Dataset


def two_phases(problem: Problem, learning_rate: float = 0.0) -> TwoPhases:
    """Follow the flow from the start along the fastest direction to its end.

    Args:
        problem: target, student and loss.
        learning_rate: gamma of the second-order term; 0 leaves it out.

    Raises:
        TypeError, ValueError: an argument out of range, or a start that the flow does not leave.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", 2), sx.TiedNetwork(2))
        >>> found = two_phases(problem)  # R' = -K m, K = 2 / sqrt(pi)
        >>> (np.array([found.escape_rate, found.alignment_rate]) * np.pi**0.5 / 2).round(3).tolist()
        [1.0, 2.0]
    """
    drift = drift_of(problem, learning_rate)
    begin = np.zeros(drift.size)
    turn = jacobian(drift, begin)
    values, vectors = np.linalg.eigh(0.5 * (turn + turn.T))
    rate, direction, nudge = float(values[-1]), _fastest(values, vectors), _NUDGE
    if rate <= _FLAT:
        rate, direction, nudge = _flat_start(problem, drift, rate)
    path = _followed(problem, nudge * direction, 10.0 / max(rate, 0.1), learning_rate)
    if path.attrs["outcome"] != "converged":
        raise ValueError(f"learning_rate must let the flow leave the start and settle, got {learning_rate:g}")
    end = path["ends"].values
    return TwoPhases(rate, direction, end, growth_rates(drift, end).real, _approach(drift, path, end), path)


def _fastest(values: Array, vectors: Array) -> Array:
    """The direction of fastest growth; among several equally fast ones the nearest to equal coordinates."""
    top = vectors[:, values > values[-1] - 1e-6 * (1.0 + abs(values[-1]))]
    direction = top @ top.sum(0)
    direction[np.abs(direction) < 1e-12] = 0.0  # rounding, which would grow along the path
    return np.asarray(direction / np.linalg.norm(direction))


def _followed(problem: Problem, start: Array, horizon: float, learning_rate: float) -> xr.Dataset:
    """The path from a start, in stretches of growing length, until it converges."""
    parts: list[xr.Dataset] = []
    begin, state = 0.0, start
    for _ in range(10):
        m, e = (state[0], state[1:]) if isinstance(problem.student.frame, Frame) else (state, None)
        part = gradient_flow(problem, m, e, horizon, learning_rate, rtol=1e-8)
        parts.append(
            part.isel(time=slice(1 if parts else 0, None)).assign_coords(time=part["time"][1 if parts else 0 :] + begin)
        )
        begin, state, horizon = begin + horizon, part["ends"].values, 1.5 * horizon
        if part.attrs["outcome"] in ("converged", "stuck", "diverged", "step_limit"):
            break
    return (
        xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override")
        .assign({name: part[name] for name in ("ends", "end_rates")})
        .assign_attrs(part.attrs)
    )


def _flat_start(problem: Problem, drift: Drift, rate: float) -> tuple[float, Array, float]:
    """Where the start is flat to second order: the direction of escape, and a nudge that the noise cannot undo."""
    order = escape_order(problem)
    if order.direction is None or not drift(_FLAT_NUDGE * np.asarray(order.direction)) @ order.direction > 0.0:
        raise ValueError(f"the flow must leave the start, but does not: {order.reason}")
    return rate, np.asarray(order.direction, dtype=np.float64), _FLAT_NUDGE


def _approach(drift: Drift, path: xr.Dataset, end: Array) -> float:
    """Rate along the direction in which a path reaches its end."""
    states = states_of(path)
    gap = np.linalg.norm(states - end, axis=1)
    late = int(np.argmax(gap < 1e-2 * gap[0])) or len(gap) - 1
    v = states[late] - end
    return float(-(jacobian(drift, end) @ v) @ v / (v @ v))


def fitted_rates(
    times: NDArray[np.float64],
    overlap: NDArray[np.float64],
    end: float,
    escape: tuple[float, float] = (0.01, 0.1),
    alignment: tuple[float, float] = (0.02, 0.1),
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rates of escape and of alignment in data, run by run, by least squares on logarithms.

    The escape rate is the slope of log|m| while |m| goes up between two sizes, the alignment rate that of
    -log||m| - end| while the gap to the end goes down between two sizes.

    Args:
        times: t of the records, (n,).
        overlap: m of the runs, (runs, n).
        end: size of the overlap at the end point.
        escape: sizes of |m| between which its rate is fitted; both well above the noise.
        alignment: sizes of the gap between which its rate is fitted, likewise.

    Returns:
        Escape and alignment rates, (runs,) each; NaN where a run has fewer than three records between the sizes.

    Raises:
        ValueError: shapes that do not fit, or sizes that are not ascending.

    Example:
        >>> t = np.linspace(0.0, 20.0, 2001)
        >>> m = np.sqrt(1 / (1 + 1e6 * np.exp(-2 * t)))  # rate 1, then 2
        >>> found = fitted_rates(t, m[None], 1.0, escape=(0.002, 0.02), alignment=(0.001, 0.01))
        >>> [float(rate.round(2)[0]) for rate in found]
        [1.0, 1.99]
    """
    for name, (low, high) in {"escape": escape, "alignment": alignment}.items():
        if not 0.0 < low < high:
            raise ValueError(f"{name} must hold two ascending positive sizes, got {check.shown((low, high))}")
    t = check.array("times", times, (None,))
    runs = check.array("overlap", overlap, (None, len(t)))
    size, gap = np.abs(runs), np.abs(np.abs(runs) - end)
    grown = [_slope(t, one, *escape) for one in size]
    aligned = [-_slope(t, one, *alignment[::-1]) for one in gap]
    return np.array(grown), np.array(aligned)


def _slope(t: Array, values: Array, begin: float, end: float) -> float:
    """Slope of log(values) while they go from ``begin`` to ``end``, up or down."""
    sign = 1.0 if end > begin else -1.0
    last = int(np.argmax(sign * (values - end) >= 0.0))
    before = np.nonzero(sign * (values[: last + 1] - begin) < 0.0)[0]
    first = int(before[-1]) + 1 if len(before) else 0
    if last - first < 2:
        return float("nan")
    return float(np.polyfit(t[first : last + 1], np.log(values[first : last + 1]), 1)[0])
