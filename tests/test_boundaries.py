"""Boundaries of the positional-semantic phases, against independent sums and reference numbers."""

import math
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import brentq

import seqindex as sx
from seqindex.gaussian.quadrature import trapezoid
from seqindex.model.softmax import attention_matrix
from seqindex.model.target import pair_alignment
from seqindex.theory.boundaries import KINDS, integrals_of, phase_boundary
from seqindex.theory.corner_integrals import Integrals, attention_jacobian
from seqindex.theory.phase_norm import NormConditions, SemanticCorner
from seqindex.theory.phase_square import SquareConditions

OPPOSITE = sx.OppositeEncoding()
SKEW = sx.Encoding([[0.9], [-0.3]])
ASYMMETRIC = np.array([[0.9, 0.1], [0.25, 0.75]])
A3 = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
ROWS3 = sx.Encoding([[1.0], [0.1], [-1.1]])


# Reference values: omega at a = 1, 0.9 and 0.8.
REFERENCE = {
    "steepest": (0.6409626179022, 0.7266098347261, 0.8569003442425),
    "equal_risk": (0.7376068292567, 0.8120875716845, 0.9175096628173),
    "positional": (0.5082142373746, None, None),
    "semantic": (0.8416054039378, None, None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_reference_values(kind):
    for alignment, wanted in zip((1.0, 0.9, 0.8), REFERENCE[kind], strict=True):
        if wanted is not None:
            assert phase_boundary(kind, alignment) == pytest.approx(wanted, abs=2e-13)


def test_alignments_where_boundaries_meet():
    crossing = brentq(lambda a: phase_boundary("positional", a) - phase_boundary("semantic", a), 0.76, 0.85, xtol=1e-14)
    assert crossing == pytest.approx(0.7634998724185, abs=2e-13)
    at_one = brentq(
        lambda a: SquareConditions(integrals_of(OPPOSITE), pair_alignment(a)).steepest(1.0), 0.7, 0.8, xtol=1e-14
    )
    assert at_one == pytest.approx(0.7243908814315, abs=2e-13)
    assert math.isnan(phase_boundary("steepest", 0.7243))
    assert phase_boundary("steepest", 0.7245) < 1.0


@pytest.mark.parametrize("loss", ["square", "norm"])
def test_order_at_full_alignment(loss):
    omegas = [phase_boundary(kind, 1.0, loss=loss) for kind in ("positional", "steepest", "equal_risk", "semantic")]
    assert omegas == sorted(omegas)


# --- Brute force: the risk summed directly over z* and the noise, differentiated by finite differences


@lru_cache(maxsize=1)
def product_nodes(step=0.45, extent=6.75, negligible=1e-13):
    rule = trapezoid(step, extent)
    grids = np.meshgrid(*[np.arange(rule.nodes.size)] * 4, indexing="ij", sparse=True)
    weights = np.ones(())
    for grid in grids:
        weights = weights * rule.weights[grid]
    kept = np.nonzero(weights > negligible)
    nodes = np.stack([rule.nodes[i] for i in kept], axis=-1)
    return nodes[:, :2], nodes[:, 2:], weights[kept]


def brute_risk(m, e, omegas, matrix, encoding):
    """Risks at several omegas, but for what depends on omega alone."""
    star, noise, weights = product_nodes()
    z = m * star + math.sqrt(max(1.0 - m * m, 0.0)) * noise + encoding.matrix[:, 0] * e
    s_star, s = attention_matrix(star), attention_matrix(z)
    risks = []
    for omega in omegas:
        y = (1.0 - omega) * s_star + omega * matrix
        risks.append(weights @ ((s - 2.0 * y) * s).sum((1, 2)))
    return np.array(risks)


def second_difference(even_function, h):
    """f''(0) of an even function, error of order h^4."""
    f0, f1, f2 = (even_function(x) for x in (0.0, h, 2.0 * h))
    return (-2.0 * f2 + 32.0 * f1 - 30.0 * f0) / (12.0 * h * h)


def brute_conditions(kind, matrix, encoding, omegas=(0.0, 1.0), h=0.06):
    def risk(m, e):
        return brute_risk(m, e, omegas, matrix, encoding)

    if kind == "steepest":
        return second_difference(lambda m: risk(m, 0.0), h) - second_difference(lambda e: risk(0.0, e), h)
    if kind == "equal_risk":
        return risk(0.0, 1.0) - risk(1.0, 0.0)
    if kind == "semantic":
        return second_difference(lambda t: risk(math.cos(t), math.sin(t)), h)
    return second_difference(lambda t: risk(math.sin(t), math.cos(t)), h)


@pytest.mark.parametrize(
    ("matrix", "encoding"), [(pair_alignment(1.0), OPPOSITE), (ASYMMETRIC, SKEW)], ids=["opposite", "skew"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_against_finite_differences_of_a_direct_sum(kind, matrix, encoding):
    at_zero, at_one = brute_conditions(kind, matrix, encoding)  # the conditions are linear in omega
    root = at_zero / (at_zero - at_one)
    found = phase_boundary(kind, alignment_matrix=matrix, encoding=encoding)
    if 0.0 <= root <= 1.0:
        assert found == pytest.approx(root, abs=3e-4)
    else:
        assert math.isnan(found)


@pytest.mark.parametrize("kind", KINDS)
def test_root_finding_agrees_with_the_explicit_formula(kind):
    for matrix, encoding in ((pair_alignment(1.0), OPPOSITE), (ASYMMETRIC, SKEW), (A3, ROWS3)):
        conditions = SquareConditions(integrals_of(encoding), matrix)
        assert conditions.solve(kind) == pytest.approx(conditions.explicit(kind), abs=1e-11, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_direction_changes_nothing(kind):
    """Two directions of which one is a copy of the other, turned: the general search against the explicit formula."""
    turned = sx.Encoding([[0.8, 0.6], [-0.8, -0.6]])
    assert phase_boundary(kind, encoding=turned) == pytest.approx(phase_boundary(kind), abs=1e-8)


def test_two_directions_take_the_better_one():
    # Rows (x1, x2) and (-x1, x2): the second direction shifts both fields alike and gains less.
    both = sx.Encoding([[1.0, 0.4], [-1.0, 0.4]])
    matrix = pair_alignment(1.0)
    alone = sx.Encoding([[0.4], [0.4]])
    assert phase_boundary("steepest", encoding=both) == pytest.approx(phase_boundary("steepest"), abs=1e-12)
    assert math.isnan(phase_boundary("steepest", alignment_matrix=matrix, encoding=alone))
    conditions = SquareConditions(Integrals(both.matrix), matrix)
    angles = np.linspace(0.0, np.pi, 181)
    label = 0.3 * conditions.integrals.origin.matrix + 0.7 * matrix.ravel()
    risks = [conditions.integrals.positional_risk(np.array([np.cos(t), np.sin(t)]), label)[0] for t in angles]
    found = conditions.integrals.positional_risk(conditions.best_positional(0.7), label)[0]
    assert found <= min(risks) + 1e-12


def test_length_three_against_the_population_risk():
    """The conditions, by the value, gradient and Hessian of another module, whose series converges worst at m = 1."""
    length = 3
    matrix = np.full((length, length), 0.1 / (length - 1)) + np.eye(length) * (0.9 - 0.1 / (length - 1))
    encoding = sx.Encoding(np.linspace(1.3, -1.3, length)[:, None])
    target = sx.PositionalSemanticTarget(0.6, alignment_matrix=matrix)
    risk = sx.PopulationRisk(sx.Problem(target, sx.Attention(length, encoding)))
    conditions = SquareConditions(integrals_of(encoding), matrix)
    at_origin, at_positional = risk.hessian(0.0, 0.0), risk.hessian(0.0, 1.0)
    wanted = {
        "steepest": at_origin[0, 0] - at_origin[1, 1],
        "equal_risk": float(risk(0.0, 1.0) - risk(1.0, 0.0)),
        "semantic": risk.hessian(1.0, 0.0)[1, 1] - risk.gradient(1.0, 0.0)[0],
        "positional": at_positional[0, 0] - risk.gradient(0.0, 1.0)[1],
    }
    for kind, value in wanted.items():
        allowed = 1e-4 if kind == "semantic" else 2e-5
        assert getattr(conditions, kind)(0.6) == pytest.approx(value, abs=allowed), kind


def test_length_four_converges_with_the_step():
    matrix = np.full((4, 4), 0.05) + 0.8 * np.eye(4)
    positions = np.linspace(1.3, -1.3, 4)[:, None]
    coarse, fine = (SquareConditions(Integrals(positions, step=step), matrix) for step in (0.6, 0.5))
    for kind in KINDS:
        assert coarse.explicit(kind) == pytest.approx(fine.explicit(kind), abs=3e-4, nan_ok=True)


def test_length_three_converges_with_the_step():
    coarse, fine = (SquareConditions(Integrals(ROWS3.matrix, step=step), A3) for step in (0.25, None))
    for kind in KINDS:
        assert coarse.explicit(kind) == pytest.approx(fine.explicit(kind), abs=3e-6, nan_ok=True)


@pytest.mark.parametrize("kind", ["steepest", "semantic"])
def test_long_sequences_by_sobol_points(kind):
    length = 5
    matrix = np.full((length, length), 0.05) + 0.75 * np.eye(length)
    encoding = sx.Encoding(np.array([1.4, 0.7, 0.0, -0.7, -1.4])[:, None])
    rule = Integrals(encoding.matrix, coarse=True)  # 16 times fewer points
    fine = phase_boundary(kind, alignment_matrix=matrix, encoding=encoding)
    assert fine == pytest.approx(SquareConditions(rule, matrix).explicit(kind), abs=0.02)


@pytest.mark.parametrize("step", [0.11, 11.0 / 95.0, 0.125])
def test_other_grids_give_the_same(step):
    """11 / 0.11 = 100 and 95 intervals on each side; 0.125 with a grid that ends elsewhere."""
    conditions = SquareConditions(Integrals(OPPOSITE.matrix, step=step), pair_alignment(1.0))
    for kind in KINDS:
        assert conditions.explicit(kind) == pytest.approx(phase_boundary(kind), abs=1e-12)


def test_an_even_number_of_nodes_gives_the_same():
    """Nodes half a step away from zero, so that their number is even and none lies at a symmetric place."""
    step = 0.1
    nodes = (np.arange(220) - 109.5) * step
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    z = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    w = np.multiply.outer(weights, weights).ravel()
    integrals = Integrals(OPPOSITE.matrix)
    at_one = integrals.moments(np.ones(1))
    s = attention_matrix(z + np.array([1.0, -1.0])).reshape(-1, 4)
    assert at_one.square == pytest.approx(w @ (s * s).sum(1), abs=1e-13)
    along = z[:, 0] - z[:, 1]
    np.testing.assert_allclose(at_one.matrix_gradient[0], (w * along) @ s, rtol=0, atol=1e-13)
    np.testing.assert_allclose(at_one.matrix_tensor[0, 1], (w * z[:, 0] * z[:, 1]) @ s, rtol=0, atol=1e-13)


def test_jacobian_is_that_of_the_student():
    z = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(attention_jacobian(z), sx.Attention(3).jacobian(z), rtol=0, atol=1e-14)


def test_gradient_of_the_positional_risk():
    integrals = Integrals(np.array([[1.0, 0.2], [-0.7, 0.5], [0.1, -1.0]]), coarse=True)
    e, label, h = np.array([0.6, 0.8]), A3.ravel(), 1e-5
    value, gradient = integrals.positional_risk(e, label)
    moments = integrals.moments(e)
    assert value == pytest.approx(moments.square - 2.0 * label @ moments.matrix, abs=1e-12)
    for k, unit in enumerate(np.eye(2)):
        up, down = (integrals.positional_risk(e + sign * h * unit, label)[0] for sign in (1.0, -1.0))
        assert gradient[k] == pytest.approx((up - down) / (2.0 * h), abs=1e-9)


# --- The un-squared norm


def test_reference_values_of_the_norm():
    assert phase_boundary("steepest", loss="norm") == pytest.approx(0.62781, abs=1e-5)
    assert phase_boundary("equal_risk", loss="norm") == pytest.approx(0.7255, abs=1e-4)


def test_the_norm_converges_with_the_step():
    kinds = ("steepest", "equal_risk", "positional")
    coarse, fine = (NormConditions(OPPOSITE.matrix[:, 0], pair_alignment(0.9), step) for step in (0.3, 0.2))
    for kind in kinds:
        assert fine.solve(kind) == pytest.approx(coarse.solve(kind), abs=3e-4)


def test_the_norm_against_the_population_risk():
    def risk(kind):
        omega = phase_boundary(kind, 0.9, loss="norm")
        target = sx.PositionalSemanticTarget(omega, alignment=0.9)
        return sx.PopulationRisk(sx.Problem(target, sx.Attention(2, OPPOSITE), loss="norm"))

    hessian = risk("steepest").hessian(0.0, 0.0)
    assert hessian[0, 0] == pytest.approx(hessian[1, 1], abs=1e-4)
    equal = risk("equal_risk")
    assert float(equal(1.0, 0.0)) == pytest.approx(float(equal(0.0, 1.0)), abs=1e-4)
    positional = risk("positional")
    assert positional.hessian(0.0, 1.0)[0, 0] == pytest.approx(positional.gradient(0.0, 1.0)[1], abs=3e-4)


@pytest.mark.parametrize(
    ("matrix", "encoding"), [(pair_alignment(1.0), OPPOSITE), (ASYMMETRIC, SKEW)], ids=["opposite", "skew"]
)
def test_curvature_of_the_norm_at_the_semantic_point(matrix, encoding):
    """Near its kinks a direct sum needs a fine grid of z*; the angles are large enough for it to resolve them."""
    q = encoding.matrix[:, 0]
    corner = SemanticCorner(np.diag(matrix), q)
    outer, inner = trapezoid(0.08, 6.0), trapezoid(0.5, 6.0)
    star = np.stack(np.meshgrid(outer.nodes, outer.nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    star_weights = np.multiply.outer(outer.weights, outer.weights).ravel()
    kept = (star_weights > 1e-9) & (star[:, 0] >= 0.0)  # S is even
    star, star_weights = star[kept], star_weights[kept] * np.where(star[kept, 0] > 0.0, 2.0, 1.0)
    noise = np.stack(np.meshgrid(inner.nodes, inner.nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    noise_weights = np.multiply.outer(inner.weights, inner.weights).ravel()
    omega = 0.7

    def risk(t):
        y = np.stack(_diagonal(star), axis=-1) * (1.0 - omega) + omega * np.diag(matrix)
        total = 0.0
        for h, w in zip(noise, noise_weights, strict=True):
            if w > 1e-5:
                for sign in (1.0, -1.0):
                    z = sign * math.cos(t) * star + math.sin(t) * (h + q)
                    d = y - np.stack(_diagonal(z), axis=-1)
                    total += 0.5 * w * (star_weights @ np.sqrt(2.0 * (d * d).sum(1)))
        return total / noise_weights[noise_weights > 1e-5].sum()

    at_point = risk(0.0)
    assert at_point == pytest.approx(omega * corner.value, abs=1e-5)
    differences = [2.0 * (risk(t) - at_point) / t**2 for t in (0.1, 0.2)]
    wanted = corner.pull * (1.0 - omega) / omega + corner.drift
    assert (4.0 * differences[0] - differences[1]) / 3.0 == pytest.approx(wanted, abs=0.01)


def _diagonal(z):
    return tuple(1.0 / (1.0 + np.exp(-np.clip(z[:, i] * (z[:, i] - z[:, 1 - i]), -700, 700))) for i in (0, 1))


def test_semantic_corner_of_the_norm_converges():
    for a in (0.4, 0.8, 1.2):
        diagonal = np.diag(pair_alignment(a))
        coarse, fine = (SemanticCorner(diagonal, np.array([1.0, -1.0]), refine) for refine in (1.0, 2.0))
        for name in ("value", "pull", "drift"):
            assert getattr(coarse, name) == pytest.approx(getattr(fine, name), abs=1e-7)


def test_no_alignment_is_no_special_case():
    for loss in ("square", "norm"):
        for kind in KINDS:
            assert math.isnan(phase_boundary(kind, 0.0, loss=loss))


# --- Errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kind": "steep"}, ValueError, "kind must be one of .*'steepest'.*got 'steep'; did you mean 'steepest'"),
        ({"loss": "frobenius"}, ValueError, "loss must be one of 'square', 'norm', got 'frobenius'"),
        ({"alignment": math.nan}, ValueError, "alignment must be finite, got nan"),
        ({"alignment": "1"}, TypeError, "alignment must be a number, got '1'"),
        ({"alignment_matrix": [[0.5, 0.4], [0.5, 0.5]]}, ValueError, "alignment_matrix must be row-stochastic.*row 1"),
        ({"alignment_matrix": np.eye(3)}, ValueError, "encoding must be given at length 3.*got None"),
        ({"encoding": [[1.0], [-1.0]]}, TypeError, "encoding must be an Encoding.*got"),
        ({"encoding": sx.RandomEncoding(3)}, ValueError, "encoding must have length 2.*got 3"),
        (
            {"encoding": sx.Encoding([[1.0], [-1.0]], [0.1, 0.0])},
            ValueError,
            r"encoding must be orthogonal.*\[0.1, 0.0\]",
        ),
        ({"encoding": sx.RandomEncoding(2), "loss": "norm"}, ValueError, "loss='norm' needs length 2 and one"),
    ],
)
def test_errors(arguments, error, message):
    arguments = {"kind": "steepest", **arguments}
    with pytest.raises(error, match=message) as raised:
        phase_boundary(**arguments)
    assert "\n" not in str(raised.value)


def test_imports_neither_matplotlib_nor_torch():
    code = (
        "import sys, seqindex.theory, seqindex.theory.phases, seqindex.theory.boundaries;"
        "sys.exit(bool({'matplotlib', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
