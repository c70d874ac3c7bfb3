"""Beyond the figures: what sections 1 and 2 build on: the risk by overlaps, the start, flatness and exponents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from seqindex.paper.jobs import AnyJob
from seqindex.paper.panels import shown
from seqindex.plotting.foundations import draw_exponents, draw_risks, draw_start
from seqindex.plotting.style import figure, styled
from seqindex.theory.escape import escape_order, flatness
from seqindex.theory.exponents import sequence_information_exponent
from seqindex.theory.risk import PopulationRisk

TITLE = "the risk by overlaps, the random start, and flatness beside the exponent"
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Samples of each Monte Carlo mean, random weights at each start, and random targets for lemma 1."""

    samples: int
    starts: int
    targets: int


FULL = Scale(samples=200_000, starts=20_000, targets=60)
QUICK = Scale(samples=20_000, starts=4_000, targets=8)

_DIM = 200
_STATES = ((0.0, 0.0), (0.3, 0.5), (0.6, -0.4), (-0.5, 0.2), (0.9, 0.1), (0.1, 0.95))
"""(m, e) at which explicit data is averaged over, for two weight vectors each."""
_START_DIMS = (100, 10_000)
_EXAMPLES: dict[str, tuple[str, int, str]] = {
    "sum z, tied relu": ("sum(z)", 4, "relu"),
    "z1 z2, tied softplus": ("z1*z2", 2, "softplus"),
    "He1 He4 + He2 He2, tied softplus": ("He1(z1)*He4(z2) + He2(z3)*He2(z4)", 4, "softplus"),
    "z1 z2 z3, tied tanh": ("z1*z2*z3", 3, "tanh"),
    "z1 z2, tied tanh": ("z1*z2", 2, "tanh"),
    "z1 - z2, tied relu": ("z1 - z2", 2, "relu"),
}
"""Targets and activations; the last two are students that are not rich enough."""
_RICH = 4


def jobs(scale: Scale) -> list[AnyJob]:
    """None: nothing here is a run of SGD."""
    return []


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """All numbers."""
    rng = np.random.default_rng(7)
    target = PositionalSemanticTarget(0.67, alignment=1.0)
    problem = Problem(target, Attention(2, OppositeEncoding()))
    risk = PopulationRisk(problem)
    means = np.array([[_explicit(problem, m, e, scale.samples, rng) for _ in range(2)] for m, e in _STATES])
    m, e = np.array(_STATES).T
    origin = float(np.abs(risk.gradient(0.0, 0.0)).max())
    overlaps = np.array([_start(dim, scale.starts, rng) for dim in _START_DIMS])
    exponents, flat = zip(*(_orders(*example) for example in _EXAMPLES.values()), strict=True)
    without, with_ = _lemma(scale.targets, rng)
    return xr.Dataset(
        {
            "explicit": (("state", "vector"), means[..., 0]),
            "explicit_error": (("state", "vector"), means[..., 1]),
            "risk": ("state", risk(m, e)),
            "gradient_at_start": origin,
            "start_overlap": (("dim", "draw"), overlaps),
            "exponent": ("example", list(exponents)),
            "flatness": ("example", list(flat)),
            "flatness_without": ("target", without),
            "flatness_with": ("target", with_),
            "escape_with": float(escape_order(_he4()).value or math.nan),
            "flatness_he4": float(flatness(_he4()).value or math.nan),
        },
        {"dim": list(_START_DIMS), "example": list(_EXAMPLES)},
    )


