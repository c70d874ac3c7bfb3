"""The phase diagram, against searches on the whole disc and against its own boundaries."""

import math
import time

import numpy as np
import pytest
import xarray as xr
from numpy.polynomial import chebyshev
from scipy.special import ndtri
from scipy.stats import qmc

import seqindex as sx
from seqindex.theory.boundaries import KINDS, phase_boundary
from seqindex.theory.phase_circle import square_circle
from seqindex.theory.phase_norm_circle import norm_circle
from seqindex.theory.phases import PHASES, find_minima, phase_diagram

# One point of every phase, and of every kind of "other".
SAMPLES = {
    (1.0, 0.50): "unique_semantic",
    (1.0, 0.60): "global_semantic",
    (1.0, 0.70): "global_semantic_positional_dynamic",
    (1.0, 0.78): "global_positional",
    (1.0, 0.90): "unique_positional",
    (0.76, 0.95): "unique_semantic_misaligned",
    (0.76, 0.98): "mixed",
    (0.76, 0.9695): "other",
    (0.30, 0.95): "unique_semantic",
}


def phase_at(diagram):
    return diagram.phase.attrs["flag_meanings"].split()[int(diagram.phase.values.ravel()[0])]


def disc(rows=61, columns=31):
    """e of every row, and m from 0 to the circle along it."""
    e = np.sin(np.linspace(0.0, np.pi / 2, rows))
    return e, np.linspace(0.0, 1.0, columns) * np.sqrt(1.0 - e[:, None] ** 2)


@pytest.mark.parametrize(("point", "wanted"), SAMPLES.items(), ids=[f"{a:g}, {w:g}" for a, w in SAMPLES])
def test_phases_against_a_search_on_the_disc(point, wanted):
    alignment, omega = point
    diagram = phase_diagram([alignment], [omega]).isel(alignment=0, omega=0)
    assert phase_at(diagram) == wanted

    problem = sx.Problem(
        sx.PositionalSemanticTarget(omega, alignment=alignment), sx.Attention(2, sx.OppositeEncoding())
    )
    risk = sx.PopulationRisk(problem)
    e, m = disc()
    values = risk(m, np.broadcast_to(e[:, None], m.shape))
    assert (np.diff(values[:-1], axis=1) < 0.0).all(), "the risk falls with m up to the circle"
    along = values[:, -1]
    padded = np.concatenate([[np.inf], along, [np.inf]])
    found = np.nonzero((padded[1:-1] < padded[:-2]) & (padded[1:-1] < padded[2:]))[0]
    found = found[np.argsort(along[found])]
    assert diagram.minima_count == len(found)
    for rank, row in enumerate(found):
        minimum = diagram.isel(minimum=rank)
        assert float(minimum.minimum_angle) == pytest.approx(90.0 * row / 60.0, abs=1.6)
        assert float(minimum.minimum_risk) <= along[row] + 1e-9
        exact = risk(float(minimum.minimum_overlap), float(minimum.minimum_encoding_overlap))
        assert float(minimum.minimum_risk) == pytest.approx(float(exact), abs=1e-9)
    hessian = risk.hessian(0.0, 0.0)
    assert float(diagram.curvature_overlap) == pytest.approx(hessian[0, 0], abs=1e-10)
    assert float(diagram.curvature_encoding_overlap) == pytest.approx(hessian[1, 1], abs=1e-10)
    assert bool(diagram.direction) == (hessian[1, 1] < hessian[0, 0])


def test_minima_between_the_points_are_critical():
    diagram = phase_diagram([0.75, 0.755, 0.76], [0.98, 0.983, 0.985])
    sliding = (diagram.minimum_angle > 0.0) & (diagram.minimum_angle < 90.0)
    assert int(sliding.sum()) >= 2
    for i, j, k in np.argwhere(sliding.values):
        target = sx.PositionalSemanticTarget(float(diagram.omega[j]), alignment=float(diagram.alignment[i]))
        risk = sx.PopulationRisk(sx.Problem(target, sx.Attention(2, sx.OppositeEncoding())))
        point = diagram.isel(alignment=i, omega=j, minimum=k)
        m, e = float(point.minimum_overlap), float(point.minimum_encoding_overlap)
        along_m, along_e = risk.gradient(m, e)
        assert e * along_m - m * along_e == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("loss", ["square", "norm"])
