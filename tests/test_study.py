"""Studies: what a file may say, and that neither workers, cuts, kills, nor damage change a number or lose one."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import seqindex as sx
from seqindex.cli.main import main
from seqindex.study import engine, store
from seqindex.study.run import open_study, run_study
from seqindex.study.spec import parse_study, points
from seqindex.study.store import Store
from seqindex.study.sweep import expanded
from seqindex.theory.untied_risk import UntiedRisk

COMMAND = str(Path(sys.executable).with_name("seqindex"))
TEXT = """\
target: sum(He2(z))/sqrt(2)
length: 2
dim: 100
learning_rate: 0.2/(L+1)
steps: 30*d
replicas: 40
record: {overlaps: 5, thresholds: [0.2, 0.5], risk: true}
sweep:
  grid:
    student: [tied, untied]
    dim: [50, 100]
"""


def files(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "points").glob("*.nc"))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    summary = run_study(parse_study(TEXT), folder, TEXT, workers=1)
    assert (summary.done, summary.kept, summary.failed) == (4, 0, {})
    return folder


def test_a_point_is_the_simulation_that_its_attributes_name(finished):
    data = open_study(finished).sel(student="untied", dim=100)
    attrs = json.loads((finished / "points.json").read_text())
    row = next(row for row in attrs if row["swept"] == {"student": "untied", "dim": 100})
    with xr.open_dataset(finished / "points" / f"{row['key']}.nc", engine="h5netcdf") as file:
        seed, rate, steps = (file.attrs[name] for name in ("seed", "learning_rate", "steps"))
        problem = sx.Problem.from_attrs(file.attrs)
    assert rate == pytest.approx(0.2 / 3)
    runs = sx.sgd(problem, 100, rate, int(steps), replicas=40, seed=int(seed), records=5)
    assert np.array_equal(runs["overlap"].values, data["overlap"].transpose("replica", "record", "position").values)
    times = sx.hitting_time(problem, 100, rate, int(steps), threshold=0.5, replicas=40, seed=int(seed))
    assert np.array_equal(times["time"].values, data["hitting_step"].sel(threshold=0.5).values)
    risk = UntiedRisk(problem)(runs["overlap"].values)
    assert np.abs(data["risk"].transpose("replica", "record").values - risk).max() < 1e-12


def test_no_two_points_share_a_stream(finished):
    first = open_study(finished)["overlap_norm"].isel(record=0).stack(run=[...])
    assert len(np.unique(first.values)) == first.size


@pytest.mark.parametrize(("workers", "block"), [(2, 16), (3, 25)])
def test_files_do_not_depend_on_workers_and_blocks(tmp_path, finished, workers, block):
    run_study(parse_study(TEXT), tmp_path, TEXT, workers=workers, block=block)
    assert files(tmp_path) == files(finished)
    assert list((tmp_path / "parts").iterdir()) == []


def test_again_computes_what_is_missing_and_changes_only_what_it_touches(tmp_path, finished):
    for path in (finished / "points").iterdir():
        Store(tmp_path).path(path.stem).write_bytes(path.read_bytes())
    summary = run_study(parse_study(TEXT), tmp_path, TEXT, workers=1)
    assert (summary.done, summary.kept) == (0, 4)
    more = TEXT.replace("[50, 100]", "[50, 100, 60]")
    summary = run_study(parse_study(more), tmp_path, more, workers=1)
    assert (summary.done, summary.kept) == (2, 4)
    assert open_study(tmp_path)["dim"].values.tolist() == [50, 100, 60]
    assert files(tmp_path).items() >= files(finished).items()


def test_damaged_and_foreign_files_are_set_aside_and_computed_again(tmp_path, finished):
    names = sorted(files(finished))
    for name, content in files(finished).items():
        (Store(tmp_path).points / name).write_bytes(content)
    (tmp_path / "points" / names[0]).write_bytes(files(finished)[names[0]][:1000])
    (tmp_path / "points" / names[1]).write_bytes(files(finished)[names[2]])
    (tmp_path / "points" / names[3]).write_text("no NetCDF at all")
    summary = run_study(parse_study(TEXT), tmp_path, TEXT, workers=1)
    assert (summary.done, summary.kept) == (3, 1)
    assert files(tmp_path) == files(finished)
    assert sorted(path.name for path in (tmp_path / "set-aside").iterdir()) == [names[0], names[1], names[3]]
    assert (tmp_path / "log.txt").read_text().count("set aside") == 3


def test_killed_at_random_moments_and_resumed(tmp_path, finished):
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(TEXT)
    command = [COMMAND, "run", str(study), "--out", str(out), "--workers", "2", "--quiet"]
    moments = random.Random(1)
    for _ in range(4):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0.3, 4.0))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    deadline = time.monotonic() + 120
    while (done := subprocess.run(command, capture_output=True, text=True, timeout=120)).returncode != 0:
        # The lock of a killed run is free at once; its workers end within a second.
        assert time.monotonic() < deadline, done.stderr
    assert files(out) == files(finished)


def test_a_worker_that_is_killed_is_replaced(tmp_path, finished, monkeypatch):
    killed = tmp_path / "killed"
    monkeypatch.setattr(engine, "_work", KillOnce(killed))
    out = tmp_path / "out"
    summary = run_study(parse_study(TEXT), out, TEXT, workers=2, block=16)
    assert killed.exists()
    assert (summary.done, summary.failed) == (4, {})
    assert files(out) == files(finished)


class KillOnce:
    """Does a block's work, but kills its process the first time."""

    def __init__(self, mark):
        self.mark = mark

    def __call__(self, folder, point, block):
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return _WORK(folder, point, block)


