"""Landscapes, the analysis of one problem, its page and its command."""

import html.parser

import numpy as np
import pytest

import seqindex as sx
from seqindex.plotting.landscape import draw_landscape, draw_surface
from seqindex.report.analysis import analyse, hermite_spectrum
from seqindex.report.present import rows, to_html
from seqindex.theory.landscape import landscape


@pytest.fixture(scope="module")
def encoded():
    return sx.Problem(sx.Target("z1 - z2", 2), sx.Attention(2, sx.OppositeEncoding(), "trace"))


def test_a_landscape_is_the_risk(encoded):
    data, risk = landscape(encoded, points=9), sx.PopulationRisk(encoded)
    np.testing.assert_allclose(data["risk"], risk(data["risk_m"].values, data["risk_e"].values), atol=1e-12)
    assert float((data["risk_m"] ** 2 + data["risk_e"] ** 2).max()) <= 1.0 + 1e-12
    # The flow lies in the sphere, so it is orthogonal to s on the circle, and points downhill.
    edge = np.abs(data["risk_m"] ** 2 + data["risk_e"] ** 2 - 1.0) < 1e-12
    radial = data["flow_m"] * data["risk_m"] + data["flow_e"] * data["risk_e"]
    assert float(np.abs(radial.where(edge)).max()) < 1e-10
    kinds = set(data["critical_kind"].values.tolist())
    assert {"minimum", "saddle"} <= kinds
    lowest = data["critical_risk"].values.min()
    assert lowest <= float(data["risk"].min()) + 1e-9


def test_a_plane_of_several_directions():
    problem = sx.Problem(sx.Target("He2(z1)", 2), sx.Attention(2, sx.Encoding(np.eye(2)), "trace"))
    data = landscape(problem, plane=[3.0, 4.0], points=5, critical=False)
    value = sx.PopulationRisk(problem)(0.0, [0.6, 0.8])
    assert float(data["risk"][-1, 2]) == pytest.approx(float(value), abs=1e-12)
    with pytest.raises(ValueError, match=r"^plane must be a direction other than zero$"):
        landscape(problem, plane=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"^plane must be None, as there is no encoding$"):
        landscape(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), plane=[1.0])


def test_drawings(encoded):
    data = landscape(encoded, points=9)
    drawing = draw_landscape(data)
    assert [axes.get_xlabel() for axes in drawing.axes[:2]] == ["overlap with the target, m", "overlap m or e"]
    assert draw_surface(data).axes[0].name == "3d"
    bare = landscape(sx.Problem(sx.Target("z1", 1), sx.TiedNetwork(1)), points=9)
    assert len(draw_landscape(bare).axes) == 1


def test_spectrum():
    """E|g_k|^2 of He2 + z1 z2 z3 + 3, and of tanh by its Parseval sum."""
    problem = sx.Problem(sx.Target("He2(z1) + z1*z2*z3 + 3", 3), sx.TiedNetwork(3))
    values, errors = hermite_spectrum(problem)
    assert values.tolist() == [9.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert not errors.any()
    values, errors = hermite_spectrum(sx.Problem(sx.Target("tanh(z1)", 1), sx.TiedNetwork(1)))
    assert values[1] == pytest.approx(0.60570550960216**2, abs=1e-10)
    assert values[3] == pytest.approx(0.36359537628097**2 / 6.0, abs=1e-10)


def test_an_analysis_measures_what_it_predicts():
    problem = sx.Problem(sx.Target("sum(He2(z))/sqrt(2)", 4), sx.TiedNetwork(4))
    found = analyse(problem, dim=200, budget=60.0)
    assert (found.hits >= 0).mean() > 0.9
    assert np.median(found.hits) == pytest.approx(found.recovery.steps, rel=0.5)
    assert found.plain is None
    assert not found.along_encoding


class _Sources(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_stands_alone(encoded):
    found = analyse(encoded, dim=100, budget=0.1)
    assert found.plain is not None
    names = [name for name, _, _ in rows(found)]
    assert names[:3] == ["SIE", "flatness", "escape order"]
    assert {"without encoding", "predicted steps", "measured steps"} <= set(names)
    parser = _Sources()
    parser.feed(to_html(found, "seqindex analyse <script>alert(1)</script>"))
    assert parser.found
    assert all(source.startswith("data:image/png;base64,") for source in parser.found)
    assert "alert(1)" in " ".join(parser.text)
    assert "<script" not in to_html(found, "<script>")


@pytest.mark.parametrize(
    ("text", "value"),
    [("z1*He2(z1)*0 + 3", "infinite"), ("prod(z)", "3"), ("tanh(z1)*z2", "2"), ("sign(z1)", "1")],
)
def test_exponents_of_odd_ends(text, value):
    found = analyse(sx.Problem(sx.Target(text, 3), sx.TiedNetwork(3, "tanh")), dim=100, budget=0.05)
    assert rows(found)[0][1] == value
