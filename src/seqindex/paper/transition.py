"""The share of runs that end in the semantic minimum, against omega (figures 5 and 12)."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2, norm, poisson

from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.problem import Problem
from seqindex.model.target import PositionalSemanticTarget
from seqindex.outcome import Outcome
from seqindex.paper.claim import CONDITION, CONFIRMED, Claim
from seqindex.paper.jobs import Job
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near
from seqindex.theory.boundaries import phase_boundary
from seqindex.theory.finite_size import semantic_probability, switch_width

ALIGNMENT = 1.0
OMEGAS = np.linspace(0.4, 1.0, 41)
"""The paper's values of omega."""
HORIZON = 400.0
"""Time t = gamma * step / d after which a run is given up; the slowest of thousands converged before 100."""
DISTANCE = 0.3
"""A run has converged once (m, e) is this close to a minimum of its loss: more than the stationary noise around it
(below 0.2 at the largest rate used), less than half the way (0.77) to the edge between the two basins at the switch.
Far from it the edge comes nearer, at large rates most of all, and runs are counted that would still turn back."""


@dataclass(frozen=True)
class Series:
    """Runs over omega at fixed loss, dimension, learning rate and start."""

    loss: str
    dim: int
    learning_rate: float
    start: Start
    omegas: NDArray[np.float64]
    replicas: int

    @property
    def label(self) -> str:
        """Name in legends and tables."""
        start = {"orthogonal": "zero", "random": "uniform"}[self.start.name]
        return f"{self.loss} loss, {start} start, d = {self.dim}, rate {self.learning_rate:g}"


def problem(omega: float, loss: str, alignment: float = ALIGNMENT) -> Problem:
    """The positional-semantic problem of the paper, section 4."""
    return Problem(PositionalSemanticTarget(omega, alignment), Attention(2, OppositeEncoding()), loss)


@functools.cache
def _corner_range(loss: str) -> tuple[float, float]:
    """The semantic corner is a minimum below the first omega, the positional one above the second."""
    return phase_boundary("semantic", ALIGNMENT, loss=loss), phase_boundary("positional", ALIGNMENT, loss=loss)


def minima(omega: float, loss: str) -> list[tuple[float, float]]:
    """The minima (m, e) at alignment 1, where each is a corner (0.7635 < alignment), every sign listed."""
    semantic_below, positional_above = _corner_range(loss)
    points = []
    if omega < semantic_below:
        points += [(1.0, 0.0), (-1.0, 0.0)]
    if omega > positional_above:
        points += [(0.0, 1.0), (0.0, -1.0)]
    return points


def series_jobs(series: Sequence[Series]) -> list[Job]:
    """The simulations of all series, in the order of ``_places``."""
    omegas, places = _places(series)
    return [_job(series[i], float(omegas[j]), seed=1000 * i + j) for i, j in places]


def _places(series: Sequence[Series]) -> tuple[NDArray[np.float64], list[tuple[int, int]]]:
    """All values of omega, and the (series, omega) indices that are simulated."""
    omegas = np.unique(np.concatenate([one.omegas for one in series]))
    return omegas, [(i, int(np.searchsorted(omegas, omega))) for i, one in enumerate(series) for omega in one.omegas]


