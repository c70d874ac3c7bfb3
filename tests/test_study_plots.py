"""Pictures of studies: which kind is drawn, and that it shows the numbers."""

import numpy as np
import pytest
import xarray as xr

from seqindex.cli.main import main
from seqindex.plotting.study import draw_study

RNG = np.random.default_rng(0)


def times(exponent, censored=()):
    dims = [100, 200, 400, 800, 1600]
    steps = np.array([d**exponent * RNG.lognormal(0.0, 0.2, 64) for d in dims])
    outcome = np.zeros((5, 64))
    for index in censored:
        outcome[index, 10:] = 2
        steps[index, 10:] = steps[index].max()
    return xr.Dataset(
        {"hitting_step": (("dim", "replica"), steps), "hitting_outcome": (("dim", "replica"), outcome)}, {"dim": dims}
    )


def test_recovery_times_against_a_number_with_the_fitted_power():
    data = xr.concat([times(1.0), times(2.0)], "student").assign_coords(student=["tied", "untied"])
    axes = draw_study(data).axes[0]
    assert (axes.get_xlabel(), axes.get_xscale(), axes.get_yscale()) == ("dim", "log", "log")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    found = [float(label.split("exponent ")[1].split(" ")[0]) for label in labels]
    assert found == pytest.approx([1.0, 2.0], abs=0.1)
    assert [label.split(":")[0] for label in labels] == ["student = tied", "student = untied"]


def test_a_median_beyond_the_watch_is_an_arrow():
    axes = draw_study(times(1.0, censored=[4])).axes[0]
    arrows = [line for line in axes.lines if line.get_marker() == "^" and len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in arrows] == [1600.0]


def test_a_map_over_two_numbers():
    values = np.linspace(0.0, 1.0, 3 * 4).reshape(3, 4)
    overlap = np.broadcast_to(values[:, :, None, None], (3, 4, 5, 2))
    data = xr.Dataset(
        {"overlap_norm": (("omega", "alignment", "replica", "record"), overlap)},
        {"omega": [0.1, 0.2, 0.3], "alignment": [0.5, 0.6, 0.7, 0.8]},
    )
    drawing = draw_study(data)
    (mesh,) = drawing.axes[0].collections
    assert np.asarray(mesh.get_array()).reshape(4, 3) == pytest.approx(values.T)
    assert (drawing.axes[0].get_xlabel(), drawing.axes[0].get_ylabel()) == ("omega", "alignment")


def test_overlaps_against_steps():
    overlap = np.broadcast_to(np.linspace(0.0, 1.0, 11), (2, 9, 11))
    data = xr.Dataset(
        {"overlap_norm": (("student", "replica", "record"), overlap)},
        {"student": ["tied", "untied"], "step": (("student", "record"), np.array([np.arange(11), 2 * np.arange(11)]))},
    )
    axes = draw_study(data).axes[0]
    assert [line.get_label() for line in axes.lines] == ["student = tied", "student = untied"]
    assert axes.lines[1].get_xdata()[-1] == 20
    assert axes.lines[1].get_ydata() == pytest.approx(np.linspace(0.0, 1.0, 11))


def test_many_points_are_thinned_out():
    overlap = np.zeros((30, 3, 4))
    data = xr.Dataset(
        {"overlap_norm": (("kind", "replica", "record"), overlap)},
        {"kind": [f"k{i}" for i in range(30)], "step": ("record", np.arange(4))},
    )
    labels = [line.get_label() for line in draw_study(data).axes[0].lines]
    assert len(labels) == 8
    assert (labels[0], labels[-1]) == ("kind = k0", "kind = k29")


def test_on_the_command_line(tmp_path, capsys):
    study = tmp_path / "study.yaml"
    study.write_text(
        "{target: z1, length: 1, activation: identity, dim: 20, learning_rate: 0.1, steps: 100, replicas: 4,"
        " record: {overlaps: 5}, sweep: {grid: {dim: [20, 30]}}}"
    )
    assert main(["run", str(study), "--workers", "1", "--quiet"]) == 0
    assert main(["plot", str(tmp_path / "study")]) == 0
    assert (tmp_path / "study" / "study.png").stat().st_size > 1000
    assert main(["plot", str(tmp_path / "study"), "--out", str(tmp_path / "other.png")]) == 0
    assert (tmp_path / "other.pdf").exists()
    capsys.readouterr()
    assert main(["plot", str(tmp_path)]) == 2
    assert "folder must hold a study" in capsys.readouterr().err


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="study must have recorded overlaps"):
        draw_study(times(1.0).isel(dim=[0]))
