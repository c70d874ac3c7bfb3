"""Drawings: nothing global changes, nothing is cut off, colours mean the same everywhere."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb

from seqindex.plotting import phases, runs, style
from seqindex.plotting.phases import draw_phase_diagram
from seqindex.plotting.runs import draw_runs
from seqindex.plotting.style import figure, styled
from seqindex.sgd.ends import ends
from seqindex.theory.boundaries import KINDS
from seqindex.theory.phases import PHASES

MARK = "seqindex test"


def diagram_of(flags, alignment=None, omega=None):
    """A diagram of given flags over (alignment, omega), its boundaries made up."""
    flags = np.asarray(flags, dtype=np.int8)
    alignment = np.linspace(0.5, 1.5, flags.shape[0]) if alignment is None else np.asarray(alignment)
    omega = np.linspace(0.0, 1.0, flags.shape[1]) if omega is None else np.asarray(omega)
    attrs = {"flag_values": np.arange(len(PHASES), dtype=np.int8), "flag_meanings": " ".join(PHASES)}
    variables = {"phase": (("alignment", "omega"), flags, attrs)}
    for number, kind in enumerate(KINDS):
        variables[f"boundary_{kind}"] = ("alignment", np.full(len(alignment), 0.2 * (number + 1)))
    return xr.Dataset(variables, {"alignment": alignment, "omega": omega}, {"loss": "square"})


def runs_of(m, e=None, **attrs):
    """Runs of given overlaps over (replica, record)."""
    m = np.asarray(m, dtype=float)
    variables = {"overlap": (("replica", "record"), m)}
    if e is not None:
        e = np.asarray(e, dtype=float)
        variables["encoding_overlap"] = (("replica", "record", "direction")[: e.ndim], e)
    variables["overlap_norm"] = (("replica", "record"), np.abs(m))
    return xr.Dataset(variables, {"step": ("record", 10 * np.arange(m.shape[1]))}, attrs)


RUNS = runs_of(
    [[0.0, 0.5, 0.9], [0.0, -0.5, -0.9], [0.0, 0.1, 0.1], [0.0, np.nan, np.nan]],
    [[0.0, 0.1, 0.1], [0.0, 0.1, 0.1], [0.0, 0.5, -0.9], [0.0, np.nan, np.nan]],
    dim=10**9,
    learning_rate=0.5,
    loss="norm",
)
DRAWINGS = {
    "phases": lambda: draw_phase_diagram(diagram_of(np.arange(8).repeat(8).reshape(8, 8))),
    "runs": lambda: draw_runs(RUNS),
}


def rendered(drawing):
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_cut_off(name):
    drawing = DRAWINGS[name]()
    rendered(drawing)
    box = drawing.get_tightbbox()
    width, height = drawing.get_size_inches()
    assert box.x0 >= 0.0
    assert box.x1 <= width
    assert box.y0 >= 0.0
    assert box.y1 <= height


@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing_and_saving_leave_the_caller_alone(name, tmp_path):
    """Also a caller who has asked for LaTeX, which may not be there, and for other sizes."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with mpl.rc_context():
        pyplot.switch_backend("agg")
        mine = pyplot.figure(num=MARK)
        pyplot.plot([0, 1])
        mpl.rcParams.update({"text.usetex": True, "font.size": 31.0, "axes.linewidth": 9.0})
        before, backend, numbers = dict(mpl.rcParams), mpl.get_backend(), pyplot.get_fignums()
        try:
            drawing = DRAWINGS[name]()
            drawing.savefig(tmp_path / "a.png")
            drawing.savefig(tmp_path / "a.pdf")
            assert dict(mpl.rcParams) == before
            assert mpl.get_backend() == backend
            assert pyplot.get_fignums() == numbers
            assert pyplot.gcf() is mine
        finally:
            pyplot.close(mine)


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_picture_does_not_depend_on_the_callers_settings(name):
    plain = rendered(DRAWINGS[name]())
    with mpl.rc_context({"font.size": 31.0, "axes.linewidth": 9.0, "text.usetex": True}):
        np.testing.assert_array_equal(rendered(DRAWINGS[name]()), plain)