def summarise(series: Sequence[Series], results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Counts over (series, omega) from the results of ``series_jobs``; 0 runs where a series has no such omega."""
    omegas, places = _places(series)
    shape = (len(series), len(omegas))
    runs, semantic, converged = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    time = np.full(shape, np.nan)
    for (i, j), data in zip(places, results, strict=True):
        m, e = data["overlap"].values[:, -1], data["encoding_overlap"].values[:, -1]
        runs[i, j] = m.size
        semantic[i, j] = int((np.abs(m) > np.abs(e)).sum())
        converged[i, j] = int((data["outcome"].values == Outcome.CONVERGED).sum())
        time[i, j] = float(np.median(data["end_step"].values)) * series[i].learning_rate / series[i].dim
    dims = ("series", "omega")
    return _with_theory(
        _fitted(
            xr.Dataset(
                {
                    "runs": (dims, runs, {"long_name": "number of runs"}),
                    "semantic": (dims, semantic, {"long_name": "runs that ended with |m| > |e|"}),
                    "converged": (dims, converged, {"long_name": f"runs that came within {DISTANCE} of a minimum"}),
                    "end_time": (dims, time, {"long_name": "median time t = gamma step / d of convergence"}),
                },
                {
                    "series": [one.label for one in series],
                    "omega": omegas,
                    "loss": ("series", [one.loss for one in series]),
                    "dim": ("series", [one.dim for one in series]),
                    "learning_rate": ("series", [one.learning_rate for one in series]),
                    "start": ("series", [one.start.name for one in series]),
                },
                {"alignment": ALIGNMENT, "horizon": HORIZON, "distance": DISTANCE},
            )
        )
    )


def _job(series: Series, omega: float, seed: int) -> Job:
    return Job(
        problem=problem(omega, series.loss),
        dim=series.dim,
        learning_rate=series.learning_rate,
        steps=round(HORIZON * series.dim / series.learning_rate),
        replicas=series.replicas,
        seed=seed,
        start=series.start,
        records=801,
        stop=Near(minima(omega, series.loss), DISTANCE),
    )


@dataclass(frozen=True)
class Switch:
    """A probit curve P = Phi((middle - omega) / width) with standard errors."""

    middle: float
    middle_error: float
    width: float
    width_error: float


def fit_switch(omega: NDArray[np.float64], successes: NDArray[np.int64], runs: NDArray[np.int64]) -> Switch:
    """Maximum-likelihood probit fit of counts that fall from all to none as omega grows.

    Example:
        >>> omega = np.linspace(0.5, 0.8, 31)
        >>> counts = np.round(1000 * norm.cdf((0.64 - omega) / 0.05)).astype(int)
        >>> switch = fit_switch(omega, counts, np.full(31, 1000))
        >>> round(switch.middle, 3), round(switch.width, 3)
        (0.64, 0.05)
    """

    def loss(parameters: NDArray[np.float64]) -> float:
        x = (parameters[0] - omega) / math.exp(parameters[1])
        return -float(np.sum(successes * norm.logcdf(x) + (runs - successes) * norm.logsf(x)))

    start = np.array([float(np.average(omega, weights=runs)), math.log(0.05)])
    found = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 2000}).x
    width = math.exp(found[1])
    x = (found[0] - omega) / width
    chance = np.clip(norm.cdf(x), 1e-12, 1 - 1e-12)
    # Fisher information of (middle, log width) from the slopes of P.
    slopes = np.stack([norm.pdf(x) / width, -norm.pdf(x) * x])
    information = (slopes * (runs / (chance * (1 - chance)))) @ slopes.T
    errors = np.sqrt(np.diag(np.linalg.pinv(information)))
    return Switch(float(found[0]), float(errors[0]), width, float(errors[1]) * width)


def switches(data: xr.Dataset) -> dict[str, Switch]:
    """A fit for each series."""
    result = {}
    for label in data["series"].values:
        one = data.sel(series=label)
        there = one["runs"].values > 0
        counts = (one[name].values[there] for name in ("semantic", "runs"))
        result[str(label)] = fit_switch(one["omega"].values[there], *counts)
    return result


def binomial_interval(successes: NDArray[np.int64], runs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Wilson's interval of one standard error for a probability, shape (2, ...).

    Example:
        >>> binomial_interval(np.array([0, 32]), np.array([64, 64])).round(3).tolist()
        [[0.0, 0.438], [0.015, 0.562]]
    """
    n = np.maximum(runs, 1)
    p = successes / n
    middle = (p + 0.5 / n) / (1 + 1 / n)
    half = np.sqrt(p * (1 - p) / n + 0.25 / n**2) / (1 + 1 / n)
    return np.stack([np.maximum(middle - half, 0.0), middle + half])


def _fitted(data: xr.Dataset) -> xr.Dataset:
    """Add shares, their intervals, and the fitted curves that the drawings show."""
    runs = data["runs"].values
    share = np.where(runs > 0, data["semantic"].values / np.maximum(runs, 1), np.nan)
    low, high = binomial_interval(data["semantic"].values, runs)
    fits = switches(data)
    fine = np.linspace(float(data["omega"].min()), float(data["omega"].max()), 301)
    curves = np.stack([norm.cdf((fit.middle - fine) / fit.width) for fit in fits.values()])
    dims = ("series", "omega")
    about = {"long_name": "share of runs in the semantic minimum", "units": "1"}
    found: dict[str, Any] = {name: ("series", [getattr(fit, name) for fit in fits.values()]) for name in _FIT}
    variables: dict[str, Any] = {
        "share": (dims, share, about),
        "share_low": (dims, np.where(runs > 0, low, np.nan), {"long_name": "share minus one standard error (Wilson)"}),
        "share_high": (dims, np.where(runs > 0, high, np.nan), {"long_name": "share plus one standard error (Wilson)"}),
        "fit": (("series", "omega_fit"), curves, {"long_name": "probit curve"}),
        **{f"switch_{name}": value for name, value in found.items()},
    }
    return data.assign(variables).assign_coords(omega_fit=fine)


def _with_theory(data: xr.Dataset) -> xr.Dataset:
    """Add what the finite-size theory says (square loss), and how well the counts agree with it."""
    omega = data["omega"].values
    theory = np.full(data["share"].shape, np.nan)
    middle, width, p_value = (np.full(data.sizes["series"], np.nan) for _ in range(3))
    compared = np.zeros(theory.shape, dtype=bool)
    fine = np.linspace(float(omega.min()), float(omega.max()), 121)
    curves = np.full((data.sizes["series"], len(fine)), np.nan)
    for index in range(data.sizes["series"]):
        one = data.isel(series=index)
        if one["loss"].item() != "square":
            continue
        rate, start, dim = (one[name].item() for name in ("learning_rate", "start", "dim"))
        every = semantic_probability(np.union1d(omega, fine), [dim], rate, start)
        theory[index] = every["probability"].sel(omega=omega).values[:, 0]
        curves[index] = every["probability"].sel(omega=fine).values[:, 0]
        middle[index], width[index] = (float(value[0]) for value in switch_width(every))
        compared[index] = _told_apart(omega, every["saddle"].sel(omega=omega).values) & (one["runs"].values > 0)
        runs = np.where(compared[index], one["runs"].values, 0)
        p_value[index] = _agreement(one["semantic"].values, runs, theory[index])
    return data.assign(
        compared=(
            ("series", "omega"),
            compared,
            {"long_name": "whether the counts tell the basins apart, so that theory and counts are compared"},
        ),
        theory=(("series", "omega"), theory, {"long_name": "finite-size theory"}),
        theory_curve=(("series", "omega_theory"), curves),
        theory_middle=("series", middle),
        theory_width=("series", width),
        theory_p=("series", p_value),
    ).assign_coords(omega_theory=fine)


def _told_apart(omega: NDArray[np.float64], saddle: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether all that is near a corner lies in its basin, at each omega; ``saddle`` is NaN where only one is left.

    A rate shifts the minima and moves the saddle with them, so that the risk may have a minimum that the flow lacks.
    """
    nearest = np.min([np.linalg.norm(saddle - corner, axis=-1) for corner in np.eye(2)], axis=0)
    alone = np.array([len(minima(float(value), "square")) == 2 for value in omega])
    return np.asarray(np.where(np.isnan(nearest), alone, nearest > DISTANCE))


def _agreement(semantic: NDArray[np.int64], runs: NDArray[np.int64], chance: NDArray[np.float64]) -> float:
    """p-value of one chi-square over all values of omega; those where one outcome is rare count together.

    Where either outcome is expected less than twice, the rare outcomes of all such values are summed on each side of
    the switch: a count that the theory gives no chance tells against it there.
    """
    spread = runs * chance * (1.0 - chance)
    often = (spread > 1.5) & (runs > 0)
    squares = float(((semantic - runs * chance)[often] ** 2 / spread[often]).sum())
    cells = int(often.sum())
    for side, rare, rate in ((chance >= 0.5, runs - semantic, 1.0 - chance), (chance < 0.5, semantic, chance)):
        pooled = side & ~often & (runs > 0)
        if pooled.any():
            expected = float((runs * rate)[pooled].sum())
            # The exact tail of a Poisson count, turned into the square of a normal one.
            tail = float(poisson.sf(int(rare[pooled].sum()) - 1, max(expected, 1e-9)))
            squares += float(norm.isf(max(0.5 * min(1.0, 2.0 * tail), 1e-300))) ** 2
            cells += 1
    return float(chi2.sf(squares, cells))


def theory_claim(data: xr.Dataset, name: str, where: str) -> Claim:
    """Finite-size theory beside the counts: one row for all series with the square loss."""
    known = data.isel(series=np.nonzero(np.isfinite(data["theory_p"].values))[0])
    rows = [known.isel(series=index) for index in range(known.sizes["series"])]
    predicted = "; ".join(
        f"{row['series'].item()}: half at {float(row['theory_middle']):.4f}, width {float(row['theory_width']):.4f}"
        for row in rows
    )
    measured = "; ".join(
        f"half at {float(row['switch_middle']):.4f} +- {float(row['switch_middle_error']):.4f}, width "
        f"{float(row['switch_width']):.4f} +- {float(row['switch_width_error']):.4f}, chi-square p = "
        f"{float(row['theory_p']):.2g} at {int(row['compared'].sum())} values of omega"
        for row in rows
    )
    p = known["theory_p"].values
    worst = float(p.min())
    rejected = f"{int((p < _LEVEL).sum())} of {len(p)} series rejected at {_LEVEL:g}"
    return Claim(
        name,
        where,
        "the share of semantic runs at finite d follows from the border of the basins, the start and the noise (ours)",
        predicted,
        measured,
        CONFIRMED
        if worst > _LEVEL
        else f"{CONDITION}: {rejected}; the theory is of leading order in the noise and takes it near the start only",
    )


_LEVEL = 1e-3
_FIT = ("middle", "middle_error", "width", "width_error")
