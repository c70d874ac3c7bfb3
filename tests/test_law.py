"""Reduced and explicit SGD agree in law; wrong chains are told apart by the same test.

Two-sample Kolmogorov-Smirnov on each coordinate of the state and on the radius, 20,000 replicas each, fixed seeds.
False alarms: 1e-4 over all checks together.
"""

import itertools

import numpy as np
import pytest

import chains
import seqindex as sx

REPLICAS = 20_000
STEPS = 12

ENCODINGS = {
    ("orthogonal", 2): sx.OppositeEncoding(),
    ("orthogonal", 5): sx.Encoding(np.array([[1.0], [-1.0], [1.0], [-1.0], [0.5]])),
    ("skewed", 2): sx.Encoding([[1.0, 0.0], [0.6, 0.8]]),
    ("skewed", 5): sx.SinusoidalEncoding(5, directions=2),
    ("tilted", 2): sx.Encoding([[1.0, 0.0], [0.5, -0.7]], [0.5, -0.4]),  # span(w*, P) of rank 3, P not orthogonal to w*
    ("tilted", 5): sx.Encoding([[1, 0], [0.5, -0.7], [0, 0.4], [-0.3, 0.2], [0.9, 0.9]], [0.3, -0.4, 0.0, 0.2, 0.6]),
}
# (reduction, scores) and the number of dimensions above the smallest, one after the other over the cases.
STUDENTS = [
    ("identity", "softmax"),
    ("trace", "softmax"),
    ("identity", "linear"),
    ("projection", "softmax"),
    ("plain_trace", "linear"),
]
SPARE = [0, 1, 9, 17, 50]


def problem_of(encoding, length, loss, reduction, scores):
    if reduction == "identity":
        return chains.positional_semantic(length, encoding, loss, scores=scores)
    if reduction == "projection":
        reduction = sx.Projection(np.arange(1.0, length + 1), np.cos(np.arange(length)))
    return chains.one_label(length, encoding, loss, reduction, scores)


def cases():
    product = itertools.product(["orthogonal", "skewed", "tilted"], [2, 5], ["square", "norm"], [1, 4])
    for number, (encoding, length, loss, batch) in enumerate(product):
        reduction, scores = STUDENTS[number % len(STUDENTS)]
        problem = problem_of(ENCODINGS[encoding, length], length, loss, reduction, scores)
        dim = problem.frame.rank + 1 + SPARE[(number + number // 5) % len(SPARE)]
        yield pytest.param(
            problem, dim, batch, number, id=f"{encoding}-{length}-{loss}-{batch}-{reduction}-{scores}-d{dim}"
        )
    plain = chains.positional_semantic(2)
    for number, dim in enumerate((2, 3, 60), start=24):  # no encoding: the frame is w* alone
        yield pytest.param(plain, dim, 1, number, id=f"none-2-square-1-identity-softmax-d{dim}")


CASES = list(cases())
CHECKS = sum(case.values[0].frame.rank + 1 for case in CASES)
ALARM = 1e-4 / CHECKS


def start_of(problem, number):
    """Every third case starts uniformly on the sphere, the others at one state."""
    return None if number % 3 == 0 else [0.3, 0.4, -0.2][: problem.frame.rank]


@pytest.mark.parametrize(("problem", "dim", "batch", "number"), CASES)
def test_reduced_and_explicit_agree(problem, dim, batch, number):
    state = start_of(problem, number)
    arguments = (problem, dim, chains.rate_of(problem, dim, 0.4, state), batch, STEPS, REPLICAS)
    truth = chains.explicit(*arguments, 2 * number, state)
    assert truth[0].std() > 0.1, "the states must have spread"
    got = chains.reduced(*arguments, 2 * number + 1, state)
    assert min(chains.p_values(got, truth)) > ALARM
    degrees = dim - problem.frame.rank - 1
    if degrees > 0:
        without = chains.reduced(*arguments, 2 * number + 1, state, degrees=0)
        assert min(chains.p_values(without, truth)) < ALARM, "the chi-square must matter"
    if degrees < 2:
        wrong = chains.reduced(*arguments, 2 * number + 1, state, degrees=degrees + 1)
        assert min(chains.p_values(wrong, truth)) < ALARM, "one degree of freedom too many must show"


@pytest.mark.parametrize("loss", ["square", "norm"])
@pytest.mark.parametrize("dim", [10, 12])
def test_one_degree_too_many_shows_at_ten_dimensions(dim, loss):
    problem = chains.positional_semantic(2, sx.OppositeEncoding(), loss)
    state = [0.6, 0.4]
    arguments = (problem, dim, chains.rate_of(problem, dim, 1.0, state), 1, 10, 3 * REPLICAS)
    truth = chains.explicit(*arguments, dim, state)
    assert min(chains.p_values(chains.reduced(*arguments, dim + 1, state), truth)) > ALARM
    wrong = chains.reduced(*arguments, dim + 1, state, degrees=dim - 2)
    assert min(chains.p_values(wrong, truth)) < ALARM
