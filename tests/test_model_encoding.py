"""Encodings and frames: norms, orthonormality, and what d-dimensional vectors say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqindex as sx
from seqindex.model.frame import Frame


def test_opposite():
    encoding = sx.OppositeEncoding()
    assert (encoding.length, encoding.directions) == (2, 1)
    np.testing.assert_array_equal(encoding.matrix, [[1.0], [-1.0]])
    np.testing.assert_array_equal(encoding.target_component, [0.0, 0.0])


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_random_rows_are_orthonormal(length, seed):
    matrix = sx.RandomEncoding(length, seed).matrix
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(length), atol=1e-14 * length)
    np.testing.assert_array_equal(matrix, sx.RandomEncoding(length, seed).matrix)


def test_random_orientation_has_no_preferred_sign():
    """Diagonal entries of a Haar matrix have mean 0: without the sign fix they are all of one sign."""
    first = np.array([np.diag(sx.RandomEncoding(3, seed).matrix) for seed in range(400)])
    error = first.std(0) / np.sqrt(len(first))
    assert (np.abs(first.mean(0)) < 5 * error).all()
    raw = np.array([np.diag(np.linalg.qr(np.random.default_rng(s).normal(size=(3, 3)))[0]) for s in range(400)])
    assert (np.abs(raw.mean(0)) > 5 * raw.std(0) / np.sqrt(len(raw))).any()


def test_seeds_differ():
    assert not np.allclose(sx.RandomEncoding(3, 0).matrix, sx.RandomEncoding(3, 1).matrix)


@given(st.integers(1, 30), st.integers(1, 8))
def test_sinusoidal_rows_have_norm_one(length, half):
    matrix = sx.SinusoidalEncoding(length, directions=2 * half).matrix
    assert matrix.shape == (length, 2 * half)
    np.testing.assert_allclose((matrix**2).sum(1), 1.0, rtol=1e-14)


def test_sinusoidal_values():
    matrix = sx.SinusoidalEncoding(3, directions=4.0).matrix
    wanted = np.array([np.sin(2), np.cos(2), np.sin(0.02), np.cos(0.02)]) / np.sqrt(2)
    np.testing.assert_allclose(matrix[2], wanted, rtol=1e-14)


def test_spec_round_trip():
    encoding = sx.Encoding([[1, 0], [0.6, 0.8]], target_component=[0.1, -0.2])
    again = sx.Encoding(**encoding.spec())
    np.testing.assert_array_equal(again.matrix, encoding.matrix)
    np.testing.assert_array_equal(again.target_component, encoding.target_component)
    assert repr(again) == "Encoding(length=2, directions=2)"


def test_encoding_is_immutable():
    matrix = np.ones((2, 1))
    encoding = sx.Encoding(matrix)
    matrix[0, 0] = 5.0
    assert encoding.matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        encoding.matrix[0, 0] = 2.0


def test_messages():
    with pytest.raises(ValueError, match=r"^matrix must have shape \(any, any\), got \(2,\)$"):
        sx.Encoding([1, 2])
    with pytest.raises(ValueError, match=r"^matrix must have at least one row and one column, got shape \(2, 0\)$"):
        sx.Encoding(np.zeros((2, 0)))
    with pytest.raises(ValueError, match=r"^matrix must be finite, got inf in it$"):
        sx.Encoding([[np.inf], [0]])
    with pytest.raises(ValueError, match=r"^target_component must have shape \(2,\), got \(3,\)$"):
        sx.Encoding([[1], [0]], [1, 2, 3])
    with pytest.raises(TypeError, match=r"^matrix must be an array of numbers of shape \(any, any\), got 'opposite'$"):
        sx.Encoding("opposite")
    with pytest.raises(ValueError, match=r"^directions must be even, got 3$"):
        sx.SinusoidalEncoding(4, directions=3)
    with pytest.raises(ValueError, match=r"^directions must be at least 2, got 0$"):
        sx.SinusoidalEncoding(4, directions=0)
    with pytest.raises(ValueError, match=r"^seed must be at least 0, got -1$"):
        sx.RandomEncoding(4, seed=-1)
    for kind in (sx.RandomEncoding, sx.SinusoidalEncoding):
        with pytest.raises(ValueError, match=r"^length must be at least 1, got 0$"):
            kind(0)


def test_frame_of():
    frame = Frame.of(2, sx.Encoding([[1, 0], [0.6, 0.8]], target_component=[0.1, -0.2]))
    np.testing.assert_array_equal(frame.positions, [[0.1, 1.0, 0.0], [-0.2, 0.6, 0.8]])
    assert (frame.rank, frame.directions) == (3, 2)
    empty = Frame.of(4, None)
    assert (empty.rank, empty.directions) == (1, 0)
    np.testing.assert_array_equal(empty.offsets(empty.state(0.7)), np.zeros(4))


def test_frame_agrees_with_vectors_in_d_dimensions():
    """Fields of explicit tokens and weights equal X w + Q s."""
    dim, rng = 40, np.random.default_rng(5)
    encoding = sx.Encoding([[1, 0], [0.6, 0.8], [0, -1]], target_component=[0.1, -0.2, 0.0])
    frame = Frame.of(3, encoding)
    basis = frame.basis(dim, rng)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)
    rows = frame.positions @ basis.T  # P, shape (L, d)
    w = rng.normal(size=dim)
    w *= np.sqrt(dim) / np.linalg.norm(w)
    s = basis.T @ w / np.sqrt(dim)
    np.testing.assert_allclose(frame.offsets(s), rows @ w / np.sqrt(dim), atol=1e-14)
    wstar = np.sqrt(dim) * basis[:, 0]
    assert s[0] == pytest.approx(w @ wstar / dim, abs=1e-14)


def test_offsets_broadcast():
    frame = Frame.of(2, sx.OppositeEncoding())
    np.testing.assert_array_equal(frame.offsets(np.array([[0.1, 0.5], [0.2, -0.5]])), [[0.5, -0.5], [-0.5, 0.5]])


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_state_holds_the_overlaps_or_refuses(m, e):
    frame = Frame.of(2, sx.OppositeEncoding())
    if m * m + e * e <= 1.0:
        for given_e in (e, np.array(e), [e], np.array([e])):
            np.testing.assert_array_equal(frame.state(m, given_e), [m, e])
    elif m * m + e * e > 1.0 + 1e-9:
        with pytest.raises(ValueError, match=r"^m\^2 \+ \|e\|\^2 must be at most 1, got "):
            frame.state(m, e)


def test_state_defaults_to_no_encoding_overlap():
    np.testing.assert_array_equal(Frame.of(3, sx.RandomEncoding(3)).state(0.4), [0.4, 0, 0, 0])


def test_frame_messages():
    frame = Frame.of(2, sx.OppositeEncoding())
    with pytest.raises(ValueError, match=r"^e must have shape \(1,\), got \(2,\)$"):
        frame.state(0.1, [0.1, 0.2])
    with pytest.raises(ValueError, match=r"^m must be in \[-1, 1\], got 1\.5$"):
        frame.state(1.5)
    with pytest.raises(ValueError, match=r"^m must be finite, got nan$"):
        frame.state(np.nan)
    with pytest.raises(TypeError, match=r"^e must be an array of numbers of shape \(1,\), got 'abc'$"):
        frame.state(0.1, "abc")
    with pytest.raises(ValueError, match=r"^e must be finite, got nan in it$"):
        frame.state(0.1, np.nan)
    with pytest.raises(ValueError, match=r"^dim must be at least 2, got 1$"):
        frame.basis(1, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"^s must have shape \(\.\.\., 2\), got \(3,\)$"):
        frame.offsets(np.zeros(3))
    with pytest.raises(ValueError, match=r"^positions must have at least one row and one column, got shape \(2, 0\)$"):
        Frame(np.zeros((2, 0)))
