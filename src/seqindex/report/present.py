"""An analysis in words, as rows of a table, as a picture and as a page."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

import seqindex
from seqindex.order import Order
from seqindex.plotting.analysis import draw_recovery, draw_spectrum
from seqindex.plotting.landscape import draw_contours, draw_sections, draw_surface
from seqindex.plotting.style import figure, styled
from seqindex.report import page
from seqindex.report.analysis import Analysis


def rows(found: Analysis) -> list[tuple[str, str, str]]:
    """What was found: quantity, value, what it means."""
    recovery = found.recovery
    result = [
        ("SIE", _value(found.exponent), found.exponent.reason),
        ("flatness", _value(found.flatness), found.flatness.reason),
        ("escape order", _escape(found.escape), found.escape.reason),
    ]
    if found.escape.coefficient is not None and found.escape.direction is not None:
        direction = ", ".join(f"{x:.4g}" for x in found.escape.direction)
        about = f"derivative of order {found.escape.value} of the risk along (m, e) = ({direction})"
        result.append(("leading coefficient", f"{found.escape.coefficient:.8g}", about))
    if found.plain is not None:
        kappa, escape = found.plain
        result.append(
            ("without encoding", f"{_value(kappa)}, {_escape(escape)}", f"flatness and escape; {escape.reason}")
        )
    result.append(("gradient noise V", f"{recovery.noise:.6g}", "E|c|^2 at the start"))
    if recovery.largest_rate is not None:
        about = f"beyond it the noise wins over the pull at d = {found.dim}"
        result.append(("largest rate", f"{recovery.largest_rate:.4g}", about))
    if recovery.learning_rate is not None:
        result.append(("learning rate", f"{recovery.learning_rate:.4g}", "of the prediction and of the run"))
    steps = "none" if recovery.steps is None else _number(recovery.steps)
    spread = "" if recovery.spread is None else f" +- {_number(recovery.spread)}"
    result.append(("predicted steps", steps + spread, f"to {_name(found)} = {found.threshold:g}; {recovery.reason}"))
    result.append(("measured steps", *_measured(found)))
    return result


def _measured(found: Analysis) -> tuple[str, str]:
    hits = found.hits
    last = int(found.runs["step"].values[-1])
    made = f"exact chain, {len(hits)} runs of {_number(last)} steps"
    if (hits >= 0).mean() <= 0.5:
        return f"> {_number(last)}", f"{int((hits >= 0).sum())} of {len(hits)} runs recovered; {made}"
    times = np.where(hits < 0, np.inf, hits.astype(float))
    low, median, high = (_number(float(x)) for x in np.quantile(times, [0.25, 0.5, 0.75], method="lower"))
    return median, f"median; quartiles {low} to {high}; {int((hits >= 0).sum())} of {len(hits)} recovered; {made}"


def _value(order: Order) -> str:
    if order.value is None:
        return "undecided"
    return "infinite" if order.value == math.inf else str(order.value)


def _escape(order: Order) -> str:
    return "no escape" if order.value == math.inf else _value(order)


def _name(found: Analysis) -> str:
    return "|e|" if found.along_encoding else "|m|"


def _number(value: float) -> str:
    return f"{value:.3g}" if value >= 1e6 else f"{value:.0f}"


@styled
def draw(found: Analysis) -> Figure:
    """Spectrum, landscape and recovery in one row."""
    drawing, (left, middle, right) = figure(12.5, 3.7, columns=3, width_ratios=[0.9, 1.05, 1.1])
    value = found.exponent.value
    draw_spectrum(left, found.spectrum, None if value is None else float(value))
    left.set_title("Hermite spectrum of the target")
    if found.landscape.sizes["row"] == 1:
        draw_sections(middle, found.landscape)
    else:
        draw_contours(middle, found.landscape, flow=True)
    middle.set_title("population risk")
    steps = found.runs["step"].values.astype(float)
    recovery = found.recovery
    draw_recovery(right, steps, found.overlap, found.threshold, recovery.steps, recovery.spread, _name(found))
    right.set_title(f"exact SGD, d = {found.dim}")
    return drawing


def _surface(found: Analysis) -> list[str]:
    """The landscape as a surface, where there are two coordinates."""
    if found.landscape.sizes["row"] == 1:
        return []
    return [page.picture(draw_surface(found.landscape), "Population risk over the disc of overlaps (m, e).")]


def title(found: Analysis) -> str:
    """The problem on one line."""
    return f"{found.problem.target!r} learnt by {found.problem.student!r}"


def to_html(found: Analysis, command: str = "") -> str:
    """The analysis as a page that stands alone."""
    shares = [
        (str(k), f"{share:.10g}", f"{error:.1g}")
        for k, (share, error) in enumerate(zip(found.spectrum, found.spectrum_error, strict=True))
    ]
    evidence = [
        (what, str(record))
        for what, order in (("SIE", found.exponent), ("flatness", found.flatness), ("escape order", found.escape))
        for record in order.evidence
    ]
    parts = [
        page.table(["quantity", "value", "meaning"], rows(found)),
        page.picture(
            draw(found), "Hermite spectrum of the target, population risk, and exact SGD beside the prediction."
        ),
        *_surface(found),
        page.section("Hermite spectrum"),
        page.table(["order", "share of E|g|^2", "error"], shares),
        page.section("Evidence"),
        page.table(["for", "found"], evidence),
        page.section("How this was made"),
        page.text(
            f"seqindex {seqindex.__version__}; {found.problem!r}; d = {found.dim}; learning rate "
            f"{found.runs.attrs['learning_rate']:.6g}; seed {found.runs.attrs['seed']}."
        ),
    ]
    if command:
        parts.append(page.code(command))
    lead = f"How hard is it, why, and how long does one-pass spherical SGD take in dimension {found.dim}?"
    return page.page(title(found), lead, parts)
