"""Sequence information exponents with their evidence, and the predicted gain of tied weights."""

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqindex as sx

POSITIONAL_SEMANTIC = sx.PositionalSemanticTarget(0.6, alignment=1.0)
EXAMPLES = [  # the eighteen examples of math.md, section 4
    ("sum(z)", 4, 1),
    ("z1*z2", 2, 2),
    ("z1*z2", 5, 2),
    ("He2(z1) + He2(z2)", 2, 2),
    ("sum(h2(z))", 2, 2),
    ("He1(z1)*He4(z2) + He2(z3)*He2(z4)", 4, 4),
    ("He3(z1)*He2(z2)*He1(z3)*He5(z4)", 4, 11),
    ("He4(z1) + He4(z2)", 2, 4),
    ("-sum(He4(z))", 2, 4),
    ("4/3 + He4(z1) + 2*He4(z2)", 2, 4),
    ("a + He4(z1) + 2*He4(z2)", 2, 4),
    ("z1 - z2", 2, 1),
    ("(z1 - z2)/sqrt(2)", 2, 1),
    ("z1 + z2", 2, 1),
    ("He3(z1) + He3(z2)", 2, 3),
    ("(z1**2 - z2**2)/sqrt(2)", 2, 2),
    (POSITIONAL_SEMANTIC, 2, 2),
    ("z1*He2(z2)", 2, 3),
]


@pytest.mark.parametrize(("link", "length", "wanted"), EXAMPLES)
def test_the_eighteen_examples(link, length, wanted):
    parameters = {"a": 1.5} if isinstance(link, str) and link.startswith("a ") else {}
    target = sx.Target(link, length=length, **parameters) if isinstance(link, str) else link
    order = sx.sequence_information_exponent(target)
    assert int(order) == order.value == wanted
    assert order.candidates == (wanted,)
    assert [found.order for found in order.evidence] == list(range(1, wanted + 1))
    assert [found.verdict for found in order.evidence] == ["zero"] * (wanted - 1) + ["not zero"]
    assert all(found.exact == isinstance(link, str) for found in order.evidence)
    assert f"C_{wanted} is the first" in order.reason


LONG = [
    ("sum(He2(z))", 1000, 2),
    ("prod(z)", 1000, 1000),
    ("prod(He2(z))", 1000, 2000),
    ("prod(1 + z)", 1000, 1),
    ("sum(z)**2", 200, 2),
    ("prod(He2(z) + He3(z))", 20, 40),
    ("sum(tanh(z)) / sqrt(L)", 1000, 1),
    ("tanh(sum(z)/sqrt(L))**2", 100, 2),
    ("sum(tanh(z))**2", 20, 2),
    ("prod(tanh(z))", 12, 12),
    ("sum(z)**4 - 6*L*sum(z)**2", 100, 4),  # too long for exact terms: one combination of the fields
]


@pytest.mark.parametrize(("text", "length", "wanted"), LONG)
def test_long_sequences(text, length, wanted):
    start = time.perf_counter()
    assert int(sx.sequence_information_exponent(sx.Target(text, length=length))) == wanted
    assert time.perf_counter() - start < 30.0


NUMERICAL = [
    ("relu(z1) - z1/2", 2, 2),
    ("erf(z1) - 2*z1/sqrt(3*pi)", 1, 3),
    ("abs(z1) - sqrt(2/pi)", 1, 2),
    ("tanh(z1)*tanh(z2)*tanh(z3)", 3, 3),
    ("exp(z1*z2/4)", 2, 2),
    ("sign(z1)*He2(z2)", 2, 3),
    ("sin(z1*z2*z3)", 3, 3),
    ("cos(z1 + z2) - cos(z1)*cos(z2)", 2, 2),  # -sin(z1) sin(z2)
    ("relu(z1 - 1) - relu(-z1 - 1)", 1, 1),
    ("relu(z1*z2 - 1/2)", 2, 2),
    ("tanh(z1*z2*z3*z4*z5)", 5, 5),
    ("[z1*z2*tanh(z1), tanh(z1)*z2]", 2, 1),
    ("[0*z1, tanh(z1*z2)]", 2, 2),
]


@pytest.mark.parametrize(("text", "length", "wanted"), NUMERICAL)
@pytest.mark.parametrize("as_text", [True, False])
def test_targets_that_are_not_polynomial(text, length, wanted, as_text):
    target = sx.Target(text, length=length)
    if not as_text:
        target = sx.Target(target.__call__, length=length)
    order = sx.sequence_information_exponent(target)
    assert wanted in order.candidates
    if as_text or text != "sign(z1)*He2(z2)":
        assert int(order) == wanted
        last = order.evidence[-1]
        assert not last.exact
        assert abs(last.coefficient) > last.tolerance > last.error / 2


def test_constants():
    for text in ("3", "sin(z1)**2 + cos(z1)**2", "[1, 2]"):
        order = sx.sequence_information_exponent(sx.Target(text, length=2))
        assert math.isinf(order.value)
        assert "constant" in order.reason
        with pytest.raises(ValueError, match="order must be decided and finite to be an integer, got infinite"):
            int(order)
    assert math.isinf(sx.sequence_information_exponent(sx.PositionalSemanticTarget(1.0, alignment=1.0)).value)