def test_phases_agree_with_the_boundaries(loss):
    alignment = np.linspace(0.9, 1.3, 9)
    omega = np.linspace(0.0, 1.0, 101)
    diagram = phase_diagram(alignment, omega, loss)
    for i in range(alignment.size):
        edges = {kind: float(diagram[f"boundary_{kind}"][i]) for kind in KINDS}
        near = np.any([np.abs(omega - edge) < 3e-3 for edge in edges.values()], axis=0)
        semantic, positional = omega < edges["semantic"], omega > edges["positional"]
        towards_e, lower = omega > edges["steepest"], omega < edges["equal_risk"]
        wanted = np.select(
            [
                semantic & ~positional & ~towards_e,
                semantic & positional & lower & ~towards_e,
                semantic & positional & lower & towards_e,
                semantic & positional & ~lower & towards_e,
                ~semantic & positional & towards_e,
            ],
            [0, 1, 2, 4, 5],
            7,
        )
        got = diagram.phase.values[i]
        kept = ~near & (got != PHASES.index("other"))
        np.testing.assert_array_equal(got[kept], wanted[kept])
        assert (got != PHASES.index("other")).all() or loss == "norm"


def test_boundaries_of_the_square_loss_are_exact():
    diagram = phase_diagram([0.7, 0.77, 1.0], [0.5])
    for kind in KINDS:
        wanted = [phase_boundary(kind, a) for a in (0.7, 0.77, 1.0)]
        np.testing.assert_array_equal(diagram[f"boundary_{kind}"], wanted)


def test_conditions_vanish_on_the_boundaries():
    circle = square_circle()
    for kind, place in (("semantic", 1.0), ("positional", -1.0)):
        omega = np.array([phase_boundary(kind, 0.9)])
        slope = chebyshev.chebder(circle.series(0.9, omega)[0])
        assert chebyshev.chebval(place, slope) == pytest.approx(0.0, abs=1e-9)
    omega = np.array([phase_boundary("equal_risk", 0.9)])
    assert np.ptp(chebyshev.chebval(np.array([-1.0, 1.0]), circle.series(0.9, omega)[0])) < 1e-10
    along_m, along_e = circle.curvatures(0.9, np.array([phase_boundary("steepest", 0.9)]))
    assert along_m == pytest.approx(along_e, abs=1e-13)


def test_even_and_odd_numbers_of_nodes_agree():
    few, many = square_circle(), square_circle(nodes=45, orders=160, step=0.08)
    omega = np.linspace(0.0, 1.0, 5)
    x = np.linspace(-1.0, 1.0, 33)
    for a in (0.3, 1.0):
        first, second = (chebyshev.chebval(x, circle.series(a, omega).T) for circle in (few, many))
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-10)


def test_known_risks():
    circle = square_circle()
    series = circle.series(1.0, np.array([0.67]))[0]
    assert chebyshev.chebval(-1.0, series) == pytest.approx(0.2031026963618, abs=1e-11)
    star = circle.origin[1]
    a = sx.PositionalSemanticTarget(0.67, alignment=1.0).alignment_matrix
    mean = circle.origin[0]
    distance = star + (a * a).sum() - 2.0 * (2.0 * a[0, 0] * mean + 2.0 * a[0, 1] * (1.0 - mean))
    assert chebyshev.chebval(1.0, series) == pytest.approx(0.67**2 * distance, abs=1e-10)  # y - f = omega (A - S)


