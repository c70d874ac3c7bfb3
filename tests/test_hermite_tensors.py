"""Hermite series of any target and its tensors, against closed forms, mpmath, brute force and other algorithms."""

import itertools
import math
import time

import mpmath
import numpy as np
import pytest
import sympy
from numpy.polynomial import hermite_e
from scipy.integrate import quad
from scipy.special import erf, k0
from scipy.stats import norm

import seqindex as sx
from seqindex.gaussian.adaptive import line_coefficients
from seqindex.gaussian.product import product_coefficients
from seqindex.model.activation import Activation
from seqindex.model.formula import INPUT
from seqindex.theory.hermite_series import HermiteSeries, activation_coefficients, contractions, hermite_tensors
from seqindex.theory.hermite_tensor import HermiteTensor

ROOT = math.sqrt(2 * math.pi)


def double_factorial(n):
    return math.prod(range(n, 0, -2))


def tensor(text, length, order, **parameters):
    return hermite_tensors(sx.Target(text, length=length, **parameters), order)[0]


# one field


def test_relu_has_its_closed_form():
    values, errors = activation_coefficients(Activation("relu(u)").expression, 10)
    wanted = [1 / ROOT, 0.5, 1 / ROOT] + [0.0] * 8
    for k in range(4, 11, 2):
        wanted[k] = (-1) ** (k // 2 - 1) * double_factorial(k - 3) / ROOT
    assert (np.abs(values - wanted) <= errors).all()
    assert (errors <= 1e-10).all()


def test_a_kink_elsewhere_has_its_closed_form():
    values, errors = activation_coefficients(Activation("relu(u - 1)").expression, 10)
    wanted = [norm.pdf(1) - norm.sf(1), norm.sf(1)] + [
        norm.pdf(1) * hermite_e.hermeval(1.0, np.eye(k)[k - 1]) for k in range(1, 10)
    ]
    assert (np.abs(values - wanted) <= errors).all()
    assert (errors <= 1e-10).all()


@pytest.mark.parametrize("scale", [1.0, 0.7, 2.5])
def test_erf_has_its_closed_form(scale):
    """E[erf(s x) He_k] by Stein's lemma: erf' is a Gaussian, whose Hermite coefficients are known."""
    values, errors = activation_coefficients(erf, 11, scale)
    variance = 1 / (2 * scale**2)
    wanted = np.zeros(12)
    for k in range(1, 12, 2):
        j = (k - 1) // 2
        first = 2 * scale / math.sqrt(math.pi) * math.sqrt(variance / (1 + variance))
        wanted[k] = first * (-1 / (1 + variance)) ** j * double_factorial(2 * j - 1)
    assert (np.abs(values - wanted) <= errors).all()
    assert (errors <= 1e-10).all()


FUNCTIONS = {
    "tanh(u)": mpmath.tanh,
    "sigmoid(u)": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus(u)": lambda x: mpmath.log1p(mpmath.exp(x)),
    "abs(u - 1/3)": lambda x: abs(x - mpmath.mpf(1) / 3),
}


@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_activations_equal_integrals_of_high_precision(text, scale):
    orders = (0, 1, 2, 3, 6, 9)
    values, errors = activation_coefficients(Activation(text).expression, 9, scale)
    with mpmath.workdps(25):
        breaks = sorted([-14, -7, -3, -1, 0, mpmath.mpf(1) / (3 * mpmath.mpf(scale)), 1, 3, 7, 14])
        for k in orders:
            he = [int(c) for c in hermite_e.herme2poly(np.eye(k + 1)[k])][::-1]
            wanted = mpmath.quad(
                lambda x, he=he: FUNCTIONS[text](mpmath.mpf(scale) * x) * mpmath.polyval(he, x) * mpmath.npdf(x), breaks
            )
            assert abs(values[k] - float(wanted)) <= errors[k] <= 1e-10


@pytest.mark.parametrize(
    ("text", "order", "wanted"),
    [  # math.md, rows 1 to 7 of 6A
        ("relu(u)", 1, 0.5),
        ("relu(u)", 2, 0.39894228040143),
        ("relu(u)", 4, -0.39894228040143),
        ("tanh(u)", 1, 0.60570550960216),
        ("tanh(u)", 3, -0.36359537628097),
        ("sigmoid(u)", 1, 0.20662096414191),
        ("softplus(u)", 2, 0.20662096414191),
        ("erf(u/sqrt(2))", 1, 0.56418958354776),
        ("erf(u/sqrt(2))", 3, -0.28209479177388),
        ("softplus(u)", 0, 0.80605918334744),
    ],
)
def test_reference_values(text, order, wanted):
    assert activation_coefficients(Activation(text).expression, order)[0][order] == pytest.approx(wanted, abs=1e-13)


def test_polynomial_activations_are_exact():
    values, errors = activation_coefficients(INPUT**2, 4, scale=0.5)
    assert values.tolist() == [0.25, 0.0, 0.5, 0.0, 0.0]
    assert errors.tolist() == [0.0] * 5
    he7 = Activation("He7(u)").expression
    assert activation_coefficients(he7, 8)[0].tolist() == [0.0] * 7 + [5040.0, 0.0]


def test_moments_of_an_activation():
    """E[relu^2 relu'^2] = 1/2 and E[u^2 (2 u)^2] = 12; a callable and an expression agree."""
    relu = Activation("relu(u)")
    square = relu.expression**2 * relu.derivative**2
    assert activation_coefficients(square, 0)[0][0] == pytest.approx(0.5, abs=1e-13)
    assert activation_coefficients((INPUT**2 * sympy.diff(INPUT**2) ** 2), 0)[0][0] == 12.0
    tanh = Activation("tanh(u)")
    symbolic = activation_coefficients(tanh.expression * tanh.derivative**2, 5)[0]
    plain = activation_coefficients(lambda x: np.tanh(x) / np.cosh(x) ** 4, 5)[0]
    np.testing.assert_allclose(symbolic, plain, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sign(x - 0.3),
        lambda x: np.sqrt(np.abs(x - 0.7)),
        lambda x: np.log(np.abs(x)),
        lambda x: np.tanh(40 * (x + 0.2)),
        lambda x: np.floor(x),
        lambda x: np.sin(30 * x),
    ],
)
def test_errors_on_a_line_are_bounds(function):
    """Against a plain rule that knows none of the kinks and is good to about its step at a jump."""
    result = line_coefficients(lambda x: function(x)[None], 6)
    x = (np.arange(-200_000, 200_000) + 0.5) * 5e-5
    weight = function(x) * norm.pdf(x) * 5e-5
    for k in range(7):
        wanted = (weight * hermite_e.hermeval(x, np.eye(k + 1)[k])).sum() / math.sqrt(math.factorial(k))
        assert result.values[0, k] == pytest.approx(wanted, abs=3e-5)
    assert result.errors.max() < 1e-12


