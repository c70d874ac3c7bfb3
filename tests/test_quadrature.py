"""One-dimensional rules and Sobol points."""

import numpy as np
import pytest

from seqindex.gaussian.quadrature import Rule, gauss_hermite, panels, trapezoid
from seqindex.gaussian.sobol import sobol_normals


@pytest.mark.parametrize("count", [20, 100, 200, 400, 1000])
def test_gauss_hermite_rules_have_unit_mass_and_exact_moments(count):
    rule = gauss_hermite(count)
    assert abs(rule.weights.sum() - 1.0) < 1e-13
    assert abs(rule.weights @ rule.nodes**6 - 15.0) < 1e-10
    assert abs(rule.weights @ rule.nodes**10 - 945.0) < 1e-8


def test_trapezoid_error_falls_faster_than_any_power():
    exact = np.exp(-0.5 * 9.0)  # E cos(3 x)
    steps = np.array([1.2, 1.0, 0.8, 0.7])
    errors = [abs(rule.weights @ np.cos(3.0 * rule.nodes) - exact) for rule in map(_unchecked_trapezoid, steps)]
    slopes = np.diff(np.log(errors)) / np.diff(np.log(steps))
    assert (np.diff(slopes) > 2.0).all()
    assert slopes[-1] > 20.0


def _unchecked_trapezoid(step):
    """The trapezoid rule at spacings that ``Rule`` would refuse."""
    nodes = np.arange(-round(11 / step), round(11 / step) + 1) * step
    weights = np.exp(-0.5 * nodes**2)
    return _Plain(nodes, weights / weights.sum())


class _Plain:
    def __init__(self, nodes, weights):
        self.nodes, self.weights = nodes, weights


def test_panels_integrate_kinks_at_zero_where_the_trapezoid_rule_stalls_at_second_order():
    exact = np.sqrt(2.0 / np.pi)
    errors = [abs(rule.weights @ np.abs(rule.nodes) - exact) for rule in (trapezoid(0.2), trapezoid(0.1))]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.02)
    rule = panels()
    assert abs(rule.weights @ np.abs(rule.nodes) - exact) < 1e-14
    assert abs(rule.weights @ rule.nodes**6 - 15.0) < 1e-11


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: trapezoid(3.0), "must give E x"),
        (lambda: trapezoid(-1.0), "step must be positive"),
        (lambda: panels(0.0), "width must be positive"),
        (lambda: panels(3.0, 2), "must give E x"),
        (lambda: gauss_hermite(3), "count must be between 4 and 2000, got 3"),
        (lambda: Rule(np.zeros(2), np.array([1.5, -0.5])), "non-negative weights"),
        (lambda: sobol_normals(4, 100, 1), "scrambles must be at least 2, got 1"),
        (lambda: sobol_normals(0, 100), "dimensions must be between 1"),
    ],
)
def test_bad_rules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sobol_scatter_over_scrambles_is_the_error_and_falls_faster_than_random():
    def means(points):
        x = sobol_normals(6, points, scrambles=16, seed=3)
        return np.exp(0.3 * x.sum(-1)).mean(1)

    exact = np.exp(0.5 * 6 * 0.09)
    few, many = means(2**10), means(2**16)
    for values in (few, many):
        assert abs(values.mean() - exact) < 4.0 * values.std(ddof=1) / 4.0
    # 64 times the points: random points would gain a factor of 8.
    assert few.std(ddof=1) / many.std(ddof=1) > 16.0


def test_sobol_sets_repeat_with_their_seed_and_differ_from_each_other():
    x = sobol_normals(3, 256, 4, seed=5)
    assert np.array_equal(x, sobol_normals(3, 256, 4, seed=5))
    assert not np.array_equal(x, sobol_normals(3, 256, 4, seed=6))
    assert np.isfinite(x).all()
    assert len(np.unique(x[:, 0, 0])) == 4
