"""Exact polynomials in the Hermite basis against quadrature, Monte Carlo and algebra of other libraries."""

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
import sympy
from numpy.polynomial import hermite_e

from seqindex.gaussian.exact import exact
from seqindex.gaussian.hermite_polynomial import HermitePolynomial
from seqindex.model.formula import FIELD, PositionProduct, PositionSum, field
from seqindex.theory.expansion import polynomial_of

FIELDS = [field(i) for i in (1, 2, 3)]


def random_tree(seed, terms=7, degree=6):
    """A random polynomial of three fields with rational coefficients, as a product of sums and a sum."""
    rng = np.random.default_rng(seed)

    def part():
        numbers = [sympy.Rational(int(rng.integers(-9, 10)), int(rng.integers(1, 8))) for _ in range(terms)]
        powers = rng.integers(0, degree // 2 + 1, (terms, 3))
        powers[powers.sum(1) > degree // 2] //= 2
        monomials = [sympy.prod([z ** int(p) for z, p in zip(FIELDS, row, strict=True)]) for row in powers]
        return sum(x * monomial for x, monomial in zip(numbers, monomials, strict=True))

    return part() * part() + part()


def values(tree, z):
    return np.broadcast_to(sympy.lambdify(FIELDS, tree, "numpy")(*np.moveaxis(z, -1, 0)), z.shape[:-1])


def hermite(z, alpha):
    return math.prod(hermite_e.hermeval(z[..., i], np.eye(a + 1)[a]) for i, a in enumerate(alpha))


def sparse(alpha):
    return tuple((i + 1, a) for i, a in enumerate(alpha) if a)


@pytest.mark.parametrize("seed", range(6))
def test_coefficients_equal_gauss_hermite_quadrature(seed):
    tree = random_tree(seed)
    polynomial = polynomial_of(tree)
    x, w = hermite_e.hermegauss(16)  # exact to degree 31
    z = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    weights = np.einsum("i,j,k->ijk", w, w, w) / (2 * np.pi) ** 1.5
    g = values(tree, z)
    scale = math.sqrt((weights * g**2).sum())
    alphas = [a for a in itertools.product(range(9), repeat=3) if sum(a) <= 10]
    for alpha in alphas:
        wanted = (weights * g * hermite(z, alpha)).sum()
        size = scale * math.sqrt(math.prod(map(math.factorial, alpha)))
        assert float(polynomial.coefficients.get(sparse(alpha), 0)) == pytest.approx(wanted, abs=1e-11 * size)
    assert set(polynomial.terms) <= {sparse(a) for a in itertools.product(range(13), repeat=3) if sum(a) <= 12}
    assert polynomial.square_mean == pytest.approx(scale**2, rel=1e-12)
    np.testing.assert_allclose(polynomial(z[:4, :4, :4]), g[:4, :4, :4], rtol=1e-9, atol=1e-6 * scale)


def test_coefficients_agree_with_monte_carlo():
    """Twenty coefficients within 5 standard errors (false alarm 1e-5 in all); alpha! left out is rejected."""
    tree = random_tree(11, degree=4)
    polynomial = polynomial_of(tree)
    z = np.random.default_rng(12).standard_normal((400_000, 3))
    g = values(tree, z)
    alphas = [a for a in itertools.product(range(4), repeat=3) if sum(a) <= 3]
    assert len(alphas) == 20
    distance, wrong = [], []
    for alpha in alphas:
        sample = g * hermite(z, alpha)
        error = sample.std() / math.sqrt(len(sample))
        distance.append(abs(sample.mean() - float(polynomial.coefficients.get(sparse(alpha), 0))) / error)
        wrong.append(abs(sample.mean() - float(polynomial.terms.get(sparse(alpha), 0))) / error)
    assert max(distance) < 5.0
    assert max(wrong) > 8.0


@pytest.mark.parametrize(("m", "n"), [(0, 3), (1, 1), (2, 5), (4, 4), (7, 6)])
def test_products_of_one_field(m, n):
    product = HermitePolynomial({sparse((m,)): 1}) * HermitePolynomial({sparse((n,)): 1})
    wanted = hermite_e.hermemul(np.eye(m + 1)[m], np.eye(n + 1)[n])
    assert [product.terms.get(sparse((k,)), 0) for k in range(m + n + 1)] == wanted.astype(int).tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_sums_products_and_powers_are_those_of_the_functions(seed):
    p, q = (polynomial_of(random_tree(seed + shift, terms=4, degree=4)) for shift in (20, 40))
    z = np.random.default_rng(3).standard_normal((50, 3))
    np.testing.assert_allclose((p + q)(z), p(z) + q(z), rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose((p * q)(z), p(z) * q(z), rtol=1e-8, atol=1e-5)
    np.testing.assert_allclose((p**3)(z), p(z) ** 3, rtol=1e-7, atol=1e-2)
    square = (p * p).terms.get((), 0)
    assert square == sum(a * a * math.prod(math.factorial(d) for _, d in index) for index, a in p.terms.items())


@pytest.mark.parametrize(
    "number",
    [
        "sqrt(8) - 2*sqrt(2)",
        "sqrt(2)*sqrt(3) - sqrt(6)",
        "1/(1 + sqrt(2)) - sqrt(2) + 1",
        "sqrt(5 + 2*sqrt(6)) - sqrt(2) - sqrt(3)",
        "(sqrt(pi) + 1)**2 - pi - 2*sqrt(pi) - 1",
    ],
)
def test_zero_is_recognised_exactly(number):
    number = sympy.sympify(number)
    assert exact(number) == 0
    assert polynomial_of(number * field(1) + field(1) * field(2)).orders == [2]
    assert exact(number + sympy.Rational(1, 10**30)) != 0


def test_numbers():
    assert exact(0.1) == Fraction(0.1)
    assert exact(np.int64(3)) == 3
    with pytest.raises(TypeError, match="coefficient must be a number, got z1"):
        exact(field(1))
    with pytest.raises(ValueError, match="coefficient must be real and finite, got I"):
        exact(sympy.I)
    with pytest.raises(ValueError, match="coefficient must be finite, got inf"):
        exact(math.inf)


def test_what_is_no_polynomial():
    z1 = field(1)
    for tree in (sympy.exp(z1), 1 / z1, sympy.sqrt(z1), abs(z1), z1 ** field(2), PositionSum(sympy.tanh(FIELD), 3)):
        assert polynomial_of(tree) is None
    assert polynomial_of(sympy.exp(1) * z1).terms == {((1, 1),): sympy.E}


def test_long_sequences_are_quick():
    start = time.perf_counter()
    he2 = polynomial_of(PositionSum(FIELD**2 - 1, 1000))
    assert he2.terms == {((i, 2),): 1 for i in range(1, 1001)}
    square = polynomial_of(PositionSum(FIELD, 200) ** 2 / sympy.sqrt(2))
    assert len(square.terms) == 200 + 200 * 199 // 2 + 1
    assert square.terms[()] == exact(100 * sympy.sqrt(2))
    assert square.taylor([1] * 200, 2)[0][2] == pytest.approx(200**2 / math.sqrt(2), rel=1e-15)
    assert polynomial_of(PositionProduct(FIELD, 1000)).orders == [1000]
    assert time.perf_counter() - start < 30.0


@pytest.mark.parametrize("tree", [PositionSum(FIELD, 200) ** 4, PositionSum(FIELD + field(1), 500) ** 30])
def test_too_many_terms_are_refused_at_once(tree):
    start = time.perf_counter()
    with pytest.raises(ValueError, match="expression must expand to at most 1,000,000 Hermite terms, got more"):
        polynomial_of(tree)
    assert time.perf_counter() - start < 30.0


@pytest.mark.parametrize("seed", range(3))
def test_taylor_coefficients_are_those_of_the_shifted_mean(seed):
    tree = random_tree(seed + 60)
    polynomial = polynomial_of(tree)
    rng = np.random.default_rng(seed)
    x, w = hermite_e.hermegauss(10)
    z = np.stack(np.meshgrid(x, x, x, indexing="ij"), axis=-1)
    weights = np.einsum("i,j,k->ijk", w, w, w) / (2 * np.pi) ** 1.5
    for v in (rng.standard_normal(3), np.array([1.0, -2.0, 0.0])):
        coefficients, errors = polynomial.taylor(v, 12)
        for t in (-0.7, 0.4, 1.3):
            wanted = (weights * values(tree, z + t * v)).sum()
            assert np.polyval(coefficients[::-1], t) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert (errors == 0.0).all() == bool((v == np.round(v)).all())
        assert errors.max() < 1e-9


def test_an_odd_pair_cancels_exactly():
    values, errors = polynomial_of(sympy.sqrt(3) * (field(1) ** 3 - field(2) ** 3)).taylor([1, 1], 3)
    assert values.tolist() == errors.tolist() == [0.0] * 4