def test_where_other_occurs():
    """Only where a semantic minimum and one between the two points coexist, in a sliver."""
    diagram = phase_diagram(np.linspace(0.0, 1.5, 76), np.linspace(0.0, 1.0, 101))
    sliver = phase_diagram(np.linspace(0.74, 0.78, 41), np.linspace(0.93, 1.0, 71))
    for data in (diagram, sliver):
        other = data.phase == PHASES.index("other")
        i, j = np.nonzero(other.values)
        angles = np.sort(data.minimum_angle.values[i, j], axis=-1)
        assert (angles[:, 0] == 0.0).all()
        assert ((angles[:, 1] > 0.0) & (angles[:, 1] < 90.0)).all()
        assert (data.direction.values[i, j] == 1).all()
    assert len(i) > 10
    assert ((sliver.alignment.values[i] > 0.743) & (sliver.alignment.values[i] < 0.773)).all()


def test_a_large_diagram_is_algebra():
    phase_diagram([1.0], [0.5])
    start = time.process_time()
    diagram = phase_diagram()
    assert time.process_time() - start < 30.0
    assert diagram.phase.shape == (200, 200)
    assert set(np.unique(diagram.phase)) == set(range(8))


def test_the_limit_of_a_purely_positional_target():
    """At omega = 1 the risk does not depend on m; the diagram gives the limit."""
    diagram = phase_diagram([0.0, 0.72, 1.0], [1.0 - 1e-9, 1.0])
    np.testing.assert_array_equal(diagram.phase[:, 0], diagram.phase[:, 1])
    np.testing.assert_allclose(diagram.minimum_angle[:, 0], diagram.minimum_angle[:, 1], atol=1e-3)
    assert (diagram.curvature_overlap[:, 1] == 0.0).all()


def test_dataset_is_described(tmp_path):
    diagram = phase_diagram([0.9, 1.0], [0.5, 0.6, 0.7])
    assert diagram.phase.dims == ("alignment", "omega")
    assert diagram.phase.dtype == np.int8
    assert diagram.phase.attrs["flag_meanings"].split() == list(PHASES)
    assert diagram.phase.attrs["flag_values"].tolist() == list(range(8))
    assert diagram.direction.attrs["flag_meanings"] == "semantic positional"
    assert diagram.minimum_risk.dims == ("alignment", "omega", "minimum")
    assert all("long_name" in diagram[name].attrs for name in [*diagram, *diagram.coords])
    assert diagram.attrs["seqindex_version"] == sx.__version__
    assert diagram.attrs["loss"] == "square"
    diagram.to_netcdf(tmp_path / "diagram.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "diagram.nc", engine="h5netcdf", decode_timedelta=False) as again:
        xr.testing.assert_identical(again.load(), diagram)


# --- Finding minima of a series


def test_more_minima_than_are_kept():
    """cos(4 t) has minima at 45, 135 degrees; with a tilt the lowest two of three are kept, in order."""
    series = np.zeros((1, 7))
    series[0, [1, 6]] = 0.01, 1.0  # T_6 has minima at x = +-cos(pi / 6), 0
    minima = find_minima(series)
    assert minima.count[0] == 3
    np.testing.assert_allclose(minima.x[0], [-math.cos(math.pi / 6), 0.0], atol=1e-3)
    assert minima.risk[0, 0] < minima.risk[0, 1]


def test_minima_match_a_fine_grid():
    rng = np.random.default_rng(3)
    series = rng.standard_normal((200, 8)) / np.arange(1, 9)
    minima = find_minima(series)
    x = -np.cos(np.linspace(0.0, np.pi, 20001))
    values = chebyshev.chebval(x, series.T)
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.inf)
    lowest = (padded[:, 1:-1] < padded[:, :-2]) & (padded[:, 1:-1] < padded[:, 2:])
    np.testing.assert_array_equal(minima.count, lowest.sum(1))
    best = np.nanmin(np.where(lowest, values, np.nan), axis=1)
    np.testing.assert_allclose(minima.risk[:, 0], best, rtol=0, atol=1e-6)


# --- The un-squared norm


