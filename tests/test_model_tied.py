"""Activations and the tied network: values, slopes, block functions, storage, messages."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.model.activation import ACTIVATIONS, Activation
from test_model_kernels import block, close, student_block

# Values and slopes from other libraries.
KNOWN = {
    "relu": (lambda u: np.where(u > 0, u, 0.0), lambda u: np.where(u > 0, 1.0, 0.0)),
    "tanh": (np.tanh, lambda u: np.cosh(u) ** -2.0),
    "erf": (special.erf, lambda u: 2.0 / np.sqrt(np.pi) * np.exp(-(u**2))),
    "sigmoid": (special.expit, lambda u: special.expit(u) * special.expit(-u)),
    "softplus": (lambda u: np.logaddexp(0.0, u), special.expit),
    "square": (np.square, lambda u: 2.0 * u),
    "identity": (lambda u: u, np.ones_like),
}
for k in range(1, 13):
    scale = np.sqrt(special.factorial(k))
    KNOWN[f"He{k}"] = (
        lambda u, k=k: special.eval_hermitenorm(k, u),
        lambda u, k=k: k * special.eval_hermitenorm(k - 1, u),
    )
    KNOWN[f"h{k}"] = (
        lambda u, k=k, s=scale: special.eval_hermitenorm(k, u) / s,
        lambda u, k=k, s=scale: k * special.eval_hermitenorm(k - 1, u) / s,
    )
EXPRESSIONS = {
    "u + 0.1*u**2": (lambda u: u + 0.1 * u**2, lambda u: 1.0 + 0.2 * u),
    "erf(u/sqrt(2))": (lambda u: 2.0 * special.ndtr(u) - 1.0, lambda u: np.sqrt(2.0 / np.pi) * np.exp(-0.5 * u**2)),
    "abs(u)": (np.abs, np.sign),
    "sign(u)": (np.sign, np.zeros_like),
    "relu(u)**2 - sin(u)": (lambda u: np.maximum(u, 0) ** 2 - np.sin(u), lambda u: 2 * np.maximum(u, 0) - np.cos(u)),
    "exp(-u**2/2)*cosh(u)/(1 + u**2)": (
        lambda u: np.exp(-(u**2) / 2) * np.cosh(u) / (1 + u**2),
        lambda u: np.exp(-(u**2) / 2) / (1 + u**2) * (np.sinh(u) - np.cosh(u) * (u + 2 * u / (1 + u**2))),
    ),
    "log(1 + abs(u)**1.5)": (
        lambda u: np.log1p(np.abs(u) ** 1.5),
        lambda u: 1.5 * np.sign(u) * np.sqrt(np.abs(u)) / (1 + np.abs(u) ** 1.5),
    ),
}
ALL = KNOWN | EXPRESSIONS


def test_every_named_activation_is_checked():
    assert set(ACTIVATIONS) == set(KNOWN)


@pytest.mark.parametrize("name", ALL)
def test_values_and_slopes(name):
    u = np.array([-60.0, *np.linspace(-4.0, 4.0, 41), 60.0])
    u = u if "exp(" not in name else u[1:-1]
    for got, known in zip((Activation(name)(u), Activation(name).slope(u)), ALL[name], strict=True):
        with np.errstate(over="ignore"):
            wanted = known(u)
        # Summed powers of He12 lose digits where they cancel.
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-9 if "12" in name or "11" in name else 1e-12)


@pytest.mark.parametrize("name", ALL)
def test_block_functions(name):
    student = sx.TiedNetwork(3, name, [1.0, -0.5, 2.0])
    z, r = block(3, 1, 0.8), block(1, 2)
    f, c = student_block(student, z, r)
    u = (z[0] - 0.5 * z[1] + 2.0 * z[2]) / np.sqrt(3.0)
    value, slope = (known(u) for known in ALL[name])
    atol = 1e-10 if "12" in name or "11" in name else 1e-13
    close(f[0], value, atol)
    close(c, slope * r / np.sqrt(3.0) * np.array([[1.0], [-0.5], [2.0]]), atol)
    close(f, student(z.T).T, atol)
    close(c, student.pull_back(z.T, r.T).T, atol)


def test_kinks_have_slope_zero():
    for name in ("relu", "abs(u)", "sign(u)", "abs(u) + relu(u)"):
        assert Activation(name).slope(0.0) == 0.0
        f, c = student_block(sx.TiedNetwork(1, name), np.zeros((1, WIDTH)), np.ones((1, WIDTH)))
        assert (c == 0.0).all()
        assert (f == 0.0).all()


PIECES = st.sampled_from(["u", "0.5", "tanh(u)", "abs(u)", "He2(u)", "sigmoid(u)", "exp(-u**2)", "relu(u)", "erf(u)"])


def joined(part):
    return st.tuples(part, st.sampled_from("+-*"), part).map(lambda pieces: f"({''.join(pieces)})")


@given(st.recursive(PIECES, joined, max_leaves=8))
def test_slopes_of_random_expressions_are_differences(text):
    sigma = Activation(text + " + 3*sin(u)")  # never constant
    u, h = np.array([-1.3, 0.4, 1.1]), 1e-5
    difference = (sigma(u + h) - sigma(u - h)) / (2.0 * h)
    np.testing.assert_allclose(sigma.slope(u), difference, rtol=1e-5, atol=1e-5 * (1.0 + np.abs(sigma(u)).max()))


@pytest.mark.parametrize("activation", ["tanh", "softplus", "He3", "u + 0.1*u**2"])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_jacobian_against_finite_differences(activation, length):
    student = sx.TiedNetwork(length, activation, np.cos(np.arange(length)))
    z = np.random.default_rng(length).normal(size=(8, length))
    errors = []
    for h in (4e-2, 2e-2, 1e-2):
        ahead, behind = (student(z[:, None] + sign * h * np.eye(length)) for sign in (1, -1))
        errors.append(np.abs((ahead - behind)[..., 0] / (2 * h) - student.jacobian(z)[:, 0]).max())
    if activation != "u + 0.1*u**2":  # of a quadratic polynomial they are exact
        assert np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.2)
    else:
        assert max(errors) < 1e-13


@pytest.mark.parametrize("shape", [(), (1,), (0,), (4, 5)])
def test_shapes(shape):
    student = sx.TiedNetwork(3)
    z, r = np.ones((*shape, 3)), np.ones((*shape, 1))
    assert student(z).shape == (*shape, 1)
    assert student.pull_back(z, r).shape == (*shape, 3)
    assert student.jacobian(z).shape == (*shape, 1, 3)


def test_one_combination():
    student = sx.TiedNetwork(5, "tanh", [1, -1, 1, 2, 3])
    np.testing.assert_allclose(student.combinations, [[0.25, -0.25, 0.25, 0.5, 0.75]])
    assert student.core([1.0]).item() == pytest.approx(np.tanh(4.0 / np.sqrt(5.0)))


def test_random_weights_are_uniform_on_their_sphere():
    weights = np.array([sx.random_weights(4, seed) for seed in range(2000)])
    np.testing.assert_allclose((weights**2).sum(1), 4.0, rtol=1e-14)
    np.testing.assert_array_equal(weights[3], sx.random_weights(4, 3))
    for column in weights.T:  # four tests: 1e-4 false alarms
        assert stats.kstest((column / 2.0 + 1.0) / 2.0, stats.beta(1.5, 1.5).cdf).pvalue > 2.5e-5
    with pytest.raises(ValueError, match=r"^length must be at least 1, got 0$"):
        sx.random_weights(0)
    with pytest.raises(ValueError, match=r"^seed must be at least 0, got -1$"):
        sx.random_weights(3, -1)


def test_random_weights_see_a_difference():
    a = sx.random_weights(2, 5)
    problem = sx.Problem(sx.Target("z1 - z2", length=2), sx.TiedNetwork(2, "relu", a))
    slope = sx.PopulationRisk(problem).gradient(0.0).item()
    assert slope == pytest.approx(-(a[0] - a[1]) / np.sqrt(2.0), abs=1e-10)


def test_large_fields_stay_in_their_lane():
    for name in ("relu", "tanh", "sigmoid", "softplus", "erf"):
        student = sx.TiedNetwork(2, name)
        z = np.random.default_rng(3).choice([-60.0, 0.0, 60.0, 800.0, -800.0], (2, WIDTH))
        f, c = student_block(student, z, np.ones((1, WIDTH)))
        assert np.isfinite(f).all()
        assert np.isfinite(c).all()
        z[0, 5] = np.nan
        again, slopes = student_block(student, z, np.ones((1, WIDTH)))
        assert np.isnan([again[0, 5], slopes[0, 5] if name != "relu" else np.nan]).all()
        np.testing.assert_array_equal(np.delete(again, 5, 1), np.delete(f, 5, 1))


@pytest.mark.parametrize("encoding", [None, sx.RandomEncoding(3), sx.InjectedEncoding([1.0, 0.0, -1.0])])
@pytest.mark.parametrize("weights", [None, [1.0, -2.0, 0.5]])
@pytest.mark.parametrize("activation", ["relu", "h2", "u + 0.1*u**2"])
def test_attrs_round_trip(activation, weights, encoding):
    problem = sx.Problem(sx.Target("z1*z2", length=3), sx.TiedNetwork(3, activation, weights, encoding))
    again = sx.Problem.from_attrs(problem.to_attrs())
    assert again.to_attrs() == problem.to_attrs()
    z = np.random.default_rng(1).normal(size=(5, 3))
    np.testing.assert_array_equal(again.student(z), problem.student(z))
    np.testing.assert_array_equal(again.frame.offsets(np.zeros(again.frame.rank)), problem.frame.injection)


def test_older_or_broken_attrs_are_refused():
    attrs = sx.Problem(sx.Target("z1*z2", length=2), sx.TiedNetwork(2)).to_attrs()
    spec = json.loads(attrs["student"])
    del spec["activation"]
    with pytest.raises(ValueError, match=r"^attrs must hold a problem, got student "):
        sx.Problem.from_attrs(attrs | {"student": json.dumps(spec)})


def test_repr():
    assert repr(sx.TiedNetwork(2)) == "TiedNetwork(length=2, activation='relu', encoding=None)"
    assert repr(sx.TiedNetwork(2, "tanh", [1, -1])) == (
        "TiedNetwork(length=2, activation='tanh', weights=[1.0, -1.0], encoding=None)"
    )


def test_network_is_immutable():
    weights = np.ones(2)
    student = sx.TiedNetwork(2, weights=weights)
    weights[0] = 5.0
    student.combinations[:] = 0.0
    assert student(np.array([1.0, 1.0])).item() == pytest.approx(np.sqrt(2.0))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, r"^length must be at least 1, got 0$"),
        (
            (2, "gelu"),
            ValueError,
            r"^activation must be one of relu, .*, or an expression in u, got 'gelu'; did you mean",
        ),
        ((2, "He13"), ValueError, r"^activation must be one of .*got 'He13'"),
        ((2, "He0"), ValueError, r"^activation must be one of .*got 'He0'"),
        ((2, 3), TypeError, r"^activation must be a name such as 'relu' or an expression in u, got 3$"),
        ((2, "z1*u"), ValueError, r"^activation holds the unknown name z1 at column 1"),
        ((2, "2*3"), ValueError, r"^activation must depend on u, got '2\*3'$"),
        ((2, "u - u"), ValueError, r"^activation must depend on u, got 'u - u'$"),
        ((2, "log(u)"), ValueError, r"^activation must be finite, got nan at u = -6 in 'log\(u\)'$"),
        ((2, "u.real"), ValueError, r"^activation must be made of numbers, names"),
        ((2, "relu", [1.0]), ValueError, r"^weights must have shape \(2,\), got \(1,\)$"),
        ((2, "relu", [1.0, np.inf]), ValueError, r"^weights must be finite, got inf in it$"),
        ((2, "relu", [0.0, 0.0]), ValueError, r"^weights must not all be zero$"),
        ((3, "relu", None, sx.OppositeEncoding()), ValueError, r"^encoding must have length 3 as the student, got 2$"),
        ((2, "relu", None, "opposite"), TypeError, r"^encoding must be an Encoding such as .* got 'opposite'$"),
    ],
)
def test_messages(arguments, error, message):
    with pytest.raises(error, match=message):
        sx.TiedNetwork(*arguments)


def test_messages_of_fields():
    student = sx.TiedNetwork(2)
    for call in (student, student.jacobian):
        with pytest.raises(ValueError, match=r"^z must have shape \(\.\.\., 2\), got \(3,\)$"):
            call(np.zeros(3))
    with pytest.raises(ValueError, match=r"^r must have shape \(\.\.\., 1\), got \(2,\)$"):
        student.pull_back(np.zeros(2), np.zeros(2))
