"""Targets as text: NumPy values, derivatives, compiled kernels and storage."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy.special import erf, expit

import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.model import elementary
from seqindex.model.grammar import FUNCTIONS
from seqindex.model.link import Target

# Values against functions written by hand.

BY_HAND = {
    "z1*z2": lambda z: z[..., 0] * z[..., 1],
    "z1 - z2/3 + 2": lambda z: z[..., 0] - z[..., 1] / 3 + 2,
    "sum(He2(z))": lambda z: (z**2 - 1).sum(-1),
    "prod(h3(z))": lambda z: ((z**3 - 3 * z) / np.sqrt(6)).prod(-1),
    "sum(z*z1)": lambda z: z.sum(-1) * z[..., 0],
    "sum(z)/sqrt(L)": lambda z: z.sum(-1) / np.sqrt(z.shape[-1]),
    "He4(z1) - h5(z2)": lambda z: (
        z[..., 0] ** 4 - 6 * z[..., 0] ** 2 + 3 - (z[..., 1] ** 5 - 10 * z[..., 1] ** 3 + 15 * z[..., 1]) / np.sqrt(120)
    ),
    "exp(-abs(z1))*sin(3*z2)": lambda z: np.exp(-abs(z[..., 0])) * np.sin(3 * z[..., 1]),
    "cos(z1) + tan(z2/4) + log(2 + z1**2)": lambda z: (
        np.cos(z[..., 0]) + np.tan(z[..., 1] / 4) + np.log(2 + z[..., 0] ** 2)
    ),
    "sinh(z1)*cosh(z2) - tanh(z1*z2)": lambda z: (
        np.sinh(z[..., 0]) * np.cosh(z[..., 1]) - np.tanh(z[..., 0] * z[..., 1])
    ),
    "erf(z1/sqrt(2)) + sign(z2)": lambda z: erf(z[..., 0] / np.sqrt(2)) + np.sign(z[..., 1]),
    "relu(z1) + sigmoid(z2)": lambda z: z[..., 0] * (z[..., 0] > 0) + 1 / (1 + np.exp(-z[..., 1])),
    "softplus(sum(z))": lambda z: np.log1p(np.exp(z.sum(-1))),
    "sqrt(1 + prod(z)**2)": lambda z: np.hypot(1.0, z.prod(-1)),
    "(2 + z1**2)**z2 / (1 + abs(z2))**1.5": lambda z: (2 + z[..., 0] ** 2) ** z[..., 1] / (1 + abs(z[..., 1])) ** 1.5,
    "1/(1 + z1**2)**2": lambda z: (1 + z[..., 0] ** 2) ** -2.0,
    "tan(1 + tanh(z1)/2 + pi/2)": lambda z: -1 / np.tan(1 + np.tanh(z[..., 0]) / 2),
    "abs(exp(tanh(z1)) - 1)*tanh(z1)": lambda z: abs(np.exp(np.tanh(z[..., 0])) - 1) * np.tanh(z[..., 0]),
    "abs(sum(z)) * tan(1 + cos(sum(z))/4 + pi/2)": lambda z: -abs(z.sum(-1)) / np.tan(1 + np.cos(z.sum(-1)) / 4),
    "3": lambda z: np.full(z.shape[:-1], 3.0),
}


def fields(length, rows=WIDTH, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, length))


def labels_of_kernel(target, z):
    """Labels (n, k) of fields (n, L) by the compiled block function; n a multiple of the width."""
    kernel, parts = target.kernel, []
    for block in z.reshape(-1, WIDTH, z.shape[-1]):
        y = np.full((target.outputs, WIDTH), -777.0)
        kernel.function(np.ascontiguousarray(block.T), kernel.parameters, y)
        parts.append(y.T)
    return np.concatenate(parts)


@pytest.mark.parametrize("text", BY_HAND)
def test_values_and_kernels_are_those_of_functions_written_by_hand(text):
    """To 40 roundings, which sums of cancelling terms may cost."""
    target = Target(text, 3)
    z = fields(3)
    wanted = BY_HAND[text](z)[:, None]
    np.testing.assert_allclose(target(z), wanted, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(labels_of_kernel(target, z), wanted, rtol=1e-14, atol=1e-14)


BY_NAME = {
    name: getattr(np, name) for name in ("exp", "log", "sqrt", "sign", "sin", "cos", "tan", "sinh", "cosh", "tanh")
}
BY_NAME |= {"abs": np.abs, "erf": erf, "relu": lambda x: np.maximum(x, 0.0), "sigmoid": expit, "pi": np.pi}
BY_NAME |= {
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "He3": lambda x: x**3 - 3 * x,
    "h2": lambda x: (x**2 - 1) / 2**0.5,
}


def random_text(rng, depth):
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(["1", "2", "0.5", "1/3", "pi", "z1", "z1", "z2", "sum(z*z1)", "prod(1 + z)"]))
    if rng.random() < 0.5:
        return f"{rng.choice([*FUNCTIONS, 'He3', 'h2'])}({random_text(rng, depth - 1)})"
    sign = rng.choice(["+", "-", "*", "/", "**"], p=[0.25, 0.2, 0.25, 0.2, 0.1])
    return f"({random_text(rng, depth - 1)} {sign} {random_text(rng, depth - 1)})"


def random_targets(number):
    """Random texts that the grammar reads."""
    rng, found = np.random.default_rng(7), []
    while len(found) < number:
        text = random_text(rng, 4)
        try:
            found.append((text, Target(text, 2)))
        except ValueError:  # no real number, division by zero
            continue
    return found


def test_random_expressions_mean_what_python_and_numpy_make_of_them():
    """Where these are finite, and to what a change of the fields in the 13th digit does."""
    z, checked = fields(2, 16), 0
    values = {"z1": z[:, 0], "z2": z[:, 1]}
    for text, target in random_targets(300):
        code = text.replace("sum(z*z1)", "((z1 + z2)*z1)").replace("prod(1 + z)", "((1 + z1)*(1 + z2))")
        with np.errstate(all="ignore"):
            exact, near = (
                np.broadcast_to(eval(code, {}, {**BY_NAME, **{k: v * scale for k, v in values.items()}}), 16)
                for scale in (1.0, 1.0 + 1e-13)
            )
        usable = (abs(exact) < 1e100) & (abs(near) < 1e100)
        checked += usable.sum()
        error = abs(target(z)[usable, 0] - exact[usable])
        assert (error <= 1e-13 + 1e-13 * abs(exact[usable]) + 50 * abs(near[usable] - exact[usable])).all(), text
    assert checked > 2500


def test_kernels_of_random_expressions():
    """As NumPy, to what a change of the fields in the 13th digit does, and not finite where NumPy is not."""
    texts = [text for text, _ in random_targets(60)]
    target = Target("[" + ", ".join(texts) + "]", 2)
    z = fields(2)
    got, wanted, near = labels_of_kernel(target, z), target(z), target(z * (1.0 + 1e-13))
    usable = (abs(wanted) < 1e100) & (abs(near) < 1e100)
    error = abs(got[usable] - wanted[usable])
    assert (error <= 1e-13 + 1e-13 * abs(wanted[usable]) + 50 * abs(near[usable] - wanted[usable])).all()
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))
    assert usable.mean() > 0.7


def test_shapes_of_labels():
    target = Target("[z1, sum(z), 2]", 2)
    assert target.outputs == 3
    assert target(np.array([1.0, 3.0])).tolist() == [1.0, 4.0, 2.0]
    assert target(np.zeros((0, 2))).shape == (0, 3)
    assert target(np.zeros((4, 5, 2))).shape == (4, 5, 3)
    assert target.gradient(np.zeros((4, 5, 2))).shape == (4, 5, 3, 2)
    with pytest.raises(ValueError, match=r"^z must "):
        target(np.zeros((4, 3)))


# Derivatives.

SMOOTH = [text for text in BY_HAND if text not in ("3",)] + ["z1**3*prod(1 + z*z2)", "sum(tanh(z*z1))*prod(cos(z))"]


@pytest.mark.parametrize("text", SMOOTH)
def test_derivatives_against_central_differences(text):
    """The error of a central difference falls by 4 when its step is halved."""
    target = Target(text, 3)
    z = np.where(abs(fields(3, 8)) < 0.1, 0.5, fields(3, 8))  # away from kinks and jumps
    exact = target.gradient(z)[..., 0, :]
    errors = []
    for h in (2e-3, 1e-3):
        step = h * np.eye(3)
        slopes = (target(z[:, None] + step) - target(z[:, None] - step))[..., 0] / (2 * h)
        errors.append(abs(slopes - exact).max())
    assert errors[1] < 1e-4 * max(1.0, abs(exact).max())
    assert errors[1] < 1e-11 * max(1.0, abs(exact).max()) or 3.9 < errors[0] / errors[1] < 4.1


@pytest.mark.parametrize("row", [[2.0, 3.0, 5.0], [0.0, 3.0, 5.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
def test_derivative_of_a_product_whose_factors_vanish(row):
    a, b, c = row
    got = Target("[prod(z), prod(z)**2, sum(z)*prod(z*z1)]", 3).gradient(np.array(row))
    slopes = np.array([b * c, a * c, a * b])
    # The third is S a^4 b c with S = a + b + c.
    own = a**4 * b * c + (a + b + c) * np.array([4 * a**3 * b * c, a**4 * c, a**4 * b])
    np.testing.assert_allclose(got, [slopes, 2 * a * b * c * slopes, own], rtol=1e-14, atol=0)


@pytest.mark.parametrize("text", ["abs(z1)", "relu(z1)", "sign(z1)", "relu(-z1)"])
def test_derivative_at_a_kink_is_zero(text):
    assert Target(text, 1).gradient(np.zeros(1)).tolist() == [[0.0]]


def test_gradient_costs_no_matrix_of_positions():
    """A thousand positions; a matrix of their pairs would be a hundred times slower."""
    length = 1000
    z = fields(length, 4)
    got = Target("sum(He2(z)) * prod(1 + z/1000)", length).gradient(z)[:, 0]
    total, product = (z**2 - 1).sum(-1, keepdims=True), (1 + z / 1000).prod(-1, keepdims=True)
    np.testing.assert_allclose(got, 2 * z * product + total * product / (1000 + z), rtol=1e-11)


# Kernels against NumPy.

POSITIVE = {"log", "sqrt"}
HERMITE = ["He1", "He2", "He7", "He12", "h2", "h12"]


@pytest.mark.parametrize("length", [1, 2, 5, 1000])
def test_kernels_of_all_functions(length):
    """Every function of the grammar in one vector of labels: to 5e-14 of the largest value of each label."""
    names = [*FUNCTIONS, *HERMITE]
    inner = [f"{name}({'1.5 + cos(z)' if name in POSITIVE else 'z/2'})" for name in names]
    bare = [text.replace("(z)", f"(z{length})").replace("z/2", f"z{length}/2") for text in inner]
    parts = [f"sum({text})" for text in inner] + [f"prod(1 + {text}/L**2)" for text in inner] + bare
    target = Target("[" + ", ".join(parts) + "]", length)
    z = fields(length, 2 * WIDTH)
    wanted = target(z)
    assert np.isfinite(wanted).all()
    error = abs(labels_of_kernel(target, z) - wanted).max(0)
    np.testing.assert_array_less(error, 5e-14 * abs(wanted).max(0) + 1e-300)


EXTREME = [0.0, -0.0, 1e-8, -1e-8, 1.0, -1.0, 40.0, -40.0, 700.0, -700.0, 720.0, -720.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", [*FUNCTIONS, *HERMITE])
def test_kernels_at_extreme_fields(name):
    """Infinities and NaN show where NumPy shows them; elsewhere 1e-13 relative, or 1e-15 where the function is small.

    The exponential is infinite from 709 on, not from 709.78 on, and 0 below -708.
    """
    target = Target(f"{name}(z1)", 1)
    z = np.resize(EXTREME, WIDTH)[:, None]
    got, wanted = labels_of_kernel(target, z), target(z)
    np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15, equal_nan=True)


@pytest.mark.parametrize(
    "text", ["exp(z1**2)", "exp(exp(z1))", "sum(exp(z))", "z1**60", "1/z1", "z1/(z1 - z2)", "log(z1)"]
)
def test_diverging_labels_are_not_hidden(text):
    z = np.resize([[800.0, 800.0], [-800.0, 5.0], [1e300, 1.0], [0.0, 0.0], [-3.0, math.nan]], (WIDTH, 2))
    target = Target(text, 2)
    got, wanted = labels_of_kernel(target, z), target(z)
    assert (~np.isfinite(wanted)).any()
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))


def test_elementary_functions_against_numpy():
    """To 1e-15 absolute, of the exponential and the cotangent relative."""
    x = np.concatenate([np.linspace(-40, 40, 4001), np.linspace(-1, 1, 2001), [1e-300, -1e-300, 700.0, -700.0]])
    of = {name: np.array([getattr(elementary, name)(v) for v in x]) for name in ("relu", "step", "sign", "tanh")}
    np.testing.assert_array_equal(of["relu"], np.maximum(x, 0.0))
    np.testing.assert_array_equal(of["step"], x > 0)
    np.testing.assert_array_equal(of["sign"], np.sign(x))
    np.testing.assert_allclose(of["tanh"], np.tanh(x), rtol=0, atol=1e-15)
    sigmoid = np.array([elementary.sigmoid(v) for v in x])
    np.testing.assert_allclose(sigmoid, np.exp(-np.logaddexp(0.0, -x)), rtol=0, atol=1e-15)
    softplus = np.array([elementary.softplus(v) for v in x])
    np.testing.assert_allclose(softplus, np.logaddexp(x, 0.0), rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose([elementary.exp(v) for v in x], np.exp(x), rtol=1e-15)
    np.testing.assert_allclose([elementary.cot(v) for v in x[:99]], 1 / np.tan(x[:99]), rtol=1e-15)
    for name in ("relu", "step", "sign", "tanh", "sigmoid", "softplus", "exp", "cot"):
        assert math.isnan(getattr(elementary, name)(math.nan))
    ends = [elementary.exp(710.0), elementary.exp(-710.0), elementary.step(-math.inf), elementary.softplus(math.inf)]
    assert ends == [math.inf, 0.0, 0.0, math.inf]


# Simulation and storage.


def simulated(target):
    problem = sx.Problem(target, sx.Attention(2, reduction="trace"))
    return sx.sgd(problem, dim=50, learning_rate=0.5, steps=2000, replicas=3, seed=5, records=20, progress=False)


def test_simulation_of_text_is_that_of_the_same_callable():
    """The same noise; roundings grow along a run, over 2000 steps to 1e-9 and less."""
    text = simulated(sx.Target("z1*z2 + tanh(z1)/3", length=2))
    other = simulated(sx.Target(lambda z: z[:, 0] * z[:, 1] + np.tanh(z[:, 0]) / 3, length=2))
    wrong = simulated(sx.Target("z1*z2 + tanh(z1)/3.001", length=2))
    np.testing.assert_allclose(text["overlap"], other["overlap"], rtol=0, atol=1e-9)
    assert abs(text["overlap"] - wrong["overlap"]).max() > 1e-6


def test_text_returns_from_the_attributes_of_a_result(tmp_path):
    target = sx.Target("a*z1*z2\n  + b*sum(He2(z))", length=2, a=0.1, b=-2)
    problem = sx.Problem(target, sx.Attention(2, reduction="trace"))
    back = sx.Problem.from_attrs(problem.to_attrs())
    assert repr(back.target) == repr(target) == "Target('a*z1*z2 + b*sum(He2(z))', length=2, a=0.1, b=-2.0)"
    assert back.to_attrs() == problem.to_attrs()
    assert back.target.expression == target.expression
    z = fields(2)
    np.testing.assert_array_equal(back.target(z), target(z))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda target: pickle.loads(pickle.dumps(target))])
@pytest.mark.parametrize("warm", [False, True])
def test_text_is_copied_and_pickled(again, warm):
    target = sx.Target("[a*z1, softplus(z2) + prod(tanh(z))]", length=2, a=0.7)
    if warm:
        target.kernel  # noqa: B018 - what is compiled must not travel
    other = again(target)
    assert repr(other) == repr(target)
    assert other.spec() == target.spec()
    z = fields(2)
    np.testing.assert_array_equal(other(z), target(z))
    np.testing.assert_array_equal(labels_of_kernel(other, z), labels_of_kernel(target, z))


def test_parameters_are_those_given():
    with pytest.raises(TypeError, match=r"^parameters go with a target given as text, got a with a callable$"):
        sx.Target(lambda z: z[:, 0], 1, a=2.0)
    with pytest.raises(ValueError, match=r"^parameter 'b' does not occur in target 'a\*z1'$"):
        sx.Target("a*z1", 1, a=2.0, b=1.0)


def test_another_value_or_length_compiles_nothing():
    """Numbers travel in the parameters, whatever order SymPy puts the terms into."""
    text = "a*z1*z2 + b*z2 + c*z1 + b*sum(He4(z)*exp(a*z))"
    first = Target(text, 3, a=0.9, b=0.2, c=-3.0)
    second = Target(text, 7, a=0.25, b=20.0, c=7.5)
    assert second.kernel.function is first.kernel.function
    z = fields(7)
    np.testing.assert_allclose(labels_of_kernel(second, z), second(z), rtol=1e-12, atol=1e-11)
    assert Target(text, 3, a=1.0, b=0.2, c=-3.0).kernel.function is not first.kernel.function  # another shape
