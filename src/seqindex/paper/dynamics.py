"""Beyond the figures: the two phases of learning, and SGD beside its ODE (section 1, assumption 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from seqindex.model.attention import Attention
from seqindex.model.encoding import OppositeEncoding
from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.model.target import PositionalSemanticTarget
from seqindex.model.tied import TiedNetwork
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.plotting.dynamics import draw_alignment, draw_escape, draw_mean
from seqindex.plotting.style import figure, styled
from seqindex.sgd.start import Start
from seqindex.theory.critical import critical_points
from seqindex.theory.flow import gradient_flow
from seqindex.theory.risk import PopulationRisk
from seqindex.theory.two_phases import fitted_rates, two_phases

TITLE = "the two phases of learning, and SGD beside its ODE"
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Dimension and runs of the two phases; dimension and runs of the mean; whether critical points are searched."""

    dim: int
    replicas: int
    mean_dim: int
    mean_replicas: int
    critical: bool


FULL = Scale(dim=10**6, replicas=32, mean_dim=10**5, mean_replicas=1000, critical=True)
QUICK = Scale(dim=50_000, replicas=8, mean_dim=2000, mean_replicas=300, critical=False)

_LENGTH = 2
_CRITICAL_RATE = 2.0 / math.sqrt(math.pi) / (_LENGTH + 1)
"""gamma_c of the tied problem: beyond it the noise keeps SGD at the start (section 5 of the theory, in closed form)."""
_ESCAPE_HORIZON = 20.0
_SHARES = (0.8, 1.2)
"""Learning rates around the largest one, in units of it."""
_TIED_RATES = (0.1, 0.2, 0.3)
_MEAN_HORIZON = 4.0
_ATTENTION_RATE, _ATTENTION_HORIZON = 2.0, 3.0


def _tied() -> Problem:
    return Problem(Target("sum(He2(z))/sqrt(2)", _LENGTH), TiedNetwork(_LENGTH))


def _attention() -> Problem:
    return Problem(PositionalSemanticTarget(0.6, alignment=1.0), Attention(2, OppositeEncoding()))


def _figure_one() -> dict[str, Problem]:
    """The examples of figure 1 that the start lets go, by name."""
    opposite = OppositeEncoding()
    return {
        f"{text}{'' if encoding is None else ', opposite encodings'}": Problem(
            Target(text, 2), Attention(2, encoding, "plain_trace")
        )
        for text in ("He2(z1) + He2(z2)", "-He4(z1) - He4(z2)")
        for encoding in (None, opposite)
    }


def jobs(scale: Scale) -> list[Job]:
    """Runs from a random start; means from given starts; runs on both sides of the largest learning rate."""
    tied, attention = _tied(), _attention()

    def job(problem: Problem, dim: int, rate: float, horizon: float, replicas: int, start: Start, records: int) -> Job:
        return Job(problem, dim, rate, 8 * round(horizon * dim / rate / 8), replicas, 3, start, records, history=True)

    phases = job(tied, scale.dim, _TIED_RATES[1], _ESCAPE_HORIZON, scale.replicas, Start.random(), 801)
    dim, replicas = scale.mean_dim, scale.mean_replicas
    means = [job(tied, dim, rate, _MEAN_HORIZON, replicas, Start.overlaps(0.2), 9) for rate in _TIED_RATES]
    means.append(job(attention, dim, _ATTENTION_RATE, _ATTENTION_HORIZON, replicas, Start.overlaps(0.25, 0.2), 9))
    around = [job(tied, 2000, share * _CRITICAL_RATE, 60.0, 32, Start.random(), 2) for share in _SHARES]
    return [phases, *means, *around]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Rates of both phases in theory and data, means beside the ODE with and without its second-order term."""
    first, means, around = results[0], results[1:5], results[5:]
    theory = two_phases(_tied(), _TIED_RATES[1])
    times, end = first["step"].values * _TIED_RATES[1] / scale.dim, abs(float(theory.end[0]))
    floor = min(0.05, 8.0 / math.sqrt(scale.dim))  # a few times the noise
    escape, alignment = fitted_rates(times, first["overlap"].values, end, (floor, 0.1), (max(0.01, floor), 0.06))
    data = xr.Dataset(
        {
            "time": ("record", times),
            "overlap": (("run", "record"), first["overlap"].values),
            "escape_rate": theory.escape_rate,
            "alignment_rate": theory.alignment_rate,
            "end": end,
            "fitted_escape": ("run", escape),
            "fitted_alignment": ("run", alignment),
            "recovered_share": ("share", [float((runs["overlap_norm"][:, -1] > 0.2).mean()) for runs in around]),
        },
        {"share": list(_SHARES)},
    )
    data = data.merge(_means(means))
    return data.assign(_critical(scale.critical))


def _means(results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Mean overlaps of the chain, their errors, and the ODE's, over (case, mean_record)."""
    rows: dict[str, list[Array]] = {name: [] for name in ("mean_time", "mean", "error", "ode")}
    curves: dict[str, list[Array]] = {name: [] for name in ("curve_time", "curve", "without")}
    p_values: list[list[float]] = []
    cases: list[tuple[Problem, float, float, float | None]] = [(_tied(), rate, 0.2, None) for rate in _TIED_RATES]
    cases.append((_attention(), _ATTENTION_RATE, 0.25, 0.2))
    for (problem, rate, m0, e0), runs in zip(cases, results, strict=True):
        times = runs["step"].values * rate / runs.attrs["dim"]
        names = ["overlap"] + (["encoding_overlap"] if e0 is not None else [])
        samples = np.concatenate([runs[name].values[:, 1:] for name in names], axis=1)
        # 401 points, of which every fiftieth is a record.
        paths = [gradient_flow(problem, m0, e0, times[-1], gamma) for gamma in (rate, 0.0)]
        at_records = [np.concatenate([path[n].values[50::50] for n in names]) for path in paths]
        p_values.append([_hotelling(samples, expected) for expected in at_records])
        m = runs["overlap"].values
        rows["mean_time"].append(times)
        rows["mean"].append(m.mean(0))
        rows["error"].append(m.std(0, ddof=1) / math.sqrt(len(m)))
        rows["ode"].append(paths[0]["overlap"].values[::50])
        for name, values in zip(curves, (paths[0]["time"], paths[0]["overlap"], paths[1]["overlap"]), strict=True):
            curves[name].append(values.values)
    data = xr.Dataset(
        {
            **{name: (("case", "mean_record"), np.array(values)) for name, values in rows.items()},
            **{name: (("case", "curve_record"), np.array(values)) for name, values in curves.items()},
        }
    )
    return data.assign(p_value=(("case", "term"), p_values), rate=("case", [*_TIED_RATES, _ATTENTION_RATE]))


