"""Make docs/figures/readme.png: the phase diagram, and the transition at three dimensions."""

from pathlib import Path

import numpy as np

from seqindex.paper import fig5
from seqindex.paper.jobs import finished, results
from seqindex.paper.transition import OMEGAS, Series, series_jobs, summarise
from seqindex.plotting.landscape import draw_landscape
from seqindex.plotting.style import figure, settings
from seqindex.plotting.transition import draw_transition, mark_omega
from seqindex.sgd.start import Start
from seqindex.storage import write_whole
from seqindex.theory.boundaries import phase_boundary

HERE = Path(__file__).parent


def main() -> None:
    """Compute, draw and save."""
    store = HERE.parent / "results" / "runs"
    series = [Series("square", dim, 0.5, Start.random(), OMEGAS[6:28:2], 64) for dim in (100, 1000, 10_000)]
    wanted = [fig5.jobs(fig5.QUICK)[0], *series_jobs(series)]
    list(finished(wanted, store))
    drawn, *ends = results(wanted, store)
    data = summarise(series, ends)
    landscape = fig5.landscape(121, drawn)
    with settings():
        drawing, (left, right) = figure(9.2, 4.0, columns=2, width_ratios=[1.15, 1.0])
        draw_landscape(left, landscape)
        left.set_title("risk and SGD, a = 1, $\\omega$ = 0.67")
        labels = [f"SGD, d = $10^{{{round(np.log10(one.dim))}}}$" for one in series]
        draw_transition(right, data, labels)
        mark_omega(right, phase_boundary("steepest"), "theory, d to infinity")
        right.set_title("which minimum is found")
        right.legend(loc="upper right")
    target = HERE / "figures" / "readme.png"
    target.parent.mkdir(exist_ok=True)
    write_whole(target, lambda path: drawing.savefig(path, dpi=110))


if __name__ == "__main__":
    main()
