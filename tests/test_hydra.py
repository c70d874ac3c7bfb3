"""Experiment files of the released repository: small look-alikes with the same keys, and what they mean.

Meaning is checked in law against plain loops over tokens of dimension d, which follow the released code's conventions.
Two-sample Kolmogorov-Smirnov tests at 1e-6.
"""

import numpy as np
import pytest
from scipy import stats

from seqindex.cli.main import main
from seqindex.study.hydra import read_hydra
from seqindex.study.run import open_study, run_study
from seqindex.study.spec import points

FILES = {
    "run/small.yaml": """
d: 30
learning_rate_coefficient: 5e-1
T: 60
teacher_function: H2sum
student_activation: relu
ic_type: overlapped
ic_seed: 1
ic_randomsign: false
learning_rate_scaling_with_L: none
number_of_measures: 4
metrics:
  - overlap
  - steps
L: 1
data_seed: 0
student_type: plain_network
""",
    "run/student/squared.yaml": "type: plain_network\nactivation: square\n",
    "run/student/traced.yaml": "type: attention\npositional_encoding:\n    type: none\nreduction:\n    type: trace\n",
    "square.yaml": """
run:
  learning_rate_scaling_with_L: sqrt
  student_type: tied_network
hydra:
  sweeper:
    params:
      run.data_seed: 0, 1, 3
      run.L: 1, 2, 4
defaults:
  - machine: production
  - run: small
  - override hydra/launcher: joblib
""",
    "linear.yaml": """
run:
  d: 30
  learning_rate_coefficient: 0.5
  T: 6e1
  teacher_function: inversesqrtsum
  student_activation: relu
  ic_type: overlapped
  ic_overlap: 0.3
  learning_rate_scaling_with_L: none
  number_of_measures: 3
  metrics: [overlap, steps, population_square_loss]
  L: 3
  student_type: plain_network
hydra:
  sweeper:
    params:
      run.student_type: plain_network, tied_network
      run.data_seed: {seeds}
""".replace("{seeds}", ", ".join(map(str, range(200)))),
    "attention.yaml": """
run:
  d: 20
  learning_rate_coefficient: 5e-1
  T: 20
  teacher:
    type: ssi
    function: inversesqrtH2sum
  ic_type: overlapped
  loss: square
  number_of_measures: 3000
  metrics: [overlap]
  L: 2
machine:
  device: cpu
hydra:
  sweeper:
    params:
      run.L: 3, 4
      run/student: squared, traced
defaults:
  - run/student: squared # traced
  - machine: test
""",
    "null.yaml": """
run:
  d: 50
  learning_rate_coefficient: 5e-3
  T: 100
  teacher_function: 2squaredifference
  student_activation: relu
  ic_type: overlapped
  number_of_measures: 3
  L: 2
  student_type: tied_network
""",
    "staircase.yaml": """
run:
  d: 50
  learning_rate_coefficient: 1.5e-3
  T: 100
  teacher_function: sqrtdouble_staircase
  student_activation: relu
  ic_type: random
  number_of_measures: 3
  student_type: plain_network
hydra:
  sweeper:
    params:
      run.L: 3, 5
""",
    "transition.yaml": """
run:
  L: 2
  d: 25
  learning_rate_coefficient: 2.0
  T: 40
  teacher:
    type: positional_semantic_model
    omega: 0.
    pre_softmax_A: [[1, -1],[-1, 1]]
  student:
    type: attention
    positional_encoding:
      type: opposite
      seed: 20573
    reduction:
      type: none
  ic_type: overlapped
  ic_seed: 34795
  ic_overlap: 0.
  number_of_measures: 2
  metrics_kwargs:
    overlap:
      signed: true
  loss: frobenius
hydra:
  sweeper:
    params:
      run.ic_seed: 1, 2
      run.data_seed: {seeds}
      run.teacher.omega: 0.2, 0.95
""".replace("{seeds}", ", ".join(map(str, range(150)))),
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def settings(folder, name):
    study, remarks = read_hydra(folder / f"{name}.yaml")
    return [point.settings for point in points(study)], remarks


def test_groups_own_values_and_sweeps(folder):
    found, remarks = settings(folder, "square")
    assert [(one["length"], one["student"], one["replicas"]) for one in found] == [(L, "tied", 3) for L in (1, 2, 4)]
    assert [one["learning_rate"] for one in found] == pytest.approx([0.5, 0.5 * 2**0.5, 1.0])
    assert {(one["target"], one["dim"], one["steps"], one["loss"]) for one in found} == {("H2sum", 30, 60, "square")}
    assert found[0]["start"] == {"name": "released", "overlap": None}
    assert found[0]["records"] == [0, 20, 40, 60]
    assert remarks == ["the 3 pairs of run.data_seed and run.ic_seed become as many replicas"]


def test_students_by_group_and_by_name(folder):
    found, remarks = settings(folder, "attention")
    kinds = {
        (one["length"], one["student"], one.get("activation"), one.get("sphere"), one.get("reduction")) for one in found
    }
    assert kinds == {
        *((L, "untied", "square", "joint", None) for L in (3, 4)),
        *((L, "attention", None, None, "trace") for L in (3, 4)),
    }
    assert any("run.number_of_measures exceeds run.T" in remark for remark in remarks)
    assert found[0]["records"] == list(range(21))


def test_other_files(folder):
    (null,), _ = settings(folder, "null")
    assert (null["target"], null["student"]) == ("2squaredifference", "tied")
    staircase, _ = settings(folder, "staircase")
    assert [(one["length"], one["start"]) for one in staircase] == [(3, {"name": "random"}), (5, {"name": "random"})]
    transition, remarks = settings(folder, "transition")
    assert [(one["omega"], one["loss"], one["replicas"]) for one in transition] == [
        (0.2, "norm", 300),
        (0.95, "norm", 300),
    ]
    high = 1.0 / (1.0 + np.exp(-2.0))
    assert np.array(transition[0]["alignment_matrix"]) == pytest.approx(np.array([[high, 1 - high], [1 - high, high]]))
    assert (transition[0]["encoding"], transition[0]["reduction"]) == ("opposite", "identity")
    assert any("metrics_kwargs never reaches" in remark for remark in remarks)


def released_start(d, o, rng, rows, other=()):
    """(1 - o) u + o w*, rescaled; u orthogonal to w* and to the encoding."""
    wstar = rng.standard_normal(d)
    wstar *= np.sqrt(d) / np.linalg.norm(wstar)
    basis = [wstar / np.sqrt(d), *other]
    w = []
    for _ in range(rows):
        u = rng.standard_normal(d)
        for b in basis:
            u -= (u @ b) * b
        one = (1.0 - o) * u * np.sqrt(d) / np.linalg.norm(u) + o * wstar
        w.append(one * np.sqrt(d) / np.linalg.norm(one))
    return wstar, np.array(w)


def network(kind, d, length, o, rate, steps, rng):
    """Overlap of a relu network on inversesqrtsum after plain SGD on the square loss."""
    wstar, w = released_start(d, o, rng, length if kind == "untied" else 1)
    for _ in range(steps):
        x = rng.standard_normal((length, d)) / np.sqrt(d)
        y = (x @ wstar).sum() / np.sqrt(length)
        u = (x * w).sum() / np.sqrt(length)
        slope = 2.0 * (max(u, 0.0) - y) * (u > 0.0) / np.sqrt(length)
        norm = np.linalg.norm(w)
        w = w - rate * slope * (x if kind == "untied" else x.sum(0, keepdims=True))
        w *= norm / np.linalg.norm(w)
    return np.sqrt(((w @ wstar / d) ** 2).mean())


def test_networks_in_law(folder, tmp_path):
    study, remarks = read_hydra(folder / "linear.yaml")
    assert any("without the factor 1/2" in remark for remark in remarks)
    run_study(study, tmp_path / "out", workers=1)
    data = open_study(tmp_path / "out").load()
    for kind in ("untied", "tied"):
        measured = data["overlap_norm"].sel(student=kind).isel(record=-1).values
        rng = np.random.default_rng(1)
        plain = [network(kind, 30, 3, 0.3, 0.5, 60, rng) for _ in range(400)]
        assert stats.ks_2samp(measured, plain).pvalue > 1e-6


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(omega, d, rate, steps, rng):
    """(|m|, |e|) after plain SGD on the norm loss from m = e = 0; gradients by the chain rule, row by row."""
    wstar, w = released_start(d, 0.0, rng, 1, ())
    p = rng.standard_normal(d)
    for b in (wstar, w[0]):
        p -= (p @ b) * b / (b @ b)
    p /= np.linalg.norm(p)
    w, encoding, matrix = w[0], np.array([p, -p]), softmax(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    for _ in range(steps):
        x = rng.standard_normal((2, d)) / np.sqrt(d)
        zstar, tokens = x @ wstar, x + encoding / np.sqrt(d)
        z = tokens @ w
        s = softmax(np.outer(z, z))
        r = s - (1.0 - omega) * softmax(np.outer(zstar, zstar)) - omega * matrix
        r /= np.linalg.norm(r)
        score = s * (r - (s * r).sum(1, keepdims=True))
        norm = np.linalg.norm(w)
        w = w - rate * (score @ z + score.T @ z) @ tokens
        w *= norm / np.linalg.norm(w)
    return abs(w @ wstar / d), abs(w @ p / np.sqrt(d))


def test_attention_in_law(folder, tmp_path):
    run_study(read_hydra(folder / "transition.yaml")[0], tmp_path / "out", workers=1)
    data = open_study(tmp_path / "out").load()
    for omega in (0.2, 0.95):
        last = data.sel(omega=omega).isel(record=-1)
        plain = np.array([attention(omega, 25, 2.0, 40, rng) for rng in np.random.default_rng(2).spawn(400)]).T
        assert stats.ks_2samp(abs(last["overlap"]), plain[0]).pvalue > 1e-6
        assert stats.ks_2samp(abs(last["encoding_overlap"]), plain[1]).pvalue > 1e-6


def test_on_the_command_line(folder, capsys):
    out = folder / "out"
    assert (
        main(["run", str(folder / "square.yaml"), "--format", "hydra", "--out", str(out), "--workers", "1", "--quiet"])
        == 0
    )
    captured = capsys.readouterr()
    assert "3 points computed" in captured.out
    assert "Note: the 3 pairs of run.data_seed and run.ic_seed become as many replicas." in captured.err


MISTAKES = [
    ("null.yaml", "T: 100", "Tee: 100", "run.T must be given, got nothing"),
    ("null.yaml", "2squaredifference", "2sqaredifference", "target"),
    ("null.yaml", "tied_network", "tide_network", "run.student.type must be one of .* did you mean 'tied_network'"),
    ("null.yaml", "overlapped", "overlaped", "run.ic_type must be one of .* did you mean 'overlapped'"),
    ("null.yaml", "  L: 2", "  L: 2\n  ic_randomsign: true", "run.ic_randomsign must be false"),
    ("square.yaml", "run: small", "run: smal", "run must be one of small, got 'smal'"),
    ("transition.yaml", "type: none", "type: projection", "run.student.reduction.type must be 'trace' or 'none'"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), MISTAKES)
def test_mistakes(folder, name, old, new, message):
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        points(read_hydra(path)[0])


def test_unknown_keys_are_remarked(folder):
    path = folder / "null.yaml"
    path.write_text(path.read_text().replace("  L: 2", "  L: 2\n  metric_kwargs: {}\n  ic_normalize: true"))
    _, remarks = read_hydra(path)
    assert "run.metric_kwargs is unknown: left out; did you mean 'metrics_kwargs'?" in remarks
    assert any("ic_normalize is never read" in remark for remark in remarks)
