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
from scipy.special import erfc, ndtri

import seqindex
from seqindex import check
from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.problem import Problem
from seqindex.model.target import PositionalSemanticTarget
from seqindex.theory.basins import Minima, Places, Speed, basins
from seqindex.theory.chart import Chart
from seqindex.theory.diffusion import step_covariance
from seqindex.theory.risk import PopulationRisk

Array = NDArray[np.float64]
STARTS = ("random", "orthogonal")
"""Uniform on the sphere, or exactly m = e = 0."""
_DEGREE = 33
"""Of the tables over the disc; odd, so that no node lies on an axis, where gradients are divided by the coordinate."""
_SMALL = 1e-4
"""Smallest coordinate by which a gradient is divided, for a relative error of its square."""
_TAIL = 1e-9
"""Probabilities closer to 0 or 1 say nothing about the switch."""
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
        Dataset with "probability" over (omega, dim), and over omega its "limit" for d to infinity, "rho", "kappa", the
        "saddle" (m, e), the growth rates "rate_m" and "rate_e", and which "minima" there are at this rate: semantic or
        positional alone, where the probability is 1 or 0; both; between, where there is one with m and e both; none,
        where the noise keeps SGD at the start.  In the last two cases the probability is NaN.

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
    minima, kappa, saddle = basins(_speed(parts, omegas, rate), growth)
    rho = np.divide(growth[:, 0], growth[:, 1], out=np.full(len(growth), np.nan), where=(growth > 0.0).all(1))
    own = 1.0 / dims if start == "random" else np.zeros(len(dims))
    grown = 0.5 * rate * (weights @ parts.steps) / np.where(growth > 0.0, growth, np.inf)
    variance = own[None, :, None] + grown[:, None, :] / dims[None, :, None]
    probability = _probability(kappa, rho, variance)
    limit = np.select([rho > 1.0, rho < 1.0], [1.0, 0.0], 0.5)
    return xr.Dataset(
        {
            "probability": (("omega", "dim"), probability, {"long_name": "probability of the semantic minimum"}),
            "limit": (
                "omega",
                np.where(minima == Minima.BOTH, limit, probability[:, 0]),
                {"long_name": "probability of the semantic minimum as d tends to infinity"},
            ),
            "minima": ("omega", minima, {"long_name": "what SGD can end in", **Minima.flags()}),
            "rho": ("omega", rho, {"long_name": "ratio of the growth rates of m and e"}),
            "kappa": ("omega", kappa, {"long_name": "border of the basins at the start: |m| = kappa |e|^rho"}),
            "saddle": (("omega", "coordinate"), saddle, {"long_name": "m and e where the border of the basins ends"}),
            "rate_m": ("omega", growth[:, 0], {"long_name": "growth rate of m at the start"}),
            "rate_e": ("omega", growth[:, 1], {"long_name": "growth rate of e at the start"}),
        },
        {"omega": omegas, "dim": dims, "coordinate": ["m", "e"]},
        {
            "learning_rate": rate,
            "start": start,
            "alignment_matrix": matrix.ravel().tolist(),
            "seqindex_version": seqindex.__version__,
        },
    )


def switch_width(data: xr.Dataset) -> tuple[Array, Array]:
    """omega at which the probability is 1/2, and the standard deviation of a normal law fitted to the quartiles.

    Between the given values of omega the normal quantile of the probability is taken to be linear.

    Args:
        data: what ``semantic_probability`` returns, with ascending values of omega, a few within the switch.

    Returns:
        Middle and width, (k,) each, one a dimension; NaN where the values of omega do not reach far enough.

    Example:
        >>> data = semantic_probability(np.linspace(0.55, 0.75, 21), [1000, 10**6], learning_rate=0.5)
        >>> middle, width = switch_width(data)
        >>> bool(width[1] < 0.6 * width[0]), bool(abs(middle[1] - 0.641) < 0.01)
        (True, True)
    """
    omega, probability = data["omega"].values, data["probability"].values
    levels = np.full((probability.shape[1], 3), np.nan)
    for row, column in zip(levels, probability.T, strict=True):
        inside = (column > _TAIL) & (column < 1.0 - _TAIL)
        if inside.any():
            falling = -ndtri(column[inside])
            row[:] = np.interp(ndtri([0.25, 0.5, 0.75]), falling, omega[inside], left=np.nan, right=np.nan)
    return levels[:, 1], (levels[:, 2] - levels[:, 0]) / (2.0 * float(ndtri(0.75)))


