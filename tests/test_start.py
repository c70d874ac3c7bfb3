"""Starting states."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import seqindex as sx
from seqindex.model.frame import Frame
from seqindex.sgd.start import Start

TILTED = Frame.of(2, sx.Encoding([[1.0, 0.0], [0.5, -0.7]], [0.5, -0.4]))
PLAIN = Frame.of(2, None)

STARTS = {
    "random": Start.random(),
    "overlaps": Start.overlaps(m=0.2, e=[0.1, -0.3]),
    "overlaps, m alone": Start.overlaps(-1),
    "orthogonal": Start.orthogonal(),
    "released": Start.released(),
    "released with overlap": Start.released(overlap=0.3),
}


def draws(start, frame, dim, count, seed=0):
    rng = np.random.default_rng(seed)
    states = [start.draw(frame, dim, rng) for _ in range(count)]
    return np.array([s for s, _ in states]).T, np.array([nu for _, nu in states])


@pytest.mark.parametrize("frame", [TILTED, PLAIN], ids=["rank 3", "rank 1"])
@pytest.mark.parametrize("spare", [1, 2, 20])
def test_random_is_uniform_on_the_sphere(frame, spare):
    dim = frame.rank + spare
    s, nu = draws(Start.random(), frame, dim, 10_000)
    v = np.random.default_rng(1).standard_normal((dim, 10_000))
    v /= np.linalg.norm(v, axis=0)
    for got, wanted in zip([*s, nu], [*v[: frame.rank], np.linalg.norm(v[frame.rank :], axis=0)], strict=True):
        assert stats.ks_2samp(got, wanted).pvalue > 1e-5
    np.testing.assert_allclose((s**2).sum(0) + nu**2, 1.0, rtol=0, atol=1e-14)
    gaussian = np.random.default_rng(2).standard_normal(10_000) / math.sqrt(dim)
    if spare == 1:
        assert stats.ks_2samp(s[0], gaussian).pvalue < 1e-5, "N(0, 1/d) must be told apart"


def test_random_in_a_thousand_million_dimensions():
    s, nu = draws(Start.random(), TILTED, 10**9, 2000)
    assert stats.kstest(s[1] * math.sqrt(1e9), "norm").pvalue > 1e-5
    np.testing.assert_allclose(nu, 1.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_every_start_lies_on_the_sphere(start):
    s, nu = start.draw(TILTED, 50, np.random.default_rng(0))
    assert s.shape == (3,)
    assert nu >= 0.0
    assert s @ s + nu * nu == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_spec_round_trip(start):
    again = Start.from_spec(json.loads(json.dumps(start.spec())))
    assert again == start
    assert again.spec() == start.spec()
    for a, b in zip(again.draw(TILTED, 9, np.random.default_rng(3)), start.draw(TILTED, 9, np.random.default_rng(3))):  # noqa: B905
        np.testing.assert_array_equal(a, b)
    assert all(again != other for other in STARTS.values() if other is not start)


def test_given_overlaps_are_exact():
    s, nu = Start.overlaps(0.2, [0.1, -0.3]).draw(TILTED, 10, np.random.default_rng(0))
    assert s.tolist() == [0.2, 0.1, -0.3]
    assert nu == pytest.approx(math.sqrt(1 - 0.04 - 0.01 - 0.09), abs=1e-15)
    assert Start.overlaps(0.2).draw(TILTED, 10, np.random.default_rng(0))[0].tolist() == [0.2, 0.0, 0.0]
    opposite = Frame.of(2, sx.OppositeEncoding())
    assert Start.overlaps(0.2, 0.1).draw(opposite, 10, np.random.default_rng(0))[0].tolist() == [0.2, 0.1]
    for m, e in ((1.0, 0.0), (0.6, 0.8), (-0.6, -0.8), (0.0, 1.0)):
        assert Start.overlaps(m, e).draw(opposite, 10, np.random.default_rng(0))[1] == pytest.approx(0.0, abs=2e-8)


def test_orthogonal_is_exactly_zero():
    s, nu = Start.orthogonal().draw(TILTED, 10, np.random.default_rng(0))
    assert s.tolist() == [0.0, 0.0, 0.0]
    assert nu == 1.0


@pytest.mark.parametrize(
    ("asked", "dim", "true"), [(0.1, 50, 0.110432), (0.3, 50, 0.393919), (None, 100, 0.110432), (0, 50, 0), (1, 50, 1)]
)
def test_released_overlap(asked, dim, true):
    s, _ = Start.released(asked).draw(TILTED, dim, np.random.default_rng(0))
    assert s[0] == pytest.approx(true, abs=1e-6)
    assert s[1:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Start.overlaps(1.2), ValueError, r"^m must be in \[-1, 1\], got 1.2$"),
        (lambda: Start.overlaps("0.2"), TypeError, r"^m must be a number, got '0.2'$"),
        (lambda: Start.overlaps(0.2, "north"), TypeError, r"^e must be an array of numbers of shape \(any,\), got"),
        (lambda: Start.overlaps(0.2, [[0.1]]), ValueError, r"^e must have shape \(any,\), got \(1, 1\)$"),
        (lambda: Start.overlaps(0.2, np.nan), ValueError, r"^e must be finite, got nan in it$"),
        (lambda: Start.released(1.5), ValueError, r"^overlap must be in \[0, 1\], got 1.5$"),
        (lambda: Start.from_spec({"name": "randon"}), ValueError, r"did you mean 'random'\?$"),
        (lambda: Start.from_spec({}), ValueError, r"^start must be one of 'random', .*, got None"),
        (lambda: Start.from_spec({"name": "released", "m": 1}), TypeError, r"^start 'released' takes overlap, got m$"),
        (lambda: Start.from_spec({"name": "random", "m": 1}), TypeError, r"^start 'random' takes nothing, got m$"),
        (lambda: Start.from_spec({"name": "overlaps"}), TypeError, r"^start 'overlaps' takes m, e, got nothing$"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("m", "e", "message"),
    [
        (0.9, [0.9, 0.0], r"^m\^2 \+ \|e\|\^2 must be at most 1, got 1.62$"),
        (0.1, [0.1], r"^e must have shape \(2,\), got \(1,\)$"),
    ],
)
def test_overlaps_that_do_not_fit_the_frame(m, e, message):
    with pytest.raises(ValueError, match=message):
        Start.overlaps(m, e).draw(TILTED, 10, np.random.default_rng(0))
