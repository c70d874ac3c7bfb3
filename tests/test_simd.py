"""The compiled elementary functions against NumPy."""

import math

import numpy as np
import pytest
from numba import njit

from seqindex.gaussian import simd

ULPS = 3.0  # NumPy itself is off by up to one


@njit
def _exp(x, out):
    for i in range(x.size):
        out[i] = simd.exp(x[i])


@njit
def _log(x, out):
    for i in range(x.size):
        out[i] = simd.log(x[i])


@njit
def _sincos(x, sine, cosine):
    for i in range(x.size):
        sine[i], cosine[i] = simd.sincos_turns(x[i])


@njit
def _round_trip(x, out):
    for i in range(x.size):
        out[i] = simd.float_of(simd.bits_of(x[i]))


def apply(function, x):
    x = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty_like(x)
    function(x, out)
    return out


def apply_sincos(x):
    sine, cosine = np.empty_like(x), np.empty_like(x)
    _sincos(x, sine, cosine)
    return sine, cosine


def ulps(got, wanted):
    return float((np.abs(got - wanted) / np.spacing(np.abs(wanted))).max())


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.0), (-40.0, 40.0), (-1.0, 1.0), (-1e-8, 1e-8)])
def test_exp(low, high):
    x = np.concatenate([np.random.default_rng(1).uniform(low, high, 200_000), [low, high, 0.0]])
    assert ulps(apply(_exp, x), np.exp(x)) <= ULPS


def test_exp_saturates():
    x = np.array([-709.0, -1e4, -1e300, -np.inf, 710.0, 1e4, 1e300, np.inf])
    np.testing.assert_array_equal(apply(_exp, x), apply(_exp, np.clip(x, -708.0, 709.0)))


@pytest.mark.parametrize(("low", "high"), [(-708.0, 709.0), (-40.0, 1e-9), (-1e-3, 1e-3)])
def test_log(low, high):
    x = np.concatenate([np.exp(np.random.default_rng(2).uniform(low, high, 200_000)), [np.exp(low), np.exp(high)]])
    assert ulps(apply(_log, x), np.log(x)) <= ULPS


def test_log_at_the_ends():
    x = np.array([1.0, np.finfo(float).tiny, np.finfo(float).max, 2.0**-53, math.sqrt(2.0), 1.0 + 2.0**-52])
    np.testing.assert_allclose(apply(_log, x), np.log(x), rtol=1e-15, atol=0.0)
    assert apply(_log, np.array([1.0]))[0] == 0.0


def test_sincos_turns():
    u = np.concatenate([np.random.default_rng(3).uniform(0.0, 1.0, 200_000), np.linspace(0.0, 1.0, 4097)])
    sine, cosine = apply_sincos(u)
    # 2 pi u rounds, so the reference reduces u by quarter turns first, which is exact.
    quarter = np.round(4.0 * u)
    angle = 2.0 * np.pi * (u - 0.25 * quarter)
    s, c = np.sin(angle), np.cos(angle)
    turn = quarter.astype(int) % 4
    assert ulps(sine, np.choose(turn, [s, c, -s, -c])) <= ULPS
    assert ulps(cosine, np.choose(turn, [c, -s, -c, s])) <= ULPS
    np.testing.assert_allclose(sine**2 + cosine**2, 1.0, rtol=0.0, atol=1e-15)


def test_quarter_turns_are_exact():
    sine, cosine = apply_sincos(np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_array_equal(sine, [0.0, 1.0, 0.0, -1.0, 0.0])
    np.testing.assert_array_equal(cosine, [1.0, 0.0, -1.0, 0.0, 1.0])


def test_nan_is_kept():
    nan = np.array([np.nan])
    assert np.isnan(apply(_exp, nan)).all()
    assert all(np.isnan(part).all() for part in apply_sincos(nan))


def test_bits_round_trip():
    x = np.array([0.0, -0.0, 1.5, -np.inf, np.nan, 5e-324])
    np.testing.assert_array_equal(apply(_round_trip, x).view(np.int64), x.view(np.int64))


def test_flags_keep_rounding_and_nan():
    assert not simd.FAST_FLAGS & {"reassoc", "nnan", "ninf", "fast"}
    assert simd.OPTIONS["fastmath"] is simd.FAST_FLAGS


def test_width_is_a_multiple_of_every_simd_width():
    assert simd.WIDTH % 8 == 0


def test_an_exponential_of_the_wrong_order_is_rejected():
    """The tolerance is sharp: a series cut one term early fails it."""
    x = np.random.default_rng(4).uniform(-0.34, 0.34, 10_000)
    short = sum(x**k / math.factorial(k) for k in range(11))
    assert ulps(short, np.exp(x)) > ULPS
