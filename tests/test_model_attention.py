"""Attention in NumPy: values, Jacobian, stability, messages."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import seqindex as sx
from seqindex.model.attention import SCORES
from seqindex.model.reduction import REDUCTIONS, as_reduction, from_spec
from seqindex.model.softmax import attention_matrix

FIELDS = st.sampled_from([0.0, 60.0, -60.0, 1.0, -0.5, 1e-3, 1e-300])


def softmax_by_definition(z):
    scores = np.exp(np.outer(z, z))
    return scores / scores.sum(1, keepdims=True)


def test_values():
    z = np.random.default_rng(0).normal(size=(7, 3))
    s = np.array([softmax_by_definition(row) for row in z])
    np.testing.assert_allclose(sx.Attention(3)(z), s.reshape(7, 9), rtol=1e-14)
    trace = np.trace(s, axis1=1, axis2=2)[:, None]
    np.testing.assert_allclose(sx.Attention(3, reduction="plain_trace")(z), trace, rtol=1e-14)
    np.testing.assert_allclose(sx.Attention(3, reduction="trace")(z), trace / np.sqrt(3), rtol=1e-14)
    left, right = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.0, 1.0])
    projected = np.einsum("i,nij,j->n", left, s, right)[:, None]
    np.testing.assert_allclose(sx.Attention(3, reduction=sx.Projection(left, right))(z), projected, rtol=1e-13)
    linear = np.einsum("ni,nj->nij", z, z).reshape(7, 9)
    np.testing.assert_allclose(sx.Attention(3, scores="linear")(z), linear, rtol=1e-15)


def test_length_two_closed_form():
    z1, z2 = np.random.default_rng(1).normal(size=(2, 50))
    s = sx.Attention(2)(np.stack([z1, z2], -1))
    np.testing.assert_allclose(s[:, 0], 1 / (1 + np.exp(-z1 * (z1 - z2))), rtol=1e-13)
    np.testing.assert_allclose(s[:, 3], 1 / (1 + np.exp(-z2 * (z2 - z1))), rtol=1e-13)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (4, 5)])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_shapes(reduction, shape):
    student = sx.Attention(3, reduction=reduction)
    z, r = np.ones((*shape, 3)), np.ones((*shape, student.outputs))
    assert student(z).shape == (*shape, student.outputs)
    assert student.pull_back(z, r).shape == (*shape, 3)
    assert student.jacobian(z).shape == (*shape, student.outputs, 3)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("scores", SCORES)
def test_jacobian_against_finite_differences(scores, reduction, length):
    """Central differences: the error falls as the square of the step, until rounding."""
    student = sx.Attention(length, reduction=reduction, scores=scores)
    z = np.random.default_rng(length).normal(size=(6, length))
    jacobian = student.jacobian(z)
    steps = np.array([4e-2, 2e-2, 1e-2])
    errors = []
    for h in steps:
        shifts = h * np.eye(length)
        ahead, behind = student(z[:, None] + shifts), student(z[:, None] - shifts)
        errors.append(np.abs(np.swapaxes((ahead - behind) / (2 * h), -1, -2) - jacobian).max())
    if max(errors) < 1e-12:  # polynomials of degree two, and length one, where the rows are constant
        return
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1)
    assert errors[-1] < 1e-2 * np.abs(jacobian).max()


@settings(max_examples=60)
@given(z=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=FIELDS), single=st.booleans())
def test_large_fields(z, single):
    """A field of 60 makes scores of 3600; each row is normalised by its own maximum."""
    z = z.astype(np.float32) if single else z
    student = sx.Attention(z.shape[1])
    s = attention_matrix(z)
    assert s.dtype == z.dtype
    assert student(z).dtype == z.dtype
    np.testing.assert_allclose(s.sum(-1), 1.0, rtol=1e-6 if single else 1e-14)
    gradient = student.pull_back(z, np.ones((len(z), student.outputs), z.dtype))
    assert gradient.dtype == z.dtype
    assert np.isfinite(gradient).all()
    assert np.isfinite(student.jacobian(z)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("scores", SCORES)
def test_precision_follows_the_fields(scores, reduction, dtype):
    student = sx.Attention(2, reduction=reduction, scores=scores)
    z = np.array([[60, 0], [1, -2]], dtype)
    wanted = np.float64 if dtype is np.int64 else dtype
    assert student(z).dtype == student.jacobian(z).dtype == wanted
    np.testing.assert_allclose(student(z), student(z.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("length", [2, 3])
def test_attention_is_even_and_equivariant(length):
    z = np.random.default_rng(3).normal(size=(9, length))
    np.testing.assert_array_equal(attention_matrix(-z), attention_matrix(z))
    order = np.roll(np.arange(length), 1)
    np.testing.assert_allclose(attention_matrix(z[:, order]), attention_matrix(z)[:, order][:, :, order], rtol=1e-14)


@pytest.mark.parametrize("reduction", [*REDUCTIONS, sx.Projection([1, 2], [0, 1]), sx.Reduction(np.ones((2, 2, 2)))])
@pytest.mark.parametrize("encoding", [None, sx.OppositeEncoding(), sx.Encoding([[1, 0.5], [0, 2]], [0.1, -0.1])])
def test_spec_round_trip(reduction, encoding):
    student = sx.Attention(2, encoding=encoding, reduction=reduction, scores="linear")
    again = sx.Attention.from_spec(json.loads(json.dumps(student.spec())))
    assert again.spec() == student.spec()
    z = np.array([0.4, -1.2])
    np.testing.assert_array_equal(again(z), student(z))
    np.testing.assert_array_equal(again.frame.positions, student.frame.positions)


def test_messages():
    with pytest.raises(ValueError, match=r"^length must be at least 1, got 0$"):
        sx.Attention(0)
    with pytest.raises(TypeError, match=r"^length must be an integer, got 2\.5$"):
        sx.Attention(2.5)
    with pytest.raises(
        TypeError, match=r"^encoding must be an Encoding such as OppositeEncoding\(\), or None, got 'opp"
    ):
        sx.Attention(2, "opposite")
    with pytest.raises(ValueError, match=r"^encoding must have length 3 as the student, got 2$"):
        sx.Attention(3, sx.OppositeEncoding())
    with pytest.raises(
        ValueError, match=r"^reduction must be one of .*'identity'.*, got 'tarce'; did you mean 'trace'\?$"
    ):
        sx.Attention(2, reduction="tarce")
    with pytest.raises(ValueError, match=r"^scores must be one of 'softmax', 'linear', got 'relu'$"):
        sx.Attention(2, scores="relu")
    with pytest.raises(ValueError, match=r"^coefficients must have shape \(any, 2, 2\), got \(1, 3, 3\)$"):
        sx.Attention(2, reduction=sx.Reduction(np.ones((1, 3, 3))))
    with pytest.raises(ValueError, match=r"^z must have shape \(\.\.\., 2\), got \(3,\)$"):
        sx.Attention(2)(np.zeros(3))
    with pytest.raises(ValueError, match=r"^r must have shape \(\.\.\., 4\), got \(1,\)$"):
        sx.Attention(2).pull_back(np.zeros(2), np.zeros(1))


def test_reduction_messages():
    with pytest.raises(ValueError, match=r"^coefficients must have shape \(k, L, L\), got \(1, 2, 3\)$"):
        sx.Reduction(np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match=r"^coefficients must have shape \(k, L, L\), got \(0, 2, 2\)$"):
        sx.Reduction(np.ones((0, 2, 2)))
    with pytest.raises(ValueError, match=r"^a_right must have shape \(2,\), got \(3,\)$"):
        sx.Projection([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match=r"^reduction must be one of "):
        as_reduction(None)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("length", [1, 4])
def test_every_reduction(name, length):
    reduction = as_reduction(name)
    coefficients = reduction.coefficients(length)
    assert coefficients.shape[1:] == (length, length)
    assert reduction.spec() == {"name": name}
    np.testing.assert_array_equal(from_spec(reduction.spec()).coefficients(length), coefficients)


def test_repr():
    assert repr(sx.Attention(2, sx.OppositeEncoding(), "trace")) == (
        "Attention(length=2, encoding=OppositeEncoding(length=2, directions=1), reduction='trace', scores='softmax')"
    )
