"""The tied network in simulation and theory: laws of the chains, exactly solvable cases, what position weights cure.

Laws: two-sample Kolmogorov-Smirnov on each coordinate of the state and on the radius, 20,000 replicas, fixed seeds.
False alarms: 1e-4 over all checks together.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import chains
import seqindex as sx

REPLICAS = 20_000
STEPS = 12
WEIGHTS = {"plain": None, "weighted": lambda length: np.where(np.arange(length) % 2, -0.7, 1.3)}
ENCODINGS = {
    "none": lambda length: None,
    "directions": lambda length: sx.SinusoidalEncoding(length, directions=2),
    "tilted, injected": lambda length: sx.Encoding(
        np.cos(np.arange(length))[:, None], np.sin(np.arange(length)), np.linspace(0.5, -0.3, length)
    ),
}
SPARE = [0, 1, 9, 17]


def target_of(length):
    return sx.Target(f"tanh(z1*z{length}) + z{length}/2 + sum(He2(z))/4", length)


def rate_of(problem, dim, kick):
    """Rate at which a step from the origin, where relu lets one happen, moves w/sqrt(d) by about ``kick``."""
    zstar, z = np.random.default_rng(0).standard_normal((2, 4000, problem.length))
    c = problem.field_gradient(zstar, z + problem.frame.injection)
    return kick * math.sqrt(dim) / math.sqrt(np.median((c * c).sum(1)[(c != 0.0).any(1)]))


def cases():
    product = itertools.product(["plain", "weighted"], ["relu", "tanh"], [1, 2, 7])
    names = list(ENCODINGS)
    for number, (weights, activation, length) in enumerate(product):
        encoding = names[(number + number // 3) % 3]
        given = None if weights == "plain" else WEIGHTS[weights](length)
        problem = sx.Problem(target_of(length), sx.TiedNetwork(length, activation, given, ENCODINGS[encoding](length)))
        dim = problem.frame.rank + 1 + SPARE[(number + number // 4) % 4]
        batch = 3 if number % 5 == 2 else 1
        yield pytest.param(problem, dim, batch, number, id=f"{weights}-{activation}-{length}-{encoding}-{batch}-d{dim}")


CASES = list(cases())
CHECKS = sum(case.values[0].frame.rank + 1 for case in CASES)
ALARM = 1e-4 / CHECKS


@pytest.mark.parametrize(("problem", "dim", "batch", "number"), CASES)
def test_reduced_and_explicit_agree(problem, dim, batch, number):
    state = None if number % 3 == 0 else [0.3, 0.4, -0.2][: problem.frame.rank]
    arguments = (problem, dim, rate_of(problem, dim, 0.5), batch, STEPS, REPLICAS)
    truth = chains.explicit(*arguments, 100 + 2 * number, state)
    assert truth[0].std() > 0.1, "the states must have spread"
    got = chains.reduced(*arguments, 101 + 2 * number, state)
    assert min(chains.p_values(got, truth)) > ALARM
    degrees = dim - problem.frame.rank - 1
    if degrees > 0:
        without = chains.reduced(*arguments, 101 + 2 * number, state, degrees=0)
        assert min(chains.p_values(without, truth)) < ALARM, "the chi-square must matter"
    if degrees < 2:
        wrong = chains.reduced(*arguments, 101 + 2 * number, state, degrees=degrees + 1)
        assert min(chains.p_values(wrong, truth)) < ALARM, "one degree of freedom too many must show"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_one_degree_too_many_shows_at_ten_dimensions(activation):
    problem = sx.Problem(target_of(2), sx.TiedNetwork(2, activation, [1.3, -0.7]))
    arguments = (problem, 10, 2.0 * rate_of(problem, 10, 0.5), 1, 10, 3 * REPLICAS)
    truth = chains.explicit(*arguments, 200, [0.6])
    assert min(chains.p_values(chains.reduced(*arguments, 201, [0.6]), truth)) > ALARM
    wrong = chains.reduced(*arguments, 201, [0.6], degrees=9)
    assert min(chains.p_values(wrong, truth)) < ALARM


def scalar_chain(length, weights, dim, rate, steps, m, rng, scale=True):
    """The chain of L fields of the target and one of the student: what is left of the recursion without encoding.

    The relu network; without ``scale`` the variance of u forgets the weights.
    """
    rho = math.sqrt(weights @ weights / length) if scale else 1.0
    m, nu, delta = np.full(REPLICAS, m), np.full(REPLICAS, math.sqrt(1.0 - m * m)), rate / dim
    for _ in range(steps):
        zstar = rng.standard_normal((REPLICAS, length))
        along, across = zstar @ weights / math.sqrt(length), rho * rng.standard_normal(REPLICAS)
        u = m * along + nu * across
        q = 2.0 * (np.maximum(u, 0.0) - (zstar**2 - 1.0).sum(1) / 2.0) * (u > 0.0)
        moved = m - delta * q * along
        rest = (nu - delta * q * across) ** 2 + (delta * q * rho) ** 2 * rng.chisquare(dim - 2, REPLICAS)
        norm = np.sqrt(moved**2 + rest)
        m, nu = moved / norm, np.sqrt(rest) / norm
    return m


def test_one_field_is_all_that_the_student_needs():
    weights = np.array([2.0, -1.0, 0.3])
    problem = sx.Problem(sx.Target("sum(He2(z))/2", length=3), sx.TiedNetwork(3, "relu", weights))
    arguments = (problem, 12, rate_of(problem, 12, 0.5), 1, STEPS, REPLICAS)
    got = chains.reduced(*arguments, 300, [0.4])[0]
    rng = np.random.default_rng(301)
    for scale, agrees in ((True, True), (False, False)):
        other = scalar_chain(3, weights, 12, arguments[2], STEPS, 0.4, rng, scale)
        assert (stats.ks_2samp(got, other).pvalue > ALARM) == agrees


# Exactly solvable cases: the mean of the chain against the flow's closed form at d = 2e4.

DIM = 20_000
TIMES = np.array([0.5, 1.5, 3.0])


def squares(length, rate, start, t, noise=1.0):
    """m(t) of relu with g = sum_l He2(z_l) / sqrt(2); ``noise`` scales the gradient's variance in it."""
    k = 2.0 / math.sqrt(math.pi)
    growth, saturation = k - noise * rate * (length + 1.0), k * (1.0 - noise * rate)
    limit = growth / saturation
    return np.sqrt(limit / (1.0 + (limit / start**2 - 1.0) * np.exp(-2.0 * growth * t)))


