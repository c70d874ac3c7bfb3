"""Figure 11: targets that a tied network never learns, z1 - z2 and (z1^2 - z2^2) / sqrt(2), and what cures it.

The untied network learns them.  Random weights of the positions, which the paper leaves for future work, cure the tied
network for the first target; for the second its contraction a_1^2 - a_2^2 must have the right sign, so weights and the
same in reverse order are shown.  d = 1000, relu, rate 0.005, random starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.model.tied import TiedNetwork, random_weights
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import Job
from seqindex.paper.networks import tied, untied
from seqindex.plotting.style import BLUE, GREEN, ORANGE, VERMILLION, figure, styled
from seqindex.sgd.start import Start

TITLE = "targets that a tied network never learns"
_TARGETS = {"difference": "z1 - z2", "squares": "(z1**2 - z2**2)/sqrt(2)"}
_NETWORKS = {"tied": BLUE, "untied": ORANGE, "weighted": GREEN, "reversed": VERMILLION}
_DIM, _RATE = 1000, 5e-3


@dataclass(frozen=True)
class Scale:
    """Lengths, and steps for either target."""

    lengths: tuple[int, ...]
    steps: tuple[int, int]


FULL = Scale(lengths=(2, 5, 10), steps=(400_000, 4_000_000))
QUICK = Scale(lengths=(2,), steps=(60_000, 1_000_000))


def _problems(text: str, length: int) -> list[Problem]:
    weights = random_weights(length, seed=11)
    students = [TiedNetwork(length, "relu", a) for a in (weights, weights[::-1])]
    return [tied(text, length), untied(text, length), *(Problem(Target(text, length), student) for student in students)]


def jobs(scale: Scale) -> list[Job]:
    """By target, then length, then network."""
    return [
        Job(problem, _DIM, _RATE, steps, 64, 11, Start.random(), 61, history=True)
        for text, steps in zip(_TARGETS.values(), scale.steps, strict=True)
        for length in scale.lengths
        for problem in _problems(text, length)
    ]


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Size of the overlap along all runs."""
    size = np.array([runs["overlap_norm"].values for runs in results])
    shape = (len(_TARGETS), len(scale.lengths), len(_NETWORKS), *size.shape[1:])
    steps = np.array([np.linspace(0, last, size.shape[-1]) for last in scale.steps])
    return xr.Dataset(
        {
            "overlap_norm": (("target", "length", "network", "replica", "record"), size.reshape(shape)),
            "steps": (("target", "record"), steps),
        },
        {"target": list(_TARGETS), "length": list(scale.lengths), "network": list(_NETWORKS)},
    )


@styled
def draw(data: xr.Dataset) -> Figure:
    """One row a target, one column a length: medians and quartiles over the runs."""
    columns = data.sizes["length"]
    drawing, axes = figure(3.4 * columns + 1.2, 5.8, rows=2, columns=columns, sharey=True)
    for (row, column), panel in np.ndenumerate(np.reshape(axes, (2, columns))):
        for network, colour in _NETWORKS.items():
            one = data["overlap_norm"].isel(target=row, length=column).sel(network=network)
            steps = data["steps"].isel(target=row)
            low, median, high = np.quantile(one.values, [0.25, 0.5, 0.75], axis=0)
            panel.plot(steps, median, color=colour, label=network)
            panel.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0.0)
        panel.set_title(f"{list(_TARGETS.values())[row]}, L = {int(data['length'][column])}")
        panel.set(xlabel="steps", ylim=(0.0, 1.02), ylabel=r"$\|m\| / \sqrt{L}$" if column == 0 else "")
        panel.ticklabel_format(axis="x", style="sci", scilimits=(0, 0))
    panel.legend()
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """F11 and E4, at the shortest length."""
    final = data["overlap_norm"].isel(record=-1, length=0).median("replica")
    noise = 1.0 / np.sqrt(_DIM)
    worst = float(data["overlap_norm"].isel(record=-1).sel(network="tied").median("replica").max())
    values = {network: final.sel(network=network).values.tolist() for network in _NETWORKS}
    shown = "; ".join(f"{network} {a:.3f} and {b:.3f}" for network, (a, b) in values.items())
    length = int(data["length"][0])
    return [
        Claim(
            "F11",
            "figure 11, appendix E.4",
            "z1 - z2 and (z1^2 - z2^2)/sqrt 2: a tied network never learns, an untied one does",
            "the risk of the tied network does not depend on the overlap at all: every contraction <C_k, 1> vanishes",
            f"median overlap at the end, L = {length}: {shown} (noise level {noise:.3f}); tied at most {worst:.3f}",
            CONFIRMED if worst < 3.0 * noise and min(values["untied"]) > 0.2 else REFUTED,
        ),
        Claim(
            "E4",
            "appendix E.4",
            "random weights of the positions would break the degeneracy (left for future work)",
            "contractions with the weights differ from zero for almost all of them: a_1 - a_2 of either sign will do, "
            "but a_1^2 - a_2^2 must be positive for the risk to fall",
            f"median overlap at the end, L = {length}: weighted {values['weighted'][0]:.3f} and "
            f"{values['weighted'][1]:.3f}, weights reversed "
            f"{values['reversed'][0]:.3f} and {values['reversed'][1]:.3f}",
            f"{CONDITION}: always at order 1; at order 2 for one of the two signs of the contraction"
            if min(values["weighted"][0], values["reversed"][0]) > 0.2
            and max(values["weighted"][1], values["reversed"][1]) > 0.2
            else REFUTED,
        ),
    ]
