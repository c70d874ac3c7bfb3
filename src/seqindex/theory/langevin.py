"""``langevin``: the stochastic differential equation that SGD follows at large dimension."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

import seqindex
from seqindex import check
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.progress import track
from seqindex.theory.chart import Chart
from seqindex.theory.diffusion import step_covariance
from seqindex.theory.drift import drift_of
from seqindex.theory.flow import overlaps

Array = NDArray[np.float64]

_NOISE_DEGREE, _NOISE_POINTS = 16, 2**12
"""Chebyshev degree and Sobol points of the covariance of a step: about a per cent of its largest value."""
_MOST_STEPS = 100_000


def langevin(
    problem: Problem,
    dim: int,
    learning_rate: float,
    m0: ArrayLike,
    e0: ArrayLike | None = None,
    horizon: float = 1.0,
    replicas: int = 64,
    seed: int = 0,
    records: int = 101,
    steps: int | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Sample ds = drift dt + sqrt(gamma / d) Cov(b)^{1/2} dW, the diffusion limit of one-pass spherical SGD.

    Both functions are tabulated once over the disc of overlaps, so that a path costs microseconds a step whatever d.  A
    step is half a step of Runge and Kutta (order 4) for the drift, the noise, and the other half: symmetric, so that
    the spread is right to second order in dt.

    Args:
        problem: target, student and loss; the state may have two coordinates, m and e, at most.
        dim: dimension d.
        learning_rate: gamma.
        m0: overlap at t = 0.
        e0: encoding coordinate at t = 0; None for zero.
        horizon: last time T, t = gamma * step / d.
        replicas: number of paths.
        seed: seed; path i draws from a stream that depends on (seed, i) alone.
        records: recorded times, equally spaced with both ends.
        steps: steps of the integration; None for ten in the time of the fastest rate, and at least one a record.
        progress: None for a bar with the time left on a terminal, False for none.

    Returns:
        Dataset over (replica, time) with "overlap" and, where there is an encoding, "encoding_overlap".

    Raises:
        TypeError, ValueError: an argument out of range; an untied network, or an encoding of more than one direction,
            for which ``linear_noise`` gives the covariance.

    Example:
        >>> problem = sx.Problem(sx.Target("sum(z)/2", length=4), sx.TiedNetwork(4))
        >>> paths = langevin(problem, dim=10**6, learning_rate=0.5, m0=0.2, horizon=1.0, replicas=16)
        >>> paths.sizes["replica"], bool(paths["overlap"].isel(time=-1).std() < 0.01)
        (16, True)
    """
    dim = check.integer("dim", dim, 2)
    rate = check.number("learning_rate", learning_rate, positive=True)
    horizon = check.number("horizon", horizon, positive=True)
    replicas = check.integer("replicas", replicas, 1)
    records = check.integer("records", records, 2)
    if steps is not None:
        steps = check.integer("steps", steps, 1)
    if not isinstance(problem.student.frame, Frame) or problem.frame.rank > 2:
        raise ValueError(
            f"student must have one weight vector and at most one encoding direction, got {problem.student!r:.80}; "
            "linear_noise gives the covariance for others"
        )
    seed = check.integer("seed", seed, 0)
    exact = drift_of(problem, rate)
    start = exact.start(m0, e0)
    size = exact.size
    drift = Chart(size).interpolate(exact)
    root = Chart(size, _NOISE_DEGREE).interpolate(lambda s: step_covariance(problem, s, rate, _NOISE_POINTS))
    between = -(-(_steps(drift, size, horizon) if steps is None else steps) // (records - 1))
    dt = horizon / (between * (records - 1))
    streams = [np.random.default_rng([seed, replica]) for replica in range(replicas)]
    state = np.repeat(start[None], replicas, axis=0)
    states = np.empty((replicas, records, size))
    states[:, 0] = state
    with track("langevin", records - 1, progress) as advance:
        for record in range(1, records):
            normals = np.stack([stream.standard_normal((between, size)) for stream in streams], axis=1)
            for normal in normals:
                state = exact.inside(_runge_kutta(drift, state, 0.5 * dt))
                kick = np.einsum("nij,nj->ni", _root(root(state)), normal)
                state = exact.inside(_runge_kutta(drift, state + np.sqrt(rate * dt / dim) * kick, 0.5 * dt))
            states[:, record] = state
            advance(1)
    attrs = {
        **problem.to_attrs(),
        "dim": dim,
        "learning_rate": rate,
        "start": json.dumps(start.tolist()),
        "seed": seed,
        "steps": between * (records - 1),
        "seqindex_version": seqindex.__version__,
    }
    time = ("time", np.linspace(0.0, horizon, records), {"long_name": "time t = gamma * step / d", "units": "1"})
    coords = {"replica": np.arange(replicas), "time": time}
    return xr.Dataset(overlaps(problem, states, ("replica", "time")), coords, attrs)


def _steps(drift: Callable[[Array], Array], size: int, horizon: float) -> int:
    """Steps that resolve the fastest rate anywhere on the disc."""
    states, moves = 0.98 * Chart(size, 6).states, 1e-4 * np.eye(size)
    slopes = [(drift(states + move) - drift(states - move)) / 2e-4 for move in moves]
    fastest = float(np.linalg.norm(np.stack(slopes, axis=-1), axis=(1, 2)).max())
    return min(_MOST_STEPS, int(10.0 * fastest * horizon) + 1)


def _root(covariance: Array) -> Array:
    """Symmetric square roots of covariances (n, p, p); what interpolation leaves below zero counts as zero."""
    values, vectors = np.linalg.eigh(covariance)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(scaled @ np.swapaxes(vectors, 1, 2))


def _runge_kutta(drift: Callable[[Array], Array], state: Array, dt: float) -> Array:
    k1 = drift(state)
    k2 = drift(state + 0.5 * dt * k1)
    k3 = drift(state + 0.5 * dt * k2)
    k4 = drift(state + dt * k3)
    return np.asarray(state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
