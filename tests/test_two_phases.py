"""Escape and alignment: rates of the theory in closed form, and fitted to the exact chain."""

import math

import numpy as np
import pytest

import seqindex as sx
from seqindex.theory.two_phases import fitted_rates, two_phases

SLOPE = 2.0 / math.sqrt(math.pi)


def separable(length, student=sx.TiedNetwork, **settings):
    return sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length), student(length, **settings))


@pytest.mark.parametrize(("length", "rate"), [(1, 0.0), (2, 0.1), (4, 0.15)])
def test_rates_of_the_separable_target_in_closed_form(length, rate):
    lam = SLOPE - rate * (length + 1)
    found = two_phases(separable(length), rate)
    assert found.escape_rate == pytest.approx(lam, abs=1e-7)
    assert abs(found.end[0]) == pytest.approx(math.sqrt(lam / (SLOPE * (1.0 - rate))), abs=1e-6)
    assert found.alignment_rate == pytest.approx(2.0 * lam, rel=1e-4)


@pytest.mark.parametrize("sphere", ["rows", "joint"])
def test_an_untied_network_has_both_rates_of_the_tied_one_divided_by_its_length(sphere):
    tied, untied = two_phases(separable(2), 0.1), two_phases(separable(2, sx.UntiedNetwork, sphere=sphere), 0.1)
    assert 2.0 * untied.escape_rate == pytest.approx(tied.escape_rate, rel=1e-6)
    assert 2.0 * untied.alignment_rate == pytest.approx(tied.alignment_rate, rel=1e-4)
    assert untied.end == pytest.approx([tied.end[0]] * 2, abs=1e-5)


def test_alignment_of_attention_is_the_curvature_along_the_circle():
    problem = sx.Problem(sx.PositionalSemanticTarget(0.3, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))
    risk = sx.PopulationRisk(problem)
    found = two_phases(problem)
    assert abs(found.end[0]) == pytest.approx(1.0, abs=1e-6)
    assert found.escape_rate == pytest.approx(-risk.hessian(0.0, 0.0)[0, 0], abs=1e-7)
    gradient, hessian = risk.gradient(1.0, 0.0), risk.hessian(1.0, 0.0)
    circle, radial = gradient[0] - hessian[1, 1], 2.0 * gradient[0]  # the path keeps e = 0: it arrives along m
    assert found.end_rates == pytest.approx(sorted([circle, radial], reverse=True), rel=1e-3)
    assert found.alignment_rate == pytest.approx(-radial, rel=1e-3)


def test_a_flat_start_is_left_along_its_direction_of_escape():
    problem = sx.Problem(sx.Target("-He4(z1) - He4(z2)", 2), sx.Attention(2, reduction="plain_trace"))
    found = two_phases(problem)
    assert abs(found.escape_rate) < 1e-6
    assert abs(found.end[0]) == pytest.approx(1.0, abs=1e-6)


def test_a_start_that_nothing_leaves_is_refused():
    with pytest.raises(ValueError, match="the flow must leave the start, but does not"):
        two_phases(sx.Problem(sx.Target("He4(z1) + He4(z2)", 2), sx.Attention(2, reduction="plain_trace")))


def test_rates_fitted_to_the_chain():
    problem, dim, rate = separable(2), 10**5, 0.2
    theory = two_phases(problem, rate)
    steps, start = round(12.0 * dim / rate), sx.Start.overlaps(m=0.02)
    runs = sx.sgd(problem, dim, rate, steps, replicas=32, seed=1, start=start, records=801)
    times, end = runs["step"].values * rate / dim, abs(float(theory.end[0]))
    escape, alignment = fitted_rates(times, runs["overlap"].values, end, (0.03, 0.12), (0.02, 0.06))
    # The curvature of the landscape takes a few per cent off both over the window; five standard errors of the mean.
    for found, rate_of_theory in ((escape, theory.escape_rate), (alignment, theory.alignment_rate)):
        error = found.std(ddof=1) / math.sqrt(len(found))
        assert abs(found.mean() / rate_of_theory - 1.0) < 0.05 + 5.0 * error / rate_of_theory
        assert error < 0.05 * rate_of_theory


def test_runs_without_a_record_in_the_window_have_no_rate():
    t = np.linspace(0.0, 1.0, 5)
    escape, alignment = fitted_rates(t, np.full((2, 5), 1e-3), 1.0)
    assert np.isnan(escape).all()
    assert np.isnan(alignment).all()
    with pytest.raises(ValueError, match="escape must hold two ascending positive sizes"):
        fitted_rates(t, np.ones((1, 5)), 1.0, escape=(0.2, 0.1))
