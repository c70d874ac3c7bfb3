"""Losses: values, gradients, and the residual that has no direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seqindex.model.loss import LOSSES

PARTS = st.floats(-1e3, 1e3).filter(lambda x: x == 0.0 or abs(x) > 1e-3)


def test_values():
    residual = np.array([[3.0, 4.0], [0.0, -2.0]])
    np.testing.assert_array_equal(LOSSES["square"].value(residual), [25.0, 4.0])
    np.testing.assert_array_equal(LOSSES["norm"].value(residual), [5.0, 2.0])


@pytest.mark.parametrize("name", LOSSES)
def test_name(name):
    assert LOSSES[name].name == name


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@given(residual=arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 4)), elements=PARTS))
def test_gradient_against_finite_differences(loss, residual):
    value = loss.value(residual)
    assert value.shape == residual.shape[:-1]
    assert (value >= 0).all()
    gradient = loss.gradient(residual)
    assert gradient.shape == residual.shape
    smooth = value > 0
    shifts = 1e-5 * np.maximum(1e-1, np.abs(residual).max()) * np.eye(residual.shape[1])
    ahead, behind = loss.value(residual[:, None] + shifts), loss.value(residual[:, None] - shifts)
    differences = (ahead - behind) / (2 * shifts.max())
    tolerance = 1e-4 * max(1.0, float(np.abs(gradient).max()))
    keep = smooth & (np.abs(residual).max(-1) > 1e-2 * np.abs(residual).max())
    np.testing.assert_allclose(gradient[keep], differences[keep], rtol=0, atol=tolerance)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_zero_residual_has_zero_gradient(loss):
    residual = np.array([[0.0, 0.0], [1.0, 0.0]])
    gradient = loss.gradient(residual)
    np.testing.assert_array_equal(gradient[0], 0.0)
    assert gradient[1, 0] > 0
    assert (loss.value(residual) == [0.0, 1.0]).all()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_nan_is_kept(loss):
    residual = np.array([[np.nan, 1.0], [1.0, 1.0]])
    assert np.isnan(loss.value(residual)).tolist() == [True, False]
    assert np.isnan(loss.gradient(residual)).any(-1).tolist() == [True, False]


def test_norm_gradient_is_a_unit_vector():
    residual = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(np.linalg.norm(LOSSES["norm"].gradient(residual), axis=-1), 1.0, rtol=1e-15)