# several fields


def test_attention_has_its_reference_coefficients():
    """math.md, rows 24 and 25: S_11 and the trace at length 2."""
    student = sx.Attention(2)
    series = HermiteSeries(sx.Target(lambda z: student(z), length=2), 4)
    first = {(): 0.6464466094067, (2, 0): 0.1767766952966, (1, 1): -0.1062875009029, (0, 2): -0.0357983065092}
    first |= {(4, 0): -0.2651650429450, (2, 2): -0.0400427526905}
    trace = {(2, 0): 0.1409783887875, (1, 1): -0.2125750018058, (4, 0): -0.2402565161430, (2, 2): -0.0800855053810}
    for alpha, wanted in first.items():
        index = tuple((i + 1, a) for i, a in enumerate(alpha) if a)
        entry = series.entries(sum(alpha))[0][index]
        assert entry.value == pytest.approx(wanted, abs=2e-13)
        assert entry.error < 1e-12
    for alpha, wanted in trace.items():
        index = tuple((i + 1, a) for i, a in enumerate(alpha) if a)
        outputs = series.entries(sum(alpha))
        assert outputs[0][index].value + outputs[3][index].value == pytest.approx(wanted, abs=4e-13)
    assert all(not entries for entries in series.entries(3))  # attention is even


def product_density_tail(c):
    """E max(z1 z2 - c, 0): z1 z2 has the density K_0(|x|) / pi."""
    return quad(lambda x: (x - c) * k0(x) / np.pi, c, np.inf, epsabs=1e-13)[0]