_WORK = engine._work


def test_one_failing_point_does_not_stop_the_rest(tmp_path, capsys):
    study = tmp_path / "study.yaml"
    # On spheres of their own, of four rows three stay random: ||m|| / 2 never exceeds 0.5.
    study.write_text(
        "{target: z1, length: 4, student: untied, activation: identity, dim: 50, learning_rate: 0.1, steps: 200,"
        " replicas: 3, record: {overlaps: 0, thresholds: [0.9]}, sweep: {grid: {sphere: [rows, joint]}}}"
    )
    assert main(["run", str(study), "--workers", "1", "--quiet"]) == 1
    out = capsys.readouterr().out
    assert "1 points computed, 0 kept, 1 failed" in out
    assert "failed: sphere = rows: ValueError: threshold must be at most 0.5" in out
    assert open_study(tmp_path / "study")["sphere"].values.tolist() == ["joint"]
    assert main(["run", str(study), "--workers", "1", "--quiet"]) == 1
    assert "0 points computed, 1 kept, 1 failed" in capsys.readouterr().out


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch, finished):
    save = store.save_dataset

    def full(data, path):
        if path.parent.name == "points":
            raise OSError(errno.ENOSPC, "No space left on device")
        return save(data, path)

    monkeypatch.setattr(store, "save_dataset", full)
    summary = run_study(parse_study(TEXT), tmp_path, TEXT, workers=1)
    assert summary.done == 0
    assert all("No space left on device" in message for message in summary.failed.values())
    monkeypatch.undo()
    blocks = sorted(path.stat().st_mtime_ns for path in (tmp_path / "parts").glob("*.nc"))
    assert len(blocks) == 4
    assert run_study(parse_study(TEXT), tmp_path, TEXT, workers=1).done == 4
    assert files(tmp_path) == files(finished)


def test_two_processes_do_not_work_on_one_folder(tmp_path):
    with (
        Store(tmp_path).locked(),
        pytest.raises(ValueError, match=r"out must be a folder that no other run is working on.*\(process \d+ on"),
    ):
        run_study(parse_study(TEXT), tmp_path)


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="out must be a folder that can be written to"):
        run_study(parse_study(TEXT), tmp_path / "file" / "out")
    with pytest.raises(ValueError, match="folder must hold a study"):
        open_study(tmp_path)