def sampled_norm(m, e, omega, alignment, points):
    a = sx.PositionalSemanticTarget(omega, alignment=alignment).alignment_matrix
    star = points[:, :2]
    z = m * star + math.sqrt(max(1.0 - m * m, 0.0)) * points[:, 2:] + e * np.array([1.0, -1.0])
    student = sx.Attention(2)
    return np.linalg.norm((1.0 - omega) * student(star) + omega * a.ravel() - student(z), axis=1).mean()


def test_norm_on_the_circle_against_sobol_points():
    points = ndtri(qmc.Sobol(4, seed=5).random_base2(17))
    circle = norm_circle()
    for a in (0.2, 0.8, 1.2):
        for omega in (0.3, 0.6, 0.9):
            series = circle.series(a, np.array([omega]))[0]
            for angle in np.radians([0.0, 6.0, 17.0, 45.0, 80.0, 90.0]):
                m, e = math.cos(angle), math.sin(angle)
                wanted = sampled_norm(m, e, omega, a, points)
                assert math.sqrt(chebyshev.chebval(m * m - e * e, series)) == pytest.approx(
                    wanted, abs=4e-4 if omega < 0.5 else 1e-4
                )


def test_norm_table_gives_the_boundaries():
    for a in (0.8, 1.0, 1.3):
        for kind in KINDS:
            wanted = phase_boundary(kind, a, loss="norm")
            assert norm_circle().boundary(kind, a) == pytest.approx(wanted, abs=5e-4, nan_ok=True)


@pytest.mark.parametrize(("alignment", "omega"), [(0.3, 0.9), (0.77, 0.95), (1.0, 0.775)])
def test_norm_has_no_minimum_inside_the_disc(alignment, omega):
    """Where its risk does not fall with m, it rises steeply with e."""
    target = sx.PositionalSemanticTarget(omega, alignment=alignment)
    risk = sx.PopulationRisk(sx.Problem(target, sx.Attention(2, sx.OppositeEncoding()), loss="norm"))
    for e, share in ((0.0, 0.5), (0.4, 0.9), (0.85, 0.3), (0.92, 0.9)):
        along_m, along_e = risk.gradient(share * math.sqrt(1.0 - e * e), e)
        assert along_m < -1e-4 or along_e > 0.1


def test_norm_diagram():
    diagram = phase_diagram([0.5, 1.0], [0.02, 0.3, 0.5, 0.6, 0.7, 0.76, 0.775, 0.9], loss="norm")
    names = diagram.phase.attrs["flag_meanings"].split()
    assert [names[k] for k in diagram.phase.values[1]] == [
        "unique_semantic",
        "unique_semantic",
        "unique_semantic",
        "global_semantic",
        "global_semantic_positional_dynamic",
        "global_positional",
        "other",  # beyond the semantic boundary a local minimum lingers near the semantic point
        "unique_positional",
    ]
    lingering = diagram.sel(alignment=1.0, omega=0.775).minimum_angle.values
    assert lingering[0] == 90.0
    assert 5.0 < lingering[1] < 11.0
    assert (diagram.phase.values[0] == 0).all()
    assert float(diagram.minimum_risk.sel(alignment=1.0, omega=0.5)[0]) == pytest.approx(
        0.5 * 0.5633142170994, abs=1e-4
    )


# --- Errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"omega": [0.5, 1.2]}, ValueError, r"omega must be in \[0, 1\], got 1.2 in it"),
        ({"omega": [-0.1]}, ValueError, r"omega must be in \[0, 1\], got -0.1 in it"),
        ({"omega": []}, ValueError, "omega must hold at least one value, got none"),
        ({"omega": 0.5}, ValueError, r"omega must have shape .*, got \(\)"),
        ({"alignment": [[1.0]]}, ValueError, r"alignment must have shape .*, got \(1, 1\)"),
        ({"alignment": [math.inf]}, ValueError, "alignment must be finite, got inf in it"),
        ({"alignment": ["a"]}, TypeError, "alignment must be an array of numbers"),
        ({"loss": "l2"}, ValueError, "loss must be one of 'square', 'norm', got 'l2'"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message) as raised:
        phase_diagram(**arguments)
    assert "\n" not in str(raised.value)
