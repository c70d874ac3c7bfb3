"""The untied network: laws of its two engines, what each sphere conserves, its kinship with the tied network.

Laws: two-sample Kolmogorov-Smirnov on each overlap and on their norm, 20,000 replicas, fixed seeds.
False alarms: 1e-4 over all checks together.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import chains
import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.outcome import Outcome
from seqindex.sgd.reduced import ReducedEngine
from seqindex.sgd.rows import RowsEngine
from seqindex.sgd.rows_explicit import RowsExplicitEngine

REPLICAS = 20_000
STEPS = 12
SPHERES = ["rows", "joint"]
DEGREES = 11
"""Place of the degrees of freedom among a reduced engine's constants."""
TARGETS = {length: sx.Target(f"tanh(z1*z{length}) + z{length}/2 + sum(He2(z))/4", length) for length in (1, 2, 7)}


def problem_of(length, activation="relu", sphere="rows", target=None):
    return sx.Problem(target or TARGETS[length], sx.UntiedNetwork(length, activation, sphere))


def rate_of(problem, dim, kick):
    """Rate at which a step from the origin, where relu lets one happen, moves all rows together by about ``kick``."""
    zstar, z = np.random.default_rng(0).standard_normal((2, 4000, problem.length))
    c = problem.field_gradient(zstar, z)
    return kick * math.sqrt(dim) / math.sqrt(np.median((c * c).sum(1)[(c != 0.0).any(1)]))


def given_start(length, replicas):
    """Unequal overlaps, so that a row in another's place would show."""
    s = np.repeat(np.resize([0.3, -0.5, 0.1], length)[:, None], replicas, axis=1)
    return s, np.sqrt(1.0 - s * s)


def random_start(length, dim, replicas, rng):
    v = rng.standard_normal((dim, length, replicas))
    v /= np.linalg.norm(v, axis=0)
    return v[0].copy(), np.linalg.norm(v[1:], axis=0)


def start_of(problem, dim, replicas, seed, given):
    if given:
        return given_start(problem.length, replicas)
    return random_start(problem.length, dim, replicas, np.random.default_rng(seed))


def reduced(problem, dim, rate, batch, seed, given=True, extra=0, steps=STEPS, replicas=REPLICAS):
    """Overlaps at the end of the reduced chain, (L, n); ``extra`` degrees of freedom too many."""
    s, nu = start_of(problem, dim, replicas, seed, given)
    engine = RowsEngine(problem, dim, rate, batch, s, nu, seed)
    constants = list(engine._constants)
    constants[DEGREES] += extra
    engine._constants = tuple(constants)
    return chains.march(engine, replicas, steps)


def explicit(problem, dim, rate, batch, seed, given=True, steps=STEPS, replicas=REPLICAS):
    """The same of explicit SGD, its students and generators filled in bulk."""
    rng = np.random.default_rng([seed, 2])
    s, nu = start_of(problem, dim, replicas, seed, given)
    engine = RowsExplicitEngine(problem, dim, rate, batch, s[:, :1], nu[:, :1], seed)
    along = engine._wstar[:dim] / math.sqrt(dim)
    v = rng.standard_normal((replicas, problem.length, dim))
    v -= (v @ along)[..., None] * along
    v /= np.linalg.norm(v, axis=2, keepdims=True)
    engine._weights = np.zeros((replicas, *engine._weights.shape[1:]))
    engine._weights[:, :, :dim] = math.sqrt(dim) * (s.T[..., None] * along + nu.T[..., None] * v)
    engine._words = rng.integers(0, 2**64, size=(replicas, 4, WIDTH), dtype=np.uint64)
    return chains.march(engine, replicas, steps)


def cases():
    for number, (sphere, length, activation) in enumerate(itertools.product(SPHERES, [1, 2, 7], ["relu", "tanh"])):
        batch = [1, 3, 3, 1][number % 4]
        dim = [10, 2, 20, 3, 12][number % 5]
        yield pytest.param(
            problem_of(length, activation, sphere),
            dim,
            batch,
            number,
            id=f"{sphere}-{length}-{activation}-{batch}-d{dim}",
        )


CASES = list(cases())
CHECKS = sum(case.values[0].length + 1 for case in CASES) + 40  # with the laws at ten and twelve dimensions
ALARM = 1e-4 / CHECKS


