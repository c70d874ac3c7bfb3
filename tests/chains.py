"""Plain twins of the two engines and the means to compare laws, for the tests of ``seqindex.sgd``."""

import math

import numpy as np
from scipy import stats

import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.sgd.explicit import ExplicitEngine
from seqindex.sgd.random import fill_chi_square, fill_normals
from seqindex.sgd.reduced import ReducedEngine

DEGREES = 12
"""Place of the degrees of freedom among a reduced engine's constants."""


def link(z):
    """One label, neither even nor odd."""
    return np.tanh(z[..., 0] * z[..., 1]) + 0.5 * z[..., -1]


def march(engine, replicas, steps):
    """All steps of all replicas, block by block."""
    for begin in range(0, replicas, WIDTH):
        diverged = engine.advance(np.arange(begin, min(begin + WIDTH, replicas)), 0, steps)
        assert (diverged == -1).all()
    return engine.s


def statistics(s):
    """What is compared: each coordinate of the state and the radius."""
    return [*s, (s**2).sum(0)]


def p_values(a, b):
    return [stats.ks_2samp(x, y).pvalue for x, y in zip(statistics(a), statistics(b), strict=True)]


def unit_vectors(rng, dim, replicas):
    v = rng.standard_normal((dim, replicas))
    return v / np.linalg.norm(v, axis=0)


def starts(problem, dim, replicas, rng, state=None):
    """(s, nu): the same given ``state`` for all, or uniform on the sphere."""
    rank = problem.frame.rank
    if state is None:
        v = unit_vectors(rng, dim, replicas)
        return v[:rank].copy(), np.linalg.norm(v[rank:], axis=0)
    s = np.repeat(np.asarray(state, dtype=float)[:, None], replicas, axis=1)
    return s, np.sqrt(1.0 - (s**2).sum(0))


def reduced(problem, dim, rate, batch, steps, replicas, seed, state=None, degrees=None):
    """States after ``steps`` of the reduced chain; ``degrees`` puts in wrong degrees of freedom."""
    s, nu = starts(problem, dim, replicas, np.random.default_rng([seed, 1]), state)
    engine = ReducedEngine(problem, dim, rate, batch, s, nu, seed)
    if degrees is not None:
        constants = list(engine._constants)
        constants[DEGREES] = float(degrees)
        engine._constants = tuple(constants)
    return march(engine, replicas, steps)


def explicit(problem, dim, rate, batch, steps, replicas, seed, state=None):
    """States after ``steps`` of explicit SGD, its students and generators filled in bulk."""
    rng = np.random.default_rng([seed, 2])
    s, nu = starts(problem, dim, replicas, rng, state)
    engine = ExplicitEngine(problem, dim, rate, batch, s[:, :1], nu[:1], seed)
    basis = engine._basis
    v = rng.standard_normal((dim, replicas))
    v -= basis @ (basis.T @ v)
    v /= np.linalg.norm(v, axis=0)
    engine._weights = np.zeros((replicas, engine._weights.shape[1]))
    engine._weights[:, :dim] = math.sqrt(dim) * (basis @ s + nu * v).T
    engine._words = rng.integers(0, 2**64, size=(replicas, 4, WIDTH), dtype=np.uint64)
    return march(engine, replicas, steps)


def drawn_in_full(problem, dim, rate, batch, steps, s, nu, rng):
    """The reduced chain with all of G (L x R) and h drawn: z = (G + Q) s + nu h, gradient part (G + Q)^T c and h.c."""
    positions, length, rank = problem.frame.positions, problem.length, problem.frame.rank
    s, nu = s.T.copy(), nu.copy()
    delta = rate / dim
    for _ in range(steps):
        along, across, squares = np.zeros_like(s), np.zeros_like(nu), np.zeros_like(nu)
        for _ in range(batch):
            g = rng.standard_normal((len(nu), length, rank))
            h = rng.standard_normal((len(nu), length))
            z = (g * s[:, None, :]).sum(-1) + problem.frame.offsets(s) + nu[:, None] * h
            c = problem.field_gradient(g[:, :, 0], z)
            along += ((g + positions) * c[:, :, None]).sum(1) / batch
            across += (h * c).sum(1) / batch
            squares += (c * c).sum(1) / batch**2
        chi = rng.chisquare(dim - rank - 1, len(nu)) if dim > rank + 1 else 0.0
        s = s - delta * along
        outside = (nu - delta * across) ** 2 + delta**2 * squares * chi
        norm = np.sqrt((s**2).sum(1) + outside)
        s, nu = s / norm[:, None], np.sqrt(outside) / norm
    return s.T