def _hotelling(samples: Array, mean: Array) -> float:
    """p-value of "samples (n, p) have this mean", by Hotelling's T^2."""
    from scipy import stats

    n, size = samples.shape
    difference = samples.mean(0) - mean
    squared = float(n * difference @ np.linalg.solve(np.cov(samples.T), difference))
    return float(stats.f.sf(squared * (n - size) / (size * (n - 1)), size, n - size))


def _critical(search: bool) -> dict[str, Any]:
    """For the examples of figure 1: critical points that are neither the start nor a minimum, and the end's rates."""
    names, others, rates = [], [], []
    for name, problem in _figure_one().items():
        found = two_phases(problem)
        names.append(name)
        rates.append(found.alignment_rate)
        others.append(_others(problem) if search else -1)
    return {
        "example_saddles": ("example", others),
        "example_alignment": ("example", rates),
        "example": ("example", np.array(names, dtype=str)),
    }


def _others(problem: Problem) -> int:
    points = critical_points(PopulationRisk(problem))
    return sum(p.kind == "saddle" and math.hypot(p.m, *np.atleast_1d(p.e)) > 1e-3 for p in points)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Escape on a logarithmic axis of |m|, alignment on one of the gap to the end, means beside the ODE."""
    drawing, axes = figure(13.0, 3.9, columns=3)
    draw_escape(axes[0], data)
    draw_alignment(axes[1], data)
    draw_mean(axes[2], data.isel(case=slice(0, 3)))
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """R3 and R4."""
    return [_phases_claim(data), _ode_claim(data)]


def _mean(values: Array) -> tuple[float, float]:
    """Mean over runs and its standard error."""
    known = values[np.isfinite(values)]
    return float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known)))


def _phases_claim(data: xr.Dataset) -> Claim:
    (escape, escape_error), (alignment, alignment_error) = (
        _mean(data[name].values) for name in ("fitted_escape", "fitted_alignment")
    )
    saddles = data["example_saddles"].values
    listed = ", ".join(
        f"{name}: {rate:.3f}"
        for name, rate in zip(data["example"].values, data["example_alignment"].values, strict=True)
    )
    searched = f"{int(saddles.sum())} saddles off the start" if (saddles >= 0).all() else "saddles not searched (quick)"
    # The landscape's curvature over the fitted range takes a few per cent off each rate.
    close = (
        abs(escape / float(data["escape_rate"]) - 1.0) < 0.05 + 3.0 * escape_error
        and abs(alignment / float(data["alignment_rate"]) - 1.0) < 0.1 + 3.0 * alignment_error
    )
    through = (
        f"{CONDITION}: exponential in all examples; with encodings there are saddles on the circle, off SGD's path"
        if (saddles > 0).any()
        else CONFIRMED
    )
    return Claim(
        "R3",
        "section 1",
        "no critical point but the start slows the dynamics in the examples of figure 1; alignment is exponential",
        f"tied relu, sum He2: escape rate {float(data['escape_rate']):.4f}, alignment rate "
        f"{float(data['alignment_rate']):.4f} (Hessian at the end); alignment in the examples: {listed}",
        f"fitted to {data.sizes['run']} runs: {escape:.4f} +- {escape_error:.4f} and {alignment:.4f} +- "
        f"{alignment_error:.4f}; {searched} in the examples",
        through if close and (data["example_alignment"] > 0.0).all() else REFUTED,
    )


def _ode_claim(data: xr.Dataset) -> Claim:
    p, shares = data["p_value"].values, data["recovered_share"].values
    gap = np.abs(data["mean"].values - data["ode"].values)[:, 1:].max(1)
    holds = (p[:, 0] > 1e-3).all() and (p[1:, 1] < 1e-6).all() and shares[0] > 0.95 and shares[1] < 0.5
    return Claim(
        "R4",
        "assumption 2",
        "an ODE with the spherical gradient and a second-order term in the rate describes SGD, up to the largest rate",
        "mean of the chain = ODE up to 2/d; largest rate "
        f"{_CRITICAL_RATE:.4f} = 2 a / V for the tied relu network of length {_LENGTH}",
        f"p-values of the ODE {', '.join(f'{x:.2g}' for x in p[:, 0])} at rates "
        f"{', '.join(f'{x:g}' for x in data['rate'].values)} (last: attention), without the second-order term "
        f"{', '.join(f'{x:.0e}' for x in p[:, 1])}; largest gap {gap.max():.1e}; recovered at "
        f"{_SHARES[0]:g} and {_SHARES[1]:g} of the largest rate: {shares[0]:.2f}, {shares[1]:.2f}",
        CONFIRMED if holds else REFUTED,
    )