@pytest.mark.parametrize(("problem", "dim", "batch", "number"), CASES)
def test_reduced_and_explicit_agree(problem, dim, batch, number):
    rate = rate_of(problem, dim, 0.5 * math.sqrt(problem.student.frame.spheres))
    given = number % 3 != 0
    truth = explicit(problem, dim, rate, batch, 2 * number, given)
    assert truth[0].std() > 0.05, "the states must have spread"
    got = reduced(problem, dim, rate, batch, 2 * number + 1, given)
    assert min(chains.p_values(got, truth)) > ALARM
    if dim <= 3 and problem.student.frame.together < 7:
        wrong = reduced(problem, dim, rate, batch, 2 * number + 1, given, extra=1)
        assert min(chains.p_values(wrong, truth)) < ALARM, "one degree of freedom too many must show"


@pytest.mark.parametrize(("sphere", "extra"), [("rows", 1), ("rows", -1), ("joint", 6), ("joint", -6)])
def test_wrong_degrees_show_at_ten_dimensions(sphere, extra):
    """On the joint sphere 7 (d - 1) - 1 are wanted; 7 (d - 2) would forget that a row may lend its norm to another."""
    problem = problem_of(7, "tanh", sphere)
    arguments = (problem, 10, rate_of(problem, 10, 2.0), 1)
    truth = explicit(*arguments, 100)
    assert min(chains.p_values(reduced(*arguments, 101), truth)) > ALARM
    assert min(chains.p_values(reduced(*arguments, 101, extra=extra), truth)) < ALARM


def test_the_spheres_differ():
    laws = [reduced(problem_of(7, "tanh", sphere), 10, 3.0, 1, 110 + i) for i, sphere in enumerate(SPHERES)]
    assert min(chains.p_values(*laws)) < ALARM


def drawn_row_by_row(problem, dim, rate, batch, rng):
    """The joint sphere with a normal and a chi-square of d - 2 for every row: no use of the rows being one vector."""
    m, nu = (part.T.copy() for part in given_start(problem.length, REPLICAS))
    for _ in range(STEPS):
        along, across, squares = np.zeros_like(m), np.zeros_like(m), np.zeros_like(m)
        for _ in range(batch):
            zstar, h = rng.standard_normal((2, *m.shape))
            c = problem.field_gradient(zstar, m * zstar + nu * h)
            along += c * zstar / batch
            across += c * h / batch
            squares += c * c / batch**2
        delta = rate / dim
        m = m - delta * along
        rest = (nu - delta * across) ** 2 + delta**2 * squares * rng.chisquare(dim - 2, m.shape)
        norm = np.sqrt((m * m + rest).mean(1, keepdims=True))
        m, nu = m / norm, np.sqrt(rest) / norm
    return m.T


def test_one_chi_square_is_enough_on_the_joint_sphere():
    problem = problem_of(7, "tanh", "joint")
    arguments = (problem, 12, rate_of(problem, 12, 1.0), 2)
    law = drawn_row_by_row(*arguments, np.random.default_rng(120))
    assert min(chains.p_values(reduced(*arguments, 121), law)) > ALARM


@pytest.mark.parametrize("engine", [RowsEngine, RowsExplicitEngine])
@pytest.mark.parametrize("sphere", SPHERES)
def test_what_a_sphere_conserves(sphere, engine):
    problem, dim = problem_of(7, "tanh", sphere), 12
    s, nu = random_start(7, dim, 5, np.random.default_rng(1))
    simulation = engine(problem, dim, 20.0, 1, s, nu, 3)
    chains.march(simulation, 5, 200)
    m = simulation.s
    if engine is RowsExplicitEngine:
        squares = (simulation._weights**2).sum(2).T / dim
        outside = squares - m * m
    else:
        outside = simulation._state[7:] ** 2
        squares = m * m + outside if sphere == "rows" else None
    assert (outside > 0.0).all()
    np.testing.assert_allclose((m * m).sum(0) + outside.sum(0), 7.0, rtol=1e-12)
    if sphere == "rows":
        np.testing.assert_allclose(squares, 1.0, rtol=1e-12)
    elif engine is RowsExplicitEngine:
        assert np.abs(squares - 1.0).max() > 0.1, "single rows must be free to grow"


@pytest.mark.parametrize("sphere", SPHERES)
@pytest.mark.parametrize("batch", [1, 3])
def test_one_row_is_the_tied_network(sphere, batch):
    """At L = 1 both chains draw the same numbers for the same things, so they agree to rounding, not only in law."""
    dim, rate = 15, 1.0
    s, nu = random_start(1, dim, WIDTH, np.random.default_rng(4))
    untied = RowsEngine(problem_of(1, "tanh", sphere), dim, rate, batch, s, nu, 5)
    tied = ReducedEngine(sx.Problem(TARGETS[1], sx.TiedNetwork(1, "tanh")), dim, rate, batch, s, nu[0], 5)
    got, wanted = chains.march(untied, WIDTH, 20), chains.march(tied, WIDTH, 20)
    assert np.abs(wanted - s).max() > 0.1
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-10)