def one_step_with_the_same_noise(problem, dim, rate, batch, s, nu, words):
    """One step of at most WIDTH replicas from the numbers that the kernel draws; the geometry in matrices."""
    length, rank = problem.length, problem.frame.rank
    mixing = problem.student.combinations
    count = len(mixing)
    words = words.copy()
    samples = []
    for _ in range(batch):
        normals = np.empty((length + count + (length + count) % 2, WIDTH))
        fill_normals(words, normals)
        samples.append((normals[:length], normals[length : length + count]))
    final = np.empty((rank + rank % 2, WIDTH))
    fill_normals(words, final)
    chi = np.empty(WIDTH)
    fill_chi_square(words, float(dim - rank - 1), final[rank - 1].copy(), chi)
    delta = rate / dim
    new_s, new_nu = np.empty_like(s), np.empty_like(nu)
    for i in range(len(nu)):
        outside = np.concatenate([[nu[i]], s[1:, i]])
        q = np.linalg.norm(outside)
        u = outside / q if q > 0 else np.eye(rank)[0]
        mirror = np.eye(rank)[0] + u
        reflection = np.eye(rank) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror)
        target_part, pull, shift, square = 0.0, 0.0, np.zeros(rank), 0.0
        for g, k in samples:
            # Any k with V k = the normals drawn will do.
            z = s[0, i] * g[:, i] + q * mixing.T @ k[:, i] + problem.frame.offsets(s[:, i])
            c = problem.field_gradient(g[:, i], z)
            target_part += g[:, i] @ c / batch
            pull += k[:, i] @ mixing @ c / batch
            shift += problem.frame.positions.T @ c / batch
            square += c @ c / batch**2
        eta = np.concatenate([[0.0], final[: rank - 1, i]])
        parts = u * pull + math.sqrt(square) * (reflection @ eta)
        moved = s[:, i] - delta * (np.concatenate([[target_part], parts[1:]]) + shift)
        rest = (nu[i] - delta * parts[0]) ** 2 + delta**2 * square * chi[i]
        norm = math.sqrt(moved @ moved + rest)
        new_s[:, i], new_nu[i] = moved / norm, math.sqrt(rest) / norm
    return new_s, new_nu


def rate_of(problem, dim, kick, state=None):
    """Learning rate at which the gradient moves w/sqrt(d) by about ``kick`` a step."""
    rng = np.random.default_rng(0)
    s = np.zeros(problem.frame.rank) if state is None else np.asarray(state, dtype=float)
    zstar, k = rng.standard_normal((2, 4000, problem.length))
    z = s[0] * zstar + math.sqrt(1.0 - s[0] ** 2) * k + problem.frame.offsets(s)
    c = problem.field_gradient(zstar, z)
    squares = (c * c).sum(1)
    return kick * math.sqrt(dim) / float(np.sqrt(np.median(squares[squares > 0.0])))  # relu leaves w in half of all


def positional_semantic(length, encoding=None, loss="square", omega=0.6, **keywords):
    """A whole attention matrix, compared with the positional-semantic target."""
    alignment = np.eye(length) * 0.5 + 0.5 / length
    target = sx.PositionalSemanticTarget(omega, alignment_matrix=alignment)
    return sx.Problem(target, sx.Attention(length, encoding, **keywords), loss)


ONE_LABEL = {length: sx.Target(link, length) for length in (2, 3, 5)}
"""Targets of one label, compiled once."""


def one_label(length, encoding, loss, reduction, scores="softmax"):
    return sx.Problem(ONE_LABEL[length], sx.Attention(length, encoding, reduction, scores), loss)


def tied(length, activation, weights=None, encoding=None, loss="square"):
    target = sx.Target(f"tanh(z1*z{min(2, length)}) + 0.5*z{length}", length)
    return sx.Problem(target, sx.TiedNetwork(length, activation, weights, encoding), loss)
