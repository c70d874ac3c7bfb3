"""Named targets: formulas of the released code by hand, exponents, messages."""

import math

import numpy as np
import pytest

import seqindex as sx

BY_HAND = {
    "sum": lambda z: z.sum(-1),
    "mean": lambda z: z.mean(-1),
    "sqrtsum": lambda z: 2 * z.sum(-1),
    "inversesqrtsum": lambda z: z.sum(-1) / 2,
    "2sum": lambda z: z[:, 0] + z[:, 1],
    "z1": lambda z: z[:, 0],
    "sqrtz1": lambda z: 2 * z[:, 0],
    "2product": lambda z: z[:, 0] * z[:, 1],
    "3product": lambda z: z[:, 0] * z[:, 1] * z[:, 2],
    "H2sum": lambda z: ((z**2 - 1) / math.sqrt(2)).sum(-1),
    "inversesqrtH2sum": lambda z: ((z**2 - 1) / math.sqrt(2)).sum(-1) / 2,
    "sqrtH2sum": lambda z: 2 * ((z**2 - 1) / math.sqrt(2)).sum(-1),
    "inverseH2sum": lambda z: ((z**2 - 1) / math.sqrt(2)).mean(-1),
    "linearH2sum": lambda z: 4 * ((z**2 - 1) / math.sqrt(2)).sum(-1),
    "2difference": lambda z: z[:, 0] - z[:, 1],
    "2squaredifference": lambda z: (z[:, 0] ** 2 - z[:, 1] ** 2) / math.sqrt(2),
    "basic_staircase": lambda z: z[:, 0] + z[:, 0] * z[:, 1],
    "sqrtbasic_staircase": lambda z: 2 * (z[:, 0] + z[:, 0] * z[:, 1]),
    "sqrtdouble_staircase": lambda z: 2 * (z[:, 0] + z[:, 0] * z[:, 1] + z[:, 0] * z[:, 1] * z[:, 2]),
    "complete_staircase": lambda z: z[:, 0] * (1 + z[:, 1]) * (1 + z[:, 2]) * (1 + z[:, 3]),
}
EXPONENTS = {"product": 4, "He2product": 8, "He2sum": 2, "He3sum": 3, "He4sum": 4, "He1He4_He2He2": 4, "figure2": 4}
EXPONENTS |= {"sum": 1, "z1": 1, "2product": 2, "3product": 3, "H2sum": 2, "2difference": 1, "2squaredifference": 2}
EXPONENTS |= {"basic_staircase": 1, "complete_staircase": 1, "product_and_He2sum": 2}


def test_formulas_of_the_released_code():
    """At length 4; every name that comes from there."""
    z = np.random.default_rng(0).standard_normal((9, 4))
    assert set(BY_HAND) == {name for name, row in sx.NAMED_TARGETS.items() if "released" in row.source}
    for name, formula in BY_HAND.items():
        np.testing.assert_allclose(sx.named_target(name, 4)(z)[:, 0], formula(z), rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("name", EXPONENTS)
def test_exponents(name):
    assert int(sx.sequence_information_exponent(sx.named_target(name, 4))) == EXPONENTS[name]


def test_each_row_says_what_it_is_and_comes_back_from_storage():
    for name, row in sx.NAMED_TARGETS.items():
        assert row.description
        assert row.source
        target = sx.named_target(name, 5)
        assert sx.Target.from_spec(target.spec()).expression == target.expression


def test_scaled_ones_have_unit_variance():
    """Monte Carlo means of squares, 5 standard errors: one false alarm in a million."""
    z = np.random.default_rng(5).standard_normal((40_000, 3))
    for name, wanted in (("inversesqrtsum", 1.0), ("inversesqrtH2sum", 1.0), ("H2sum", 3.0)):
        squares = sx.named_target(name, 3)(z)[:, 0] ** 2
        assert abs(squares.mean() - wanted) < 5 * squares.std() / math.sqrt(len(squares))


def test_parameters_replace_those_of_the_table():
    z = np.array([2.0, 3.0])
    assert sx.named_target("product_and_He2sum", 2)(z) == pytest.approx(6 + 0.2 * 11)
    assert sx.named_target("product_and_He2sum", 2, a=0.0, b=1)(z) == pytest.approx(11)


@pytest.mark.parametrize(
    ("arguments", "parameters", "message"),
    [
        (("sums", 2), {}, r"^name must be one of 'sum', .*, got 'sums'; did you mean 'sum'\?$"),
        (("3product", 2), {}, r"^target has fields z1 to z2 at length 2, got z3"),
        (("sum", 0), {}, r"^length must be at least 1, got 0$"),
        (("sum", 2), {"a": 1.0}, r"^parameter 'a' does not occur in target"),
        (("product_and_He2sum", 2), {"a": math.nan}, r"^parameter a must be finite, got nan$"),
    ],
)
def test_refused(arguments, parameters, message):
    with pytest.raises(ValueError, match=message):
        sx.named_target(*arguments, **parameters)


def test_any_length():
    assert sx.named_target("complete_staircase", 1)(np.array([2.0])).tolist() == [2.0]
    assert sx.named_target("complete_staircase", 1000).length == 1000
