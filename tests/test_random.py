"""Random streams: the laws of normals and chi-squares, and which numbers a stream gives."""

import itertools
import math

import numpy as np
import pytest
from numba import njit
from scipy import stats

from seqindex.gaussian.simd import WIDTH
from seqindex.sgd import random
from seqindex.sgd.random import TOKENS, fill_chi_square, fill_normals, streams

ALARM = 1e-6  # false alarms a Kolmogorov-Smirnov check; seeds are fixed
ERRORS = 5.0  # tolerance of moments in standard errors


def block_words(seed, first=0):
    return np.hstack([streams(seed, replica) for replica in range(first, first + WIDTH)])


def normals(count, seed=0):
    out = np.empty((count + count % 2, WIDTH))
    fill_normals(block_words(seed), out)
    return out[:count]


def chi_squares(degrees, rounds, seed=0):
    words = block_words(seed)
    final = np.empty((2, WIDTH))
    out = np.empty((rounds, WIDTH))
    for row in out:
        fill_normals(words, final)
        fill_chi_square(words, float(degrees), final[0], row)
    return out


def standard_errors(sample, wanted, variance):
    return abs(sample.mean() - wanted) / math.sqrt(variance / sample.size)


def test_xoshiro_against_integers_of_any_size():
    """xoshiro256++ as published, in Python's integers."""
    mask = 2**64 - 1

    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & mask

    words = block_words(3)
    lane = 17
    s = [int(word) for word in words[:, lane]]
    out = np.empty((4, WIDTH))
    fill_normals(words, out)
    uniforms = []
    for _ in range(4):
        uniforms.append((rotate((s[0] + s[3]) & mask, 23) + s[0] & mask) >> 12)
        t = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    assert [int(word) for word in words[:, lane]] == s
    for pair in range(2):
        radius = math.sqrt(-2 * math.log((uniforms[2 * pair] + 0.5) / 2**52))
        angle = 2 * math.pi * uniforms[2 * pair + 1] / 2**52
        wanted = [radius * math.cos(angle), radius * math.sin(angle)]
        np.testing.assert_allclose(out[2 * pair : 2 * pair + 2, lane], wanted, rtol=0, atol=4e-15)


@njit
def _bits(exponent):
    return random._unit(np.uint64(exponent))


def test_uniforms_stay_inside_the_open_interval():
    shift = 1.0 - 2.0**-53
    assert _bits(0) - shift == 2.0**-53
    assert _bits(np.uint64(2**64 - 1)) - shift == 1.0 - 2.0**-53


def test_normals():
    z = normals(60_000)
    flat = z.ravel()
    for power, (mean, variance) in {1: (0, 1), 2: (1, 2), 3: (0, 15), 4: (3, 96), 6: (15, 10170)}.items():
        assert standard_errors(flat**power, mean, variance) < ERRORS, f"moment {power}"
    assert stats.kstest(flat, "norm").pvalue > ALARM
    for bound in (3.0, 4.0):
        beyond = np.abs(flat) > bound
        p = 2 * stats.norm.sf(bound)
        assert standard_errors(beyond.astype(float), p, p * (1 - p)) < ERRORS, f"tail {bound}"
    tail = flat[flat > 2.5]
    assert stats.kstest(stats.norm.sf(tail) / stats.norm.sf(2.5), "uniform").pvalue > ALARM
    assert np.abs(flat).max() < 8.6


def test_normals_are_uncorrelated():
    z = normals(20_000, seed=1)
    bound = ERRORS / math.sqrt(len(z) - 4)
    between_lanes = np.corrcoef(z, rowvar=False) - np.eye(WIDTH)
    assert np.abs(between_lanes).max() < bound
    for lag in (1, 2, 3, 4):  # the two normals of a pair, and of neighbouring pairs, raw and squared
        for x in (z, z**2 - 1):
            ratio = (x[lag:] * x[:-lag]).mean() / (x * x).mean()
            assert abs(ratio) < ERRORS / math.sqrt(x[lag:].size)


DEGREES = [0, 1, 2, 3, 5, 17, 998, 10**9 - 3]


