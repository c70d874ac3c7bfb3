"""Largest and best rates of tied and untied networks: closed forms, the untied flow itself, the chain on both sides."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import seqindex as sx
from seqindex.theory.hermite_tensor import HermiteTensor
from seqindex.theory.untied_risk import UntiedRisk

K = 2.0 / math.sqrt(math.pi)
MEDIAN = 0.6744897501960817
CASES = [  # target, length, activation, k, S of theorem 2
    ("sum(z)/sqrt(L)", 4, "relu", 1, 2.0),
    ("z1 - z2", 2, "relu", 1, 0.0),
    ("sum(He2(z))/sqrt(2)", 4, "relu", 2, 4.0),
    ("z1*z2", 2, "relu", 2, 2.0),
    ("He2(z1) + z1*z2", 2, "softplus", 2, 4.0 / (1.0 + math.sqrt(2.0))),
    ("-z1*z2*z3", 3, "tanh", 3, 3.0 * math.sqrt(3.0)),
    ("-sum(He3(z))", 3, "tanh", 3, 3.0),
    ("-sum(He4(z))", 3, "relu", 4, 3.0),
]


def pair(text, length, activation="relu"):
    target = sx.Target(text, length)
    return [sx.Problem(target, student(length, activation)) for student in (sx.TiedNetwork, sx.UntiedNetwork)]


@pytest.mark.parametrize(("text", "length", "activation", "order", "ratio"), CASES)
def test_of_either_network_against_its_own_flow(text, length, activation, order, ratio):
    """At the largest rate pull and noise are in balance: for the untied one by its risk over all rows' overlaps."""
    threshold, dim = 0.2, 10**8
    tied, untied = (sx.predicted_rates(problem, dim, threshold) for problem in pair(text, length, activation))
    assert untied.order == order
    assert untied.power == min(0.0, 1.0 - order / 2)
    assert np.linalg.norm(untied.direction) == pytest.approx(1.0, rel=1e-12)
    risk = UntiedRisk(pair(text, length, activation)[1])
    start = MEDIAN / math.sqrt(dim * length)  # r where q.m is the median of one overlap
    # The pull at leading order: at small overlaps, those of the start where it decides.
    small = 1e-3
    q = untied.direction
    pull = -float(risk.gradient(small * math.sqrt(length) * q) @ q) / math.sqrt(length)
    noise = float(risk.mean_square_gradient(np.zeros(length))) / length
    balance = {1: threshold, 2: small}.get(order, small ** (order - 1) / start ** (order - 2))
    assert untied.largest == pytest.approx(2.0 * pull / (noise * balance), rel=5e-3)
    # No other direction pulls harder.
    others = np.random.default_rng(0).standard_normal((100, length))
    for other in others / np.linalg.norm(others, axis=1, keepdims=True):
        assert -float(risk.gradient(small * math.sqrt(length) * other) @ other) / math.sqrt(length) < pull * (1 + 1e-6)
    # The ratios of theorem 2: S by the paper's bound; with the noise of the rows, the gain at equal rates over L.
    if ratio == 0.0:
        assert tied.largest is None
        return
    gain = sx.predicted_gain(sx.Target(text, length))
    assert gain.ratio == pytest.approx(ratio, rel=1e-7)
    assert tied.largest / untied.paper == pytest.approx(ratio, rel=1e-6)
    wanted = ratio / math.sqrt(length) if order == 1 else ratio / length
    assert tied.largest / untied.largest == pytest.approx(wanted, rel=1e-6)
    if gain.exact:
        assert tied.largest / untied.largest == pytest.approx(gain.equal_rate / length, rel=1e-6)


@pytest.mark.parametrize("length", [5])
def test_the_solvable_cases(length):
    for problem in pair("sum(He2(z))/sqrt(2)", length):
        assert sx.predicted_rates(problem, 1000, 0.5).largest == pytest.approx(K / (length + 1), rel=1e-10)
    for problem in pair("sum(z)/sqrt(L)", length):
        rates = sx.predicted_rates(problem, 1000, 0.2)
        assert rates.largest == pytest.approx(2.5, rel=1e-10)

        def steps(rate):  # from m = 0, dm/dt = (1 - m)(1 + (1 - 2 gamma) m)
            return math.log((1.0 + (1.0 - 2.0 * rate) * 0.2) / 0.8) / (2.0 - 2.0 * rate) / rate

        best = minimize_scalar(steps, bounds=(1.2, 2.8), method="bounded").x
        # The parabola for the noise is exact here.
        assert rates.best == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize(("text", "activation", "power"), [("z1*z2", "relu", 0.0), ("-z1*z2*z3", "tanh", -0.5)])
