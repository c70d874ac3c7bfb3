"""Critical points on the sphere: known phases, boundary conditions, and completeness by the sum of indices."""

import numpy as np
import pytest

from seqindex import Attention, Encoding, OppositeEncoding, PositionalSemanticTarget, Problem, Target
from seqindex.theory.critical import CriticalPoint, critical_points
from seqindex.theory.risk import PopulationRisk


def ps_risk(omega, alignment=1.0, encoding=None):
    student = Attention(2, encoding or OppositeEncoding())
    return PopulationRisk(Problem(PositionalSemanticTarget(omega, alignment=alignment), student))


def index_sum(points):
    """Sum of the indices on the sphere with one direction of nu; points inside the ball stand for two."""
    return sum((1 if p.boundary else 2) * (-1) ** int((p.eigenvalues < 0).sum()) for p in points)


def summary(points):
    return sorted((round(abs(p.m), 4), round(float(np.abs(p.e).max()), 4), p.kind, p.boundary) for p in points)


def test_two_kinds_of_minima_and_the_saddles_between_them():
    points = critical_points(ps_risk(0.67))
    expected = [(1.0, 0.0, "minimum", True)] * 2 + [(0.0, 1.0, "minimum", True)] * 2
    expected += [(0.6451, 0.7641, "saddle", True)] * 4 + [(0.0, 0.0, "maximum", False)]
    assert summary(points) == sorted(expected)
    assert not any(p.degenerate for p in points)
    assert (np.diff([p.value for p in points]) > -1e-10).all()
    # The semantic minima are the deeper ones at omega = 0.67 < 0.7376.
    assert abs(points[0].m) == 1.0
    origin = next(p for p in points if not p.boundary)
    np.testing.assert_allclose(
        origin.eigenvalues, [2 * (0.0260478263718 - 0.1148400244293), -0.1455315429356], atol=1e-11
    )


@pytest.mark.parametrize(
    ("omega", "semantic", "positional"),
    # The positional corner is a minimum above omega = 0.508214, the semantic one below 0.841605.
    [
        (0.5075, "minimum", "saddle"),
        (0.509, "minimum", "minimum"),
        (0.841, "minimum", "minimum"),
        (0.8422, "saddle", "minimum"),
    ],
)
def test_corners_change_kind_at_the_phase_boundaries(omega, semantic, positional):
    kinds = {(round(abs(p.m), 6), round(abs(float(p.e[0])), 6)): p.kind for p in critical_points(ps_risk(omega))}
    assert kinds[1.0, 0.0] == semantic
    assert kinds[0.0, 1.0] == positional


def test_a_single_minimum_slides_along_the_circle_and_a_saddle_lies_inside():
    points = critical_points(ps_risk(0.98, 0.76))
    minima = [p for p in points if p.kind == "minimum"]
    angles = {round(float(np.degrees(np.arctan2(abs(p.e[0]), abs(p.m)))), 1) for p in minima}
    assert len(minima) == 4
    assert angles == {74.6}
    inside = [p for p in points if not p.boundary and p.kind == "saddle"]
    assert sorted(round(float(p.e[0]), 4) for p in inside) == [-0.9838, 0.9838]
    assert index_sum(points) == 2


@pytest.mark.parametrize("omega", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("encoding", [None, Encoding([[0.8], [0.5]], [0.3, -0.2]), Encoding([[1.0], [0.1]])])
def test_every_point_is_critical_and_none_is_missing(omega, encoding):
    risk = ps_risk(omega, 0.9, encoding)
    points = critical_points(risk)
    assert index_sum(points) == 2
    for p in points:
        gradient = risk.gradient(p.m, float(p.e[0]))
        s = np.array([p.m, *p.e])
        assert p.boundary == (s @ s > 1 - 1e-9)
        assert p.value == pytest.approx(float(risk(p.m, float(p.e[0]))), abs=1e-14)
        along = gradient @ [-s[1], s[0]] if p.boundary else gradient
        np.testing.assert_allclose(along, 0.0, atol=1e-8)
        # The other sign of the state gives the same risk, and must be listed.
        assert any(np.allclose([q.m, *q.e], -s, atol=1e-6) for q in points)


def test_kinds_agree_with_the_risk_around_the_point_on_the_sphere():
    risk = ps_risk(0.67, encoding=Encoding([[0.8], [0.5]], [0.3, -0.2]))
    rng = np.random.default_rng(0)
    for p in critical_points(risk):
        s = np.array([p.m, *p.e, np.sqrt(max(0.0, 1 - p.m**2 - p.e @ p.e))])
        around = s + 3e-3 * rng.standard_normal((60, 3))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        change = risk(around[:, 0], around[:, 1]) - p.value
        assert (change.min() < 0) == (p.kind != "minimum")
        assert (change.max() > 0) == (p.kind != "maximum")


def test_without_encoding_the_search_is_over_m():
    points = critical_points(PopulationRisk(Problem(PositionalSemanticTarget(0.3, alignment=1.0), Attention(2))))
    assert [(p.m, p.kind, p.e.shape) for p in points] == [
        (-1.0, "minimum", (0,)),
        (1.0, "minimum", (0,)),
        (0.0, "maximum", (0,)),
    ]
    # R = 7 - 4 m^2 for g = z1^2 and f = |z|^2; with the sign turned the minimum is at m = 0.
    for sign, kind in ((1.0, "maximum"), (-1.0, "minimum")):
        target = Target(lambda z, sign=sign: sign * z[..., 0] ** 2, length=2)
        problem = Problem(target, Attention(2, reduction="plain_trace", scores="linear"))
        middle = next(p for p in critical_points(PopulationRisk(problem)) if not p.boundary)
        assert abs(middle.m) < 1e-9
        assert middle.kind == kind
        np.testing.assert_allclose(middle.eigenvalues, [-8.0 * sign], atol=1e-8)


def test_two_directions_by_many_starts():
    encoding = Encoding([[0.5, 0.3], [-0.4, 0.6]], [0.3, -0.1])
    points = critical_points(ps_risk(0.67, encoding=encoding))
    assert index_sum(points) == 0
    assert sum(p.kind == "minimum" for p in points) >= 2
    assert all(p.e.shape == (2,) for p in points)


def test_flat_directions_are_flagged():
    # At omega = 1 the label does not depend on the tokens, and the risk not on m: the axis e = 0 is a ridge.
    points = critical_points(ps_risk(1.0))
    ridge = [p for p in points if abs(float(p.e[0])) < 1e-6]
    assert ridge
    assert all(p.degenerate for p in ridge)
    minima = [p for p in points if not p.degenerate]
    assert summary(minima) == [(0.0, 1.0, "minimum", True)] * 2


def test_a_constant_risk_is_one_flat_sphere():
    target = Target(lambda z: z[..., 0] - z[..., 1], length=2)
    points = critical_points(PopulationRisk(Problem(target, Attention(2, reduction="trace"))))
    assert points
    assert all(isinstance(p, CriticalPoint) and p.degenerate for p in points)


def test_bad_input_is_refused():
    with pytest.raises(TypeError, match="risk must be a PopulationRisk, got 1"):
        critical_points(1)
