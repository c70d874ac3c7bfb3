"""Rows on spheres of their own against rows on one sphere: the numbers of the table in docs/notation.md.

Closed forms for small rates; the chain at sizes of a second beside them.  Statistical checks at 4.5 standard errors,
3 in all: a false alarm in 40,000.
"""

import math
from pathlib import Path

import numpy as np
import pytest

import seqindex as sx

SQUARES = "sum(He2(z))/sqrt(2)"
NOTATION = Path(__file__).parents[1] / "docs" / "notation.md"


def problem_of(link, length, sphere):
    return sx.Problem(sx.Target(link, length), sx.UntiedNetwork(length, "relu", sphere))


def squared_starts(length, dim, count):
    """m_l^2 of rows uniform on their spheres."""
    rng = np.random.default_rng(0)
    g = rng.standard_normal((count, length)) ** 2
    return g / (g + rng.chisquare(dim - 1, (count, length)))


def flow_times(x, threshold):
    """K t / L at which sum He2 is recovered by the noiseless flow, for rows and joint, from m_l^2 = x.

    Rows: dm_l/dt = (K / L) m_l (1 - m_l^2), each by itself; joint: dm_l/dt = (K / L) m_l (1 - ||m||^2 / L).
    """
    low, high = np.zeros(len(x)), np.full(len(x), 50.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        growth = np.exp(2.0 * middle)[:, None]
        short = (x * growth / (1.0 + x * (growth - 1.0))).mean(1) < threshold**2
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    r = x.mean(1)
    return low, 0.5 * np.log((1.0 / r - 1.0) / (1.0 / threshold**2 - 1.0))


def flow_ratio(length, dim, threshold):
    rows, joint = flow_times(squared_starts(length, dim, 20_000), threshold)
    return float(np.median(rows) / np.median(joint))


def table():
    """The rows of the table that hold numbers."""
    yield "| g = z1: largest ‖m‖/sqrt(L), L = 4 and 16 | 1/sqrt(L) = 0.5, 0.25 | 1, 1 |"
    yield "| g = z1: variance of abs(w_l)²/d over the rows at the end | 0, 0 | L - 1 = 3, 15 |"
    spread = ", ".join(f"{2 * (n - 1) / (n + 2):.2f}" for n in (4, 16))
    yield f"| g = sum He2(z_l)/sqrt(2): the same | 0, 0 | 2 (L - 1)/(L + 2) = {spread} |"
    for threshold in (0.5, 0.9):
        ratios = ", ".join(f"{flow_ratio(length, 1000, threshold):.2f}" for length in (4, 16))
        steps = f"steps to ‖m‖/sqrt(L) = {threshold}, d = 1000, over those of joint"
        yield f"| the same target: {steps} | {ratios} | 1, 1 |"


def test_the_table_in_the_notation_is_this_one():
    text = NOTATION.read_text(encoding="utf-8")
    for line in table():
        assert line in text


@pytest.mark.parametrize("length", [4, 16])
def test_how_far_one_informative_token_leads(length):
    dim, rate = 200, 0.05
    final = {}
    for sphere, time in (("rows", 5.0 * math.sqrt(length)), ("joint", 4.0 * length)):
        steps = int(time * dim / rate)
        final[sphere] = sx.sgd(problem_of("z1", length, sphere), dim, rate, steps, 64, 1, records=2, progress=False)
    norm = {sphere: float(runs["overlap_norm"][:, -1].mean()) for sphere, runs in final.items()}
    # The other rows stay random: (1 + (L - 1) / d) / L in the mean square.
    assert norm["rows"] == pytest.approx(math.sqrt((1.0 + (length - 1) / dim) / length), rel=0.02)
    assert norm["joint"] == pytest.approx(1.0, abs=1e-3)
    m = final["joint"]["overlap"][:, -1].values
    np.testing.assert_allclose((m**2).var(1), length - 1.0, rtol=5e-3)


def test_rows_that_share_a_sphere_keep_the_direction_they_start_in():
    """m / ||m|| stays uniform on the sphere of R^L, since sum He2 does not tell its directions apart."""
    length, dim, rate = 4, 100, 0.02
    steps = 5 * length * int(dim / rate)
    runs = sx.sgd(problem_of(SQUARES, length, "joint"), dim, rate, steps, 256, 2, records=2, progress=False)
    m, r = runs["overlap"][:, -1].values, runs["overlap_norm"][:, -1].values
    assert r.mean() > 0.95
    spread = (m**2).var(1) / r**4
    error = spread.std() / math.sqrt(len(spread))
    assert abs(spread.mean() - 2.0 * (length - 1) / (length + 2)) < 4.5 * error
    assert error < 0.06


@pytest.mark.parametrize("threshold", [0.5, 0.9])
def test_rows_of_their_own_recover_a_little_later(threshold):
    length, dim = 4, 200
    rate = 0.1 * 2.0 / math.sqrt(math.pi) / (length + 1)
    times = [
        sx.hitting_time(problem_of(SQUARES, length, sphere), dim, rate, 10**7, threshold, 256, 3, progress=False)
        for sphere in ("rows", "joint")
    ]
    found = sx.median_ratio(*times)
    error = math.log(found.high / found.low) / 3.92
    assert abs(math.log(found.value / flow_ratio(length, dim, threshold))) < 4.5 * error
    assert error < 0.03
    assert found.low > 1.0
