"""The benchmark runs, its peers are right, and PyTorch stays away where nobody asked for it."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from seqindex.sgd import bench, peers

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "sgd_speed.py"
ENGINES = ["explicit, d = 1e3", "reduced, d = 1e3", "reduced, d = 1e9"]


def test_rows_without_torch(monkeypatch):
    monkeypatch.setattr(bench, "has_torch", lambda: False)
    rows = bench.benchmark(seconds=1e-3, turns=1)
    assert [row.name for row in rows] == ENGINES
    assert all(row.steps_per_second > 0 and row.times == {} for row in rows)
    assert "torch" not in sys.modules


def test_engines_do_the_same_thing():
    found = bench.overlaps(500, names=ENGINES)
    explicit, reduced = (found[name] for name in ENGINES[:2])
    assert abs(explicit.mean() - reduced.mean()) < 5 * np.hypot(explicit.std(), reduced.std()) / 8
    assert reduced.std() > 1e-3


@pytest.mark.parametrize("change", [{"seconds": 0}, {"seconds": np.nan}, {"turns": 0}, {"loss": "cube"}])
def test_bad_arguments(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        bench.benchmark(**change)


def test_script_without_torch(monkeypatch, capsys):
    monkeypatch.setattr(peers, "has_torch", lambda: False)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--tiny"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("PyTorch is not installed")


@pytest.mark.skipif(not peers.has_torch(), reason="needs PyTorch")
@pytest.mark.parametrize("loss", ["square", "norm"])
def test_tiny_benchmark(loss, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--tiny", "--loss", loss])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    text = capsys.readouterr().out
    assert caught.value.code == 0, text
    assert all(name in text for name in [*ENGINES, *peers.PEERS])
