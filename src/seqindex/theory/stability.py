"""The learning rate at which the noise of SGD keeps it at the start."""

from __future__ import annotations

import numpy as np

from seqindex.model.problem import Problem
from seqindex.theory.risk import PopulationRisk
from seqindex.theory.sampled_risk import SampledRisk

_SAMPLES = 2**15


def stability_bound(problem: Problem) -> float | None:
    """2 lambda / V(0), lambda the largest rate of growth at m = e = 0: beyond it the start is linearly stable.

    The flow there is ds/dt = -(Hess R + (gamma / 2) V) s (the paper, appendix C, with the second-order term).

    Args:
        problem: target, student and loss.

    Returns:
        The bound, within about 2 per cent; None where the risk does not curve down at the start or slopes there, and
        where only Sobol points could tell (attention beyond length 4, the norm loss beyond 2), which takes too long.

    Example:
        >>> target = sx.PositionalSemanticTarget(0.67, alignment=1.0)
        >>> bound = stability_bound(sx.Problem(target, sx.Attention(2, sx.OppositeEncoding())))
        >>> abs(bound / (2 * 0.1775843961 / 0.1140744964) - 1) < 0.02
        True
    """
    risk = PopulationRisk(problem, points=2)
    if isinstance(risk.engine, SampledRisk):
        return None
    directions = problem.frame.directions
    zero = None if directions == 0 else 0.0 if directions == 1 else np.zeros(directions)
    growth = -float(np.linalg.eigvalsh(risk.sketch(0.0, zero, order=2))[0])
    slope = float(np.abs(risk.sketch(0.0, zero, order=1)).max())
    zstar, z = np.random.default_rng(0).standard_normal((2, _SAMPLES, problem.length))
    c = problem.field_gradient(zstar, z + problem.frame.injection)
    noise = float((c * c).sum(-1).mean())
    return 2.0 * growth / noise if growth > 1e-6 and slope < 1e-4 and noise > 0.0 else None
