"""Drift of the sufficient statistics: the right-hand side of the ODE that one-pass spherical SGD follows.

In time t = gamma * step / d (the paper, Assumption 2 and appendix C, with the second-order term of the rate)

    one weight vector:   ds/dt = -(I - s s^T) grad R - (gamma / 2) V s,                     s = (m, e), V = E|c|^2,
    a sphere a row:      dm_l/dt = -(1 - m_l^2) d_l R - (gamma / 2) (V / L) m_l,
    one joint sphere:    dm_l/dt = -d_l R + m_l (1/L) sum_j m_j d_j R - (gamma / 2) (V / L) m_l.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.frame import Frame
from seqindex.model.problem import Problem
from seqindex.theory.risk import PopulationRisk
from seqindex.theory.untied_risk import UntiedRisk

Array = NDArray[np.float64]
_STEP = 1e-5
_ROUNDING = 1e-14


class Drift(Protocol):
    """What a flow needs to know of a problem; states have shape (..., p)."""

    problem: Problem
    size: int

    def __call__(self, state: Array) -> Array:
        """d state / dt, (..., p) -> (..., p)."""
        ...

    def norm(self, state: Array) -> Array:
        """Size of the overlap, what recovery means: |m|, or ||m|| / sqrt(L); (..., p) -> (...)."""
        ...

    def start(self, m: ArrayLike, e: ArrayLike | None) -> Array:
        """State of given overlaps, (p,)."""
        ...

    def inside(self, state: Array) -> Array:
        """The state, or the nearest possible one where rounding has led outside."""
        ...


def drift_of(problem: Problem, learning_rate: float = 0.0, risk: PopulationRisk | None = None) -> Drift:
    """The drift of a problem at learning rate gamma; 0 for the gradient flow alone.

    Where the risk of a problem with one weight vector is at hand already, its integrals are used.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> drift = drift_of(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1, "identity")), learning_rate=0.5)
        >>> float(drift(np.array([0.5])).round(12)[0])  # 2 (1 - m^2) - gamma/2 * 8 (1 - m) m
        1.0
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a Problem, got {check.shown(problem)}")
    rate = check.number("learning_rate", learning_rate, 0.0)
    if isinstance(problem.student.frame, Frame):
        return _SharedDrift(problem, rate, risk or PopulationRisk(problem))
    return _RowsDrift(problem, rate)


class _SharedDrift:
    """Drift of s = (m, e), students with one weight vector."""

    def __init__(self, problem: Problem, rate: float, risk: PopulationRisk) -> None:
        self.problem = problem
        self.size = problem.frame.rank
        self._rate = rate
        self._risk = risk

    def __call__(self, state: Array) -> Array:
        s = self.inside(state)
        # Rounding moves a coordinate that symmetry keeps at zero; the risk's integrals are kept for each e.
        s = np.where(np.abs(s) < _ROUNDING, 0.0, s)
        gradient = self._risk.gradient(*self._split(s))
        drift = -gradient + s * (s * gradient).sum(-1, keepdims=True)
        if self._rate:
            drift = drift - 0.5 * self._rate * self._risk.mean_square_gradient(*self._split(s))[..., None] * s
        return np.asarray(drift)

    def norm(self, state: Array) -> Array:
        return np.abs(state[..., 0])

    def start(self, m: ArrayLike, e: ArrayLike | None) -> Array:
        return self.problem.frame.state(m, e)  # type: ignore[arg-type]  # it checks m itself

    def inside(self, state: Array) -> Array:
        norm = np.sqrt((state**2).sum(-1, keepdims=True))
        return np.asarray(state / np.maximum(norm, 1.0))

    def _split(self, s: Array) -> tuple[Array, Any]:
        e = s[..., 1:]
        return s[..., 0], None if self.size == 1 else e[..., 0] if self.size == 2 else e


class _RowsDrift:
    """Drift of m in R^L, untied networks."""

    def __init__(self, problem: Problem, rate: float) -> None:
        self.problem = problem
        self.size = problem.length
        self._rate = rate
        self._risk = UntiedRisk(problem)
        self._apart = problem.rows.together == 1

    def __call__(self, state: Array) -> Array:
        m = self.inside(state)
        gradient = self._risk.gradient(m)
        radial = m * gradient if self._apart else (m * gradient).mean(-1, keepdims=True)
        drift = -gradient + m * radial
        if self._rate:
            noise = self._risk.mean_square_gradient(m)[..., None] / self.size
            drift = drift - 0.5 * self._rate * noise * m
        return np.asarray(drift)

    def norm(self, state: Array) -> Array:
        return np.asarray(np.sqrt((state**2).mean(-1)))

    def start(self, m: ArrayLike, e: ArrayLike | None) -> Array:
        if e is not None:
            raise ValueError(f"e0 must be None, as there is no encoding, got {check.shown(e)}")
        rows: Any = np.full(self.size, check.number("m0", m)) if np.ndim(m) == 0 else m
        state = check.array("m0", rows, (self.size,))
        if not np.allclose(state, self.inside(state), rtol=0.0, atol=1e-12):
            wanted = "|m_l| at most 1" if self._apart else f"||m||^2 at most the length {self.size}"
            raise ValueError(f"m0 must have {wanted}, got {check.shown(m)}")
        return state

    def inside(self, state: Array) -> Array:
        if self._apart:
            return np.clip(state, -1.0, 1.0)
        norm = np.sqrt((state**2).sum(-1, keepdims=True) / self.size)
        return np.asarray(state / np.maximum(norm, 1.0))


def jacobian(drift: Drift, state: Array) -> Array:
    """d drift_i / d state_j at one state, (p,) -> (p, p), by central differences good to about 1e-9.

    Where the state touches the boundary the difference is taken on the inside only, to about 1e-5.

    Example:
        >>> drift = drift_of(sx.Problem(sx.Target("He2(z1)", 1), sx.TiedNetwork(1, "square")))
        >>> jacobian(drift, np.zeros(1)).round(6).tolist()  # R'' = -2 <C_2(g), C_2(f)> = -8
        [[8.0]]
    """
    steps = _STEP * np.eye(len(state))
    forward, backward = drift.inside(state + steps), drift.inside(state - steps)
    # The drift is tangent to the boundary up to the noise, so that moves along it are those that matter there.
    change = drift(forward) - drift(backward)
    moved = forward - backward
    return np.asarray(np.linalg.lstsq(moved, change, rcond=None)[0].T)


def growth_rates(drift: Drift, state: Array) -> NDArray[np.complex128]:
    """Eigenvalues of the Jacobian at a fixed point, the largest real part first: exponential rates in time t.

    Example:
        >>> drift = drift_of(sx.Problem(sx.Target("He2(z1)", 1), sx.TiedNetwork(1, "square")))
        >>> growth_rates(drift, np.zeros(1)).round(6).tolist()
        [(8+0j)]
    """
    values = np.linalg.eigvals(jacobian(drift, state)).astype(np.complex128)
    return values[np.argsort(-values.real)]
