"""``sgd``: what it returns, which numbers do not depend on what, and what happens when something breaks."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import xarray as xr

import chains
import seqindex as sx
from seqindex.gaussian.simd import WIDTH
from seqindex.outcome import Outcome
from seqindex.sgd import run
from seqindex.sgd.run import Interrupted, recorded_steps, sgd
from seqindex.sgd.start import Start
from seqindex.sgd.stop import Near

OPPOSITE = chains.positional_semantic(2, sx.OppositeEncoding())
TILTED = chains.one_label(2, sx.Encoding([[1.0, 0.0], [0.5, -0.7]], [0.5, -0.4]), "norm", "trace")
PLAIN = chains.positional_semantic(2)
ENGINES = ["reduced", "explicit"]


def quick(problem=OPPOSITE, **keywords):
    settings = {"dim": 20, "learning_rate": 1.0, "steps": 60, "replicas": 5, "seed": 0, "records": 4, "progress": False}
    return sgd(problem, **(settings | keywords))


def same(a, b):
    xr.testing.assert_identical(a.drop_attrs(), b.drop_attrs())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("problem", "directions"), [(PLAIN, 0), (OPPOSITE, 1), (TILTED, 2)], ids=["no encoding", "opposite", "tilted"]
)
def test_dataset(problem, directions, engine):
    runs = quick(problem, engine=engine)
    assert runs.sizes == {"replica": 5, "record": 4} | ({"direction": 2} if directions == 2 else {})
    assert runs.overlap.dims == ("replica", "record")
    assert runs.step.dims == ("record",)
    assert runs.step.values.tolist() == [0, 20, 40, 60]
    assert runs.step.dtype == np.int64
    assert runs.replica.values.tolist() == list(range(5))
    np.testing.assert_array_equal(runs.overlap_norm, np.abs(runs.overlap))
    assert runs.outcome.dtype == np.int8
    assert (runs.outcome == Outcome.STEP_LIMIT).all()
    assert runs.outcome.attrs["flag_meanings"].split()[int(runs.outcome[0])] == "step_limit"
    assert runs.outcome.attrs["flag_values"].dtype == np.int8
    assert (runs.end_step == 60).all()
    assert ("encoding_overlap" in runs) == (directions > 0)
    if directions:
        extra = ("direction",) if directions > 1 else ()
        assert runs.encoding_overlap.dims == ("replica", "record", *extra)
    assert np.isfinite(runs.overlap).all()
    again = sx.Problem.from_attrs(runs.attrs, target=problem.target if problem is TILTED else None)
    assert again.to_attrs() == problem.to_attrs()
    assert Start.from_spec(json.loads(runs.attrs["start"])) == Start.random()
    assert {"dim", "learning_rate", "seed", "engine", "stream_version", "numba_version"} <= set(runs.attrs)


@pytest.mark.parametrize("seed", [7, 2**63, 2**128 - 1])
@pytest.mark.parametrize("problem", [PLAIN, TILTED], ids=["no encoding", "tilted"])
def test_file_and_back(problem, seed, tmp_path):
    stop = Near(np.ones((1, problem.frame.rank)), 0.01)
    runs = quick(problem, seed=seed, stop=stop, start=Start.released())
    runs.to_netcdf(tmp_path / "runs.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "runs.nc", engine="h5netcdf") as read:
        xr.testing.assert_equal(read, runs)
        assert int(read.attrs["seed"]) == seed
        assert read.attrs["student"] == runs.attrs["student"]
        assert Near(**json.loads(read.attrs["stop"])).spec() == stop.spec()
        assert sx.Problem.from_attrs(read.attrs, target=problem.target).to_attrs() == problem.to_attrs()


def test_file_without_a_stop(tmp_path):
    quick(stop=None).to_netcdf(tmp_path / "runs.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "runs.nc", engine="h5netcdf") as read:
        assert read.attrs["stop"] == ""


def test_public_name_whatever_was_imported_before():
    code = "import {}; import seqindex; print(callable(seqindex.sgd), seqindex.sgd.run.sgd.__name__)"
    for module in ("seqindex.sgd.run", "seqindex.sgd.start, seqindex.sgd.run"):
        result = subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True, check=True)
        assert result.stdout.split() == ["True", "sgd"]
    same(sx.sgd(OPPOSITE, dim=20, learning_rate=1.0, steps=60, replicas=5, records=4, progress=False), quick())


# Records.


def test_recorded_steps():
    assert recorded_steps(2, 10).tolist() == [0, 10]
    assert recorded_steps(4, 10).tolist() == [0, 3, 6, 10]
    assert recorded_steps(11, 10).tolist() == list(range(11))
    assert recorded_steps(300, 10).tolist() == list(range(11))
    assert recorded_steps(300, 1).tolist() == [0, 1]
    assert recorded_steps([7, 3, 3, 0], 10).tolist() == [0, 3, 7]
    assert recorded_steps(range(2, 5), 10).tolist() == [2, 3, 4]
    for steps in (np.array([5, 3]), xr.DataArray([5, 3]), {5, 3}, (5, 3.0), iter([5, 3])):
        assert recorded_steps(steps, 10).tolist() == [3, 5]
    assert recorded_steps(np.array(2), 10).tolist() == [0, 10]
    steps = 2**62 - 1
    chosen = recorded_steps(1001, steps)
    assert chosen.dtype == np.int64
    assert [int(chosen[i]) for i in (0, 1, -1)] == [0, steps // 1000, steps]
    assert recorded_steps([steps], steps).tolist() == [steps]


def test_states_after_the_last_record_are_still_made():
    runs = quick(records=[0, 20], learning_rate=1.0)
    assert (runs.end_step == 60).all()
    assert (runs.outcome == Outcome.STEP_LIMIT).all()


# What the numbers do not depend on.


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("problem", [OPPOSITE, TILTED], ids=["opposite", "tilted"])
def test_bits_do_not_depend_on_how_it_is_run(problem, engine, capsys):
    settings = {"engine": engine, "batch": 2, "replicas": 200, "steps": 600, "seed": 4}
    whole = quick(problem, workers=1, **settings)
    for change in ({"workers": 2}, {"workers": 8}, {"progress": True}, {"progress": None}):
        same(quick(problem, **(settings | change)), whole)
    few = quick(problem, **(settings | {"replicas": 5}))
    same(few, whole.isel(replica=slice(0, 5)))
    odd = quick(problem, **(settings | {"replicas": WIDTH + 1}))
    same(odd, whole.isel(replica=slice(0, WIDTH + 1)))
    records = quick(problem, **(settings | {"records": [0, 7, 8, 200, 431, 600]}))
    same(records.isel(record=[0, 3, 5]), whole.isel(record=[0, 1, 3]))
    assert len(np.unique(whole.overlap.values[:, -1])) == 200
    other = quick(problem, **(settings | {"seed": 5}))
    assert np.intersect1d(other.overlap, whole.overlap).size == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_frozen_replicas_do_not_disturb_the_others(engine):
    settings = {"engine": engine, "replicas": 150, "steps": 400, "records": 41}
    free = quick(**settings)
    stop = Near([(0.5, 0.5), (-0.5, 0.5)], distance=0.3)
    runs = quick(stop=stop, **settings)
    done = runs.outcome.values == Outcome.CONVERGED
    assert 20 < done.sum() < 150, "some converge, some do not"
    same(runs.isel(replica=~done), free.isel(replica=~done))
    states = np.stack([runs.overlap.values, runs.encoding_overlap.values])
    wanted = np.stack([free.overlap.values, free.encoding_overlap.values])
    for replica in np.flatnonzero(done):
        end = int(runs.end_step[replica])
        record = runs.step.values.tolist().index(end)
        np.testing.assert_array_equal(states[:, replica, : record + 1], wanted[:, replica, : record + 1])
        assert (states[:, replica, record:] == states[:, replica, record, None]).all()
        assert stop.reached(states[:, replica]).tolist() == [False] * record + [True] * (len(runs.step) - record)


def test_all_frozen_ends_early():
    runs = quick(start=Start.overlaps(1.0), stop=Near([(1.0, 0.0)], 0.5), steps=2**62, replicas=3)
    assert (runs.outcome == Outcome.CONVERGED).all()
    assert (runs.end_step == 0).all()


def test_global_random_state_is_untouched():
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()  # noqa: NPY002
    for engine in ENGINES:
        quick(engine=engine)
    after = np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]


def _child(queue):
    queue.put(quick(replicas=70, steps=300).overlap.values)


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_subprocess_gives_the_same_numbers(method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    wanted = quick(replicas=70, steps=300, workers=2).overlap.values
    children = [context.Process(target=_child, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    for _ in children:
        np.testing.assert_array_equal(queue.get(timeout=120), wanted)
    for child in children:
        child.join(60)


def test_a_thousand_million_dimensions():
    settings = {"learning_rate": 0.5, "steps": 500, "replicas": 300, "start": Start.overlaps(0.5, 0.1), "batch": 2}
    huge = quick(dim=10**9, **settings)
    large = quick(dim=10**6, **settings)
    assert abs(huge.overlap[:, -1].mean() - 0.5) < 1e-5
    moved = [float((runs.overlap[:, -1]).std()) for runs in (huge, large)]
    assert moved[1] / moved[0] == pytest.approx(1e3, rel=0.2), "fluctuations fall as 1/d at a fixed number of steps"


# What breaks.


def spoiled(value, bound=2.5):
    """A link that is ``value`` where the first field is large."""

    def link(z):
        return np.where(z[..., 0] > bound, value, z[..., 0])

    return sx.Problem(sx.Target(link, 2), sx.Attention(2, sx.OppositeEncoding(), "trace"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_link_that_breaks_ends_its_replica_only(value, engine):
    settings = {"engine": engine, "steps": 60, "replicas": 70, "records": 61}
    runs = quick(spoiled(value), **settings)
    broken = runs.outcome.values == Outcome.DIVERGED
    assert 5 < broken.sum() < 65
    fine = quick(spoiled(0.0, bound=1e9), **settings)
    for replica in range(70):
        end = int(runs.end_step[replica]) if broken[replica] else 61
        for name in ("overlap", "encoding_overlap", "overlap_norm"):
            got, wanted = runs[name].values[replica], fine[name].values[replica]
            np.testing.assert_array_equal(got[:end], wanted[:end])
            assert np.isnan(got[end:]).all()
    assert (runs.end_step.values[~broken] == 60).all()
    few = quick(spoiled(value), **(settings | {"records": [60]}))
    np.testing.assert_array_equal(few.end_step, runs.end_step)
    np.testing.assert_array_equal(few.outcome, runs.outcome)


def test_all_diverged_ends_early():
    runs = quick(spoiled(np.nan, bound=-1e9), steps=2**62, replicas=3)
    assert (runs.outcome == Outcome.DIVERGED).all()
    assert (runs.end_step == 1).all()
    assert np.isnan(runs.overlap.values[:, 1:]).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_huge_rates_stay_finite(engine):
    runs = quick(engine=engine, learning_rate=1e6)
    assert np.isfinite(runs.overlap).all()
    assert (np.abs(runs.overlap) <= 1.0 + 1e-12).all()


class Stubborn:
    """An engine that counts, and fails at a given step."""

    def __init__(self, problem, dim, rate, batch, s, nu, seed, first):
        self.s = s.copy()
        self.memory = {"s": self.s}
        self.fail_at = Stubborn.fail_at

    def advance(self, which, first, steps):
        if first + steps > self.fail_at:
            raise Stubborn.error
        self.s[0, which] += steps * 1e-6
        return np.full(len(which), -1)


@pytest.mark.parametrize("replicas", [3, 200])
def test_interrupted_keeps_its_records(replicas, monkeypatch):
    monkeypatch.setitem(run.ENGINES, "stubborn", Stubborn)
    monkeypatch.setattr(Stubborn, "fail_at", 50, raising=False)
    monkeypatch.setattr(Stubborn, "error", KeyboardInterrupt, raising=False)
    with pytest.raises(Interrupted, match=r"the records made until then are in .runs$") as caught:
        quick(engine="stubborn", replicas=replicas)
    runs = caught.value.runs
    assert isinstance(caught.value, KeyboardInterrupt)
    assert np.isfinite(runs.overlap.values[:, :3]).all()
    assert np.isnan(runs.overlap.values[:, 3]).all()
    assert (runs.outcome == Outcome.CENSORED).all()
    assert ((runs.end_step >= 40) & (runs.end_step <= 50)).all()
    assert runs.attrs["engine"] == "stubborn"


def test_errors_of_an_engine_pass_through(monkeypatch):
    monkeypatch.setitem(run.ENGINES, "stubborn", Stubborn)
    monkeypatch.setattr(Stubborn, "fail_at", 50, raising=False)
    monkeypatch.setattr(Stubborn, "error", ZeroDivisionError("engine"), raising=False)
    with pytest.raises(ZeroDivisionError, match=r"^engine$"):
        quick(engine="stubborn", replicas=200)


@pytest.mark.parametrize("replicas", [3, 1000])
@pytest.mark.parametrize("engine", ENGINES)
def test_control_c_stops_at_once(engine, replicas):
    dim = 20 if engine == "reduced" else 5000
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(Interrupted):
        quick(engine=engine, replicas=replicas, dim=dim, steps=10**10)
    assert time.monotonic() - begin < 20.0


BAD = {
    "problem": ({"problem": "attention"}, TypeError, r"^problem must be a seqindex.Problem, got 'attention'$"),
    "dim": ({"dim": 2}, ValueError, r"^dim must be at least 3, the rank 2 of span\(w\*, P\) plus one, got 2$"),
    "dim 0": ({"dim": 0}, ValueError, r"^dim must be between 1 and \d+, got 0$"),
    "dim huge": ({"dim": 10**19}, ValueError, r"^dim must be between 1 and \d+, got 10000000000000000000$"),
    "dim real": ({"dim": 10.5}, TypeError, r"^dim must be an integer, got 10.5$"),
    "rate 0": ({"learning_rate": 0}, ValueError, r"^learning_rate must be positive, got 0$"),
    "rate -1": ({"learning_rate": -1}, ValueError, r"^learning_rate must be positive, got -1$"),
    "rate nan": ({"learning_rate": np.nan}, ValueError, r"^learning_rate must be finite, got nan$"),
    "rate inf": ({"learning_rate": np.inf}, ValueError, r"^learning_rate must be finite, got inf$"),
    "rate text": ({"learning_rate": "0.1"}, TypeError, r"^learning_rate must be a number, got '0.1'$"),
    "steps": ({"steps": 0}, ValueError, r"^steps must be between 1 and \d+, got 0$"),
    "steps huge": ({"steps": 2**63}, ValueError, r"^steps must be between 1 and \d+, got \d+$"),
    "replicas": ({"replicas": 0}, ValueError, r"^replicas must be at least 1, got 0$"),
    "seed": ({"seed": -1}, ValueError, r"^seed must be at least 0, got -1$"),
    "seed none": ({"seed": None}, TypeError, r"^seed must be an integer, got None$"),
    "batch": ({"batch": 0}, ValueError, r"^batch must be between 1 and \d+, got 0$"),
    "batch huge": ({"batch": 2**70}, ValueError, r"^batch must be between 1 and \d+, got \d+$"),
    "workers": ({"workers": 0}, ValueError, r"^workers must be at least 1, got 0$"),
    "engine": ({"engine": "reducd"}, ValueError, r"^engine must be one of .*; did you mean 'reduced'\?$"),
    "start": ({"start": "random"}, TypeError, r"^start must be a Start such as Start.random\(\), got 'random'$"),
    "start e": ({"start": Start.overlaps(0, [0.1, 0.1])}, ValueError, r"^e must have shape \(1,\), got \(2,\)$"),
    "stop": ({"stop": (1, 0)}, TypeError, r"^stop must be a Near such as .*, got \(1, 0\)$"),
    "stop rank": (
        {"stop": Near([(1.0,)], 0.1)},
        ValueError,
        r"^points of stop must have shape \(any, 2\), got \(1, 1\)",
    ),
    "records 1": ({"records": 1}, ValueError, r"^records must be at least 2, got 1$"),
    "records none": ({"records": None}, TypeError, r"^records must be an integer, got None$"),
    "records text": ({"records": "all"}, TypeError, r"^records must be an integer, got 'all'$"),
    "records empty": ({"records": []}, ValueError, r"^records must name at least one step, got none$"),
    "records beyond": ({"records": [0, 61]}, ValueError, r"^records must be between 0 and 60, got 61$"),
    "records before": ({"records": [-1]}, ValueError, r"^records must be between 0 and 60, got -1$"),
    "records real": ({"records": [0.5]}, TypeError, r"^records must be an integer, got 0.5$"),
    "records nested": ({"records": [[0, 1], [2, 3]]}, TypeError, r"^records must be an integer, got \[0, 1\]$"),
    "records ragged": ({"records": [0, [1, 2]]}, TypeError, r"^records must be an integer, got \[1, 2\]$"),
}


@pytest.mark.parametrize(("change", "error", "message"), BAD.values(), ids=BAD)
def test_bad_arguments(change, error, message):
    with pytest.raises(error, match=message) as caught:
        quick(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("points", "distance", "error", "message"),
    [
        ([(1, 0)], 0, ValueError, r"^distance must be positive, got 0$"),
        ((1, 0), 0.1, ValueError, r"^points must have shape \(any, any\), got \(2,\)$"),
        ([("a", "b")], 0.1, TypeError, r"^points must be an array of numbers of shape"),
        ([(np.nan, 0)], 0.1, ValueError, r"^points must be finite, got nan in it$"),
    ],
)
def test_bad_stops(points, distance, error, message):
    with pytest.raises(error, match=message):
        Near(points, distance)


# Compiled code.

COUNT = """
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(str(happened.data["dispatcher"]))
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
import seqindex as sx
problem = sx.Problem(sx.PositionalSemanticTarget(0.3, alignment=1.0), sx.Attention(2, sx.OppositeEncoding()))
values = []
for engine in ("reduced", "explicit"):
    import seqindex.sgd.run
    runs = sx.sgd(problem, dim=10, learning_rate=1.0, steps=3, replicas=2, records=2, engine=engine, progress=False)
    values += runs.overlap.values.ravel().tolist()
print(len(compiled), values)
"""


def count(code=COUNT, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=False, timeout=600, env={**os.environ, **environment},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    number, values = result.stdout.split(maxsplit=1)
    return int(number), json.loads(values)


def test_a_second_process_compiles_nothing(tmp_path):
    first, values = count(NUMBA_CACHE_DIR=str(tmp_path / "not there yet"))
    assert first > 5
    assert count(NUMBA_CACHE_DIR=str(tmp_path / "not there yet")) == (0, values)


def test_no_folder_to_cache_in():
    refuse = """
import numba.core.caching as caching
def refuse(self):
    raise OSError("read-only file system")
caching._CacheLocator.ensure_cache_path = refuse
"""
    number, values = count(refuse + COUNT)
    assert number > 5
    assert values == count()[1]


def test_a_cache_folder_that_cannot_be_made():
    assert count(NUMBA_CACHE_DIR=os.devnull + "/cache")[1] == count()[1]