# The exactly solvable targets: with uniform rows the untied network is the tied one slowed by L.

DIM = 20_000


def squares(length, rate, start, t):
    """m(t) of the tied relu network with g = sum_l He2(z_l) / sqrt(2)."""
    k = 2.0 / math.sqrt(math.pi)
    growth, saturation = k - rate * (length + 1.0), k * (1.0 - rate)
    limit = growth / saturation
    return np.sqrt(limit / (1.0 + (limit / start**2 - 1.0) * np.exp(-2.0 * growth * t)))


def average(length, rate, start, t):
    """m(t) of the tied relu network with g = L^{-1/2} sum_l z_l."""
    b = 1.0 - 2.0 * rate
    ratio = (1.0 + b * start) / (1.0 - start) * np.exp((1.0 + b) * t)
    return (ratio - 1.0) / (ratio + b)


SOLVABLE = {
    "He2, L = 2": ("sum(He2(z))/sqrt(2)", 2, 0.2, squares),
    "He2, L = 3": ("sum(He2(z))/sqrt(2)", 3, 0.2, squares),
    "mean, L = 5": ("sum(z)/sqrt(L)", 5, 1.5, average),
}


@pytest.mark.parametrize("sphere", SPHERES)
@pytest.mark.parametrize("case", SOLVABLE)
def test_slowed_by_the_length(case, sphere):
    """Means over rows and replicas at three times; 18 comparisons at 4.5 standard errors: one false alarm in 8,000."""
    link, length, rate, solution = SOLVABLE[case]
    problem = problem_of(length, "relu", sphere, sx.Target(link, length))
    times = np.array([0.5, 1.5, 2.5])
    steps = np.rint(times * length * DIM / rate).astype(int)
    runs = sx.sgd(problem, DIM, rate, int(steps[-1]), 64, 5, sx.Start.overlaps(0.3), records=steps)
    m = runs["overlap"].values.mean(-1)
    error = m.std(0, ddof=1) / math.sqrt(len(m))
    assert (error < 4e-3).all()
    # The rows' overlaps differ by the noise, which turns the mean away from the uniform flow; that and the flow's own
    # distance from the chain are of order 1 / d.
    bias = 30.0 / DIM
    assert (np.abs(m.mean(0) - solution(length, rate, 0.3, times)) < 4.5 * error + bias).all()
    assert (np.abs(m.mean(0) - solution(length, rate, 0.3, times * length)) > 4.5 * error + bias).any()


@pytest.mark.parametrize(("sphere", "top"), [("rows", 1.0), ("joint", math.sqrt(5.0))])
def test_one_token_of_five(sphere, top):
    """g = z1: one row learns, and takes all the norm where the rows share it: ||m|| / sqrt(L) is 1, not 1 / sqrt(5)."""
    problem = problem_of(5, "relu", sphere, sx.Target("z1", 5))
    runs = sx.sgd(problem, 1000, 0.05, 400_000, 64, 6, sx.Start.orthogonal(), records=2, progress=False)
    m = runs["overlap"].values[:, -1].mean(0)
    assert m[0] == pytest.approx(top, rel=0.03)
    assert np.abs(m[1:]).max() < 0.02
    assert float(runs.overlap_norm[:, -1].mean()) == pytest.approx(top / math.sqrt(5.0), rel=0.03)


# Through sgd and hitting_time


def quick(sphere="rows", **keywords):
    settings = {"dim": 20, "learning_rate": 1.0, "steps": 60, "replicas": 5, "seed": 0, "records": 4, "progress": False}
    return sx.sgd(problem_of(2, "tanh", sphere), **(settings | keywords))


@pytest.mark.parametrize("sphere", SPHERES)
@pytest.mark.parametrize("engine", ["reduced", "explicit"])
def test_dataset(sphere, engine):
    runs = quick(sphere, engine=engine)
    assert runs.sizes == {"replica": 5, "record": 4, "position": 2}
    assert runs.overlap.dims == ("replica", "record", "position")
    assert runs.position.values.tolist() == [1, 2]
    assert "encoding_overlap" not in runs
    np.testing.assert_allclose(runs.overlap_norm, np.sqrt((runs.overlap**2).sum("position") / 2), rtol=1e-14)
    assert (runs.outcome == Outcome.STEP_LIMIT).all()
    assert (runs.end_step == 60).all()
    problem = sx.Problem.from_attrs(runs.attrs)
    assert problem.student.sphere == sphere
    assert problem.to_attrs() == problem_of(2, "tanh", sphere).to_attrs()


