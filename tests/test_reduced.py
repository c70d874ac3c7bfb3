"""The reduced chain against plain twins: equal to rounding from the same noise, equal in law from another algorithm."""

import numpy as np
import pytest

import chains
import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.sgd.reduced import ReducedEngine

SKEWED = sx.Encoding([[1.0, 0.0], [0.6, 0.8]])
TILTED = sx.Encoding([[1.0, 0.0], [0.5, -0.7], [0.0, 0.4], [-0.3, 0.2], [0.9, 0.9]], [0.3, -0.4, 0.0, 0.2, 0.6])

CASES = {
    "no encoding": (chains.positional_semantic(2), 2),
    "opposite": (chains.positional_semantic(2, sx.OppositeEncoding()), 40),
    "norm": (chains.positional_semantic(2, sx.OppositeEncoding(), "norm"), 3),
    "skewed trace": (chains.one_label(2, SKEWED, "square", "trace"), 7),
    "tilted": (chains.positional_semantic(5, TILTED, "norm"), 4),
    "linear": (chains.one_label(3, sx.RandomEncoding(3), "square", "plain_trace", "linear"), 30),
    "projection": (chains.one_label(2, SKEWED, "norm", sx.Projection([1, 2], [3, -1])), 10**9),
    "tied": (chains.tied(7, "relu"), 5),
    "tied, weights, encoding": (chains.tied(2, "tanh", [1.5, -0.4], SKEWED), 6),
    "tied, length 1": (chains.tied(1, "relu", [-2.0], sx.InjectedEncoding([0.3])), 10**6),
    "length 1": (sx.Problem(sx.Target(lambda z: z[..., 0] ** 2, 1), sx.Attention(1, scores="linear")), 9),
}


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("case", CASES)
def test_one_step_from_the_same_noise(case, batch):
    problem, dim = CASES[case]
    rng = np.random.default_rng(0)
    s, nu = chains.starts(problem, max(dim, 8) if dim < 10**6 else 100, WIDTH, rng)
    for column, state in enumerate(np.eye(problem.frame.rank)):  # poles: nu = 0, and q = 0 for the first
        s[:, column], nu[column] = state, 0.0
    s[:, 10], nu[10] = 0.0, 1.0
    rate = chains.rate_of(problem, dim, 0.7)
    engine = ReducedEngine(problem, dim, rate, batch, s, nu, seed=3)
    wanted_s, wanted_nu = chains.one_step_with_the_same_noise(problem, dim, rate, batch, s, nu, engine._words)
    engine.advance(np.arange(WIDTH), 0, 1)
    np.testing.assert_allclose(engine.s, wanted_s, rtol=0, atol=2e-12)
    np.testing.assert_allclose(engine._nu, wanted_nu, rtol=0, atol=2e-12)


@pytest.mark.parametrize("case", ["opposite", "norm", "skewed trace", "tilted", "linear", "tied, weights, encoding"])
def test_law_of_the_chain_drawn_in_full(case):
    """False alarms: 1e-5 a statistic."""
    problem, dim = CASES[case]
    state = [0.3, 0.4, *[0.2] * (problem.frame.rank - 2)]
    replicas, steps, batch = 10_000, 8, 2
    rate = chains.rate_of(problem, dim, 0.6, state)
    s, nu = chains.starts(problem, dim, replicas, np.random.default_rng(1), state)
    wanted = chains.drawn_in_full(problem, dim, rate, batch, steps, s, nu, np.random.default_rng(2))
    got = chains.reduced(problem, dim, rate, batch, steps, replicas, 3, state)
    assert min(chains.p_values(got, wanted)) > 1e-5
    wrong = chains.reduced(problem, dim, rate, batch, steps, replicas, 4, state, degrees=dim - problem.frame.rank + 4)
    if dim < 10:
        assert min(chains.p_values(wrong, wanted)) < 1e-5


def test_states_stay_on_the_sphere():
    problem = CASES["tilted"][0]
    s, nu = chains.starts(problem, 50, WIDTH, np.random.default_rng(0))
    engine = ReducedEngine(problem, 50, 3.0, 2, s, nu, seed=0)
    engine.advance(np.arange(WIDTH), 0, 20_000)
    np.testing.assert_allclose((engine.s**2).sum(0) + engine._nu**2, 1.0, rtol=0, atol=1e-14)
    assert (engine._nu >= 0).all()


@pytest.mark.parametrize("where", ["s", "nu"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_poison_in_the_state_is_seen(where, poison):
    problem = CASES["opposite"][0]
    s, nu = chains.starts(problem, 50, WIDTH, np.random.default_rng(0))
    clean = ReducedEngine(problem, 50, 1.0, 1, s, nu, seed=0)
    clean.advance(np.arange(WIDTH), 0, 7)
    engine = ReducedEngine(problem, 50, 1.0, 1, s, nu, seed=0)
    engine.advance(np.arange(WIDTH), 0, 4)
    if where == "s":
        engine.s[1, 5] = poison
    else:
        engine._nu[5] = poison
    diverged = engine.advance(np.arange(WIDTH), 4, 3)
    assert diverged[5] == 5
    others = np.arange(WIDTH) != 5
    assert (diverged[others] == -1).all()
    np.testing.assert_array_equal(engine.s[:, others], clean.s[:, others])


def test_a_perfect_student_of_noiseless_labels_stays():
    """m = 1 exactly, nu = 0: z = z*, no gradient, nothing moves."""
    problem = sx.Problem(sx.PositionalSemanticTarget(0.0, alignment=1.0), sx.Attention(2))
    engine = ReducedEngine(problem, 10, 5.0, 1, np.ones((1, 3)), np.zeros(3), seed=0)
    assert (engine.advance(np.arange(3), 0, 1000) == -1).all()
    np.testing.assert_allclose(engine.s, 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(engine._nu, 0.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", [None, sx.OppositeEncoding()], ids=["rank 1", "rank 2"])
def test_the_neighbourhood_of_the_pole(case):
    """q of every power of ten down to zero: each step stays finite and small."""
    problem = sx.Problem(sx.PositionalSemanticTarget(0.0, alignment=1.0), sx.Attention(2, case))
    nu = np.concatenate([10.0 ** -np.arange(5.0, 325.0, 5.1), [0.0]])[:WIDTH]
    s = np.zeros((problem.frame.rank, len(nu)))
    s[0] = 1.0
    s[1:] = -0.5 * nu
    engine = ReducedEngine(problem, 10, 0.5, 1, s, nu, seed=0)
    assert (engine.advance(np.arange(len(nu)), 0, 1) == -1).all()
    assert np.isfinite(engine.s).all()
    outside = np.concatenate([engine._nu[None], engine.s[1:]])
    assert (np.abs(outside) <= 30.0 * nu + 1e-15).all()


def test_noiseless_labels_are_learned_to_rounding():
    problem = sx.Problem(sx.PositionalSemanticTarget(0.0, alignment=1.0), sx.Attention(2))
    s, nu = chains.starts(problem, 10, WIDTH, np.random.default_rng(0), [0.9])
    engine = ReducedEngine(problem, 10, 0.5, 1, s, nu, seed=0)
    assert (engine.advance(np.arange(WIDTH), 0, 20_000) == -1).all()
    np.testing.assert_allclose(np.abs(engine.s[0]), 1.0, rtol=0, atol=1e-14)
    assert np.median(engine._nu) < 1e-15