def test_roots_that_cancel():
    for text in ("sqrt(2)*sqrt(3)*z1 - sqrt(6)*z1 + z1*z2", "z1/(1 + sqrt(2)) - (sqrt(2) - 1)*z1 + z1*z2"):
        order = sx.sequence_information_exponent(sx.Target(text, length=2))
        assert order.value == 2
        assert order.evidence[0].exact


def test_what_cannot_be_told_stays_undecided():
    faint = sx.Target(lambda z: np.tanh(z[..., 0] * z[..., 1]) + 1e-10 * z[..., 0], length=2)
    order = sx.sequence_information_exponent(faint)
    assert order.value is None
    assert order.candidates == (1, 2)
    assert [found.verdict for found in order.evidence] == ["undecided", "not zero"]
    assert str(order).startswith("undecided between 1 and 2: ")
    with pytest.raises(ValueError, match="order must be decided and finite to be an integer, got undecided between"):
        int(order)
    seen = sx.sequence_information_exponent(sx.Target("tanh(z1*z2) + z1/10**10", length=2))
    assert seen.value == 1  # taken apart, it is clear


def test_random_points_never_prove_a_zero_without_a_symmetry():
    mixed = sx.sequence_information_exponent(sx.Target(lambda z: z[..., :2].prod(-1) + z.prod(-1) ** 2, length=5))
    assert mixed.value == 2  # even in all fields at once

    def no_parity(z):
        u = z[..., 2:].sum(-1) / np.sqrt(3.0)
        return (z[..., 0] + z[..., 1]) ** 2 + u**3 - 3 * u

    plain = sx.sequence_information_exponent(sx.Target(no_parity, length=5))  # C_1 is zero, but no parity says so
    assert plain.value is None
    assert plain.candidates == (1, 2)
    assert not any(found.verdict == "zero" for found in plain.evidence)


def test_nothing_up_to_the_highest_order():
    order = sx.sequence_information_exponent(sx.Target("cos(z1)*He3(z2)*sin(z3)", length=3), max_order=3)
    assert order.value is None
    assert "no Hermite tensor up to order 3" in order.reason
    assert sx.sequence_information_exponent(sx.Target("cos(z1)*He3(z2)*sin(z3)", length=3)).value == 4


def test_arguments():
    with pytest.raises(ValueError, match="max_order must be between 1 and 40, got 0"):
        sx.sequence_information_exponent(sx.Target("z1", length=1), 0)
    with pytest.raises(ValueError, match="target must have a finite square mean"):
        sx.sequence_information_exponent(sx.Target("1/z1", length=1))


@given(degrees=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_exponents_of_products_add(degrees):
    text = " * ".join(f"He{k}(z{i + 1})" for i, k in enumerate(degrees))
    assert sx.sequence_information_exponent(sx.Target(text, length=len(degrees))).value == sum(degrees)


@given(first=st.integers(1, 5), second=st.integers(1, 5), number=st.integers(-3, 3))
def test_exponents_do_not_change_under_rotations(first, second, number):
    form = f"He{first}({{0}})*He{second}({{1}}) + ({number})*He{first}({{1}})"
    plain = sx.Target(form.format("z1", "z2"), length=2)
    turned = sx.Target(form.format("(3*z1/5 - 4*z2/5)", "(4*z1/5 + 3*z2/5)"), length=2)
    found = [sx.sequence_information_exponent(target).value for target in (plain, turned)]
    assert found == [first if number else first + second] * 2


# the gain of tied weights

GAINS = [  # math.md, rows 41 to 45: S, then the gains at equal rates, as the paper has it, at the best rates
    ("sum(z)/sqrt(L)", 4, 2, 4, 8, 4, True),
    ("sum(He2(z))/sqrt(2)", 4, 4, 4, 16, 4, True),
    ("z1*z2", 4, 2, 2, 4, 1, True),
    ("z1*z2*z3", 3, 5.19615242, 3, 9, 3, False),
    ("He2(z1) + z1*z2", 2, 1.65685425, 1.65685425, 2.74516600, 1.37258300, True),
    ("-sum(He3(z))", 7, 7, 7, 49, 7, True),
    ("sum(tanh(z) - 3*z)", 9, 3, 9, 27, 9, True),
    ("z1 - z2", 2, 0, 0, 0, 0, True),
]


@pytest.mark.parametrize(("text", "length", "ratio", "equal", "paper", "best", "exact"), GAINS)
def test_gains(text, length, ratio, equal, paper, best, exact):
    gain = sx.predicted_gain(sx.Target(text, length=length))
    numbers = [gain.ratio, gain.equal_rate, gain.paper_maximal_rate, gain.best_rate]
    assert numbers == pytest.approx([ratio, equal, paper, best], rel=1e-8, abs=1e-12)
    assert gain.exact == exact
    assert gain.lower_bound == pytest.approx(ratio * length / length ** (gain.order / 2), rel=1e-8, abs=1e-12)
    assert gain.lower_bound <= gain.equal_rate * (1 + 1e-12)
    assert gain.naive_count == {1: length, 2: length, 3: length**2}[gain.order]
    assert gain.ratio <= length ** (gain.order / 2) * (1 + 1e-12)


def test_what_has_no_gain():
    with pytest.raises(ValueError, match="target must have one output for a gain, got 2"):
        sx.predicted_gain(sx.Target("[z1, z2]", length=2))
    with pytest.raises(ValueError, match="target must have a decided and finite information exponent for a gain"):
        sx.predicted_gain(sx.Target("2", length=2))
