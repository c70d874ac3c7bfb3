"""Finite-size theory of the positional-semantic transition: the probability of the semantic minimum at dimension d.

Near the start m and e grow at rates lambda_m and lambda_e from Gaussian amplitudes, of variances

    v_m = v + gamma D_m / (2 lambda_m d),    v_e = v + gamma D_e / (2 lambda_e d),

v = 1/d for a random start and 0 for the released one at m = e = 0, D the variance of one step.  The border between the
two basins leaves the start as |m| = kappa |e|^rho, rho = lambda_m / lambda_e, so that SGD ends semantic where

    sqrt(v_m) |g_1| > kappa (sqrt(v_e) |g_2|)^rho,    g_1, g_2 independent N(0, 1).

As d grows the transition tends to rho = 1, the paper's switch of the steepest direction, with a width like 1 / log d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

import seqindex
from seqindex import check
from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.problem import Problem
from seqindex.model.target import PositionalSemanticTarget
from seqindex.theory.chart import Chart
from seqindex.theory.diffusion import step_covariance
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]
STARTS = ("random", "orthogonal")
"""Uniform on the sphere, or exactly m = e = 0."""
_NEAR = 0.03
"""e at which the border between the basins is sought; it changes kappa by a few parts in a thousand."""
_ROUNDS = 13
_STEPS = 200
_DEGREE = 33
"""Odd, so that no node lies on an axis, where gradients are divided by the coordinate."""
_SMALL = 1e-4
"""Smallest coordinate by which a gradient is divided, for a relative error of its square."""
_AT = (0.0, 0.5, 1.0)
"""Values of omega from which all follows: the gradient is linear in omega, the noise quadratic."""


def semantic_probability(
    omega: ArrayLike,
    dim: ArrayLike,
    learning_rate: float,
    start: str = "random",
    alignment: float | None = None,
    alignment_matrix: ArrayLike | None = None,
) -> xr.Dataset:
    """Probability that SGD ends in the semantic minimum, to leading order in the noise (not in the paper).

    The student is softmax attention of length 2 with opposite encodings under the square loss (the paper, section 4).

    Args:
        omega: values of omega in [0, 1], (n,).
        dim: dimensions, (k,).
        learning_rate: gamma.
        start: "random" or "orthogonal", as ``Start``.
        alignment: a of the positional target; 1 where neither it nor a matrix is given.
        alignment_matrix: A, a row-stochastic 2 x 2 matrix, in place of a.

    Returns:
        Dataset with "probability" over (omega, dim), and over omega "rho", "kappa", the growth rates "rate_m" and
        "rate_e".  Where there is one minimum only, kappa is 0 or infinite and the probability 1 or 0; it is NaN where
        the noise keeps SGD at the start.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> data = semantic_probability([0.6, 0.68], [1000, 10**5], learning_rate=0.05, start="orthogonal")
        >>> data["probability"].round(2).values.tolist()
        [[0.92, 0.96], [0.17, 0.09]]
    """
    omegas = check.array("omega", np.atleast_1d(np.asarray(omega)), (None,))
    for value in omegas:
        check.number("omega", float(value), 0.0, 1.0)
    dims = np.array([check.integer("dim", one, 4) for one in np.atleast_1d(np.asarray(dim)).tolist()])
    rate = check.number("learning_rate", learning_rate, positive=True)
    check.choice("start", start, STARTS)
    if alignment is None and alignment_matrix is None:
        alignment = 1.0

    matrix = np.array(PositionalSemanticTarget(0.0, alignment, alignment_matrix).alignment_matrix)
    parts = _parts(tuple(map(float, matrix.ravel())))
    weights = _weights(omegas)
    growth = -(weights @ parts.curvature) - 0.5 * rate * (weights @ parts.strength)[:, None]
    kappa = _kappa(weights, rate, growth, parts.slopes)
    with np.errstate(divide="ignore", invalid="ignore"):  # where one of them does not grow, kappa alone decides
        rho = growth[:, 0] / growth[:, 1]
    own = 1.0 / dims if start == "random" else np.zeros(len(dims))
    grown = 0.5 * rate * (weights @ parts.steps) / np.where(growth > 0.0, growth, np.inf)
    variance = own[None, :, None] + grown[:, None, :] / dims[None, :, None]
    probability = _probability(kappa, rho, variance)
    probability[(growth <= 0.0).all(1)] = np.nan
    return xr.Dataset(
        {
            "probability": (("omega", "dim"), probability, {"long_name": "probability of the semantic minimum"}),
            "rho": ("omega", rho, {"long_name": "ratio of the growth rates of m and e"}),
            "kappa": ("omega", kappa, {"long_name": "border of the basins at the start: |m| = kappa |e|^rho"}),
            "rate_m": ("omega", growth[:, 0]),
            "rate_e": ("omega", growth[:, 1]),
        },
        {"omega": omegas, "dim": dims},
        {
            "learning_rate": rate,
            "start": start,
            "alignment_matrix": matrix.ravel().tolist(),
            "seqindex_version": seqindex.__version__,
        },
    )


def switch_width(data: xr.Dataset) -> tuple[Array, Array]:
    """omega at which the probability is 1/2, and the standard deviation of a normal law fitted to the quartiles.

    Args:
        data: what ``semantic_probability`` returns, with values of omega close enough to interpolate between.

    Returns:
        Middle and width, (k,) each, one a dimension.

    Example:
        >>> data = semantic_probability(np.linspace(0.55, 0.75, 21), [1000, 10**6], learning_rate=0.5)
        >>> middle, width = switch_width(data)
        >>> bool(width[1] < 0.6 * width[0]), bool(abs(middle[1] - 0.641) < 0.01)
        (True, True)
    """
    omega, probability = data["omega"].values, data["probability"].values
    levels = np.array([[np.interp(-p, -column, omega) for p in (0.75, 0.5, 0.25)] for column in probability.T])
    return levels[:, 1], (levels[:, 2] - levels[:, 0]) / (2.0 * 0.6744897501960817)


@dataclass(frozen=True)
class _Parts:
    """What the theory needs of the landscape, at the values of omega in ``_AT`` (first axis)."""

    strength: Array
    curvature: Array
    steps: Array
    slopes: Callable[[Array], Array]


@lru_cache(maxsize=8)
def _parts(matrix: tuple[float, ...]) -> _Parts:
    problems = [
        Problem(PositionalSemanticTarget(value, None, np.reshape(matrix, (2, 2))), Attention(2, OppositeEncoding()))
        for value in _AT
    ]
    risks = [PopulationRisk(problem) for problem in problems]
    return _Parts(
        strength=np.array([risk.mean_square_gradient(0.0, 0.0) for risk in risks]),
        curvature=np.array([np.diagonal(risk.hessian(0.0, 0.0)) for risk in risks]),
        steps=np.array([np.diagonal(step_covariance(problem, [0.0, 0.0], points=2**17)) for problem in problems]),
        slopes=Chart(2, _DEGREE).interpolate(lambda s: np.stack([_slopes(risk, s) for risk in risks], axis=-2)),
    )


def _weights(omega: Array) -> Array:
    """Weights of values at ``_AT`` in a quadratic polynomial of omega, (n, 3)."""
    return np.stack(
        [(1.0 - omega) * (1.0 - 2.0 * omega), 4.0 * omega * (1.0 - omega), omega * (2.0 * omega - 1.0)], axis=-1
    )


def _kappa(weights: Array, rate: float, growth: Array, table: Callable[[Array], Array]) -> Array:
    """Bisect the m from which the flow at e = _NEAR ends semantic; 0 or infinite where every start ends alike.

    The flow is followed in (log m, log e), in which it is linear near the start, with a step a value of omega.
    """
    kappa = np.where(growth[:, 1] <= 0.0, 0.0, np.where(growth[:, 0] <= 0.0, np.inf, np.nan))
    todo = np.isnan(kappa)
    if not todo.any():
        return kappa
    weights, growth = weights[todo], growth[todo]
    step = 0.25 / growth.max(1)

    def speed(logs: Array) -> Array:
        s = np.exp(logs)
        s /= np.maximum(1.0, np.linalg.norm(s, axis=-1, keepdims=True))
        slopes = np.einsum("nj,njq->nq", weights, table(s))
        radial = (s * s * slopes[:, :2]).sum(-1) - 0.5 * rate * slopes[:, 2]
        return np.asarray((radial[:, None] - slopes[:, :2]) * step[:, None])

    def semantic(log_ratio: Array) -> NDArray[np.bool_]:
        logs = np.log(_NEAR) + np.stack([log_ratio, np.zeros(len(log_ratio))], axis=-1)
        for _ in range(_STEPS):
            k1 = speed(logs)
            k2 = speed(logs + 0.5 * k1)
            k3 = speed(logs + 0.5 * k2)
            logs = logs + (k1 + 2.0 * k2 + 2.0 * k3 + speed(logs + k3)) / 6.0
        return np.asarray(logs[:, 0] > logs[:, 1])

    low, high = np.full(len(step), -14.0), np.full(len(step), 3.0)
    always, never = semantic(low), ~semantic(high)
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        up = semantic(middle)
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    exponent = 1.0 - np.clip(growth[:, 0] / growth[:, 1], 0.0, 200.0)
    found = np.exp(0.5 * (low + high)) * _NEAR**exponent
    kappa[todo] = np.where(always, 0.0, np.where(never, np.inf, found))
    return kappa


def _slopes(risk: PopulationRisk, s: Array) -> Array:
    """R_m / m, R_e / e and V at states (n, 2): even functions, whose tables keep their relative error."""
    s = np.copysign(np.maximum(np.abs(s), _SMALL), s)
    s = s / np.maximum(1.0, np.linalg.norm(s, axis=-1, keepdims=True))
    gradient = risk.gradient(s[:, 0], s[:, 1])
    return np.column_stack([gradient / s, risk.mean_square_gradient(s[:, 0], s[:, 1])])


def _probability(kappa: Array, rho: Array, variance: Array) -> Array:
    """P(sqrt(v_m) |g_1| > kappa (sqrt(v_e) |g_2|)^rho), (omega, dim)."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    g, weights = 5.0 * (nodes + 1.0), 5.0 * weights  # |g_2| in (0, 10)
    density = weights * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * g * g)
    result = np.repeat(np.where(kappa == 0.0, 1.0, 0.0)[:, None], variance.shape[1], axis=1)
    two = (kappa > 0.0) & np.isfinite(kappa)
    m, e = np.sqrt(variance[two, :, 0])[..., None], np.sqrt(variance[two, :, 1])[..., None]
    border = kappa[two, None, None] * (e * g) ** rho[two, None, None]
    result[two] = erfc(border / (np.sqrt(2.0) * m)) @ density
    return np.asarray(result)
