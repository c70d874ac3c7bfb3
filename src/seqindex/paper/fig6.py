"""Figure 6: an encoding injected into the fields, z_l + c_l, breaks the even symmetry of attention.

The paper does not say which coefficients c it used; here c = (1, 1) and c = (1, -1) stand beside no injection.  The
student is softmax attention with the plain trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.model.attention import Attention
from seqindex.model.encoding import InjectedEncoding
from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.panels import packed, shown, unpacked
from seqindex.plotting.style import figure, styled
from seqindex.sgd.start import Start

TITLE = "an injected encoding makes odd targets learnable"
_TARGETS = {"first": "He1(z1) + He1(z2)", "third": "He3(z1) + He3(z2)"}
_INJECTIONS = {"none": None, "equal": (1.0, 1.0), "opposite": (1.0, -1.0)}
_WORDS = {"none": "no injection", "equal": "c = (1, 1)", "opposite": "c = (1, -1)"}
_DASHES = {"none": "-", "equal": "-", "opposite": (0, (4, 4))}
_DIM = 100
_RATES = {"first": 0.05, "third": 2e-3}
_STARTS = {"first": Start.orthogonal(), "third": Start.overlaps(-0.4)}


@dataclass(frozen=True)
class Scale:
    """Points on the axis of the landscape, and time gamma * step / d of the runs."""

    points: int
    time: float


FULL = Scale(points=121, time=40.0)
QUICK = Scale(points=41, time=10.0)


def _problems() -> dict[str, Problem]:
    return {
        f"{target}_{name}": Problem(
            Target(text, 2), Attention(2, None if c is None else InjectedEncoding(c), "plain_trace")
        )
        for target, text in _TARGETS.items()
        for name, c in _INJECTIONS.items()
    }


def jobs(scale: Scale) -> list[Job]:
    """SGD of every problem: He1 + He1 from m = 0, He3 + He3 from m = -0.4, where terms of order 3 show."""
    found = []
    for name, problem in _problems().items():
        target = name.split("_")[0]
        rate = _RATES[target]
        steps = round(scale.time * _DIM / rate)
        found.append(Job(problem, _DIM, rate, steps, 64, 6, _STARTS[target], 201, history=True))
    return found


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """The risk along m with its orders, and m along the runs."""
    problems = _problems()
    data = packed(problems, scale.points, critical=False)
    return data.assign(
        overlap=(("problem", "replica", "record"), np.array([runs["overlap"].values for runs in results]))
    ).assign_coords(problem=list(problems), time=("record", np.linspace(0.0, scale.time, results[0].sizes["record"])))


@styled
def draw(data: xr.Dataset) -> Figure:
    """One row a target: the risk along m, and SGD."""
    drawing, axes = figure(8.5, 6.2, rows=2, columns=2)
    for row, (target, text) in enumerate(_TARGETS.items()):
        for name, words in _WORDS.items():
            one = unpacked(data, f"{target}_{name}")
            m, risk = one["risk_m"].values.ravel(), one["risk"].values.ravel()
            escape = f"{words}: escape order {shown(one['escape'])}"
            dashes: Any = _DASHES[name]
            axes[row, 0].plot(m, risk - risk[len(risk) // 2], label=escape, linestyle=dashes)
            runs = data["overlap"].sel(problem=f"{target}_{name}")
            lines = axes[row, 1].plot(data["time"], runs.mean("replica"), label=words, linestyle=dashes)
            axes[row, 1].plot(data["time"], runs.values[:8].T, color=lines[0].get_color(), alpha=0.2, linewidth=0.6)
        axes[row, 0].set(xlabel="overlap with the target, m", ylabel="R(m) - R(0)", title=text)
        axes[row, 0].legend()
        axes[row, 1].set(xlabel="time, rate x steps / d", ylabel="m", title=f"SGD, d = {_DIM}", ylim=(-1.0, 1.0))
        axes[row, 1].legend()
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """D."""
    final = data["overlap"].isel(record=-1)
    mean, error = final.mean("replica"), final.std("replica", ddof=1) / np.sqrt(final.sizes["replica"])

    def ended(name: str) -> float:
        return float(mean.sel(problem=name))

    shown_means = ", ".join(
        f"{_TARGETS[target]} with {_WORDS[name]}: {ended(f'{target}_{name}'):+.3f} +- "
        f"{float(error.sel(problem=f'{target}_{name}')):.3f}"
        for target in _TARGETS
        for name in _INJECTIONS
    )
    orders = "; ".join(
        f"{_WORDS[name]}: " + ", ".join(shown(unpacked(data, f"{target}_{name}")["escape"]) for target in _TARGETS)
        for name in _INJECTIONS
    )
    learnt = ended("first_equal") < -0.2 and ended("third_equal") < -0.5
    others = [f"{target}_{name}" for target in _TARGETS for name in ("none", "opposite")]
    flat = all(abs(ended(name)) < 0.1 for name in others if name.startswith("first"))
    return [
        Claim(
            "D",
            "appendix D, figure 6",
            "an injected encoding breaks the even symmetry, so that odd targets become learnable",
            f"escape orders for He1 + He1, He3 + He3: {orders}",
            f"mean m at the end of SGD: {shown_means}",
            f"{CONDITION}: with c = (1, 1), m goes negative; with c = (1, -1) the trace stays blind to these targets"
            if learnt and flat
            else (CONFIRMED if learnt else REFUTED),
        )
    ]