def test_growth_with_the_dimension(text, activation, power):
    for problem in pair(text, 3, activation):
        few, many = (sx.predicted_rates(problem, dim) for dim in (10**3, 10**7))
        assert many.largest / few.largest == pytest.approx(10.0 ** (4 * power), rel=1e-9)
        assert many.best / few.best == pytest.approx(10.0 ** (4 * power), rel=0.2)  # logarithms at k = 2
        assert few.power == power


@pytest.mark.parametrize("network", [0, 1])
def test_the_chain_learns_below_the_largest_rate_and_not_above(network):
    """z1 z2: 64 runs from overlap 0.1 to 0.2 at d = 20,000; the untied one learns well above the paper's bound."""
    problem = pair("z1*z2", 2)[network]
    rates = sx.predicted_rates(problem, 20_000)
    crossed = {}
    for share in (0.75, 1.3):
        steps = 600_000 * (network + 1)
        times = sx.hitting_time(
            problem, 20_000, share * rates.largest, steps, 0.2, start=sx.Start.overlaps(0.1), progress=False
        )
        crossed[share] = int((times.outcome == 0).sum())
    assert crossed == {0.75: 64, 1.3: 0}
    assert (0.75 * rates.largest > 1.4 * rates.paper) == (network == 1)


def test_what_no_rate_lets_start():
    rates = sx.predicted_rates(pair("z1 - z2", 2)[0], 1000)
    assert (rates.order, rates.largest, rates.best, rates.paper) == (None, None, None, None)
    assert "exchanging positions 1 and 2" in rates.reason
    rises = sx.predicted_rates(pair("sum(He4(z))", 2)[1], 1000)
    assert rises.largest is None
    assert rises.reason == "the risk rises at order 4 in every direction of the rows' overlaps, or does not fall"
    unseen = sx.predicted_rates(pair("sum(He3(z))", 2)[1], 1000)
    assert unseen.reason.startswith("no Hermite coefficient up to order 8 is one of the target and of the activation")
    assert "constant" in sx.predicted_rates(pair("2", 2)[1], 1000).reason
    with pytest.raises(ValueError, match=r"^loss must be 'square' for the rates of an untied network, got 'norm'$"):
        sx.predicted_rates(sx.Problem(sx.Target("z1", 1), sx.UntiedNetwork(1), "norm"), 1000)


def test_an_order_that_the_activation_does_not_see_is_passed_over():
    """tanh sees no even order: of z1 z2 - He3(z1) the untied rows learn the last part."""
    rates = sx.predicted_rates(pair("z1*z2 - He3(z1)", 2, "tanh")[1], 1000)
    assert rates.order == 3
    assert np.abs(rates.direction).tolist() == pytest.approx([1.0, 0.0], abs=1e-7)


def test_a_tensor_whose_largest_entries_push_the_wrong_way():
    """He2(z1) - 3 He2(z2): the rows follow the first token, the paper's norm is that of the second."""
    rates = sx.predicted_rates(pair("He2(z1) - 3*He2(z2)", 2)[1], 1000)
    assert rates.direction.tolist() == pytest.approx([1.0, 0.0], abs=1e-12)
    assert rates.largest / rates.paper == pytest.approx(2.0 / 3.0, rel=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_steepest_direction_against_many_points(order, sign):
    """No point of a fine grid on the sphere of R^3 is higher, and the value is that of the vector."""
    rng = np.random.default_rng(order)
    indices = [((1, order),), ((2, order),), ((1, order - 1), (3, 1)) if order > 1 else ((3, 1),)]
    tensor = HermiteTensor(4, order, {index: float(x) for index, x in zip(indices, rng.normal(size=3), strict=True)})
    value, vector = tensor.steepest(sign)
    assert sign * tensor.contract(vector) == pytest.approx(value, rel=1e-12)
    assert np.linalg.norm(vector) == pytest.approx(1.0, rel=1e-12)
    points = rng.standard_normal((4000, 4))
    points[:, 3] = 0.0
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    highest = max(sign * tensor.contract(point) for point in points)
    assert highest <= value * (1 + 1e-12)
    assert highest > value - 0.05 * tensor.operator_norm()
    both = [tensor.steepest(s)[0] for s in (1.0, -1.0)]
    assert max(both) == pytest.approx(tensor.operator_norm(), rel=1e-7)