def average(length, rate, start, t, noise=1.0):
    """m(t) of relu with g = L^{-1/2} sum_l z_l."""
    b = 1.0 - 2.0 * noise * rate
    ratio = (1.0 + b * start) / (1.0 - start) * np.exp((1.0 + b) * t)
    return (ratio - 1.0) / (ratio + b)


SOLVABLE = {
    "He2, L = 1": ("sum(He2(z))/sqrt(2)", 1, 0.3, squares),
    "He2, L = 3": ("sum(He2(z))/sqrt(2)", 3, 0.2, squares),
    "He2, L = 7": ("sum(He2(z))/sqrt(2)", 7, 0.1, squares),
    "mean, L = 2": ("sum(z)/sqrt(L)", 2, 0.6, average),
    "mean, L = 7": ("sum(z)/sqrt(L)", 7, 1.5, average),
}


@pytest.mark.parametrize("case", SOLVABLE)
def test_mean_of_the_chain_against_the_closed_form(case):
    """Fifteen comparisons at 4.5 standard errors: a false alarm in one of 10,000 runs."""
    link, length, rate, solution = SOLVABLE[case]
    problem = sx.Problem(sx.Target(link, length), sx.TiedNetwork(length))
    steps = np.rint(TIMES * DIM / rate).astype(int)
    runs = sx.sgd(problem, DIM, rate, int(steps[-1]), 64, 5, sx.Start.overlaps(0.3), records=steps)
    overlap = runs["overlap"].values
    error = overlap.std(0, ddof=1) / math.sqrt(len(overlap))
    assert (error < 4e-3).all()
    bias = 10.0 / DIM  # the flow is the limit of large d; measured at d = 1e2 to 1e4 it is off by about 2 / d
    difference = np.abs(overlap.mean(0) - solution(length, rate, 0.3, steps * rate / DIM))
    assert (difference < 4.5 * error + bias).all()
    without = np.abs(overlap.mean(0) - solution(length, rate, 0.3, steps * rate / DIM, noise=0.0))
    assert (without > 4.5 * error + bias).any(), "the variance of the gradient must matter"


def test_reference_value_of_the_solvable_flow():
    assert squares(3, 0.1, 0.2, 4.0) == pytest.approx(0.826528240785, abs=1e-12)
    assert average(5, 1.5, 0.3, 50.0) == pytest.approx(0.5, abs=1e-12)


# Targets of which the plain network sees nothing


@pytest.mark.parametrize(
    ("link", "weights"), [("z1 - z2", [1.0, 0.2]), ("(z1**2 - z2**2)/sqrt(2)", [1.3, 0.3])], ids=["odd", "even"]
)
def test_weights_cure_pathological_targets(link, weights):
    target = sx.Target(link, length=2)
    final = {}
    for name, given in (("plain", None), ("weighted", weights)):
        problem = sx.Problem(target, sx.TiedNetwork(2, "relu", given))
        runs = sx.sgd(problem, dim=1000, learning_rate=0.02, steps=500_000, replicas=64, seed=1, records=2)
        final[name] = np.abs(runs["overlap"].values[:, -1])
    # On the sphere |m| is |N(0, 1/d)|: above 0.16 with probability 4e-7.
    assert final["plain"].max() < 0.16
    assert np.median(final["weighted"]) > 0.5
