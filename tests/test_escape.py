"""Flatness and escape order: reference table, brute force on small spheres, and SGD."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqindex as sx
from seqindex.theory.origin import taylor_series

U = sx.OppositeEncoding()
NONE = math.inf


def attention(encoding=None, reduction="plain_trace"):
    return sx.Attention(2, encoding, reduction)


# Text, student, SIE, flatness, escape order, leading coefficient along the direction (None: none or not listed).
# Numbers: two independent grids, eight digits; closed forms for the networks.
CASES = {
    "sum": ("sum(z)", sx.TiedNetwork(4), 1, 1, 1, -2.0),
    "product, softplus": ("z1*z2", sx.TiedNetwork(2, "softplus"), 2, 2, 2, -2.0 * 0.20662096414191),
    "product, trace": ("z1*z2", attention(), 2, 2, NONE, 0.85030001),
    "He2": ("He2(z1) + He2(z2)", attention(), 2, 2, 2, -1.12782711),
    "He2, encoded": ("He2(z1) + He2(z2)", attention(U), 2, 2, 2, -1.12782711),
    "mixed, softplus": ("He1(z1)*He4(z2) + He2(z3)*He2(z4)", sx.TiedNetwork(4, "softplus"), 4, 4, NONE, None),
    "mixed, flipped": ("-He1(z1)*He4(z2) - He2(z3)*He2(z4)", sx.TiedNetwork(4, "softplus"), 4, 4, 4, None),
    "product of He": ("He1(z1)*He2(z2)", sx.TiedNetwork(2, "He3"), 3, 3, 3, -18.0 * 2.0**0.5),
    "He4": ("He4(z1) + He4(z2)", attention(), 4, 4, NONE, 23.06462555),
    "He4, flipped": ("-He4(z1) - He4(z2)", attention(), 4, 4, 4, -23.06462555),
    "He4, encoded": ("He4(z1) + He4(z2)", attention(U), 4, 2, NONE, 23.06462555),
    "He4, encoded and flipped": ("-He4(z1) - He4(z2)", attention(U), 4, 2, 4, -23.06462555),
    "figure 2": ("4/3 + He4(z1) + 2*He4(z2)", attention(), 4, 4, NONE, 34.59693832),
    "figure 2, trace": ("4/3 + He4(z1) + 2*He4(z2)", attention(U), 4, 2, NONE, 34.59693832),
    "figure 2, released": ("4/3 + He4(z1) + 2*He4(z2)", attention(U, "trace"), 4, 2, 2, -0.29532923),
    "difference": ("z1 - z2", attention(), 1, NONE, NONE, None),
    "difference, tied": ("z1 - z2", sx.TiedNetwork(2), 1, NONE, NONE, None),
    "difference, encoded": ("z1 - z2", attention(U), 1, 2, 2, 0.5 * (2.07600821 - math.hypot(2.07600821, 8.0**0.5))),
    "sum, injected": ("z1 + z2", attention(sx.InjectedEncoding([1, 1])), 1, 1, 1, -0.22535444),
    "sum, injected oppositely": ("z1 + z2", attention(sx.InjectedEncoding([1, -1])), 1, NONE, NONE, None),
    "He3, injected": ("He3(z1) + He3(z2)", attention(sx.InjectedEncoding([1, 1])), 3, 3, 3, -2.10140753),
    "He3": ("He3(z1) + He3(z2)", attention(), 3, NONE, NONE, None),
    "squares": ("(z1**2 - z2**2)/sqrt(2)", attention(), 2, NONE, NONE, None),
    "squares, one entry": (
        "(z1**2 - z2**2)/sqrt(2)",
        attention(None, sx.Projection([1, 0], [1, 0])),
        2,
        2,
        2,
        -0.60125290,
    ),
    "sixth order": ("z1*He2(z2)", attention(U), 3, 2, 6, -720 * 0.0488245),
    "odd": ("z1*He2(z2)", attention(), 3, NONE, NONE, None),
}


@pytest.mark.parametrize("name", CASES)
def test_reference_examples(name):
    text, student, exponent, kappa, escape, coefficient = CASES[name]
    problem = sx.Problem(sx.Target(text, student.length), student)
    assert sx.sequence_information_exponent(problem.target).value == exponent
    assert sx.flatness(problem).value == kappa
    found = sx.escape_order(problem)
    assert found.value == escape
    if coefficient is not None:
        assert found.coefficient == pytest.approx(coefficient, rel=2e-6, abs=2e-8)
    if escape != NONE:
        assert np.linalg.norm(found.direction) == pytest.approx(1.0)
    if kappa == NONE:
        assert "nor does any other" in found.reason


@pytest.mark.parametrize(("omega", "escape"), [(0.3, 2), (0.67, 2), (1.0, 2)])
def test_positional_semantic(omega, escape):
    """At a = 1 the Hessian has a negative eigenvalue at every omega, at omega = 1 along the encoding only."""
    problem = sx.Problem(sx.PositionalSemanticTarget(omega, alignment=1.0), sx.Attention(2, U))
    found = sx.escape_order(problem)
    assert (sx.flatness(problem).value, found.value) == (2, escape)
    if omega == 1.0:
        assert abs(found.direction[1]) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["He2, encoded", "He4, encoded", "He4, encoded and flipped", "figure 2, released"])
def test_against_the_lowest_risk_on_small_circles(name):
    """The least of R - R(0) on circles of radius 0.1 and 0.2 has the sign and the power that the order says."""
    text, student, _, _, escape, coefficient = CASES[name]
    risk = sx.PopulationRisk(sx.Problem(sx.Target(text, 2), student))
    angle = np.linspace(0.0, np.pi, 721)
    radii = np.array([0.1, 0.2])
    least = [float((risk(r * np.cos(angle), r * np.sin(angle)) - risk(0.0, 0.0)).min()) for r in radii]
    if escape == NONE:
        assert min(least) > 0.0
        return
    assert max(least) < 0.0
    assert math.log2(least[1] / least[0]) == pytest.approx(escape, abs=0.15)
    assert least[0] == pytest.approx(coefficient * 0.1**escape / math.factorial(escape), rel=0.1)


def test_the_effective_risk_of_sixth_order():
    """At m = 0.2 and 0.3 the least over e of the risk itself, against -0.0488245 m^6."""
    text, student, *_ = CASES["sixth order"]
    risk = sx.PopulationRisk(sx.Problem(sx.Target(text, 2), student))
    e = np.linspace(-0.02, 0.02, 4001)
    for m in (0.2, 0.3):
        least = float(risk(m, e).min() - risk(0.0, 0.0))
        assert least == pytest.approx(-0.0488245 * m**6, rel=0.05)


coefficients = st.lists(st.integers(-2, 2), min_size=6, max_size=6)


@settings(max_examples=12)
@given(coefficients, st.lists(st.sampled_from([-1.0, 0.5, 1.0]), min_size=2, max_size=2))
def test_an_encoding_never_raises_the_flatness(numbers, rows):
    """Lemma 1, over random polynomials of degree up to 4 and encodings of one direction."""
    basis = ("z1", "z2", "z1*z2", "He2(z1)", "He3(z2)", "He4(z1)")
    text = " + ".join(f"({number})*{term}" for number, term in zip(numbers, basis, strict=True))
    target = sx.Target(text, 2)
    bare = sx.flatness(sx.Problem(target, attention()), max_order=4).value
    encoded = sx.flatness(sx.Problem(target, attention(sx.Encoding(np.array(rows)[:, None]))), max_order=4).value
    assert bare is None or (encoded is not None and encoded <= bare)


def test_the_series_is_that_of_the_risk():
    """The polynomial of order 6 in (m, e) against the risk: the difference falls like the seventh power or faster."""
    problem = sx.Problem(sx.Target("z1 + He2(z2) + z1*z2", 2), attention(sx.Encoding([[1.0], [-0.4]], [0.3, 0.2])))
    series, risk = taylor_series(problem, 6), sx.PopulationRisk(problem)
    gaps = []
    for r in (0.05, 0.1):
        m, e = 0.8 * r, -0.6 * r
        value = sum(c * m ** a[0] * e ** a[1] for a, c in series.coefficients.items())
        gaps.append(abs(float(risk(m, e) - risk(0.0, 0.0)) - value))
    assert gaps[1] < 1e-7
    assert gaps[0] < gaps[1] / 2.0**6 + 1e-13


def final_overlap(text, student, start, steps, rate=2e-3):
    """|m| of 64 runs of the reduced chain at d = 100."""
    problem = sx.Problem(sx.Target(text, student.length), student)
    runs = sx.sgd(problem, 100, rate, steps, replicas=64, seed=5, start=start, records=[steps], progress=False)
    return np.abs(runs["overlap"].values[:, -1])


@pytest.mark.parametrize("name", ["He4", "He4, flipped", "He4, encoded", "He4, encoded and flipped"])
def test_sgd_leaves_at_order_four_when_the_verdict_says_so(name):
    """From m = 0.4: the mean moves by more than five standard errors to the side of the verdict."""
    text, student, _, _, escape, _ = CASES[name]
    m = final_overlap(text, student, sx.Start.overlaps(0.4), 60_000)
    error = m.std(ddof=1) / 8.0
    assert (m.mean() - 0.4) * (1.0 if escape == 4 else -1.0) > 5.0 * error


def test_sgd_of_a_one_sided_escape():
    text, student, *_ = CASES["He3, injected"]
    away = final_overlap(text, student, sx.Start.overlaps(-0.4), 100_000)
    back = final_overlap(text, student, sx.Start.overlaps(0.4), 100_000)
    assert away.min() > 0.6
    assert back.mean() < 0.35


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"^max_order must be between 1 and 12, got 0$"):
        sx.flatness(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), max_order=0)


def test_a_target_without_fields_is_never_left_along_the_overlap():
    """omega = 1: the risk does not depend on m; below a_1 = 0.7244 it has a minimum along the encoding."""
    below, above = (
        sx.escape_order(
            sx.Problem(sx.PositionalSemanticTarget(1.0, alignment=a), sx.Attention(2, sx.OppositeEncoding()))
        )
        for a in (0.7, 0.75)
    )
    assert below.value == math.inf
    assert "does not depend on its fields" in below.reason
    assert above.value == 2
    assert abs(above.direction[1]) == pytest.approx(1.0)


def test_orders_follow_the_exponent_of_the_target():
    problem = sx.Problem(sx.Target("prod(He2(z))", 5), sx.TiedNetwork(5))
    assert sx.sequence_information_exponent(problem.target).value == 10
    assert sx.flatness(problem).value == 10
    # <C_10, 1^10> = 10! / 2^5 * 2^5 and c_10(relu) > 0: the risk falls.
    assert sx.escape_order(problem).value == 10
