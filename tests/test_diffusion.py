"""Noise of SGD in theory against the chain: covariance of one step, Gaussian fluctuations, the Langevin equation.

Spreads are compared by their ratio, whose standard error over n runs is 1 / sqrt(2 n) for Gaussian overlaps; five
standard errors are allowed, a false-alarm rate below 1e-6 a number.
"""

import math

import numpy as np
import pytest

import seqindex as sx
from seqindex.theory.chart import Chart
from seqindex.theory.diffusion import _by_quadrature, _sampled, step_covariance
from seqindex.theory.drift import drift_of

ATTENTION = sx.Problem(sx.PositionalSemanticTarget(0.6, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))
TIED = sx.Problem(sx.Target("sum(He2(z))/sqrt(2) + z1/2", 3), sx.TiedNetwork(3))
UNTIED = sx.Problem(sx.Target("sum(He2(z))/sqrt(2) + z1", 2), sx.UntiedNetwork(2))
CASES = {
    "attention": (ATTENTION, {"m": 0.4, "e": -0.3}, [0.4, -0.3]),
    "attention at the start": (ATTENTION, {"m": 0.0, "e": 0.0}, [0.0, 0.0]),
    "tied": (TIED, {"m": 0.5}, [0.5]),
    "untied": (UNTIED, {"m": 0.4}, [0.4, 0.4]),
}


def columns(runs):
    names = [name for name in ("overlap", "encoding_overlap") if name in runs]
    return np.concatenate([runs[name].values.reshape(*runs["overlap"].shape[:2], -1) for name in names], axis=-1)


@pytest.mark.parametrize("name", CASES)
def test_covariance_of_one_step_of_the_chain(name):
    problem, start, state = CASES[name]
    dim, rate, replicas = 10**6, 0.3, 50_000
    runs = sx.sgd(problem, dim, rate, 1, replicas=replicas, seed=3, start=sx.Start.overlaps(**start), records=[0, 1])
    moved = columns(runs)
    b = (moved[:, 0] - moved[:, 1]) * dim / rate
    b -= b.mean(0)
    products = b[:, :, None] * b[:, None, :]
    expected = step_covariance(problem, state, rate)
    error = products.std(0) / math.sqrt(replicas) + 2e-3 * np.abs(expected).max()
    assert (np.abs(products.mean(0) - expected) < 5.0 * error).all()
    assert (error < 0.06 * np.abs(expected).max()).all()


@pytest.mark.parametrize("length", [1, 4])
def test_covariance_at_the_start_in_closed_form(length):
    problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", length), sx.TiedNetwork(length))
    found = step_covariance(problem, [0.0])
    assert found[0, 0] == pytest.approx(2 * length + 10 - 8 / math.sqrt(math.pi), rel=1e-12)


def test_quadrature_and_sampling_agree_away_from_the_start():
    encoding = sx.Encoding([[0.6], [-0.2]], target_component=[0.3, 0.1], injection=[0.2, 0.4])
    problem = sx.Problem(sx.Target("tanh(z1) + z1*z2", 2), sx.TiedNetwork(2, "tanh", [1.3, -0.4], encoding))
    state = np.array([0.5, -0.6])
    parts, size = _sampled(problem, 2**20)(state)
    line, line_size = _by_quadrature(problem, None)(state)
    assert np.abs(parts - line)[:-1, :-1].max() < 2e-3 * np.abs(line).max()
    assert line_size == pytest.approx(size, rel=2e-3)


NOISE = {
    "attention": (ATTENTION, {"m": 0.2, "e": 0.2}, 1.0, 2.0),
    "tied": (TIED, {"m": 0.3}, 0.2, 1.0),
    "untied": (UNTIED, {"m": 0.3}, 0.2, 1.0),
}


@pytest.mark.parametrize("dim", [1_000, 10_000])
@pytest.mark.parametrize("name", NOISE)
def test_spread_of_the_chain(name, dim):
    problem, start, rate, horizon = NOISE[name]
    replicas = 4000 if dim == 1_000 else 1000
    steps = round(horizon * dim / rate)
    runs = sx.sgd(problem, dim, rate, steps, replicas=replicas, seed=1, start=sx.Start.overlaps(**start), records=3)
    measured = columns(runs)[:, 1:].std(0, ddof=1)
    times = runs["step"].values[1:] * rate / dim
    theory = sx.linear_noise(problem, dim, rate, start["m"], start.get("e"), times=times)["deviation"].values
    # Corrections to the leading order in 1/d are allowed 10 / d.
    assert np.abs(measured / theory - 1.0).max() < 5.0 / math.sqrt(2 * replicas) + 10.0 / dim


@pytest.mark.parametrize("name", ["attention", "tied"])
def test_the_langevin_equation_has_the_mean_and_the_spread_of_the_chain(name):
    problem, start, rate, horizon = NOISE[name]
    dim, replicas = 1_000, 4000
    steps = round(horizon * dim / rate)
    runs = sx.sgd(problem, dim, rate, steps, replicas=replicas, seed=2, start=sx.Start.overlaps(**start), records=3)
    paths = sx.langevin(
        problem, dim, rate, start["m"], start.get("e"), horizon=horizon, replicas=replicas, records=3, seed=5
    )
    chain, langevin = columns(runs)[:, 1:], columns(paths)[:, 1:]
    ratio = langevin.std(0) / chain.std(0)
    assert np.abs(ratio - 1.0).max() < 5.0 / math.sqrt(replicas) + 10.0 / dim
    error = np.hypot(chain.std(0), langevin.std(0)) / math.sqrt(replicas)
    assert (np.abs(chain.mean(0) - langevin.mean(0)) < 5.0 * error + 3.0 / dim).all()
    without = sx.gradient_flow(problem, start["m"], start.get("e"), horizon=horizon)["overlap"].values[-1]
    assert abs(without - langevin[:, -1, 0].mean()) > 10.0 * error[-1, 0]


def test_langevin_paths_depend_on_seed_and_replica_alone():
    arguments = {"dim": 1000, "learning_rate": 0.2, "m0": 0.3, "horizon": 0.5, "seed": 4}
    few = sx.langevin(TIED, replicas=3, **arguments)["overlap"].values
    many = sx.langevin(TIED, replicas=5, **arguments)["overlap"].values
    assert few == pytest.approx(many[:3], rel=1e-12)  # products of matrices of other sizes round differently
    assert len({path.tobytes() for path in many}) == 5


def test_charts_interpolate_up_to_the_circle():
    drift = drift_of(ATTENTION, 0.5)
    angle = np.linspace(0.0, 6.0, 23)
    s = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * np.linspace(0.2, 1.0, 23)[:, None]
    errors = [np.abs(Chart(2, degree).interpolate(drift)(s) - drift(s)).max() for degree in (8, 16, 32)]
    assert errors[0] > 10 * errors[1] > 1000 * errors[2]
    assert errors[2] < 1e-5


def test_what_has_no_diffusion_here_is_refused():
    joint = sx.Problem(sx.Target("z1", 2), sx.UntiedNetwork(2, sphere="joint"))
    with pytest.raises(ValueError, match="sphere must be 'rows' here, got 'joint'"):
        sx.linear_noise(joint, 100, 0.1, 0.2, horizon=1.0)
    with pytest.raises(ValueError, match="student must have one weight vector and at most one encoding direction"):
        sx.langevin(UNTIED, 100, 0.1, 0.2)
    with pytest.raises(ValueError, match="state must have one or two coordinates here"):
        Chart(3)