def test_an_interrupt_keeps_the_state_and_says_how_to_go_on(tmp_path):
    study, out = tmp_path / "study.yaml", tmp_path / "out"
    text = TEXT.replace("30*d", "3*10**7").replace("[0.2, 0.5]", "[]")
    study.write_text(text)
    command = [COMMAND, "run", str(study), "--out", str(out), "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (out / "log.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command goes on" in message
    assert list((out / "parts").glob("*-overlaps.npz"))


def test_points_of_other_shapes_are_padded(tmp_path):
    text = (
        "{target: sum(z), dim: 20, learning_rate: 0.05, steps: 10, replicas: 2, student: untied,"
        " record: {overlaps: {logarithmic: 4}}, sweep: {list: [{length: 1}, {length: 3, dim: 30, steps: 20}]}}"
    )
    run_study(parse_study(text), tmp_path, workers=1)
    data = open_study(tmp_path).load()
    assert data["length"].values.tolist() == [1, 3]
    assert data["dim"].dims == ("length",)
    assert data["dim"].values.tolist() == [20, 30]
    assert np.isfinite(data["overlap_norm"]).all()
    assert np.isnan(data["overlap"].isel(length=0).sel(position=[2, 3])).all()
    assert data["step"].isel(length=1, drop=True).values.max() == 20


def test_dask_gives_the_same_files(tmp_path, finished):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        run_study(parse_study(TEXT), tmp_path, TEXT, cluster=cluster.scheduler_address, block=16)
    assert files(tmp_path) == files(finished)


MISTAKES = [
    ("length: 2", "lenght: 2", "line 2: lenght must be a field of a study, got an unknown one; did you mean 'length'"),
    ("0.2/(L+1)", "0.2/(K+1)", "line 4: learning_rate holds the unknown name K at column 6"),
    ("dim: 100\n", "dim: [1]\n", "line 3: dim must be right"),
    ("    dim: [50", "    dmi: [50", "line 8: sweep must name fields of a study, got 'dmi'; did you mean 'dim'"),
    ("overlaps: 5", "overlaps: x", "line 7: record.overlaps must be right"),
    ("target: sum(He2(z))/sqrt(2)\n", "", "target must be given"),
    ("[50, 100]", "geomspace(0, 100, 3)", "geomspace must have two positive ends"),
    ("[50, 100]", "[50, 50]", "sweep must name each point once"),
    ("length: 2", "length: 2\nomega: 0.5", "line 3: omega goes with target 'positional-semantic'"),
    ("thresholds", "treshold", "line 7: record.treshold must be a field of a study, got an unknown one; did you mean"),
    ("[tied, untied]", "[tied, united]", "student must be one of 'tied', 'untied', 'attention', got 'united'"),
    ("replicas: 40", "replicas: 0", "line 6: replicas must be right"),
    ("[0.2, 0.5]", "[1.2]", r"line 7: thresholds must be in \[0, 1\]|thresholds must be in"),
    ("steps: 30*d", "steps: -3", "line 5: steps must be between 1 and"),
    ("dim: 100\n", "dim: 100\nstart: overlapped\n", "line 4: start must be one of"),
    (TEXT, "a: [", "line 1: study must be YAML"),
    (TEXT, "5", "study must hold fields such as"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_mistakes_are_named_with_their_line(old, new, message):
    assert old in TEXT
    with pytest.raises(ValueError, match=message):
        points(parse_study(TEXT.replace(old, new)))


def test_sweeps():
    text = TEXT[: TEXT.index("sweep:")] + (
        "sweep: {grid: {seed: range(2)}, zip: {dim: [50, 60], replicas: [3, 4]}, list: [{length: 1}, {length: 3}]}\n"
    )
    found = [point.swept for point in points(parse_study(text))]
    assert len(found) == 8
    assert {(one["dim"], one["replicas"]) for one in found} == {(50, 3), (60, 4)}
    with pytest.raises(ValueError, match="zip must hold as many values of each field, got dim: 2, replicas: 1"):
        points(parse_study(text.replace("[3, 4]", "[3]")))
    assert expanded("omega", "linspace(0.4, 1, 41)")[20] == 0.7
    assert expanded("learning_rate", "geomspace(1e-3, 0.1, 3)") == [0.001, 0.01, 0.1]
    with pytest.raises(ValueError, match="sweep of dim must be a list or a range"):
        expanded("dim", "linspce(1, 2, 3)")


def test_the_example_runs_and_can_be_opened(tmp_path, capsys):
    assert main(["run", "--example"]) == 0
    study = tmp_path / "study.yaml"
    study.write_text(capsys.readouterr().out.replace("60*d*log(d)", "10*d").replace("1600, 5", "200, 2"))
    assert main(["run", str(study), "--dry-run"]) == 0
    listed = capsys.readouterr().out
    assert "4 of 4 points to compute" in listed
    assert not (tmp_path / "study").exists()
    assert main(["run", str(study), "--workers", "1", "--quiet"]) == 0
    assert "4 points computed, 0 kept, 0 failed" in capsys.readouterr().out
    data = open_study(tmp_path / "study")
    assert {name: data.sizes[name] for name in ("student", "dim", "replica")} == {"student": 2, "dim": 2, "replica": 64}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "STUDY.yaml must be given, got none"),
        (["run", "nope.yaml"], "study must be a file that can be read, got 'nope.yaml'"),
        (["run", "nope.yaml", "--workers", "0"], "workers must be at least 1"),
    ],
)
def test_bad_commands_end_with_one_line(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
