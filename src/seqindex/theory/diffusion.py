"""How far SGD strays from its mean path: the covariance of one step, and the Gaussian fluctuations it adds up to.

One step moves the state by -(gamma / d) b, with b the tangential gradient of one sample plus (gamma / 2) |c|^2 times
the state, which the rescaling of w adds, so that

    d state = drift dt + sqrt(gamma / d) Cov(b)^{1/2} dW,          t = gamma * step / d,

and around the mean path deviations are Gaussian with  dS/dt = J S + S J^T + (gamma / d) Cov(b),  J the Jacobian of
the drift (the paper, Assumption 2, goes no further than the mean).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, interpolate

from seqindex import check
from seqindex.gaussian.sobol import sobol_normals
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.theory.drift import drift_of, jacobian
from seqindex.theory.flow import gradient_flow

Array = NDArray[np.float64]
_NODES = 97
"""Times at which the Jacobian and the covariance of a step are computed along a path."""


def step_covariance(problem: Problem, state: ArrayLike, learning_rate: float = 0.0, points: int = 2**14) -> Array:
    """Cov(b) of one sample's move b, in the coordinates of the state, to leading order in 1/d.

    Given the fields only the parts of X along w* and w matter; the others are independent of them and contribute
    E|c|^2 times the identity.  Expectations over the fields are taken on Sobol points, to about 1e-3 of their size for
    attention and 1e-2 for networks; for tied networks under the square loss the part without the learning rate is
    exact to quadrature.

    Args:
        problem: target, student and loss.
        state: (m, e), or the overlaps m_l of an untied network; (..., p).
        learning_rate: gamma.
        points: Sobol points, of which untied networks take eight times as many.

    Returns:
        Array (..., p, p).

    Raises:
        ValueError: an untied network on one joint sphere, whose rows have lengths that are not part of the state.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", 4), sx.TiedNetwork(4))
        >>> exact = 2 * 4 + 10 - 8 / np.pi**0.5  # E[(z*.c)^2] at m = 0
        >>> bool(abs(step_covariance(problem, [0.0])[0, 0] / exact - 1) < 1e-9)
        True
    """
    shared = isinstance(problem.student.frame, Frame)
    if not shared and problem.rows.together > 1:
        raise ValueError("sphere must be 'rows' here, got 'joint': the lengths of its rows are no part of the state")
    states = check.fields("state", state, problem.frame.rank if shared else problem.length)
    rate = check.number("learning_rate", learning_rate, 0.0)
    one = _shared(problem, rate, points) if shared else _rows(problem, rate, points)
    flat = states.reshape(-1, states.shape[-1])
    return np.array([one(s) for s in flat]).reshape(*states.shape, states.shape[-1])


Parts = Callable[[Array], tuple[Array, float]]
"""State -> covariance of (z*.c, k.c, Q^T c, |c|^2), z = m z* + q k + Q s, and E|c|^2."""


def _sampled(problem: Problem, points: int) -> Parts:
    length = problem.length
    normals = sobol_normals(2 * length, points, scrambles=2).reshape(-1, 2 * length)
    zstar, k = normals[:, :length], normals[:, length:]

    def parts(s: Array) -> tuple[Array, float]:
        c = problem.field_gradient(zstar, s[0] * zstar + _rest(s[:1]) * k + problem.frame.offsets(s))
        size = (c * c).sum(-1)
        columns = np.column_stack([(zstar * c).sum(-1), (k * c).sum(-1), c @ problem.frame.positions, size])
        return np.cov(columns.T), float(size.mean())

    return parts


def _by_quadrature(problem: Problem, rest: Parts | None) -> Parts | None:
    """The same where the student sees one combination of the fields; moments of |c|^2 from ``rest``, or zero."""
    if problem.loss.name != "square" or problem.student.outputs > 1 or len(problem.student.combinations) > 1:
        return None
    from seqindex.theory.line_noise import LineNoise  # it needs SymPy, which takes long to import

    try:
        line = LineNoise(problem)
    except ValueError:
        return None
    positions = line.direction @ problem.frame.positions
    spread = np.vstack([np.eye(2, 3), np.outer(positions, np.eye(3)[2])])
    size = len(spread)

    def parts(s: Array) -> tuple[Array, float]:
        moments, mean = line.moments(float(s[0]), float(line.direction @ problem.frame.offsets(s)))
        covariance = np.zeros((size + 1, size + 1)) if rest is None else rest(s)[0]
        covariance[:size, :size] = spread @ moments @ spread.T
        return covariance, mean

    return parts


def _rest(s: Array) -> float:
    return math.sqrt(max(0.0, 1.0 - float(s @ s)))


def _shared(problem: Problem, rate: float, points: int) -> Callable[[Array], Array]:
    """One weight vector: b is the tangential part of (G^T c, h.c) + (Q^T c, 0) in the basis of B and v, and more."""
    rank = problem.frame.rank
    along_target, last = np.eye(rank + 1)[[0, -1]]
    sampled = _sampled(problem, points)
    parts = _by_quadrature(problem, sampled if rate else None) or sampled

    def covariance(s: Array) -> Array:
        whole, q = np.append(s, _rest(s)), _rest(s[:1])
        other = np.append(0.0, whole[1:]) / q if q > 0.0 else last
        free = np.eye(rank + 1) - np.outer(along_target, along_target) - np.outer(other, other)
        tangent = (np.eye(rank + 1) - np.outer(whole, whole))[:rank]
        known = tangent @ np.column_stack([along_target, other, np.eye(rank + 1, rank)])
        known = np.column_stack([known, 0.5 * rate * s])
        of_parts, size = parts(s)
        return np.asarray(known @ of_parts @ known.T + size * tangent @ free @ tangent.T)

    return covariance


def _rows(problem: Problem, rate: float, points: int) -> Callable[[Array], Array]:
    """A sphere a row: b_l = c_l ((1 - m_l^2) z*_l - m_l nu_l h_l) + (gamma / 2) c_l^2 m_l."""
    length = problem.length
    normals = sobol_normals(2 * length, 8 * points, scrambles=2).reshape(-1, 2 * length)
    zstar, h = normals[:, :length], normals[:, length:]

    def covariance(m: Array) -> Array:
        nu = np.sqrt(np.maximum(0.0, 1.0 - m**2))
        c = problem.field_gradient(zstar, m * zstar + nu * h)
        b = c * (nu**2 * zstar - m * nu * h) + 0.5 * rate * c**2 * m
        return np.atleast_2d(np.cov(b.T))

    return covariance


def linear_noise(
    problem: Problem,
    dim: int,
    learning_rate: float,
    m0: ArrayLike,
    e0: ArrayLike | None = None,
    horizon: float | None = None,
    times: ArrayLike | None = None,
) -> xr.Dataset:
    """Mean path of SGD and the covariance of its deviations at dimension d, to leading order in 1/d.

    Args:
        problem: target, student and loss.
        dim: dimension d.
        learning_rate: gamma.
        m0: overlap at the start, the same in every run, as in ``gradient_flow``.
        e0: encoding coordinates at the start.
        horizon: last time T, t = gamma * step / d.
        times: times to record; None for 401 on [0, T].

    Returns:
        Dataset of ``gradient_flow`` with "covariance" over (time, coordinate, coordinate_2), coordinates as in "ends",
        and "deviation", the standard deviation of each.

    Raises:
        TypeError, ValueError: an argument out of range, or a joint sphere.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(z)/2", length=4), sx.TiedNetwork(4))
        >>> data = linear_noise(problem, dim=10**4, learning_rate=0.5, m0=0.2, horizon=1.0)
        >>> bool(0.001 < data["deviation"][-1, 0] < 0.01)
        True
    """
    dim = check.integer("dim", dim, 2)
    learning_rate = check.number("learning_rate", learning_rate, positive=True)
    path = gradient_flow(problem, m0, e0, horizon, learning_rate, times)
    end = float(path["time"][-1])
    grid = np.linspace(0.0, end, _NODES)
    drift = drift_of(problem, learning_rate)
    mean = integrate.solve_ivp(
        lambda t, y: drift(y), (0.0, end), drift.start(m0, e0), "LSODA", grid, rtol=1e-9, atol=1e-12
    ).y.T
    mean = drift.inside(mean)
    size = mean.shape[1]
    turn = interpolate.CubicSpline(grid, [jacobian(drift, s) for s in mean])
    kick = interpolate.CubicSpline(grid, step_covariance(problem, mean, learning_rate) * learning_rate / dim)

    def change(t: float, flat: Array) -> Array:
        spread = flat.reshape(size, size)
        moved = turn(t) @ spread
        return np.asarray((moved + moved.T + kick(t)).ravel())

    at = path["time"].values
    solved = integrate.solve_ivp(change, (0.0, end), np.zeros(size * size), t_eval=at, rtol=1e-8, atol=1e-10 / dim)
    covariance = solved.y.T.reshape(-1, size, size)
    deviation = np.sqrt(np.maximum(0.0, np.diagonal(covariance, axis1=1, axis2=2)))
    return path.assign(
        covariance=(("time", "coordinate", "coordinate_2"), covariance),
        deviation=(("time", "coordinate"), deviation),
    ).assign_attrs(dim=dim)