@pytest.mark.parametrize("degrees", DEGREES)
def test_chi_square(degrees):
    x = chi_squares(degrees, 4000, seed=degrees % 1000).ravel()
    if degrees == 0:
        np.testing.assert_array_equal(x, 0.0)
        return
    assert (x > 0).all()
    assert standard_errors(x, degrees, 2 * degrees) < ERRORS
    fourth = 12 * degrees * (degrees + 4) - (2 * degrees) ** 2  # variance of (x - degrees)^2
    assert standard_errors((x - degrees) ** 2, 2 * degrees, fourth) < ERRORS
    law = "norm" if degrees > 10**6 else "chi2"
    sample = (x - degrees) / math.sqrt(2 * degrees) if law == "norm" else x
    assert stats.kstest(sample, law, args=() if law == "norm" else (degrees,)).pvalue > ALARM


def test_chi_square_of_a_wrong_degree_is_rejected():
    for degrees in (1, 2, 3, 5, 17):
        x = chi_squares(degrees, 4000, seed=degrees).ravel()
        assert stats.kstest(x, "chi2", args=(degrees + 0.05 * degrees,)).pvalue < ALARM


def test_chi_squares_do_not_depend_on_the_normals_of_later_steps():
    """The normal that a chi-square uses up is spent: correlation with the next ones vanishes."""
    words = block_words(5)
    final = np.empty((2, WIDTH))
    chi = np.empty((4000, WIDTH))
    spare = np.empty((4000, WIDTH))
    for row in range(4000):
        fill_normals(words, final)
        fill_chi_square(words, 2.0, final[0], chi[row])
        spare[row] = final[1]
    for x in (spare[1:] * chi[:-1], spare * chi, (spare[1:] ** 2 - 1) * chi[:-1], (spare**2 - 1) * chi):
        assert abs(x.mean()) < ERRORS * x.std() / math.sqrt(x.size)
    a, b = chi[1:] - 2, chi[:-1] - 2
    assert abs((a * b).mean()) < ERRORS * 4 / math.sqrt(a.size)


def test_squeeze_never_accepts_wrongly():
    """bound <= exp(exact exponent) inside |t| < 1/2; 3 (log(1+t) - t + t^2/2 - t^3/3) is summed without loss."""
    t = np.concatenate([np.linspace(-0.5, 0.5, 200_001), np.geomspace(1e-9, 0.5, 2001), -np.geomspace(1e-9, 0.5, 2001)])
    series = sum((-1) ** (k + 1) * t**k / k for k in range(4, 80))
    for shape in [0.5 * degrees - 1 / 3 for degrees in (2, 3, 4, 5, 17, 998, 1e9 - 3, 1e15)]:
        bound = 1.0 - 1.5 * shape * t**4
        assert (bound <= np.exp(3.0 * shape * series)).all()


def test_squeeze_settles_nearly_everything():
    """Doubtful draws cost a scalar test: about one in 18 shape."""
    rng = np.random.default_rng(0)
    for degrees in (17, 998):
        shape = 0.5 * degrees - 1 / 3
        t = rng.standard_normal(400_000) / math.sqrt(9 * shape)
        doubtful = (np.abs(t) >= 0.5) | (rng.random(t.size) >= 1 - 1.5 * shape * t**4)
        assert doubtful.mean() < 1.5 / (18 * shape)


def test_streams_differ_pairwise():
    words = [streams(7, replica) for replica in range(500)]
    words += [streams(8, replica) for replica in range(500)]
    lanes = np.hstack([*words, *(streams(7, replica, TOKENS, lanes=WIDTH) for replica in range(20))])
    assert len(np.unique(lanes, axis=1).T) == lanes.shape[1]
    assert len(np.unique(lanes[0])) == lanes.shape[1]
    firsts = normals(2)[0]
    assert all(a != b for a, b in itertools.combinations(firsts, 2))


def test_streams_are_what_they_were():
    """The version changes with these numbers."""
    assert random.STREAM_VERSION == 1
    assert streams(0, 0).ravel().tolist() == [
        8668861027912758289,
        14584187760040447831,
        7402292003153977891,
        8042076608462446761,
    ]
    out = np.empty((2, WIDTH))
    fill_normals(block_words(0), out)
    np.testing.assert_allclose(out[:, 0], [-1.5044595938565615, 1.5913397994253884], rtol=1e-13)
