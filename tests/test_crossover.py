"""The target of appendix F.3: its two readings, and a minimum that moves without a jump."""

import numpy as np
import pytest

import seqindex as sx
from seqindex.model.softmax import attention_matrix
from seqindex.paper import crossover

# Degrees from the m axis on a grid of 0.005 in e: good to about half a degree.
TABLE = {
    "sqrt": {0.1: 11.5, 0.3: 21.4, 0.5: 30.0, 0.8: 44.4, 0.9: 53.1, 1.0: 90.0},
    "linear": {0.1: 3.7, 0.3: 12.4, 0.5: 22.3, 0.8: 44.0, 0.9: 67.7, 1.0: 90.0},
}


@pytest.mark.parametrize("reading", TABLE)
def test_the_minimum_moves_as_published(reading):
    for omega, angle in TABLE[reading].items():
        problem = sx.Problem(sx.EncodedTarget(omega, reading), sx.Attention(2, sx.OppositeEncoding()))
        found, minima = crossover._minimum(problem)
        assert found == pytest.approx(angle, abs=0.5)
        assert minima == 1


@pytest.mark.parametrize(("omega", "reading"), [(0.3, "sqrt"), (0.7, "linear")])
def test_the_minimum_by_brute_force(omega, reading):
    """The risk on a four-dimensional grid, 1.5 degrees to both sides of the minimum, gives a parabola with that tip."""
    problem = sx.Problem(sx.EncodedTarget(omega, reading), sx.Attention(2, sx.OppositeEncoding()))
    found, _ = crossover._minimum(problem)
    nodes = np.arange(-5.2, 5.3, 0.4)
    grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    weights = np.exp(-0.5 * (grid**2).sum(-1))
    zstar, xi = grid[:, :2], grid[:, 2:]
    label = problem.target(zstar)
    risks = []
    for angle in np.radians(found + np.array([-1.5, 0.0, 1.5])):
        m, e = np.cos(angle), np.sin(angle)
        fields = m * zstar + np.sqrt(1.0 - m * m) * xi + e * np.array([1.0, -1.0])
        risks.append(weights @ ((label - problem.student(fields)) ** 2).sum(-1) / weights.sum())
    left, middle, right = risks
    tip = 1.5 * 0.5 * (left - right) / (left - 2.0 * middle + right)
    assert abs(tip) < 0.02


def test_the_positional_semantic_minimum_jumps():
    between = sx.phase_boundary("equal_risk")
    problems = [crossover._problem("positional-semantic", between + side) for side in (-1e-3, 1e-3)]
    assert [crossover._minimum(problem) for problem in problems] == [
        (pytest.approx(0.0, abs=1e-6), 2),
        (pytest.approx(90.0, abs=1e-6), 2),
    ]


def test_both_readings():
    z = np.array([[0.4, -1.2], [2.0, 0.3]])
    p = np.array([1.0, -1.0])
    for reading, (own, encoded) in {"sqrt": (0.8, 0.6), "linear": (0.64, 0.36)}.items():
        found = sx.EncodedTarget(0.36, reading)(z)
        assert found == pytest.approx(attention_matrix(own * z + encoded * p).reshape(2, 4), abs=1e-14)


def test_no_other_minimum():
    problem = sx.Problem(sx.EncodedTarget(0.5), sx.Attention(2, sx.OppositeEncoding()))
    minima = [p for p in sx.critical_points(sx.PopulationRisk(problem)) if p.kind == "minimum"]
    assert len(minima) == 2
    assert minima[0].m * minima[1].m < 0.0
    assert np.degrees(np.arctan(minima[0].e[0] / minima[0].m)) == pytest.approx(29.99, abs=0.01)
    assert minima[0].value == pytest.approx(0.10906, abs=1e-5)


def test_runs_end_at_the_minimum():
    """20 runs; a median is 5 of its standard errors, about half a degree, from the minimum with probability 1e-6."""
    problem = sx.Problem(sx.EncodedTarget(0.5, "linear"), sx.Attention(2, sx.OppositeEncoding()))
    runs = sx.sgd(problem, 1000, 0.05, 10**6, replicas=20, seed=2, records=2)
    assert np.median(crossover._ended(runs)) == pytest.approx(22.31, abs=3.0)


def test_attributes_give_the_target_back():
    problem = sx.Problem(sx.EncodedTarget(0.25, "linear"), sx.Attention(2, sx.OppositeEncoding()))
    again = sx.Problem.from_attrs(problem.to_attrs()).target
    assert (again.omega, again.reading) == (0.25, "linear")
    assert repr(again) == "EncodedTarget(omega=0.25, reading='linear')"


def test_bad_arguments():
    with pytest.raises(ValueError, match="omega must be in"):
        sx.EncodedTarget(1.5)
    with pytest.raises(ValueError, match="reading must be one of 'sqrt', 'linear', got 'linaer'; did you mean"):
        sx.EncodedTarget(0.5, "linaer")
    with pytest.raises(ValueError, match="z must have shape"):
        sx.EncodedTarget(0.5)(np.zeros(3))
