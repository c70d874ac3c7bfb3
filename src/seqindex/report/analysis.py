"""Analysis of one problem: how hard its target is, what an encoding changes, how long SGD takes; predicted and run."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.order import Order
from seqindex.sgd.run import Interrupted, sgd
from seqindex.theory.escape import escape_order, flatness
from seqindex.theory.exponents import sequence_information_exponent
from seqindex.theory.hermite_series import HermiteSeries
from seqindex.theory.landscape import landscape
from seqindex.theory.recovery import Recovery, predicted_recovery

Array = NDArray[np.float64]

ORDERS = 8
"""Orders of the Hermite spectrum."""
_REPLICAS = 64
_LONGEST = 10**8
"""Steps of a run for which there is no prediction."""


@dataclass(frozen=True)
class Analysis:
    """What is known of a problem.

    Attributes:
        problem: target, student and loss.
        dim: dimension d.
        threshold: size of the overlap that counts as recovery.
        exponent: sequence information exponent of the target.
        flatness: flatness index of the problem.
        escape: escape order of the problem.
        plain: flatness and escape order of the same problem without its encoding; None where it has none.
        spectrum: E|g_k|^2, the share of each Hermite order k = 0.. in the target's square mean; NaN where it has too
            many coefficients to list.
        spectrum_error: absolute errors of the same.
        recovery: predicted time.
        landscape: the risk over the disc, or along m.
        runs: exact runs, as long as the budget allowed.
        hits: for each replica the first recorded step with |overlap| >= threshold, or -1.
    """

    problem: Problem
    dim: int
    threshold: float
    exponent: Order
    flatness: Order
    escape: Order
    plain: tuple[Order, Order] | None
    spectrum: Array
    spectrum_error: Array
    recovery: Recovery
    landscape: xr.Dataset
    runs: xr.Dataset
    hits: NDArray[np.int64]

    @property
    def along_encoding(self) -> bool:
        """Whether SGD leaves the start along the encoding rather than the target."""
        direction = self.escape.direction
        return direction is not None and bool(np.linalg.norm(direction[1:]) > abs(direction[0]))

    @property
    def overlap(self) -> Array:
        """Size of the overlap along which SGD leaves the start, (replica, record)."""
        if self.along_encoding:
            e = self.runs["encoding_overlap"].values
            return np.abs(e) if e.ndim == 2 else np.asarray(np.linalg.norm(e, axis=-1))
        return np.asarray(self.runs["overlap_norm"].values)


def analyse(
    problem: Problem,
    dim: int = 1000,
    threshold: float = 0.2,
    budget: float = 1.0,
    seed: int = 0,
    rate: float | None = None,
) -> Analysis:
    """Analyse a problem.

    Args:
        problem: target, student and loss.
        dim: dimension d.
        threshold: size of the overlap that counts as recovery.
        budget: seconds for the run of SGD.
        seed: its seed.
        rate: learning rate; None for the one that the theory finds best.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> problem = sx.Problem(sx.Target("z1*z2", length=2), sx.TiedNetwork(2, "softplus"))
        >>> found = analyse(problem, dim=200, budget=0.2)
        >>> found.exponent.value, found.flatness.value, found.escape.value
        (2, 2, 2)
    """
    dim = check.integer("dim", dim, problem.frame.rank + 1)
    budget = check.number("budget", budget, positive=True)
    threshold = check.number("threshold", threshold, 0.0, 1.0, positive=True)
    recovery = predicted_recovery(problem, dim, rate, threshold)
    spectrum, errors = hermite_spectrum(problem)
    draft = Analysis(
        problem=problem,
        dim=dim,
        threshold=threshold,
        exponent=sequence_information_exponent(problem.target),
        flatness=flatness(problem),
        escape=recovery.order,
        plain=_without_encoding(problem),
        spectrum=spectrum,
        spectrum_error=errors,
        recovery=recovery,
        landscape=landscape(problem, points=41, critical=False),
        runs=_run(problem, dim, recovery, rate, budget, seed),
        hits=np.empty(0, dtype=np.int64),
    )
    return _with_hits(draft)


def hermite_spectrum(problem: Problem) -> tuple[Array, Array]:
    """E|g_k|^2 of the target for k = 0..``ORDERS`` and absolute errors; NaN where there are too many coefficients."""
    series = HermiteSeries(problem.target, ORDERS)
    values, errors = np.zeros(ORDERS + 1), np.zeros(ORDERS + 1)
    for order in range(ORDERS + 1):
        try:
            outputs = series.entries(order)
        except ValueError:
            values[order] = errors[order] = np.nan
            continue
        for entries in outputs:
            for index, entry in entries.items():
                weight = 1.0 / math.prod(math.factorial(power) for _, power in index)
                value = float(entry.value)
                values[order] += weight * value**2
                errors[order] += weight * (2.0 * abs(value) * entry.error + entry.error**2)
    return values, errors


def _without_encoding(problem: Problem) -> tuple[Order, Order] | None:
    spec = problem.student.spec()
    if spec.get("encoding") is None:
        return None
    bare = Problem(problem.target, type(problem.student).from_spec(spec | {"encoding": None}), problem.loss.name)  # type: ignore[attr-defined]
    return flatness(bare), escape_order(bare)


def _run(problem: Problem, dim: int, recovery: Recovery, rate: float | None, budget: float, seed: int) -> xr.Dataset:
    rate = rate or recovery.learning_rate or _cautious(recovery.noise)
    steps = _LONGEST if recovery.steps is None else min(max(int(4.0 * recovery.steps), 10), 10**12)
    replicas = _REPLICAS
    early = np.geomspace(1, steps, 240).astype(np.int64)
    records = np.unique(np.concatenate([[0], early, np.linspace(0, steps, 61).astype(np.int64)]))
    sgd(problem, dim, rate, 1, replicas, seed, records=[1], progress=False, workers=1)  # compiles
    end = time.perf_counter() + budget

    def out_of_time(_: float) -> None:
        if time.perf_counter() > end:
            raise KeyboardInterrupt

    try:
        return sgd(problem, dim, rate, steps, replicas, seed, records=records.tolist(), progress=out_of_time, workers=1)
    except Interrupted as stopped:
        made = stopped.runs["overlap"].notnull().any("replica")
        return stopped.runs.isel(record=made.values)


def _cautious(noise: float) -> float:
    """A rate at which the noise alone would change the state by a tenth in a unit of time."""
    return 0.2 / noise if noise > 0.0 else 1.0


def _with_hits(found: Analysis) -> Analysis:
    above = found.overlap >= found.threshold
    steps = found.runs["step"].values
    hits = np.where(above.any(1), steps[np.argmax(above, axis=1)], -1)
    return Analysis(**{**found.__dict__, "hits": hits.astype(np.int64)})
