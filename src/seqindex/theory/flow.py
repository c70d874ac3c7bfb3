"""``gradient_flow``: the ODE of the sufficient statistics, with events, and how it ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, optimize

import seqindex
from seqindex import check
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.outcome import Outcome
from seqindex.progress import track
from seqindex.theory.drift import Drift, drift_of, growth_rates

Array = NDArray[np.float64]

METHODS: dict[str, Any] = {
    "LSODA": integrate.LSODA,
    "DOP853": integrate.DOP853,
    "RK45": integrate.RK45,
    "Radau": integrate.Radau,
    "BDF": integrate.BDF,
}
"""Solvers of SciPy by name; LSODA turns implicit by itself where the problem is stiff."""
STILL = 1e-6
"""Speed |d state / dt| below which a trajectory counts as standing still."""
_FLAT = 1e-4
"""Growth rates smaller than this are those of a flat direction, as along the joint sphere of an untied network."""


def gradient_flow(
    problem: Problem,
    m0: ArrayLike,
    e0: ArrayLike | None = None,
    horizon: float | None = None,
    learning_rate: float = 0.0,
    times: ArrayLike | None = None,
    threshold: float = 0.2,
    method: str = "LSODA",
    rtol: float = 1e-10,
    max_steps: int = 20_000,
    progress: bool | None = None,
) -> xr.Dataset:
    """Mean path of one-pass spherical SGD in time t = gamma * step / d, up to corrections of order 1/d.

    It solves ds/dt = -(I - s s^T) grad R - (gamma / 2) V s (the paper, Assumption 2 and appendix C), and its like for
    untied networks.  Without a learning rate this is the spherical gradient flow of the population risk.

    Args:
        problem: target, student and loss.
        m0: overlap m at t = 0; for untied networks of every row, or one a row, (L,).
        e0: coordinates along the directions of the encoding at t = 0; None for zeros.
        horizon: last time T; may be None where ``times`` are given.
        learning_rate: gamma in the second-order term; 0 leaves it out.
        times: times to record, ascending; None for 401 equally spaced ones on [0, T].
        threshold: size of the overlap that counts as recovery, in (0, 1).
        method: solver, one of ``METHODS``.
        rtol: relative tolerance of the solver; its absolute one is 1e-3 of it.
        max_steps: steps of the solver after which the trajectory ends early.
        progress: None for a bar with the time left on a terminal, False for none.

    Returns:
        Dataset over time with "overlap" (untied networks: and position), "encoding_overlap" where there is an encoding,
        "overlap_norm"; the scalars "recovery_time" and "convergence_time" (NaN if it did not happen; neither
        cuts the trajectory short), "end_time"; the state it "ends" in and the growth rates there, "end_rates" (real
        parts, the largest first).  The attributes hold the problem, all arguments, and "outcome": converged (at rest in
        a stable point, or in a flat valley above the threshold), stuck (at rest elsewhere, as at a saddle), recovered
        or already_above (still moving), censored (still moving below the threshold), step_limit (``max_steps``; NaN
        from then on) or diverged.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(z)/2", length=4), sx.TiedNetwork(4))
        >>> path = gradient_flow(problem, m0=0.1, horizon=10.0)  # dm/dt = 1 - m^2
        >>> error = path["overlap"] - np.tanh(path["time"] + np.arctanh(0.1))
        >>> bool(abs(error).max() < 1e-7), path.attrs["outcome"]
        (True, 'converged')
    """
    drift = drift_of(problem, learning_rate)
    state = drift.start(m0, e0)
    at = _times(horizon, times)
    threshold = check.number("threshold", threshold, 0.0, 1.0, positive=True)
    rtol = check.number("rtol", rtol, 1e-13, 1e-2, positive=True)
    max_steps = check.integer("max_steps", max_steps, 1)
    solver = METHODS[check.choice("method", method, METHODS)]
    with track("gradient_flow", float(at[-1]), progress) as advance:
        path = _solve(drift, state, at, threshold, solver, rtol, max_steps, advance)
    attrs = {
        **problem.to_attrs(),
        "outcome": path.outcome.name.lower(),
        "learning_rate": float(learning_rate),
        "start": json.dumps(state.tolist()),
        "threshold": threshold,
        "method": method,
        "rtol": rtol,
        "seqindex_version": seqindex.__version__,
    }
    return _dataset(drift, path, at, attrs)


def _times(horizon: float | None, times: ArrayLike | None) -> Array:
    if times is None:
        if horizon is None:
            raise ValueError("horizon must be a positive time, or times be given, got neither")
        return np.linspace(0.0, check.number("horizon", horizon, positive=True), 401)
    at = check.array("times", times, (None,))
    if len(at) == 0 or at[0] < 0.0 or at[-1] <= 0.0 or (np.diff(at) <= 0.0).any():
        raise ValueError(f"times must be ascending from 0 or later, got {check.shown(times)}")
    if horizon is not None and not math.isclose(at[-1], check.number("horizon", horizon)):
        raise ValueError(f"horizon must be None or the last of the times {at[-1]:g}, got {horizon:g}")
    return at


@dataclass
class _Path:
    """What a solution gave: states at the recorded times, events, and its end."""

    states: Array
    end: Array
    end_time: float
    recovery: float
    convergence: float
    rates: Array
    outcome: Outcome


def _solve(
    drift: Drift,
    state: Array,
    at: Array,
    threshold: float,
    make: Any,
    rtol: float,
    max_steps: int,
    advance: Callable[[float], None],
) -> _Path:
    """Step by step, so that what is computed is never lost to a limit."""
    states = np.full((len(at), len(state)), np.nan)
    states[at == 0.0] = state
    above = bool(drift.norm(state) >= threshold)
    recovery = 0.0 if above else math.nan
    convergence = math.nan
    solver = make(lambda t, y: drift(y), 0.0, state, float(at[-1]), rtol=rtol, atol=1e-3 * rtol)
    limit: Outcome | None = None
    for _ in range(max_steps):
        old = solver.t
        failure = solver.step()
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            limit = Outcome.STEP_LIMIT if failure and np.isfinite(solver.y).all() else Outcome.DIVERGED
            break
        between = solver.dense_output()
        inside = (at > old) & (at <= solver.t)
        states[inside] = drift.inside(between(at[inside]).T) if inside.any() else states[inside]
        if math.isnan(recovery) and drift.norm(solver.y) >= threshold:
            recovery = _crossing(lambda t: float(drift.norm(between(t))) - threshold, old, solver.t)  # noqa: B023
        if math.isnan(convergence) and _speed(drift, solver.y) < STILL and _stable(drift, solver.y, threshold):
            convergence = solver.t
        advance(solver.t - old)
        if solver.status == "finished":
            break
    else:
        limit = Outcome.STEP_LIMIT
    end = drift.inside(solver.y)
    rates = growth_rates(drift, end).real if np.isfinite(end).all() else np.full(len(end), np.nan)
    outcome = _outcome(drift, end, above, threshold, recovery) if limit is None else limit
    return _Path(states, end, float(solver.t), recovery, convergence, rates, outcome)


def _crossing(above: Callable[[float], float], begin: float, end: float) -> float:
    """Time at which the overlap crosses inside a step; its beginning where rounding hides the change of sign."""
    if above(begin) >= 0.0:
        return begin
    return end if above(end) <= 0.0 else float(optimize.brentq(above, begin, end, xtol=1e-12 * max(1.0, end)))


def _speed(drift: Drift, state: Array) -> float:
    return float(np.linalg.norm(drift(state)))


def _stable(drift: Drift, state: Array, threshold: float) -> bool:
    """Whether a point of rest attracts its surroundings."""
    rates = growth_rates(drift, drift.inside(state)).real
    recovered = bool(drift.norm(state) >= threshold)
    return bool((rates < (_FLAT if recovered else -_FLAT)).all())


def _outcome(drift: Drift, end: Array, above: bool, threshold: float, recovery: float) -> Outcome:
    if _speed(drift, end) < STILL:
        return Outcome.CONVERGED if _stable(drift, end, threshold) else Outcome.STUCK
    if above:
        return Outcome.ALREADY_ABOVE
    return Outcome.CENSORED if math.isnan(recovery) else Outcome.RECOVERED


def _dataset(drift: Drift, path: _Path, at: Array, attrs: dict[str, Any]) -> xr.Dataset:
    known = np.isfinite(path.states).all(-1)
    norm = np.full(len(at), np.nan)
    norm[known] = drift.norm(path.states[known])
    variables: dict[str, Any] = {
        **overlaps(drift.problem, path.states, ("time",)),
        "overlap_norm": ("time", norm, {"long_name": "size of the overlap"}),
        "recovery_time": ((), path.recovery, {"long_name": "first time with overlap_norm at the threshold"}),
        "convergence_time": ((), path.convergence, {"long_name": "first time at rest in a stable point"}),
        "end_time": ((), path.end_time),
        "ends": ("coordinate", path.end, {"long_name": "last state: m, e (untied: one m a row)"}),
        "end_rates": ("mode", path.rates, {"long_name": "growth rates of small deviations at the end"}),
    }
    time = ("time", at, {"long_name": "time t = gamma * step / d", "units": "1"})
    return xr.Dataset(variables, {"time": time}, attrs)


def overlaps(problem: Problem, states: Array, dims: tuple[str, ...]) -> dict[str, Any]:
    """States of shape (..., p) as the variables "overlap" and "encoding_overlap" over ``dims``.

    Example:
        >>> list(overlaps(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), np.zeros((3, 1)), ("time",)))
        ['overlap']
    """
    overlap = {"long_name": "overlap m = w.w*/d with the target"}
    if not isinstance(problem.student.frame, Frame):
        return {"overlap": ((*dims, "position"), states, overlap)}
    result: dict[str, Any] = {"overlap": (dims, states[..., 0], overlap)}
    directions = problem.frame.directions
    if directions:
        e = states[..., 1] if directions == 1 else states[..., 1:]
        name = {"long_name": "coordinate e along the encoding"}
        result["encoding_overlap"] = (dims if directions == 1 else (*dims, "direction"), e, name)
    return result


def states_of(data: xr.Dataset) -> Array:
    """States (..., p) of a Dataset with "overlap" and perhaps "encoding_overlap": the inverse of ``overlaps``.

    Example:
        >>> path = gradient_flow(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), m0=0.1, times=[1.0, 2.0, 3.0])
        >>> states_of(path).shape
        (3, 1)
    """
    m = data["overlap"].values
    if "position" in data["overlap"].dims:
        return np.asarray(m)
    columns = [m[..., None]]
    if "encoding_overlap" in data:
        columns.append(data["encoding_overlap"].values.reshape(*m.shape, -1))
    return np.concatenate(columns, axis=-1)
