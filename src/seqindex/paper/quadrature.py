"""Beyond the figures: how precise the Gauss-Hermite rules of appendix G are for softmax attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from seqindex.gaussian.quadrature import Rule, gauss_hermite, trapezoid
from seqindex.model.target import PositionalSemanticTarget
from seqindex.paper.claim import CONDITION, CONFIRMED, REFUTED, Claim
from seqindex.paper.jobs import AnyJob
from seqindex.paper.transition import problem
from seqindex.plotting.quadrature import draw_errors
from seqindex.plotting.style import figure, styled
from seqindex.theory.boundaries import phase_boundary
from seqindex.theory.risk import PopulationRisk

TITLE = "Gauss-Hermite and trapezoid rules for softmax attention (appendix G)"
Array = NDArray[np.float64]
_PAPER = (17, 19, 20)
"""Nodes an axis: those of the released code, and one with a node fewer at 0."""
_ALIGNMENT, _OMEGA = 0.9, 0.6
"""Where the curvature along the encoding is compared."""
_STEP = 0.02
"""Displacement of the second differences in four dimensions; their own error is of order its square."""


@dataclass(frozen=True)
class Scale:
    """Nodes an axis of the rules that are compared in two dimensions."""

    gauss: tuple[int, ...]
    spacings: tuple[float, ...]


FULL = Scale(tuple(range(9, 122, 4)), tuple(np.round(np.geomspace(0.8, 0.15, 16), 4).tolist()))
QUICK = Scale((9, 17, 19, 29, 41, 61, 81), (0.8, 0.6, 0.5, 0.35, 0.25))


def jobs(scale: Scale) -> list[AnyJob]:
    """None: nothing here is a run of SGD."""
    return []


def compute(scale: Scale, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Errors of the curvature along the encoding, and the switch as the rules of the paper give it."""
    exact = float(PopulationRisk(problem(_OMEGA, "square", _ALIGNMENT)).hessian(0.0, 0.0)[1, 1])
    gauss = [_curvature(gauss_hermite(count)) - exact for count in scale.gauss]
    rules = [trapezoid(step, 9.0) for step in scale.spacings]
    trapezoids = [_curvature(rule) - exact for rule in rules]
    return xr.Dataset(
        {
            "gauss_error": ("gauss", np.abs(gauss)),
            "trapezoid_error": ("trapezoid", np.abs(trapezoids)),
            "curvature": exact,
            "paper_curvature": ("paper", [_curvature(gauss_hermite(count)) for count in _PAPER]),
            "paper_switch": ("paper", [_switch(gauss_hermite(count)) for count in _PAPER]),
            "switch": phase_boundary("steepest", 1.0),
        },
        {"gauss": list(scale.gauss), "trapezoid": [len(rule.nodes) for rule in rules], "paper": list(_PAPER)},
    )


def _plane(rule: Rule) -> tuple[Array, Array]:
    """Nodes (n^2, 2) and weights of the product rule."""
    z = np.stack(np.meshgrid(rule.nodes, rule.nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return z, np.outer(rule.weights, rule.weights).ravel()


def _curvature(rule: Rule) -> float:
    """R_ee(0) along u = (1, -1) in two dimensions: E|f|^2 He - 2 E y . E f He, He = (u.z)^2 - 2.

    At m = 0 the fields z* and z are independent, so that the four-dimensional product rule gives the very same number.
    """
    one = problem(_OMEGA, "square", _ALIGNMENT)
    z, weight = _plane(rule)
    f, y = one.student(z), one.target(z)
    second = (z[:, 0] - z[:, 1]) ** 2 - 2.0
    return float(weight @ ((f**2).sum(-1) * second) - 2.0 * (weight @ y) @ (weight @ (f * second[:, None])))


def _switch(rule: Rule) -> float:
    """omega at which both curvatures at the start are equal (alignment 1), by second differences of 4-d sums."""
    gaps = [_gap(rule, omega) for omega in (0.0, 1.0)]  # linear in omega
    return gaps[0] / (gaps[0] - gaps[1])


def _gap(rule: Rule, omega: float) -> float:
    """(R_ee - R_mm)(0) times a constant, by second differences of the risk on the four-dimensional product rule."""
    one = problem(omega, "square")
    assert isinstance(one.target, PositionalSemanticTarget)
    z, weight = _plane(rule)
    y = one.target(z)

    def risk(m: float, e: float) -> float:
        total = 0.0
        for label, star, part in zip(y, z, weight, strict=True):
            f = one.student(m * star + np.sqrt(1.0 - m * m) * z + e * np.array([1.0, -1.0]))
            total += float(part * (weight @ ((f - label) ** 2).sum(-1)))
        return total

    return risk(0.0, _STEP) - risk(_STEP, 0.0)


@styled
def draw(data: xr.Dataset) -> Figure:
    """Errors against nodes an axis."""
    drawing, axes = figure(5.4, 4.0)
    draw_errors(axes, data)
    axes.set_title(f"curvature along the encoding, a = {_ALIGNMENT}, $\\omega$ = {_OMEGA}")
    return drawing


def claims(data: xr.Dataset) -> list[Claim]:
    """G."""
    exact, found = float(data["curvature"]), data["paper_curvature"].values
    switch, switches = float(data["switch"]), data["paper_switch"].values
    relative = np.abs(found / exact - 1.0)
    names = ", ".join(str(int(count)) for count in data["paper"].values)
    reached = data["trapezoid_error"].values < 1e-9
    fewest = int(data["trapezoid"].values[reached].min()) if reached.any() else None
    ok = np.abs(switches - switch).max() < 0.005 and relative.max() > 0.005
    return [
        Claim(
            "G",
            "appendix G",
            "Gauss-Hermite with 17 or 19 nodes is precise enough apart from small effects in figure 13",
            f"switch {switch:.6f}, curvature {exact:.6f} at a = {_ALIGNMENT}, omega = {_OMEGA}",
            f"with {names} nodes: switch {', '.join(f'{x:.5f}' for x in switches)}; curvature "
            f"{', '.join(f'{x:.6f}' for x in found)} ({', '.join(f'{100 * x:.1f} %' for x in relative)} off)"
            + (f"; the trapezoid rule reaches 1e-9 with {fewest} nodes" if fewest else ""),
            f"{CONDITION}: the switch is good to the third digit, small curvatures only to the per cent, and the "
            "released differences on an even grid add as much again"
            if ok
            else (CONFIRMED if relative.max() <= 0.005 else REFUTED),
        )
    ]