@pytest.mark.parametrize("as_text", [True, False])
def test_kinks_off_the_axes_have_honest_errors(as_text):
    if as_text:
        target = sx.Target("relu(z1*z2 - 1/2)", length=2)
    else:
        target = sx.Target(lambda z: np.maximum(z[..., 0] * z[..., 1] - 0.5, 0.0), length=2)
    values, errors = contractions(target, [1.0, 0.0], 2)
    assert abs(values[0, 0] - product_density_tail(0.5)) <= errors[0, 0] < 1e-3
    assert errors[0, 0] > 1e-12


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("relu(z1 - 1) * cos(z1*z2)", lambda z: np.maximum(z[..., 0] - 1, 0) * np.cos(z[..., 0] * z[..., 1])),
        ("abs(z1 + z2) * tanh(z2)", lambda z: np.abs(z[..., 0] + z[..., 1]) * np.tanh(z[..., 1])),
        ("relu(z1 - 1/3) * z2 / sqrt(1 + z1**2 + z2**2)", None),
    ],
)
def test_kinks_across_a_direction_are_found(text, function):
    target = sx.Target(text, length=2)
    series = HermiteSeries(target, 6)
    if function is not None:
        plain = HermiteSeries(sx.Target(function, length=2), 6)
        for v in ([1.0, 1.0], [0.3, -1.2]):
            values, errors = series.contractions(v)
            others, slack = plain.contractions(v)
            assert errors.max() < 1e-9
            assert (np.abs(values - others) <= errors + slack).all()
    z = np.random.default_rng(0).standard_normal((300_000, 2))
    sample = target(z)[:, 0]
    assert abs(series.taylor([1.0, 0.0])[0][0, 0] - sample.mean()) < 5 * sample.std() / math.sqrt(len(z))


BAD = {
    "1/z1": "must have a finite square mean",
    "z2/(z1 + z2)": "must be finite|must have a finite square mean",
    "1/(z1 - 1)": "must be finite",
    "log(z1)": "must be finite, got nan",
    "exp(z1**2)": "must have a finite square mean",
    "exp(z1*z2)": "must have a finite square mean",
    "1/(z1*z2)**2": "must have a finite square mean",
    "z3/(z1*z2 + 2)": "must be finite",
    "sqrt(z1)": "must be finite, got nan",
    "tan(z1)": "must have a finite square mean",
    "1/(z1 - z2**2 + 0.1234)": "must have a finite square mean",
    "log(abs(z1*z2 - 1/3))*z3/(z1 + z2 - z3 + 0.317)": "must have a finite square mean",
}


@pytest.mark.parametrize("text", BAD)
def test_what_cannot_be_expanded_is_refused_in_one_line(text):
    start = time.perf_counter()
    with pytest.raises(ValueError, match=f"target ({BAD[text]})") as caught:
        HermiteSeries(sx.Target(text, length=3))
    assert "\n" not in str(caught.value)
    assert time.perf_counter() - start < 30.0


def test_callables_that_are_not_finite():
    with pytest.raises(ValueError, match=r"target must be finite, got inf at the point \(-10.5, 0\)"):
        HermiteSeries(sx.Target(lambda z: 1 / np.abs(z[..., 0] * z[..., 1]), length=2))
    with pytest.raises(ValueError, match="activation must be finite, got nan"):
        activation_coefficients(np.log, 3)


