"""Finite-size theory of the transition: its ingredients, an independent solution of the flow, and the exact chain."""

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import solve_ivp

import seqindex as sx
from seqindex.paper import transition
from seqindex.sgd.stop import Near
from seqindex.theory.basins import Minima, basins
from seqindex.theory.drift import drift_of
from seqindex.theory.finite_size import semantic_probability, switch_width


def problem(omega):
    return sx.Problem(sx.PositionalSemanticTarget(omega, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))


def test_rates_and_limit():
    data = semantic_probability([0.6409626179, 0.6], [10**12], 1e-6)
    assert float(data["rho"][0]) == pytest.approx(1.0, abs=1e-6)  # the switch of the steepest direction
    risk = sx.PopulationRisk(problem(0.6))
    assert float(data["rate_m"][1]) == pytest.approx(-risk.hessian(0.0, 0.0)[0, 0], abs=1e-6)
    assert 0.995 < float(data["probability"][1, 0]) < 1.0


def test_published_values():
    """The values at alignment 1, d = 1000, rate 0.05 of a prototype, whose kappa is good to a few per cent."""
    omega = [0.56, 0.60, 0.64, 0.66, 0.68, 0.70, 0.76]
    expected = {
        "orthogonal": [0.994, 0.916, 0.588, 0.356, 0.175, 0.073, 0.002],
        "random": [0.987, 0.898, 0.646, 0.471, 0.304, 0.171, 0.013],
    }
    for start, values in expected.items():
        data = semantic_probability(omega, [1000], 0.05, start)
        assert data["rho"].values == pytest.approx([1.876, 1.352, 1.007, 0.875, 0.762, 0.665, 0.439], abs=1e-3)
        assert data["probability"].values[:, 0] == pytest.approx(values, abs=6e-3)


def test_the_border_of_the_basins_by_another_solver():
    """The exact gradient flow under SciPy's solver goes to either side of kappa, 5 per cent apart."""
    data = semantic_probability([0.62], [1000], 1e-6)
    drift, e = drift_of(problem(0.62)), 0.03
    border = float(data["kappa"][0]) * e ** float(data["rho"][0])
    ends = [
        solve_ivp(lambda t, s: drift(s), (0.0, 90.0), [border * factor, e], "LSODA", rtol=1e-5, atol=1e-9).y[:, -1]
        for factor in (0.95, 1.05)
    ]
    assert np.abs(ends[0]).argmax() == 1
    assert np.abs(ends[1]).argmax() == 0


def test_probability_by_sampling_the_amplitudes():
    data = semantic_probability([0.65], [1000], 0.05)
    g = np.random.default_rng(0).standard_normal((2, 10**6))
    rate = {name: float(data[f"rate_{name}"][0]) for name in "me"}
    noise = np.diagonal(sx.theory.diffusion.step_covariance(problem(0.65), [0.0, 0.0]))
    spread = [np.sqrt((1.0 + 0.05 * d / (2.0 * lam)) / 1000) for d, lam in zip(noise, rate.values(), strict=True)]
    wins = spread[0] * np.abs(g[0]) > float(data["kappa"][0]) * (spread[1] * np.abs(g[1])) ** float(data["rho"][0])
    # Standard error 5e-4, and the sampled covariance is good to 1e-3.
    assert float(data["probability"][0, 0]) == pytest.approx(wins.mean(), abs=4e-3)


def test_a_single_minimum_decides_alone():
    data = semantic_probability([0.3, 0.95], [1000], 0.05)
    assert data["probability"].values[:, 0].tolist() == [1.0, 0.0]
    assert data["limit"].values.tolist() == [1.0, 0.0]
    assert minima_of(data) == ["SEMANTIC", "POSITIONAL"]


def minima_of(data):
    return [Minima(int(value)).name for value in data["minima"].values]


def test_two_minima_exactly_between_the_boundaries_of_the_phases():
    around = [sx.phase_boundary(kind) + side for kind in ("positional", "semantic") for side in (-5e-4, 5e-4)]
    data = semantic_probability(around, [1000], 1e-6)
    assert minima_of(data) == ["SEMANTIC", "BOTH", "BOTH", "POSITIONAL"]
    assert data["limit"].values.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_no_probability_where_the_minimum_slides():
    """Below a = 0.7635 the single minimum moves along the circle from omega_sem to omega_pos."""
    inside = 0.5 * (sx.phase_boundary("semantic", 0.76) + sx.phase_boundary("positional", 0.76))
    data = semantic_probability([0.9, inside, 0.999], [1000], 1e-6, alignment=0.76)
    assert minima_of(data) == ["SEMANTIC", "BETWEEN", "POSITIONAL"]
    assert np.isnan(data["probability"].values[:, 0]).tolist() == [False, True, False]


def test_no_probability_where_the_noise_wins():
    data = semantic_probability([0.65], [1000], 5.0)
    assert minima_of(data) == ["NONE"]
    assert np.isnan(data["probability"]).all()


