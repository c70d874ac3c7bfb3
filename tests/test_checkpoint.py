"""Stretches of replicas, and simulations that are stopped and go on: the same numbers bit for bit."""

import numpy as np
import pytest
import xarray as xr

import seqindex as sx
from seqindex.sgd import checkpoint as module
from seqindex.sgd.checkpoint import Checkpoint

PROBLEMS = {
    "attention": sx.Problem(sx.PositionalSemanticTarget(0.6, alignment=1.0), sx.Attention(2, sx.OppositeEncoding())),
    "tied": sx.Problem(sx.Target("sum(He2(z))", 3), sx.TiedNetwork(3)),
    "untied": sx.Problem(sx.Target("sum(He2(z))", 2), sx.UntiedNetwork(2)),
}
ARGUMENTS = {"dim": 100, "learning_rate": 0.05, "steps": 3000, "seed": 5, "workers": 1, "progress": False}


class Stop:
    """Progress that stops the run the n-th time it is told of."""

    def __init__(self, after):
        self.left = after

    def __call__(self, amount):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("engine", ["reduced", "explicit"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_stretch_of_replicas_is_a_part_of_the_whole(name, engine):
    whole = sx.sgd(PROBLEMS[name], replicas=21, engine=engine, records=4, **ARGUMENTS)
    part = sx.sgd(PROBLEMS[name], replicas=range(9, 21), engine=engine, records=4, **ARGUMENTS)
    xr.testing.assert_identical(part, whole.isel(replica=slice(9, None)))


@pytest.mark.parametrize("engine", ["reduced", "explicit"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_sgd_goes_on_from_a_checkpoint(tmp_path, monkeypatch, name, engine):
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    file = tmp_path / "state.npz"
    arguments = {**ARGUMENTS, "replicas": 5, "engine": engine, "records": [0, 700, 1400, 3000]}
    whole = sx.sgd(PROBLEMS[name], **arguments)
    for after in (2, 4, 3):
        with pytest.raises(sx.Interrupted):
            sx.sgd(PROBLEMS[name], checkpoint=file, **{**arguments, "progress": Stop(after)})
        assert file.exists()
    xr.testing.assert_identical(sx.sgd(PROBLEMS[name], checkpoint=file, **arguments), whole)
    assert not file.exists()


@pytest.mark.parametrize("name", PROBLEMS)
def test_hitting_times_go_on_from_a_checkpoint(tmp_path, monkeypatch, name):
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    file = tmp_path / "state.npz"
    arguments = {**ARGUMENTS, "steps": 20_000, "replicas": range(3, 12), "threshold": 0.3}
    whole = sx.hitting_time(PROBLEMS[name], **arguments)
    with pytest.raises(sx.Interrupted):
        sx.hitting_time(PROBLEMS[name], checkpoint=file, **{**arguments, "progress": Stop(3)})
    xr.testing.assert_identical(sx.hitting_time(PROBLEMS[name], checkpoint=file, **arguments), whole)
    assert not file.exists()


def test_the_state_is_kept_while_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    seen = []

    def watch(amount):
        seen.append(sorted(path.name for path in tmp_path.iterdir()))

    sx.sgd(PROBLEMS["tied"], checkpoint=tmp_path / "a.npz", **{**ARGUMENTS, "progress": watch})
    assert ["a.npz"] in seen
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_other_settings_is_refused_and_a_damaged_one_ignored(tmp_path):
    file = tmp_path / "state.npz"
    with pytest.raises(sx.Interrupted):
        sx.sgd(PROBLEMS["tied"], checkpoint=file, replicas=3, **{**ARGUMENTS, "progress": Stop(2)})
    with pytest.raises(ValueError, match="checkpoint must be a file of the same simulation"):
        sx.sgd(PROBLEMS["tied"], checkpoint=file, replicas=3, **{**ARGUMENTS, "seed": 6})
    file.write_bytes(file.read_bytes()[:100])
    again = sx.sgd(PROBLEMS["tied"], checkpoint=file, replicas=3, **ARGUMENTS)
    xr.testing.assert_identical(again, sx.sgd(PROBLEMS["tied"], replicas=3, **ARGUMENTS))


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"replicas must be a number or a stretch such as range\(16, 32\)"):
        sx.sgd(PROBLEMS["tied"], replicas=range(0, 8, 2), **ARGUMENTS)
    with pytest.raises(ValueError, match="checkpoint must lie in a folder that exists"):
        sx.sgd(PROBLEMS["tied"], checkpoint=tmp_path / "no" / "a.npz", **ARGUMENTS)
    assert Checkpoint(None, "").load() is None
    assert np.array_equal(sx.sgd(PROBLEMS["tied"], replicas=range(4, 6), **ARGUMENTS)["replica"], [4, 5])
