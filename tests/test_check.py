"""Argument checks: what passes, what is raised, and that every message is one line naming the argument."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqindex import check


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float32(3.0), np.array(3), np.array(3.0), Fraction(3)])
def test_integer_accepts(value):
    result = check.integer("n", value, 1, 5)
    assert result == 3
    assert type(result) is int


NO_INTEGERS = [True, np.True_, np.array(True), 2.5, np.nan, np.inf, -np.inf, "3", None, 3j, [3], np.array([3])]


@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_integer_refuses_the_type(value):
    with pytest.raises(TypeError, match=r"^n must be an integer, got "):
        check.integer("n", value, 1)


@pytest.mark.parametrize("value", [0, -3.0, -(10**400)])
def test_integer_refuses_the_range(value):
    with pytest.raises(ValueError, match=r"^n must be at least 1, got "):
        check.integer("n", value, 1)
    with pytest.raises(ValueError, match=r"^n must be between 1 and 9, got "):
        check.integer("n", value, 1, 9)


def test_integer_keeps_large_values():
    assert check.integer("n", 2**60 + 1, 1) == 2**60 + 1


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.array(0.5), Fraction(1, 2)])
def test_number_accepts(value):
    result = check.number("x", value, 0.0, 1.0, positive=True)
    assert result == 0.5
    assert type(result) is float


@pytest.mark.parametrize("value", [True, np.True_, np.array(True), "1", np.array("1"), None, 1j, [1.0]], ids=repr)
def test_number_refuses_the_type(value):
    with pytest.raises(TypeError, match=r"^x must be a number, got "):
        check.number("x", value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 10**400])
def test_number_refuses_what_is_not_finite(value):
    with pytest.raises(ValueError, match=r"^x must be finite, got "):
        check.number("x", value)


def test_number_refuses_the_range():
    with pytest.raises(ValueError, match=r"^x must be in \[0, 1\], got 1\.000000001$"):
        check.number("x", 1.000000001, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"^x must be positive, got 0$"):
        check.number("x", 0.0, positive=True)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_is_the_identity_on_finite_floats(value):
    assert check.number("x", value) == value


@pytest.mark.parametrize("value", [[[1, 2]], [[1.0, 2.0]], np.array([[1, 2]], np.int8), [[Fraction(1), 2]]], ids=repr)
def test_array_accepts(value):
    result = check.array("a", value, (None, 2))
    assert result.dtype == np.float64
    assert result.tolist() == [[1.0, 2.0]]
    with pytest.raises(ValueError, match="read-only"):
        result[0, 0] = 5.0


def test_array_copies():
    value = np.ones(2)
    result = check.array("a", value, (2,))
    value[0] = 7.0
    assert result[0] == 1.0


NO_ARRAYS = ["ab", ["1"], [1j, 2.0], np.array([1j]), [[1, 2], [3]], [None, 1.0], [True, False], [10**400], {}, [{}]]


@pytest.mark.parametrize("value", NO_ARRAYS, ids=repr)
def test_array_refuses_the_type(value):
    with pytest.raises(TypeError, match=r"^a must be an array of numbers of shape \(any,\), got ") as caught:
        check.array("a", value, (None,))
    assert "\n" not in str(caught.value)


def test_array_refuses_shape_and_infinity():
    with pytest.raises(ValueError, match=r"^a must have shape \(any, 2\), got \(1, 3\)$"):
        check.array("a", np.ones((1, 3)), (None, 2))
    with pytest.raises(ValueError, match=r"^a must have shape \(2,\), got \(\)$"):
        check.array("a", 1.0, (2,))
    with pytest.raises(ValueError, match=r"^a must be finite, got nan in it$"):
        check.array("a", [1.0, np.nan], (2,))


def test_fields():
    assert check.fields("z", [[1, 2]], 2).dtype == np.float64
    assert check.fields("z", np.zeros((3, 2), np.float32), 2).dtype == np.float32
    assert np.isnan(check.fields("z", [np.nan, 1.0], 2)).any()
    for value in (1.0, [1.0], np.zeros((2, 3))):
        with pytest.raises(ValueError, match=r"^z must have shape \(\.\.\., 2\), got \("):
            check.fields("z", value, 2)
    for bad in ("ab", [1j, 1j], [[1], [1, 2]], [None, None]):
        with pytest.raises(TypeError, match=r"^z must be an array of numbers of shape \(\.\.\., 2\), got "):
            check.fields("z", bad, 2)


def test_choice():
    assert check.choice("loss", "norm", ["square", "norm"]) == "norm"
    with pytest.raises(ValueError, match=r"^loss must be one of 'square', 'norm', got 'nrom'; did you mean 'norm'\?$"):
        check.choice("loss", "nrom", ["square", "norm"])
    for value in (None, 3, ["norm"], np.array(["norm"]), np.array(["norm", "x"]), {}):
        with pytest.raises(ValueError, match=r"^loss must be one of 'square', 'norm', got "):
            check.choice("loss", value, ["square", "norm"])


def test_messages_are_one_short_line():
    assert len(check.shown(np.ones((50, 50)))) <= 80
    assert "\n" not in check.shown(np.ones((50, 50)))
    with pytest.raises(TypeError, match=r"^x must be a number, got array") as caught:
        check.number("x", np.ones((50, 50)))
    assert "\n" not in str(caught.value)