SHIFTED = {
    "tanh(z1)*exp(z2/3)*z3": 1e-9,
    "sum(tanh(z)) + z1*z2**2": 1e-9,
    "prod(1 + z/2 + tanh(z))": 1e-9,
    "tanh(z1 + z2 - z3/2)": 1e-9,
    "sin(z1*z2/2) * abs(z3)": 1e-9,
    "(sum(z) + 1)**2 * sigmoid(z1)": 1e-9,
    "exp(-sum(z**2)/8 + z1*z2/10)": 1e-9,
    "sum(erf(z) * z1)": 1e-9,
}


@pytest.mark.parametrize("text", SHIFTED)
def test_taylor_coefficients_are_those_of_the_shifted_mean(text):
    """sum_k <C_k, v^k> t^k / k! = E g(z + t v), by a trapezoid rule in three dimensions."""
    target = sx.Target(text, length=3)
    v = np.array([0.4, -0.3, 0.2])
    values, errors = HermiteSeries(target, 24).taylor(v)
    x = np.linspace(-9, 9, 121)
    z = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    if "abs" in text:  # E |z3 + s| in closed form, the rest smooth
        z = z[:, :, :1]
        target = sx.Target("sin(z1*z2/2)", length=3)
    weight = norm.pdf(x) * (x[1] - x[0])
    for t in (-1.0, 0.5, 1.0):
        g = np.einsum("i,j,ijk->k", weight, weight, target(z + t * v)[..., 0])
        s = abs(t * v[2])
        last = [2 * norm.pdf(s) + s * (2 * norm.cdf(s) - 1)] if "abs" in text else weight
        wanted = g @ np.array(last)
        assert abs(np.polyval(values[0][::-1], t) - wanted) <= SHIFTED[text]
    assert errors.max() < 1e-9