def test_the_border_of_competing_species():
    """m = c M^p, where M and E compete on equal terms: the border M = E is m = c e^p."""
    powers, factors = np.array([0.6, 1.0, 1.7]), np.array([0.8, 0.9, 0.5])

    def speed(s, places):
        m = (s[..., 0] / factors[places]) ** (1.0 / powers[places])
        e = s[..., 1]
        return np.stack([powers[places] * (1.0 - m - 2.0 * e), 1.0 - e - 2.0 * m], axis=-1)

    minima, kappa, saddle = basins(speed, np.stack([powers, np.ones(3)], axis=-1))
    assert (minima == Minima.BOTH).all()
    # The power law is met where m and e are 5e-3, up to terms of first order, as this flow is not even.
    assert kappa == pytest.approx(factors, rel=1e-4)
    assert saddle[:, 0] == pytest.approx(factors * 3.0**-powers, abs=1e-9)
    assert saddle[:, 1] == pytest.approx(1.0 / 3.0, abs=1e-9)


def test_a_switch_out_of_sight():
    data = semantic_probability(np.linspace(0.6, 0.7, 11), [1000], 0.05)
    finer = semantic_probability(np.linspace(0.58, 0.72, 57), [1000], 0.05)
    assert switch_width(data)[0] == pytest.approx(switch_width(finer)[0], abs=2e-5)
    assert switch_width(data)[1] == pytest.approx(switch_width(finer)[1], rel=2e-3)
    assert np.isnan(switch_width(data.isel(omega=slice(0, 2)))).all()


def test_another_matrix_is_used():
    matrix = [[0.9, 0.1], [0.3, 0.7]]
    one, other = (semantic_probability([0.64], [1000], 0.05, alignment_matrix=a) for a in (None, matrix))
    risk = sx.PopulationRisk(
        sx.Problem(sx.PositionalSemanticTarget(0.64, alignment_matrix=matrix), sx.Attention(2, sx.OppositeEncoding()))
    )
    curvature = risk.hessian(0.0, 0.0)[1, 1] + 0.025 * risk.mean_square_gradient(0.0, 0.0)
    assert float(other["rate_e"][0]) == pytest.approx(-curvature, abs=1e-9)
    assert abs(float(one["probability"][0, 0] - other["probability"][0, 0])) > 0.01


def test_shares_of_the_exact_chain():
    """d = 1000, uniform start, rate 0.5: 400 runs a point; z-scores below 5, a false-alarm rate of 2e-6."""
    omegas = [0.62, 0.66, 0.70]
    data = semantic_probability(omegas, [1000], 0.5)
    assert switch_width(semantic_probability(np.linspace(0.55, 0.75, 9), [1000], 0.5))[0] == pytest.approx(
        0.654, abs=5e-3
    )
    stop = Near([(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)], 0.3)
    for omega, chance in zip(omegas, data["probability"].values[:, 0], strict=True):
        runs = sx.sgd(problem(omega), 1000, 0.5, 400_000, replicas=400, seed=3, records=201, stop=stop)
        assert (runs["outcome"] == sx.Outcome.CONVERGED).all()
        last = runs.isel(record=-1)
        wins = int((abs(last["overlap"]) > abs(last["encoding_overlap"])).sum())
        assert abs(wins - 400 * chance) < 5.0 * np.sqrt(400 * chance * (1.0 - chance))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.2], [100], 0.1), "omega must be in"),
        (([0.5], [2], 0.1), "dim must be at least 4"),
        (([0.5], [100], 0.0), "learning_rate must be positive"),
        (([0.5], [100], 0.1, "zero"), "start must be one of 'random', 'orthogonal'"),
        (([0.5], [100], 0.1, "random", 1.0, np.eye(2)), "give either alignment or alignment_matrix"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        semantic_probability(*arguments)


@pytest.mark.parametrize("start", ["random", "orthogonal"])
def test_no_warning_where_a_rate_passes_zero(start):
    omega = np.linspace(0.43, 0.45, 9)
    probability = semantic_probability(omega, [1000], 0.5, start)["probability"].values[:, 0]
    assert (probability == 1.0).all()


def test_counts_are_compared_where_they_tell_the_basins_apart():
    """At rate 0.5 the flow has no positional minimum at omega = 0.55, and one 0.07 from the saddle at 0.58."""
    omega = np.array([0.45, 0.55, 0.58, 0.64, 0.9])
    series = [transition.Series("square", 1000, rate, sx.Start.random(), omega, 2) for rate in (0.05, 0.5)]
    run = xr.Dataset(
        {
            "overlap": (("replica", "record"), np.array([[0.9], [0.1]])),
            "encoding_overlap": (("replica", "record"), np.array([[0.1], [0.9]])),
            "outcome": ("replica", np.array([3, 3], dtype=np.int8)),
            "end_step": ("replica", [300, 200]),
        }
    )
    compared = transition.summarise(series, [run] * 10)["compared"].values
    assert compared.tolist() == [[True, False, True, True, True], [True, False, False, True, True]]
