"""Hermite basis, coefficients, and the coefficients of attention."""

import numpy as np
import pytest

from seqindex import Attention
from seqindex.gaussian.hermite import degrees, hermite_factor, normalised_hermite, shifted_factor, tensor_coefficients
from seqindex.gaussian.quadrature import gauss_hermite, panels, trapezoid


@pytest.mark.parametrize("rule", [gauss_hermite(200), trapezoid(1 / 12, 15.0), panels(0.5, 12, 15.0)])
def test_basis_is_orthonormal(rule):
    factor, values = hermite_factor(rule, 30), normalised_hermite(rule.nodes, 30)
    assert np.abs(factor @ values.T - np.eye(31)).max() < 1e-11


def test_values_agree_with_numpy():
    x = np.linspace(-3.0, 3.0, 7)
    for k, factorial in ((3, 6.0), (6, 720.0)):
        expected = np.polynomial.hermite_e.hermeval(x, np.eye(k + 1)[k]) / np.sqrt(factorial)
        np.testing.assert_allclose(normalised_hermite(x, 6)[k], expected, atol=1e-12)
    assert normalised_hermite(x.reshape(7, 1), 0).shape == (1, 7, 1)
    with pytest.raises(ValueError, match="degree must be at least 0, got -1"):
        normalised_hermite(x, -1)


def test_shifted_factor_moves_the_argument():
    nodes = trapezoid(0.1, 13.0).nodes
    rule = trapezoid(0.1, 11.0)
    shifted = shifted_factor(nodes, 0.1, 0.7, 20) @ np.tanh(nodes)
    np.testing.assert_allclose(shifted, hermite_factor(rule, 20) @ np.tanh(rule.nodes + 0.7), atol=1e-12)


def test_tensor_coefficients_contract_the_right_axes():
    rng = np.random.default_rng(0)
    table, factors = (
        rng.standard_normal((2, 3, 4, 5)),
        [rng.standard_normal((k, n)) for k, n in ((2, 3), (3, 4), (6, 5))],
    )
    expected = np.einsum("kabc,xa,yb,zc->kxyz", table, *factors)
    np.testing.assert_allclose(tensor_coefficients(table, factors), expected, atol=1e-13)
    assert degrees((2, 2, 3))[1, 1, 2] == 4
    with pytest.raises(ValueError, match="factors must match the axes"):
        tensor_coefficients(table, factors[::-1])


def attention_coefficients(reduction, length, step):
    """E[f He_alpha], unnormalised."""
    rule = trapezoid(step, 11.0 if length == 2 else 8.0)
    mesh = np.stack(np.meshgrid(*[rule.nodes] * length, indexing="ij"), axis=-1)
    table = np.moveaxis(Attention(length, reduction=reduction)(mesh), -1, 0)
    root = np.sqrt(np.array([1.0, 1.0, 2.0, 6.0, 24.0]))[:, None]
    return tensor_coefficients(table, [root * hermite_factor(rule, 4)] * length)


def test_coefficients_of_attention_of_length_2():
    identity, trace = attention_coefficients("identity", 2, 0.1)[0], attention_coefficients("plain_trace", 2, 0.1)[0]
    root = np.sqrt(2.0)
    closed = {(0, 0): 1 - 1 / (2 * root), (2, 0): 1 / (4 * root), (4, 0): -3 / (8 * root)}
    known = {(1, 1): -0.1062875009029, (0, 2): -0.0357983065092, (2, 2): -0.0400427526905} | closed
    for alpha, value in known.items():
        assert identity[alpha] == pytest.approx(value, abs=2e-12)
    known = {(2, 0): 0.1409783887875, (1, 1): -0.2125750018058, (4, 0): -0.2402565161430, (2, 2): -0.0800855053810}
    for alpha, value in ({(0, 0): 2 - 1 / root} | known).items():
        assert trace[alpha] == pytest.approx(value, abs=2e-12)


def test_coefficients_of_attention_of_length_3():
    rule = trapezoid(0.15, 8.0)
    assert attention_coefficients("identity", 3, 0.15)[0, 0, 0, 0] == pytest.approx(0.488483553719, abs=5e-12)
    mesh = np.stack(np.meshgrid(*[rule.nodes] * 3, indexing="ij"), axis=-1)
    square = (Attention(3)(mesh)[..., :3] ** 2).sum(-1)[None]
    value = tensor_coefficients(square, [rule.weights[None]] * 3).item()
    assert value == pytest.approx(0.459931665090, abs=5e-12)