def test_the_explicit_engine_starts_where_the_reduced_one_does():
    first = [quick(engine=engine).overlap.values[:, 0] for engine in ("reduced", "explicit")]
    np.testing.assert_allclose(*first, rtol=0, atol=1e-14)


@pytest.mark.parametrize("sphere", SPHERES)
def test_starts(sphere):
    random = quick(sphere, replicas=3000, steps=1).overlap.values[:, 0]
    expected = np.random.default_rng(0).standard_normal((20, 3000))
    expected = (expected / np.linalg.norm(expected, axis=0))[0]
    for row in random.T:
        assert stats.ks_2samp(row, expected).pvalue > 1e-5
    assert abs(stats.spearmanr(*random.T).statistic) < 4.5 / math.sqrt(3000), "rows must start independently"
    released = 0.3 / math.hypot(0.7, 0.3)
    for start, value in (
        (sx.Start.overlaps(-0.4), -0.4),
        (sx.Start.orthogonal(), 0.0),
        (sx.Start.released(0.3), released),
    ):
        for engine in ("reduced", "explicit"):
            first = quick(sphere, start=start, steps=1, engine=engine).overlap.values[:, 0]
            np.testing.assert_allclose(first, value, rtol=0, atol=1e-14)


def test_numbers_depend_on_seed_and_replica_alone():
    many, few = quick(replicas=150, workers=2), quick(replicas=3, workers=1, records=[0, 7, 20, 40, 60])
    np.testing.assert_array_equal(many.overlap[:3, -1], few.overlap[:, -1])


def test_stop_takes_the_overlaps_of_all_rows():
    stop = sx.Near([(0.4, 0.4)], distance=0.5)
    runs = quick(start=sx.Start.overlaps(0.3), stop=stop)
    assert (runs.outcome == Outcome.CONVERGED).all()
    assert (runs.end_step == 0).all()
    with pytest.raises(ValueError, match=r"^points of stop must have shape \(any, 2\), got \(1, 1\)$"):
        quick(stop=sx.Near([(0.4,)], distance=0.5))


@pytest.mark.parametrize("sphere", SPHERES)
def test_hitting_time_is_the_first_step_above(sphere):
    arguments = {"dim": 20, "learning_rate": 1.0, "steps": 200, "replicas": 70, "seed": 1, "progress": False}
    problem = problem_of(2, "tanh", sphere)
    times = sx.hitting_time(problem, threshold=0.6, **arguments)
    norm = sx.sgd(problem, records=range(201), **arguments).overlap_norm.values
    above = norm >= 0.6
    assert above.any(1).mean() > 0.3
    np.testing.assert_array_equal(times.time, np.where(above.any(1), above.argmax(1), 200))
    np.testing.assert_array_equal(times.outcome == Outcome.CENSORED, ~above.any(1))


@pytest.mark.parametrize("engine", ["reduced", "explicit"])
def test_a_replica_that_breaks_is_nan_from_then_on(engine):
    target = sx.Target("exp(30*z1**2)", length=2)
    runs = quick_of(target, engine)
    broken = runs.outcome == Outcome.DIVERGED
    assert broken.any()
    assert runs.overlap[:, -1].isnull().any("position").where(broken, drop=True).all()
    assert (runs.end_step.where(broken, drop=True) <= 200).all()


def quick_of(target, engine):
    problem = sx.Problem(target, sx.UntiedNetwork(2, "identity"))
    with np.errstate(all="ignore"):
        return sx.sgd(problem, 20, 1.0, 200, replicas=20, records=3, engine=engine, progress=False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sx.UntiedNetwork(2, sphere="row"), ValueError, r"^sphere must be one of 'rows', 'joint', got 'row'"),
        (lambda: sx.UntiedNetwork(0), ValueError, r"^length must be at least 1, got 0$"),
        (lambda: quick(dim=1), ValueError, r"^dim must be at least 2, the rank 1 of span"),
        (lambda: quick(start=sx.Start.overlaps(0.1, 0.2)), ValueError, r"^e must have shape \(0,\), got \(1,\)$"),
        (lambda: quick(engine="exact"), ValueError, r"^engine must be one of 'reduced', 'explicit', got 'exact'"),
        (
            lambda: sx.PopulationRisk(problem_of(2)),
            TypeError,
            r"^student must have one weight vector for all positions here, got UntiedNetwork\(length=2",
        ),
        (
            lambda: sx.Problem(TARGETS[2], sx.TiedNetwork(2)).rows,
            TypeError,
            r"^student must have one weight vector a position here, got TiedNetwork\(length=2",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