def test_no_pyplot_no_display_no_latex(tmp_path):
    code = f"""
import sys
import seqindex as sx
from seqindex.plotting import phases, runs
from seqindex.plotting.style import figure
from seqindex.storage import save_figure
from pathlib import Path
drawing, axes = figure(2, 2)
axes.plot([0, 1], label="$m^2$")
axes.legend()
save_figure(drawing, Path({str(tmp_path)!r}) / "a")
print("matplotlib.pyplot" in sys.modules)
"""
    environment = {"PATH": str(tmp_path), "DISPLAY": ":bogus", "HOME": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "False"


def test_settings_end_with_an_error():
    before = dict(mpl.rcParams)

    @styled
    def broken():
        raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$"):
        broken()
    assert dict(mpl.rcParams) == before


def test_axes_of_a_figure():
    drawing, axes = figure(6.0, 4.0, rows=2, columns=3, sharex=True, width_ratios=[1.0, 2.0, 1.0])
    assert axes.shape == (2, 3)
    assert tuple(drawing.get_size_inches()) == (6.0, 4.0)


def grey(colour):
    """Lightness L* of a colour, 0 to 100."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    y = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return 116.0 * y ** (1.0 / 3.0) - 16.0


def test_semantic_and_positional_differ_in_grey():
    assert abs(grey(style.SEMANTIC) - grey(style.POSITIONAL)) > 20.0
    lines = {line for _, line in runs.LOOKS.values()}
    assert len(lines) == len(runs.LOOKS)


def test_every_phase_and_boundary_has_its_look():
    assert tuple(phases.LOOKS) == PHASES
    assert tuple(phases.BOUNDARIES) == KINDS
    assert len({colour for colour, _ in phases.LOOKS.values()}) == len(PHASES)
    assert len({line for line, _ in phases.BOUNDARIES.values()}) == len(KINDS)


@pytest.mark.parametrize("flag", range(len(PHASES)))
def test_a_phase_has_the_same_colour_and_number_whichever_occur(flag):
    alone = draw_phase_diagram(diagram_of(np.full((4, 4), flag)))
    together = draw_phase_diagram(diagram_of(np.arange(8).repeat(8).reshape(8, 8)))
    colour, text = phases.LOOKS[PHASES[flag]]
    for drawing in (alone, together):
        (axes,) = drawing.get_axes()
        assert str(flag + 1) in [label.get_text() for label in axes.texts]
        (mesh,) = [c for c in axes.collections if c.get_array() is not None]
        assert to_hex(mesh.cmap(mesh.norm(flag))) == colour.lower()
    legend = [label.get_text() for label in alone.legends[0].get_texts()]
    assert legend[0] == f"{flag + 1}  {text}"
    assert len(legend) == 1 + len(KINDS)


def test_numbers_stand_inside_their_regions():
    """Two regions of one phase with another between: a number in each, none in a speck."""
    flags = np.zeros((60, 60), dtype=int)
    flags[20:40] = 5
    flags[0, 0] = 7
    (axes,) = draw_phase_diagram(diagram_of(flags)).get_axes()
    placed = sorted((text.get_text(), round(text.get_position()[0], 2)) for text in axes.texts)
    assert [text for text, _ in placed] == ["1", "1", "6"]
    assert 0.5 < placed[0][1] < 0.84
    assert 1.17 < placed[1][1] < 1.5
    assert 0.84 < placed[2][1] < 1.17


def test_a_diagram_in_any_order_and_of_any_size():
    flags = np.arange(6).reshape(3, 2)
    sorted_one = draw_phase_diagram(diagram_of(flags, [0.5, 0.7, 1.5], [0.2, 0.9]))
    mixed = diagram_of(flags, [0.5, 0.7, 1.5], [0.2, 0.9]).isel(alignment=[2, 0, 1], omega=[1, 0])
    np.testing.assert_array_equal(rendered(draw_phase_diagram(mixed)), rendered(sorted_one))
    (axes,) = draw_phase_diagram(diagram_of([[3]], [1.0], [0.5])).get_axes()
    assert axes.get_xlim() == (0.5, 1.5)


def test_runs_are_coloured_by_where_they_ended():
    drawing = draw_runs(RUNS)
    left, right = drawing.get_axes()
    assert [text.get_text() for text in drawing.legends[0].get_texts()] == [
        "neither: 1",
        "semantic: 2",
        "positional: 1",
    ]
    for axes in (left, right):
        assert [len(c.get_segments()) for c in axes.collections] == [1, 2, 1]
        assert [to_hex(c.get_color()[0]) for c in axes.collections][1] == style.SEMANTIC.lower()
    assert (left.get_ylabel(), right.get_ylabel()) == ("overlap $m$", "encoding overlap $e$")
    assert (
        drawing.get_suptitle() == "4 replicas, $d$ = 1\u2009000\u2009000\u2009000, learning rate 0.5, un-squared norm"
    )


def test_runs_without_an_encoding_and_with_several_directions():
    m = [[0.1, 0.2], [0.1, 0.9]]
    assert len(draw_runs(runs_of(m)).get_axes()) == 1
    e = [[[0.0, 0.0], [0.6, -0.7]], [[0.0, 0.0], [0.1, 0.1]]]
    drawing = draw_runs(runs_of(m, e))
    assert drawing.get_axes()[1].get_ylabel() == "encoding overlap $|e|$"
    assert ends(runs_of(m, e)).values.tolist() == [2, 1]


def test_ends():
    flags = ends(RUNS)
    assert flags.values.tolist() == [1, 1, 2, 0]
    assert flags.dtype == np.int8
    assert flags.attrs["flag_meanings"].split()[2] == "positional"
    assert ends(runs_of([[0.9], [0.7]])).values.tolist() == [1, 0]


def test_one_record_is_drawn():
    drawing = draw_runs(RUNS.isel(record=[0]))
    rendered(drawing)
    for axes, name in zip(drawing.get_axes(), ("overlap", "encoding_overlap"), strict=False):
        dots = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == "o"])
        np.testing.assert_array_equal(np.sort(dots), np.sort(RUNS[name].values[:, 0]))