def test_long_sequences_have_their_closed_forms_quickly():
    length, order = 1000, 6
    ones = np.ones(length)
    start = time.perf_counter()
    c = activation_coefficients(Activation("tanh(u)").expression, order)[0]
    values, _ = contractions(sx.Target("sum(tanh(z))", length=length), ones, order)
    np.testing.assert_allclose(values[0], length * c, atol=1e-8)
    values, _ = contractions(sx.Target("tanh(sum(z)/sqrt(L))", length=length), ones / math.sqrt(length), order)
    np.testing.assert_allclose(values[0], c, atol=1e-11)
    values, _ = HermiteSeries(sx.Target("prod(1 + z)", length=length)).taylor(ones, order)
    assert values[0].tolist() == [math.comb(length, k) for k in range(order + 1)]
    values, _ = HermiteSeries(sx.Target("exp(-sum(z**2)/(2*L))", length=length), order).taylor(ones)
    mean, rate = (1 + 1 / length) ** (-length / 2), -length / (2 * (length + 1))
    wanted = [0.0 if k % 2 else mean * rate ** (k // 2) / math.factorial(k // 2) for k in range(order + 1)]
    np.testing.assert_allclose(values[0], wanted, atol=1e-12)
    values, _ = contractions(sx.Target("sum(z)**4", length=100), np.ones(100), 4)  # (100)^2 E (z + t 10)^4
    np.testing.assert_allclose(values[0], 1e4 * np.array([3, 0, 12e2, 0, 24e4]), rtol=1e-12, atol=1e-6)
    assert time.perf_counter() - start < 30.0


def test_sampled_coefficients_lie_within_their_errors():
    """exp(a.z) of six fields has the coefficients exp(|a|^2 / 2) a^alpha; a fifth of the errors is too little."""
    a = np.array([0.5, -0.4, 0.3, 0.0, 0.2, 0.1])
    target = sx.Target(lambda z: np.exp(z @ a), length=6)
    series = HermiteSeries(target, 4)
    assert series.sampled
    ratios = []
    for order in (1, 2, 3):
        for index, entry in series.entries(order)[0].items():
            wanted = math.exp(a @ a / 2) * math.prod(a[p - 1] ** d for p, d in index)
            ratios.append(abs(entry.value - wanted) / entry.error)
    assert len(ratios) == 5 + 16 + 40  # the fourth field is found to be even
    assert 0.2 < max(ratios) < 1.0  # the errors are six to seven standard errors; 61 coefficients reach two or three
    values, errors = series.taylor(a)
    wanted = math.exp(a @ a / 2) * np.array([(a @ a) ** k / math.factorial(k) for k in range(5)])
    assert (np.abs(values[0] - wanted) <= errors[0]).all()


def test_parities_make_sampled_coefficients_vanish():
    series = HermiteSeries(sx.Target(lambda z: np.tanh(z.prod(-1)), length=5), 5)
    assert [len(series.entries(order)[0]) for order in (1, 2, 3, 4, 5)] == [0, 0, 0, 0, 1]


def test_text_and_callable_agree():
    text = sx.Target("[tanh(z1)*z2, cos(z1 + z2), z1**2*z2]", length=2)
    for v in ([1.0, 1.0], [0.3, -0.8]):
        values, errors = contractions(text, v, 8)
        others, slack = contractions(sx.Target(text.__call__, length=2), v, 8)
        assert values.shape == (3, 9)
        assert (np.abs(values - others) <= errors + slack).all()
        assert max(errors.max(), slack.max()) < 1e-8


def test_product_grids_refuse_to_trust_luck():
    """A kink on the coarse grid's own nodes gives two grids that agree on nothing but themselves."""
    result = product_coefficients(lambda z: np.abs(z[:, 0] - z[:, 1] - 1.0)[None], 2, 2)
    s = math.sqrt(2)
    wanted = s * (2 * norm.pdf(1 / s) + (2 * norm.cdf(1 / s) - 1) / s)
    assert abs(result.values[0, 0, 0] - wanted) <= result.errors[0, 0, 0]


# tensors


def test_contractions_of_tensors_and_of_series_agree():
    target = sx.Target("He2(z1)*tanh(z2) + 3*z1*z2*z3 + sum(He3(z)) + exp(z3/2)", length=3)
    series = HermiteSeries(target, 5)
    for v in ([1, 1, 1], [0.4, -1.1, 0.3]):
        values, _ = series.contractions(v)
        for order in range(1, 6):
            (found,) = series.tensors(order)
            assert found.contract(v) == pytest.approx(values[0, order], abs=1e-11)
            assert not found.exact
            assert 0.0 < found.error < 1e-10


def full(sparse_tensor, length, order):
    """All L^k entries."""
    result = np.zeros((length,) * order)
    for places in itertools.product(range(length), repeat=order):
        index = tuple((p + 1, places.count(p)) for p in sorted(set(places)))
        result[places] = float(sparse_tensor.entries.get(index, 0))
    return result


def random_tensor(seed, length, order):
    rng = np.random.default_rng(seed)
    entries = {}
    for places in itertools.combinations_with_replacement(range(1, length + 1), order):
        entries[tuple((p, places.count(p)) for p in sorted(set(places)))] = float(rng.standard_normal())
    return HermiteTensor(length, order, entries)


@pytest.mark.parametrize(("length", "order"), [(2, 3), (3, 3), (3, 4), (4, 2), (2, 5)])
def test_algebra_equals_that_of_full_arrays(length, order):
    a, b = random_tensor(1, length, order), random_tensor(2, length, order)
    x, y = full(a, length, order), full(b, length, order)
    v = np.random.default_rng(3).standard_normal(length)
    contracted = x
    for _ in range(order):
        contracted = contracted @ v
    assert a.contract(v) == pytest.approx(float(contracted), rel=1e-12)
    assert a.frobenius_norm == pytest.approx(float(np.linalg.norm(x)), rel=1e-12)
    assert a.inner(b) == pytest.approx(float((x * y).sum()), rel=1e-12)
    with pytest.raises(ValueError, match=f"other must have order {order} and length {length}, got {order + 1} and"):
        a.inner(random_tensor(1, length, order + 1))


def test_parseval():
    """E[F G] = sum_k <C_k(F), C_k(G)> / k!, exact polynomials, by Gauss-Hermite on the other side."""
    f, g = "He2(z1)*z2 + z1**3/2 + z2 - 1", "z1*z2**2 + (z1 + z2)**3 + 2*z2"
    x, w = hermite_e.hermegauss(8)
    z = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    first, second = (sx.Target(text, length=2)(z)[..., 0] for text in (f, g))
    wanted = np.einsum("i,j,ij->", w, w, first * second) / (2 * np.pi)
    means = [float(HermiteSeries(sx.Target(text, length=2)).taylor([0, 0])[0][0, 0]) for text in (f, g)]
    total = means[0] * means[1]
    for k in range(1, 5):
        total += tensor(f, 2, k).inner(tensor(g, 2, k)) / math.factorial(k)
    assert total == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_tensors_rotate_with_the_target(seed):
    """C_k(g o A) = A^T C_k(g) exactly, for an orthogonal A of rational numbers; norms and decompositions stay."""
    rng = np.random.default_rng(seed)
    numbers = [int(x) for x in rng.integers(-5, 6, 5)]
    forms = ("He3({0})", "{0}*{1}**2", "He2({1})*{0}", "{1}**3", "{0}*{1}")
    text = " + ".join(f"({n})*({form})" for n, form in zip(numbers, forms, strict=True))
    turned = text.format("(3*z1/5 - 4*z2/5)", "(4*z1/5 + 3*z2/5)")
    text = text.format("z1", "z2")
    a = np.array([[0.6, -0.8], [0.8, 0.6]])
    for order in (1, 2, 3):
        plain, rotated = tensor(text, 2, order), tensor(turned, 2, order)
        assert rotated.exact
        for v in rng.standard_normal((3, 2)):
            assert rotated.contract(v) == pytest.approx(plain.contract(a @ v), rel=1e-11, abs=1e-11)
        assert rotated.operator_norm() == pytest.approx(plain.operator_norm(), rel=1e-9)
        assert rotated.frobenius_norm == pytest.approx(plain.frobenius_norm, rel=1e-12)
        assert (rotated.decomposition() is None) == (plain.decomposition() is None)


def largest_on_the_circle(found):
    angles = np.linspace(0.0, 2 * np.pi, 200_001)
    x = np.stack([np.cos(angles), np.sin(angles)])
    total = np.zeros(len(angles))
    for index, value in found.entries.items():
        degree = dict(index)
        count = math.comb(found.order, degree.get(1, 0))
        total += count * float(value) * x[0] ** degree.get(1, 0) * x[1] ** degree.get(2, 0)
    return np.abs(total).max()


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_operator_norms_equal_brute_force_on_the_circle(seed, order):
    found = random_tensor(seed, 2, order)
    assert found.operator_norm() == pytest.approx(largest_on_the_circle(found), rel=1e-8)


@pytest.mark.parametrize(("length", "order"), [(3, 3), (3, 4), (5, 3)])
def test_no_random_direction_exceeds_the_operator_norm(length, order):
    found = random_tensor(7, length, order)
    x = np.random.default_rng(8).standard_normal((400_000, length))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    array = full(found, length, order)
    letters = "abcd"[:order]
    values = np.abs(np.einsum(f"{letters},{','.join('z' + c for c in letters)}->z", array, *[x] * order, optimize=True))
    best = found.operator_norm()
    assert values.max() <= best * (1 + 1e-12)
    assert values.max() > 0.8 * best  # and it is not a loose bound


def test_reference_norms():
    assert tensor("z1*z2*z3", 3, 3).operator_norm() == pytest.approx(2 / math.sqrt(3), rel=1e-12)
    assert tensor("He2(z1) + z1*z2", 2, 2).operator_norm() == pytest.approx(1 + math.sqrt(2), rel=1e-12)
    assert tensor("prod(z)", 6, 6).operator_norm() == pytest.approx(math.factorial(6) / 6**3, rel=1e-12)
    assert tensor("z1 - 2*z2", 3, 1).operator_norm() == pytest.approx(math.sqrt(5), rel=1e-14)
    assert tensor("He3(z1)", 3, 2).operator_norm() == 0.0


def test_decompositions():
    found = tensor("He2(z1) + z1*z2", 2, 2).decomposition()
    np.testing.assert_allclose(found.weights, [1 + math.sqrt(2), 1 - math.sqrt(2)], rtol=1e-12)
    (row,) = tensor("z1 - 2*z3", 3, 1).decomposition().vectors
    np.testing.assert_allclose(np.abs(row), np.array([1, 0, 2]) / math.sqrt(5), rtol=1e-14)
    assert tensor("z1*z2*z3", 3, 3).decomposition() is None
    assert tensor("He3(z1) + z1*z2*z3/1000", 3, 3).decomposition() is None
    assert tensor("z1*He2(z2)", 2, 3).decomposition() is None
    assert len(tensor("He3(z1)", 3, 2).decomposition().weights) == 0


@pytest.mark.parametrize("order", [3, 4, 5])
@pytest.mark.parametrize("length", [2, 4])
def test_rotated_sums_are_decomposed(length, order):
    """sum_i w_i He_k(q_i.z) with orthonormal q_i has the weights k! w_i and the vectors q_i."""
    rng = np.random.default_rng(order + 10 * length)
    q = np.linalg.qr(rng.standard_normal((length, length)))[0]
    weights = np.arange(1.0, length + 1) * np.where(np.arange(length) % 2, -1.0, 1.0)
    parameters = {f"q{i}{j}": float(q[i, j]) for i in range(length) for j in range(length)}
    forms = ["+".join(f"q{i}{j}*z{j + 1}" for j in range(length)) for i in range(length)]
    text = " + ".join(f"({w})*He{order}({form})" for w, form in zip(weights, forms, strict=True))
    found = tensor(text, length, order, **parameters).decomposition()
    signed = np.abs(weights) if order % 2 else weights
    np.testing.assert_allclose(found.weights, math.factorial(order) * signed[::-1], rtol=1e-6)
    np.testing.assert_allclose(np.abs((found.vectors * q[::-1]).sum(1)), 1.0, rtol=1e-6)


def test_diagonal_tensors_at_any_length():
    start = time.perf_counter()
    found = tensor("sum(He4(z)) - 3*He4(z7)", 1000, 4)
    decomposition = found.decomposition()
    assert found.operator_norm() == 48.0
    assert sorted(decomposition.weights.tolist()) == [-48.0] + [24.0] * 999
    np.testing.assert_array_equal(decomposition.vectors @ decomposition.vectors.T, np.eye(1000))
    assert found.contract(np.ones(1000)) == 24.0 * 999 - 48.0
    chain = tensor(" + ".join(f"z{i}*z{i + 1}*z{i + 2}" for i in range(1, 99)), 100, 3)
    assert chain.decomposition() is None
    assert 2 / math.sqrt(3) < chain.operator_norm() < 6 / math.sqrt(3)
    assert time.perf_counter() - start < 30.0


def test_messages():
    with pytest.raises(ValueError, match="order must be between 0 and 150, got 151"):
        HermiteSeries(sx.Target("tanh(z1)", length=1), 151)
    with pytest.raises(ValueError, match="order must be at most 4, to which the series goes, got 5"):
        HermiteSeries(sx.Target("tanh(z1)", length=1), 4).entries(5)
    with pytest.raises(ValueError, match=r"vector must have shape \(2,\), got \(3,\)"):
        contractions(sx.Target("z1*z2", length=2), [1, 1, 1], 2)
    with pytest.raises(ValueError, match=r"C_3 has 1.66e\+08 entries; at most 600,000 are listed"):
        hermite_tensors(sx.Target("prod(1 + z)", length=1000), 3)
    with pytest.raises(ValueError, match="expression must expand to at most 1,000,000 Hermite terms"):
        HermiteSeries(sx.Target("sum(He2(z))**4", length=200))
