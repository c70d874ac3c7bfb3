"""Targets: formulas, callables compiled or not, messages."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.model.target import pair_alignment


def run_block(target, z):
    y = np.full((target.outputs, WIDTH), np.nan)
    kernel = target.kernel
    kernel.function(z, kernel.parameters, y)
    return y


def block(length, seed=0):
    return np.random.default_rng(seed).normal(size=(length, WIDTH))


@given(st.floats(-30, 30))
def test_pair_alignment(a):
    scores = a * a * np.array([[1.0, -1.0], [-1.0, 1.0]])
    weights = np.exp(scores - scores.max(1, keepdims=True))
    matrix = pair_alignment(a)
    np.testing.assert_allclose(matrix, weights / weights.sum(1, keepdims=True), rtol=1e-12, atol=1e-300)
    assert matrix[0, 0] == pytest.approx(1.0 / (1.0 + np.exp(-2.0 * a * a)), rel=1e-14)
    np.testing.assert_array_equal(matrix.sum(1), 1.0)


@pytest.mark.parametrize("a", [1e3, 1e160, -1e308])
def test_pair_alignment_saturates(a):
    np.testing.assert_allclose(sx.PositionalSemanticTarget(1.0, alignment=a).alignment_matrix, np.eye(2), atol=1e-300)


@given(st.floats(0, 1), st.floats(0, 2))
def test_positional_semantic_formula(omega, a):
    target = sx.PositionalSemanticTarget(omega, alignment=a)
    z = np.array([0.7, -1.1])
    weights = np.exp(np.outer(z, z))
    wanted = (1 - omega) * weights / weights.sum(1, keepdims=True) + omega * pair_alignment(a)
    np.testing.assert_allclose(target(z), wanted.ravel(), rtol=1e-13)
    np.testing.assert_allclose(target(z).reshape(2, 2).sum(1), 1.0, rtol=1e-14)


def test_any_length():
    matrix = np.random.default_rng(1).dirichlet(np.ones(3), 3)
    target = sx.PositionalSemanticTarget(1.0, alignment_matrix=matrix, length=3)
    assert (target.length, target.outputs) == (3, 9)
    np.testing.assert_array_equal(target(np.ones((4, 5, 3))), np.broadcast_to(matrix.ravel(), (4, 5, 9)))
    assert sx.PositionalSemanticTarget(0.0, alignment_matrix=[[1.0]])(np.array([3.0])) == 1.0


def test_positional_semantic_spec():
    target = sx.PositionalSemanticTarget(0.3, alignment=0.9)
    again = sx.PositionalSemanticTarget.from_spec(json.loads(json.dumps(target.spec())))
    assert again.omega == 0.3
    np.testing.assert_array_equal(again.alignment_matrix, target.alignment_matrix)
    assert repr(sx.PositionalSemanticTarget(0.5, alignment=0)) == (
        "PositionalSemanticTarget(0.5, alignment_matrix=[[0.5, 0.5], [0.5, 0.5]])".replace("(0.5", "(omega=0.5")
    )


MESSAGES = [
    ((1.2, 1.0), ValueError, r"^omega must be in \[0, 1\], got 1\.2$"),
    ((-0.1, 1.0), ValueError, r"^omega must be in \[0, 1\], got -0\.1$"),
    ((np.nan, 1.0), ValueError, r"^omega must be finite, got nan$"),
    (("half", 1.0), TypeError, r"^omega must be a number, got 'half'$"),
    ((0.5, None, None), ValueError, r"^give either alignment or alignment_matrix, got neither$"),
    ((0.5, 1.0, np.eye(2)), ValueError, r"^give either alignment or alignment_matrix, got both$"),
    ((0.5, np.inf), ValueError, r"^alignment must be finite, got inf$"),
    ((0.5, None, np.ones((2, 3))), ValueError, r"^alignment_matrix must be square, got shape \(2, 3\)$"),
    ((0.5, None, np.zeros((0, 0))), ValueError, r"^alignment_matrix must be square, got shape \(0, 0\)$"),
    ((0.5, None, [0.5, 0.5]), ValueError, r"^alignment_matrix must have shape \(any, any\), got \(2,\)$"),
    ((0.5, None, [[0.5, 0.5], [1.5, -0.5]]), ValueError, r"row-stochastic, got the negative entry -0\.5$"),
    ((0.5, None, [[0.5, 0.5], [0.7, 0.2]]), ValueError, r"row-stochastic, got row 2 with sum 0\.9$"),
    ((0.5, None, [[1, 1e-8], [0, 1]]), ValueError, r"row-stochastic, got row 1 with sum 1\.00000001$"),
    ((0.5, None, [[1, np.nan], [0, 1]]), ValueError, r"^alignment_matrix must be finite, got nan in it$"),
    ((0.5, 1.0, None, 3), ValueError, r"^length must be 2 with alignment, got 3$"),
    ((0.5, None, np.eye(3), 2), ValueError, r"^length must be 3, the size of alignment_matrix, got 2$"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), MESSAGES, ids=[m[2] for m in MESSAGES])
def test_positional_semantic_messages(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        sx.PositionalSemanticTarget(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [(1,), (4, 1), (3,), ()])
def test_wrong_fields(shape):
    """Fields of one token would broadcast against a 2 x 2 matrix and give labels without a word."""
    for target in (sx.PositionalSemanticTarget(0.5, alignment=1.0), sx.Target(lambda z: z[:, 0], 2)):
        with pytest.raises(ValueError, match=r"^z must have shape \(\.\.\., 2\), got "):
            target(np.zeros(shape))


SCALARS = {
    "product": lambda z: z[..., 0] * z[..., 1],
    "one token": lambda z: z[..., 0],
    "one token, column": lambda z: z[:, :1],
    "sum": lambda z: z.sum(axis=1),
    "sign": lambda z: np.sign(z[:, 0]),
    "comparison": lambda z: z[:, 0] > z[:, 1],
    "logarithm": lambda z: np.log(z[:, 0] ** 2),
    "jitted": njit(lambda z: z[:, 0] - 2.0 * z[:, 1]),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_callable_is_compiled(name):
    """Warnings are errors here, so a fall-back to NumPy would fail."""
    target = sx.Target(SCALARS[name], length=2)
    assert target.outputs == 1
    z = block(2)
    np.testing.assert_allclose(run_block(target, z), target(z.T).T, rtol=1e-14)
    assert target.kernel is target.kernel
    assert target(np.ones((3, 4, 2))).shape == (3, 4, 1)
    assert target(np.ones((0, 2))).shape == (0, 1)


def test_vector_callable_is_compiled():
    target = sx.Target(lambda z: z**3 - 3.0 * z, length=3)
    assert target.outputs == 3
    z = block(3)
    np.testing.assert_allclose(run_block(target, z), target(z.T).T, rtol=1e-13, atol=1e-14)
    assert target(np.ones(3)).shape == (3,)
    assert target(np.ones((0, 3))).shape == (0, 3)


def test_callable_of_length_one():
    target = sx.Target(lambda z: z[:, 0] ** 2 - 1.0, length=1)
    z = block(1)
    np.testing.assert_allclose(run_block(target, z), z**2 - 1.0, rtol=1e-14)


def _uses_a_dictionary_of_functions(z):
    return {"sine": np.sin}["sine"](z[..., 0])


class _Callable:
    def __call__(self, z):
        return z[..., 0] * 2.0


@pytest.mark.parametrize("function", [_uses_a_dictionary_of_functions, _Callable()])
def test_numpy_fallback(function):
    target = sx.Target(function, length=2)
    with pytest.warns(RuntimeWarning, match=r"^target .* runs through NumPy, several times slower: .+"):
        kernel = target.kernel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert target.kernel is kernel  # it warns once
    z = block(2)
    np.testing.assert_array_equal(run_block(target, z), target(z.T).T)


def test_numpy_fallback_of_a_vector():
    def function(z):
        return np.array([list(map(float, np.sort(row))) for row in z]).reshape(-1, 2)

    target = sx.Target(function, length=2)
    with pytest.warns(RuntimeWarning, match="runs through NumPy"):
        target.kernel  # noqa: B018
    z = block(2)
    np.testing.assert_array_equal(run_block(target, z), np.sort(z, axis=0))


def test_compiled_form_with_other_numbers_is_refused():
    """Numba freezes globals when it compiles; what then differs from Python must not be used."""

    @njit
    def compiled(z):
        return z[:, 0]

    target = sx.Target(compiled, length=2)
    target._labels = lambda z: -z[:, :1]
    with pytest.warns(RuntimeWarning, match="its compiled form gives other numbers"):
        target.kernel  # noqa: B018


def test_nan_labels_reach_the_block():
    target = sx.Target(lambda z: np.sqrt(z[:, 0]), length=1)
    z = block(1)
    y = run_block(target, z)
    np.testing.assert_array_equal(np.isnan(y), z < 0)


REFUSED = [
    (3.0, TypeError, r"^target must be text such as 'z1\*z2', or callable on fields .*, got 3\.0$"),
    (lambda z: z.sum(), ValueError, r"labels \(n,\) or \(n, k\), got \(\) for n = 3$"),
    (lambda z: z[0] * z[1], ValueError, r"labels \(n,\) or \(n, k\), got \(2,\) for n = 3$"),
    (lambda z: z[:, :, None], ValueError, r"labels \(n,\) or \(n, k\), got \(3, 2, 1\) for n = 3$"),
    (lambda z: z[:, :0], ValueError, r"labels \(n,\) or \(n, k\), got \(3, 0\) for n = 3$"),
    (lambda z: z[:, 0] * z.mean(), ValueError, r"^function must map each row of fields \(n, 2\) on its own"),
    (
        lambda z: z[:, 7],
        ValueError,
        r"^function must take fields of shape \(n, 2\), got IndexError: index 7 is out of bounds",
    ),
    (lambda z: z[:, 0] * 1j, TypeError, r"^function must give real labels, got complex128$"),
    (lambda z: ["a"] * len(z), TypeError, r"^function must give real labels, got <U1$"),
    (lambda z: z[: len(z)] @ np.ones((2, len(z))), ValueError, r"of one k, got k = 1 after 3$"),
]


@pytest.mark.parametrize(("function", "error", "message"), REFUSED, ids=[m[2] for m in REFUSED])
def test_callable_messages(function, error, message):
    with pytest.raises(error, match=message):
        sx.Target(function, length=2)


def test_length_of_a_callable():
    with pytest.raises(ValueError, match=r"^length must be at least 1, got 0$"):
        sx.Target(lambda z: z, 0)


def test_callable_is_stored_by_name():
    target = sx.Target(_uses_a_dictionary_of_functions, length=2)
    spec = json.loads(json.dumps(target.spec()))
    assert spec["function"] == "test_model_target:_uses_a_dictionary_of_functions"
    assert repr(target) == "Target(test_model_target:_uses_a_dictionary_of_functions, length=2)"
    assert sx.Target(_Callable(), 2).name == "test_model_target:_Callable"
    with pytest.raises(ValueError, match=r"^target must be passed again, .* got 'test_model_target:_uses"):
        sx.Target.from_spec(spec)
