"""Explicit SGD against plain NumPy: one step from the same tokens, and the law of SGD written from its definition."""

import math

import numpy as np
import pytest
from scipy.special import softmax

import chains
import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.sgd.explicit import ExplicitEngine
from seqindex.sgd.random import fill_normals

ALARM = 1e-5  # false alarms a statistic


def engine_of(problem, dim, rate=1.0, batch=1, replicas=5, seed=0):
    s, nu = chains.starts(problem, dim, replicas, np.random.default_rng(seed))
    return ExplicitEngine(problem, dim, rate, batch, s, nu, seed), s, nu


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dim", [4, 64, 65, 150])
@pytest.mark.parametrize("loss", ["square", "norm"])
def test_one_step_from_the_same_tokens(dim, batch, loss):
    encoding = sx.Encoding([[1.0, 0.2], [0.6, 0.8], [0.0, -1.0]], [0.3, -0.5, 0.7])
    problem = chains.positional_semantic(3, encoding, loss)
    rate = 2.0
    engine, _, _ = engine_of(problem, dim, rate, batch)
    basis = engine._basis
    positions = problem.frame.positions @ basis.T
    target = math.sqrt(dim) * basis[:, 0]
    padded = engine._weights.shape[1]
    wanted = []
    for weight, words in zip(engine._weights.copy(), engine._words.copy(), strict=True):
        w = weight[:dim]
        gradient = np.zeros(dim)
        for _ in range(batch):
            rows = 3 * padded // WIDTH
            raw = np.empty((rows + rows % 2, WIDTH))
            fill_normals(words, raw)
            x = raw.ravel()[: 3 * padded].reshape(3, padded)[:, :dim] / math.sqrt(dim)  # tokens N(0, I/d)
            inputs = x + positions / math.sqrt(dim)
            gradient += inputs.T @ problem.field_gradient(x @ target, inputs @ w) / batch
        moved = w - rate * gradient
        wanted.append(math.sqrt(dim) * moved / np.linalg.norm(moved))
    engine.advance(np.arange(5), 0, 1)
    np.testing.assert_allclose(engine._weights[:, :dim], wanted, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(engine._weights[:, dim:], 0.0)


def plain_sgd(dim, rate, batch, steps, replicas, start, loss, rng, omega=0.6):
    """The paper's SGD for opposite encodings, the gradient by central differences of the loss in every coordinate."""
    alignment = np.eye(2) * 0.5 + 0.25
    w_star = np.zeros(dim)
    w_star[0] = math.sqrt(dim)
    p = np.zeros((2, dim))
    p[:, 1] = 1.0, -1.0
    w = np.zeros((replicas, dim))
    outside = rng.standard_normal((replicas, dim - 2))
    w[:, :2] = start
    w[:, 2:] = math.sqrt(1 - np.dot(start, start)) * outside / np.linalg.norm(outside, axis=1, keepdims=True)
    w *= math.sqrt(dim)

    def attention(z):
        return softmax(z[:, :, None] * z[:, None, :], axis=2)

    def losses(x, y, weights):
        z = ((x + p / math.sqrt(dim)) * weights[:, None, :]).sum(2)
        square = ((attention(z) - y) ** 2).sum((1, 2))
        return square if loss == "square" else np.sqrt(square)

    for _ in range(steps):
        gradient = np.zeros_like(w)
        for _ in range(batch):
            x = rng.standard_normal((replicas, 2, dim)) / math.sqrt(dim)
            y = (1 - omega) * attention(x @ w_star) + omega * alignment
            for j, shift in enumerate(1e-5 * np.eye(dim)):
                gradient[:, j] += (losses(x, y, w + shift) - losses(x, y, w - shift)) / (2e-5 * batch)
        w = w - rate * gradient
        w *= math.sqrt(dim) / np.linalg.norm(w, axis=1, keepdims=True)
    return w[:, :2].T / math.sqrt(dim)


@pytest.mark.parametrize(("loss", "batch", "dim"), [("square", 1, 8), ("norm", 1, 3), ("square", 3, 5)])
def test_law_of_sgd_from_its_definition(loss, batch, dim):
    problem = chains.positional_semantic(2, sx.OppositeEncoding(), loss)
    start = [0.3, 0.4]
    rate = chains.rate_of(problem, dim, 0.5, start)
    arguments = (dim, rate, batch, 8, 8000, start)
    wanted = plain_sgd(*arguments, loss, np.random.default_rng(dim))
    assert min(chains.p_values(chains.explicit(problem, *arguments[:-1], 1, start), wanted)) > ALARM
    assert min(chains.p_values(chains.reduced(problem, *arguments[:-1], 2, start), wanted)) > ALARM
    slower = chains.explicit(problem, dim, 0.8 * rate, *arguments[2:-1], 3, start)
    assert min(chains.p_values(slower, wanted)) < ALARM, "a rate 20 % off must show"


def test_starts_are_those_of_the_reduced_chain():
    problem = chains.positional_semantic(2, sx.Encoding([[1.0, 0.0], [0.6, 0.8]], [0.1, 0.2]))
    engine, s, nu = engine_of(problem, 70, replicas=100)
    np.testing.assert_allclose(engine.s, s, rtol=0, atol=1e-13)
    np.testing.assert_allclose((engine._weights**2).sum(1), 70.0, rtol=1e-13)
    v = engine._weights[:, :70].T / math.sqrt(70) - engine._basis @ s
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), nu, rtol=0, atol=1e-13)
    others = (v / nu).T @ (v / nu) - np.eye(100)
    assert np.abs(others).max() < 6.0 / math.sqrt(67), "students share no component outside the frame"


def test_a_block_that_is_not_full_calls_the_target_with_real_fields_only():
    seen = []

    def link(z):
        seen.append(float(np.abs(z).min()))
        return {"y": z[..., 0]}["y"]  # a dictionary of this kind does not compile, so the link runs through NumPy

    target = sx.Target(link, 2)
    with pytest.warns(RuntimeWarning, match="runs through NumPy"):
        engine, _, _ = engine_of(sx.Problem(target, sx.Attention(2, reduction="trace")), 20, replicas=3)
    seen.clear()
    engine.advance(np.arange(3), 0, 5)
    assert len(seen) == 5
    assert min(seen) > 0.0


def test_poison_in_the_weights_is_seen():
    problem = chains.positional_semantic(2, sx.OppositeEncoding())
    engine, _, _ = engine_of(problem, 30)
    engine.advance(np.arange(5), 0, 4)
    engine._weights[2, 7] = np.nan
    assert engine.advance(np.arange(5), 4, 3).tolist() == [-1, -1, 5, -1, -1]