def _explicit(problem: Problem, m: float, e: float, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Mean loss over tokens in dimension ``_DIM`` at one random w with the given overlaps, and its standard error."""
    wstar, p, v = np.linalg.qr(rng.standard_normal((_DIM, 3)))[0].T
    rest = math.sqrt(max(0.0, 1.0 - m * m - e * e))
    w, target = math.sqrt(_DIM) * (m * wstar + e * p + rest * v), math.sqrt(_DIM) * wstar
    total = square = 0.0
    for size in _parts(samples):
        tokens = rng.standard_normal((size, problem.length, _DIM)) / math.sqrt(_DIM)
        encoded = tokens + problem.frame.positions[:, 1:] @ p[None] / math.sqrt(_DIM)
        losses = problem.loss_at(tokens @ target, encoded @ w)
        total += float(losses.sum())
        square += float((losses**2).sum())
    mean = total / samples
    return mean, math.sqrt((square / samples - mean**2) / samples)


def _parts(samples: int, largest: int = 4000) -> list[int]:
    return [largest] * (samples // largest) + ([samples % largest] if samples % largest else [])


def _start(dim: int, draws: int, rng: np.random.Generator) -> Array:
    """sqrt(d) m of weights uniform on the sphere; w* is the first axis, which loses nothing."""
    found = np.empty(draws)
    done = 0
    for size in _parts(draws, max(1, 4 * 10**6 // dim)):
        w = rng.standard_normal((size, dim))
        found[done : done + size] = math.sqrt(dim) * w[:, 0] / np.linalg.norm(w, axis=1)
        done += size
    return found


def _orders(text: str, length: int, activation: str) -> tuple[float, float]:
    """SIE and flatness; infinity for none, NaN where undecided."""
    target = Target(text, length)
    values = (sequence_information_exponent(target), flatness(Problem(target, TiedNetwork(length, activation))))
    exponent, flat = (math.nan if order.value is None else float(order.value) for order in values)
    return exponent, flat


def _he4() -> Problem:
    """The example of figure 2, whose flatness index an encoding lowers without letting SGD out."""
    return Problem(Target("4/3 + He4(z1) + 2*He4(z2)", 2), Attention(2, OppositeEncoding(), "plain_trace"))


def _lemma(count: int, rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Flatness without and with an encoding, for random polynomials of degree 1 to 4 in two fields."""
    terms = [f"He{i}(z1)*He{j}(z2)" for i in range(5) for j in range(5) if 1 <= i + j <= 4]
    pairs = []
    for _ in range(count):
        chosen = rng.choice(len(terms), 3, replace=False)
        text = " + ".join(f"({rng.integers(1, 9)}/4)*{terms[k]}" for k in chosen)
        values = [
            flatness(Problem(Target(text, 2), Attention(2, encoding, "plain_trace"))).value
            for encoding in (None, OppositeEncoding())
        ]
        pairs.append([math.nan if value is None else float(value) for value in values])
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


@styled
def draw(data: xr.Dataset) -> Figure:
    """Explicit means beside the risk, the law of the start, flatness with and without an encoding."""
    drawing, axes = figure(12.5, 3.8, columns=3)
    draw_risks(axes[0], data)
    draw_start(axes[1], data)
    draw_exponents(axes[2], data)
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """R1, R2, P1 and L1."""
    return [_risk_claim(data), _start_claim(data), _rich_claim(data), _lemma_claim(data)]


def _risk_claim(data: xr.Dataset) -> Claim:
    gap = np.abs(data["explicit"] - data["risk"]) / data["explicit_error"]
    between = np.abs(data["explicit"].diff("vector")[:, 0]) / np.hypot(*data["explicit_error"].values.T)
    count = gap.size
    # The largest of so many normal deviations exceeds 4 with probability below 1e-3.
    holds = float(gap.max()) < 4.0 and float(between.max()) < 4.0
    return Claim(
        "R1",
        "section 1, eq. 9",
        "the population risk depends on w only through (e, m), inside the unit ball",
        f"R at {data.sizes['state']} points of the ball, by Hermite series",
        f"explicit data, d = {_DIM}: two weight vectors a point differ by at most {float(between.max()):.1f}, and "
        f"from the risk by at most {float(gap.max()):.1f} standard errors ({count} means, relative errors "
        f"{float((data['explicit_error'] / data['risk']).max()):.1e})",
        CONFIRMED if holds else REFUTED,
    )


def _start_claim(data: xr.Dataset) -> Claim:
    from scipy import stats

    p = []
    for dim in data["dim"].values:
        law = stats.beta(0.5, 0.5 * (int(dim) - 1))  # of m^2
        p.append(float(stats.kstest(data["start_overlap"].sel(dim=dim).values ** 2 / dim, law.cdf).pvalue))
    spread = data["start_overlap"].std("draw").values
    origin = float(data["gradient_at_start"])
    return Claim(
        "R2",
        "section 1",
        "at a random start e and m are of order d^{-1/2}, and (0, 0) is a critical point for attention",
        "m^2 has the law Beta(1/2, (d - 1)/2), so that sqrt(d) m has variance 1; gradient 0 (attention is even)",
        f"sqrt(d) times the spread {', '.join(f'{s:.3f}' for s in spread)} at d = "
        f"{', '.join(str(int(d)) for d in data['dim'].values)}, Kolmogorov-Smirnov p = "
        f"{', '.join(f'{x:.2g}' for x in p)}; gradient at the start {origin:.0e}",
        f"{CONDITION}: without injected encodings, which break the symmetry"
        if min(p) > 1e-4 and origin < 1e-10
        else REFUTED,
    )


def _rich_claim(data: xr.Dataset) -> Claim:
    exponent, flat = data["exponent"].values, data["flatness"].values
    rich = (exponent == flat)[:_RICH]
    poor = flat[_RICH:] > exponent[_RICH:]
    listed = "; ".join(
        f"{name}: {shown(a)}, {shown(b)}" for name, a, b in zip(data["example"].values, exponent, flat, strict=True)
    )
    return Claim(
        "P1",
        "proposition 1",
        "the flatness index equals the SIE for a rich enough model",
        "equal wherever the product of the leading coefficients of target and student is not zero",
        f"SIE and flatness: {listed}",
        f"{CONDITION}: rich enough means a non-zero product of the leading coefficients"
        if rich.all() and poor.all()
        else REFUTED,
    )


def _lemma_claim(data: xr.Dataset) -> Claim:
    without, with_ = data["flatness_without"].values, data["flatness_with"].values
    known = np.isfinite(with_) | np.isinf(with_)
    holds = (with_ <= without)[known].all()
    lower = int((with_ < without).sum())
    return Claim(
        "L1",
        "lemma 1",
        "an encoding can only lower the flatness index",
        "R(e = 0, m) does not change, so none of its derivatives does",
        f"{len(without)} random targets: lower with the encoding for {lower}, never higher; 4/3 + He4(z1) + 2 He4(z2): "
        f"flatness {shown(data['flatness_he4'])} with it, escape order {shown(data['escape_with'])}",
        f"{CONDITION}: true, but flatness is not the order of escape" if holds and known.all() else REFUTED,
    )