@dataclass(frozen=True)
class _Parts:
    """What the theory needs of the landscape: at the values of omega in ``_AT`` (first axis), the slopes at 0 and 1."""

    strength: Array
    curvature: Array
    steps: Array
    slopes: Callable[[Array], Array]
    noise: Callable[[Array], Array]


@lru_cache(maxsize=8)
def _parts(matrix: tuple[float, ...]) -> _Parts:
    problems = [
        Problem(PositionalSemanticTarget(value, None, np.reshape(matrix, (2, 2))), Attention(2, OppositeEncoding()))
        for value in _AT
    ]
    risks = [PopulationRisk(problem) for problem in problems]

    def slopes(s: Array) -> Array:
        """R_m / m and R_e / e: their tables keep the relative error of the gradient."""
        return np.stack([risk.gradient(s[:, 0], s[:, 1]) / s for risk in risks[::2]], axis=-2)

    def noise(s: Array) -> Array:
        return np.stack([risk.mean_square_gradient(s[:, 0], s[:, 1]) for risk in risks], axis=-1)

    return _Parts(
        strength=np.array([risk.mean_square_gradient(0.0, 0.0) for risk in risks]),
        curvature=np.array([np.diagonal(risk.hessian(0.0, 0.0)) for risk in risks]),
        steps=np.array([np.diagonal(step_covariance(problem, [0.0, 0.0], points=2**17)) for problem in problems]),
        slopes=Chart(2, _DEGREE).interpolate(_even(slopes)),
        noise=Chart(2, _DEGREE).interpolate(_even(noise)),
    )


def _even(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function that is even in m and in e, computed at one of the four signs only, and never on an axis."""

    def evaluate(s: Array) -> Array:
        quadrant, inverse = np.unique(np.maximum(np.abs(s).round(12), _SMALL), axis=0, return_inverse=True)
        quadrant /= np.maximum(1.0, np.linalg.norm(quadrant, axis=-1, keepdims=True))
        return np.asarray(function(quadrant)[inverse.ravel()])

    return evaluate


def _weights(omega: Array) -> Array:
    """Weights of values at ``_AT`` in a quadratic polynomial of omega, (n, 3)."""
    return np.stack(
        [(1.0 - omega) * (1.0 - 2.0 * omega), 4.0 * omega * (1.0 - omega), omega * (2.0 * omega - 1.0)], axis=-1
    )


def _speed(parts: _Parts, omega: Array, rate: float) -> Speed:
    """d(log m, log e)/dt of the flow."""
    linear, quadratic = np.stack([1.0 - omega, omega], axis=-1), _weights(omega)

    def speed(s: Array, places: Places) -> Array:
        slopes = np.einsum("nj,...njq->...nq", linear[places], parts.slopes(s))
        noise = np.einsum("nj,...nj->...n", quadratic[places], parts.noise(s))
        radial = (s * s * slopes).sum(-1) - 0.5 * rate * noise
        return np.asarray(radial[..., None] - slopes)

    return speed


def _probability(kappa: Array, rho: Array, variance: Array) -> Array:
    """P(sqrt(v_m) |g_1| > kappa (sqrt(v_e) |g_2|)^rho), (omega, dim)."""
    result = np.repeat(np.select([kappa == 0.0, np.isinf(kappa)], [1.0, 0.0], np.nan)[:, None], variance.shape[1], 1)
    two = np.isfinite(kappa) & (kappa > 0.0)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    g, weights = 5.0 * (nodes + 1.0), 5.0 * weights  # |g_2| in (0, 10)
    density = weights * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * g * g)
    v_m, v_e = variance[two, :, :1], variance[two, :, 1:]
    border = kappa[two, None, None] * (np.sqrt(v_e) * g) ** rho[two, None, None]
    result[two] = erfc(border / np.sqrt(2.0 * v_m)) @ density
    return result
