"""The command line: exit codes, one line an error, results on standard output, what an interrupt keeps."""

import inspect
import re
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr

import seqindex as sx
from seqindex.cli import bench as bench_command
from seqindex.cli.main import main
from seqindex.paper import reproduce as reproduce_module
from seqindex.paper.claim import Claim
from seqindex.sgd import run as run_module
from seqindex.sgd.bench import Row


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; gives exit code, standard output and standard error."""
    monkeypatch.chdir(tmp_path)

    def run(line):
        code = main(line.split())
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


SMALL = "--dim 100 --steps 200 --replicas 4 --records 5 --workers 1"


def test_help_is_light_and_quick():
    code = """
import sys, time
begin = time.perf_counter()
from seqindex.cli.main import main
code = main(sys.argv[1:])
heavy = [name for name in ("numpy", "numba", "scipy", "xarray", "matplotlib", "sympy") if name in sys.modules]
print(heavy, code, time.perf_counter() - begin < 30.0)
"""
    for arguments in (["--help"], ["sgd", "--help"]):
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "[] 0 True"


@pytest.mark.parametrize("line", ["--help", "", "paper --help", "phase-diagram --help", "sgd --help", "bench --help"])
def test_help(command, line):
    code, out, err = command(line)
    assert (code, err) == (0, "")
    assert "Usage: seqindex" in out
    assert "seqindex sgd" in out or "Example" in out


def test_version(command):
    assert command("--version") == (0, f"seqindex {sx.__version__}\n", "")


BAD = {
    "sgd --omega 1.5": r"omega must be in \[0, 1\], got 1.5",
    "sgd --omega nan": r"omega must be finite, got nan",
    "sgd --omega half": r"Invalid value for '--omega': 'half' is not a number\.",
    "sgd --dim 2": r"dim must be at least 3, the rank 2 of span\(w\*, P\) plus one, got 2",
    "sgd --dim 1e3.5": r"Invalid value for '--dim': '1e3.5' is not a whole number such as 1000 or 3e5\.",
    "sgd --steps 0.5": r"Invalid value for '--steps': '0.5' is not a whole number such as 1000 or 3e5\.",
    "sgd --steps inf": r"Invalid value for '--steps': 'inf' is not a whole number such as 1000 or 3e5\.",
    "sgd --learning-rate 0": r"learning_rate must be positive, got 0",
    "sgd --learning-rate inf": r"learning_rate must be finite, got inf",
    "sgd --length 3": r"length must be 2 with alignment, got 3",
    "sgd --replicas 0": r"replicas must be at least 1, got 0",
    "sgd --workers 0": r"workers must be at least 1, got 0",
    "sgd --engine torch": r"engine must be one of 'reduced', 'explicit', got 'torch'",
    "sgd --engine redced": r"engine must be one of .*; did you mean 'reduced'\?",
    "sgd --encoding oposite": r"encoding must be one of .*; did you mean 'opposite'\?",
    "sgd --loss squared": r"loss must be one of .*; did you mean 'square'\?",
    "sgd --scores soft": r"scores must be one of .*",
    "sgd --start zero": r"start must be one of .*",
    "sgd --start random --m 0.1": r"m goes with start 'overlaps' or 'released', got start 'random'",
    "sgd --start released --e 0.1": r"e goes with start 'overlaps', got start 'released'",
    "sgd --start overlaps --m 0.9 --e 0.9": r"m\^2 \+ \|e\|\^2 must be at most 1, got 1.62",
    "sgd --target z1 --length 1 --student untied --encoding opposite": r"encoding .*",
    "sgd --target z1 --length 1 --student tied --sphere joint": "sphere goes with student 'untied', got student 'tied'",
    "sgd --target z1 --length 1 --student untied --sphere all": r"sphere must be one of 'rows', 'joint', got 'all'.*",
    "sgd --start overlaps": "start 'overlaps' needs m, e or both, got neither; for m = e = 0 use start 'orthogonal'",
    "sgd --engine explicit --dim 1e12": r"dim must fit into memory, got 1000000000000, which takes .*",
    "sgd --start overlaps --e 0.1,0.2": r"e must have shape \(1,\), got \(2,\)",
    "sgd --start overlaps --e x": r"Invalid value: 'x' is not a number\.",
    "sgd --start released --m 2": r"overlap must be in \[0, 1\], got 2",
    "sgd --alignment-matrix none.txt": r"alignment-matrix must be a file of numbers, got 'none.txt' \(.*\)",
    "sgd --alignment 1 --alignment-matrix A.txt": r"give either alignment or alignment_matrix, got both",
    "sgd --alignment-matrix B.txt": r"alignment_matrix must be row-stochastic, got row 1 with sum 1.5",
    "sgd --alignment-matrix C.txt": r"alignment-matrix must be a file of numbers, got 'C.txt' \(.*\)",
    "sgd --alignment-matrix A.txt --length 3": r"length must be 2, the size of alignment_matrix, got 3",
    "sgd --student tied": r"student 'tied' needs a target with one label, got 4",
    "sgd --student tide": r"student must be one of 'attention', 'tied', 'untied', got 'tide'; did you mean 'tied'\?",
    "sgd --target z1*z2": r"length must be given with target, got none",
    "sgd --target z3 --length 2": r"target has fields z1 to z2 at length 2, got z3 at column 1, 'z3'",
    "sgd --target z1 --length 2 --omega 0.3": r"omega goes with the positional-semantic target, got target 'z1'",
    "sgd --target a*z1 --length 2": r"target holds the unknown name a at column 1, 'a\*z1'; known are .*",
    "sgd --target a*z1 --length 2 --param a": r"Invalid value: 'a' is no NAME=VALUE such as a=0\.5\.",
    "sgd --target a*z1 --length 2 --param a=x": r"Invalid value: 'x' is not a number\.",
    "sgd --target a*z1 --length 2 --param a=nan": r"parameter a must be finite, got nan",
    "sgd --target a*z1 --length 2 --param a=1 --param a=2": r"Invalid value: a has two values, 1 and 2\.",
    "sgd --target z1 --length 2 --param b=2": r"parameter 'b' does not occur in target 'z1'",
    "sgd --target z1 --length 2 --param length=2": r"param must have a name of its own, got 'length'",
    "sgd --param a=1": r"param goes with target EXPR, got none",
    "analyse a*z1 --length 2 --param a=": r"Invalid value: '' is not a number\.",
    "sgd --target z1 --length 2 --activation relu": r"activation goes with student 'tied', got student 'attention'",
    "sgd --target z1 --length 2 --weights 1,1": r"weights goes with student 'tied', got student 'attention'",
    "sgd --target z1 --length 2 --student tied --scores linear": r"scores goes with student 'attention', got .*",
    "sgd --target z1 --length 2 --student tied --activation gelu": r"activation must be one of relu, .*'gelu'.*",
    "sgd --target z1 --length 2 --student tied --weights 1": r"weights must have shape \(2,\), got \(1,\)",
    "sgd --target z1 --length 2 --student tied --weights 1,x": r"Invalid value: 'x' is not a number\.",
    "sgd --target z1 --length 2 --reduction trce": r"reduction must be one of .*; did you mean 'trace'\?",
    "sgd --encoding injected:1,2,3": r"encoding must have length 2 as the student, got 3",
    "sgd --encoding injected:": r"Invalid value: '' is not a number\.",
    "sgd --out A.txt": r"out must be a folder that can be written to, got 'A.txt' \(.*\)",
    "phase-diagram --out A.txt/deeper": r"out must be a folder that can be written to, got .*",
    "phase-diagram --omega-max 1.5": r"omega-max must be in \[0, 1\], got 1.5",
    "phase-diagram --alignment-min 2": r"alignment-max must be larger than alignment-min = 2, got 1.5",
    "phase-diagram --alignment-points 1": r"alignment-points must be at least 2, got 1",
    "phase-diagram --loss norms": r"loss must be one of .*; did you mean 'norm'\?",
    "paper fig44": r"figure must be one of .*, got 'fig44'; did you mean 'fig4'\?",
    "paper fig4 --out A.txt": r"out must be a folder that can be written to, got 'A.txt' \(.*\)",
    "paper fig4 --workers 0": r"workers must be at least 1, got 0",
    "bench --seconds 0": r"seconds must be positive, got 0",
    "sgd --omgea 0.5": r"No such option:? .*--omgea.*",
    "sgd --omega": r"Option '?--omega'? requires an argument\.",
    "papr": r"No such command 'papr'\.?.*",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_code_2(command, tmp_path, line):
    (tmp_path / "A.txt").write_text("0.7 0.3\n0.2 0.8\n")
    (tmp_path / "B.txt").write_text("0.7 0.8\n0.2 0.8\n")
    (tmp_path / "C.txt").write_text("a b\n")
    code, out, err = command(line)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    (text,) = err.splitlines()
    assert re.fullmatch("Error: " + BAD[line], text), text
    assert not [path for path in tmp_path.rglob("*") if path.suffix in {".nc", ".png"}]


def test_other_failures_of_the_machine_are_one_line_and_exit_code_1(command, monkeypatch):
    def full(*args, **keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seqindex.storage.save_dataset", full)
    code, out, err = command(f"sgd {SMALL}")
    assert (code, out, err) == (1, "", "Error: [Errno 28] No space left on device\n")


def test_faults_of_ours_keep_their_traceback(command, monkeypatch):
    def broken(*args, **keywords):
        raise RuntimeError("ours")

    monkeypatch.setattr(run_module, "sgd", broken)
    with pytest.raises(RuntimeError, match=r"^ours$"):
        command(f"sgd {SMALL}")


def test_sgd(command, tmp_path):
    code, out, err = command(f"sgd --omega 0.5 --start overlaps --m 0.9 --e -0.3 --seed 3 --out deep/er {SMALL}")
    assert (code, err) == (0, "")
    first, ended, final, outcomes, files = out.splitlines()
    assert first.startswith("4 runs of 200 steps at d = 100, learning rate 0.5, reduced engine: ")
    assert ended == "ended semantic 4, positional 0, neither 0  (m^2 > 1/2, |e|^2 > 1/2, else)"
    assert final.startswith("final |m| = 0.9")
    assert outcomes == "outcomes: step_limit 4"
    assert files == "files: deep/er/sgd.nc, deep/er/sgd.png, deep/er/sgd.pdf"
    with xr.open_dataset(tmp_path / "deep/er/sgd.nc", engine="h5netcdf") as saved:
        problem = sx.Problem.from_attrs(saved.attrs)
        assert (problem.target.omega, problem.loss.name, problem.frame.rank) == (0.5, "square", 2)
        start = sx.Start.overlaps(m=0.9, e=-0.3)
        runs = sx.sgd(problem, dim=100, learning_rate=0.5, steps=200, replicas=4, seed=3, start=start, records=5)
        xr.testing.assert_identical(saved.load()["overlap"], runs["overlap"])


def test_numbers_in_scientific_notation(command):
    code, out, _ = command("sgd --dim 1e9 --steps 2e2 --replicas 3e0 --records 5 --engine reduced --workers 1")
    assert code == 0
    assert out.startswith("3 runs of 200 steps at d = 1000000000, ")


def test_sgd_of_a_matrix(command, tmp_path):
    np.save(tmp_path / "A.npy", np.full((3, 3), 1.0 / 3.0))
    (tmp_path / "A.csv").write_text("0.5,0.5,0\n0,1,0\n0.25,0.5,0.25\n")
    for name, directions in (("A.npy --encoding sinusoidal", 4), ("A.csv", 3), ("A.csv --encoding none", 0)):
        code, out, err = command(f"sgd --alignment-matrix {name} {SMALL}")
        assert (code, err) == (0, "")
        assert ("|e|" in out.splitlines()[2]) == (directions > 0)
        with xr.open_dataset(tmp_path / "results/sgd.nc", engine="h5netcdf") as saved:
            assert sx.Problem.from_attrs(saved.attrs).frame.directions == directions
            assert sx.Problem.from_attrs(saved.attrs).length == 3


STUDENTS = {
    "--student tied --activation He3 --weights 1,-2": sx.TiedNetwork(2, "He3", [1.0, -2.0]),
    "--student tied --encoding opposite": sx.TiedNetwork(2, "relu", None, sx.OppositeEncoding()),
    "--encoding none": sx.Attention(2, reduction="trace"),
    "--encoding injected:1,-0.5 --reduction plain_trace --scores linear": sx.Attention(
        2, sx.InjectedEncoding([1.0, -0.5]), "plain_trace", "linear"
    ),
}


def test_sgd_of_an_untied_network(command, tmp_path):
    line = "sgd --target z1+He2(z2) --length 2 --student untied --sphere joint --learning-rate 0.05"
    code, out, err = command(f"{line} --start overlaps --m 0.2 {SMALL}")
    assert (code, err) == (0, "")
    assert "final ||m|| / sqrt(L) = " in out
    problem = sx.Problem(sx.Target("z1+He2(z2)", length=2), sx.UntiedNetwork(2, sphere="joint"))
    start = sx.Start.overlaps(m=0.2)
    runs = sx.sgd(problem, dim=100, learning_rate=0.05, steps=200, replicas=4, seed=0, start=start, records=5)
    with xr.open_dataset(tmp_path / "results/sgd.nc", engine="h5netcdf") as saved:
        assert sx.Problem.from_attrs(saved.attrs).to_attrs() == problem.to_attrs()
        xr.testing.assert_identical(saved.load()["overlap"], runs["overlap"])


@pytest.mark.parametrize("line", STUDENTS)
def test_sgd_of_an_expression(command, tmp_path, line):
    code, _, err = command(f"sgd --target z1+He2(z2) --length 2 --learning-rate 0.05 --seed 2 {line} {SMALL}")
    assert (code, err) == (0, "")
    problem = sx.Problem(sx.Target("z1+He2(z2)", length=2), STUDENTS[line])
    runs = sx.sgd(problem, dim=100, learning_rate=0.05, steps=200, replicas=4, seed=2, records=5)
    with xr.open_dataset(tmp_path / "results/sgd.nc", engine="h5netcdf") as saved:
        assert sx.Problem.from_attrs(saved.attrs).to_attrs() == problem.to_attrs()
        xr.testing.assert_identical(saved.load()["overlap"], runs["overlap"])


def test_parameters_of_an_expression(command, tmp_path):
    line = "--target a*z1+b_2*He2(z2) --length 2 --learning-rate 0.05 --param a=-1e-1 --param b_2=3"
    assert command(f"sgd {line} {SMALL}")[::2] == (0, "")
    with xr.open_dataset(tmp_path / "results/sgd.nc", engine="h5netcdf") as saved:
        target = sx.Problem.from_attrs(saved.attrs).target
    assert target.spec() == sx.Target("a*z1+b_2*He2(z2)", length=2, a=-0.1, b_2=3).spec()


def test_a_rate_at_which_the_noise_wins_is_warned_of(command):
    """2 lambda / V at omega = 0.67 is 2 * 0.17758 / 0.11407 = 3.11, times the batch."""
    code, _, err = command(f"sgd --learning-rate 3.3 {SMALL}")
    assert (code, err) == (0, "Warning: at learning rates above about 3.1 noise keeps SGD near m = e = 0.\n")
    for line in (
        "--learning-rate 2.9",
        "--learning-rate 3.3 --batch 2",
        "--learning-rate 3.3 --start overlaps --m 0.5",
    ):
        assert command(f"sgd {line} {SMALL}")[::2] == (0, "")


def test_a_diverged_replica_is_counted_and_left_out(command, monkeypatch):
    simulate = run_module.sgd

    def broken(*args, **keywords):
        runs = simulate(*args, **keywords)
        runs["overlap"][0, -1] = np.nan
        runs["outcome"][0] = sx.Outcome.DIVERGED
        return runs

    monkeypatch.setattr(run_module, "sgd", broken)
    _, out, _ = command(f"sgd {SMALL}")
    assert "neither 4" in out
    assert "nan" not in out
    assert "outcomes: step_limit 3, diverged 1" in out


def test_warnings_are_one_line(command, monkeypatch):
    simulate = run_module.sgd

    def warn(*args, **keywords):
        warnings.simplefilter("always")
        warnings.warn("the rate is\n large", RuntimeWarning, stacklevel=1)
        return simulate(*args, **keywords)

    monkeypatch.setattr(run_module, "sgd", warn)
    code, _, err = command(f"sgd {SMALL}")
    assert (code, err) == (0, "Warning: the rate is large\n")


def raising(number):
    """In place of the progress: the signal comes after a few rounds of steps."""

    @contextmanager
    def track(description, total, show=None):
        calls = []

        def advance(amount):
            calls.append(amount)
            if len(calls) == 20:
                signal.raise_signal(number)

        yield advance

    return track


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_keeps_what_was_recorded(command, tmp_path, monkeypatch, number, expected):
    command(f"sgd {SMALL}")
    finished = (tmp_path / "results/sgd.nc").read_bytes()
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(run_module, "track", raising(number))
    code, out, err = command("sgd --steps 1e6 --records 10001")
    assert (code, out) == (expected, "")
    assert err.startswith("Interrupted: results/sgd-interrupted.nc holds the 64 runs up to step ")
    assert err.count("\n") == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert (tmp_path / "results/sgd.nc").read_bytes() == finished
    with xr.open_dataset(tmp_path / "results/sgd-interrupted.nc", engine="h5netcdf") as saved:
        assert saved["overlap"].notnull().all()
        assert saved["outcome"].values.tolist() == [sx.Outcome.CENSORED] * 64
        assert saved.sizes["record"] > 1
        assert f"up to step {int(saved['step'][-1])} of 1000000;" in err


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_process_in_time(tmp_path, number, expected):
    """A real signal in the middle of the compiled steps of several threads."""
    code = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from contextlib import contextmanager
import seqindex.sgd.run as run

@contextmanager
def track(*_):
    print("begun", flush=True)
    yield lambda amount: None

run.track = track
from seqindex.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
    arguments = ["sgd", "--steps", "1e15", "--replicas", "200", "--out", str(tmp_path), "--workers", "2"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.send_signal(number)
        begin = time.monotonic()
        out, err = process.communicate(timeout=300)
    assert time.monotonic() - begin < 50.0
    assert (process.returncode, out) == (expected, "")
    assert err.count("\n") == 1
    assert err.startswith("Interrupted: ")
    assert [path.name for path in tmp_path.iterdir()] == ["sgd-interrupted.nc"]


def test_phase_diagram(command, tmp_path):
    code, out, err = command("phase-diagram --alignment-min 1 --alignment-points 2 --omega-points 3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].split() == ["alignment", "steepest", "equal_risk", "semantic", "positional"]
    assert lines[2].split()[:3] == ["1.0000", "0.640963", "0.737607"]
    assert lines[-2] == "phases: unique_semantic 50 %, global_semantic 16.7 %, unique_positional 33.3 %"
    assert lines[-1].endswith("results/phase-diagram.pdf")
    with xr.open_dataset(tmp_path / "results/phase-diagram.nc", engine="h5netcdf") as saved:
        assert saved["phase"].shape == (2, 3)


CLAIMS = [
    Claim("F1", "figure 1", "a statement " + 30 * "that goes on " + "to its end", "b", "0.5 +- 0.1", "confirmed"),
    Claim("F2", "figure 2", "[bold]brackets[/bold]", "c", "d | e", "not confirmed"),
]


@pytest.fixture
def asked(monkeypatch):
    """``reproduce`` replaced; gives what it was asked for."""
    calls = []

    def reproduce(names, out, quick=False, fresh=False, workers=None, progress=None, say=print):
        calls.append((list(names), str(out), quick, fresh, workers, progress))
        out.mkdir()
        (out / "fig1.nc").write_text("x")
        (out / ".partial-x").write_text("x")
        say("fig1: done")
        return CLAIMS

    monkeypatch.setattr(reproduce_module, "reproduce", reproduce)
    return calls


def test_paper_prints_the_claims_and_the_files(command, asked):
    code, out, err = command("paper fig4 fig5 --quick --workers 2 --out here")
    assert asked == [(["fig4", "fig5"], "here", True, False, 2, True)]
    assert (code, err) == (0, "fig1: done\n")
    lines = out.splitlines()
    assert lines[0] == "| id | where | statement | predicted | measured | verdict | time |"
    assert CLAIMS[0].statement in lines[2]
    assert lines[-1] == "files: here/fig1.nc"


def test_paper_quiet(command, asked):
    code, _, err = command("paper --fresh --quiet")
    assert asked == [([], "results", False, True, None, False)]
    assert (code, err) == (0, "")


def test_claims_wrap_on_a_terminal(command, asked, monkeypatch):
    monkeypatch.setattr("seqindex.cli.paper.sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = command("paper")
    table, _, _ = re.sub("\x1b\\[[0-9;]*m", "", out).partition("files:")
    assert all(len(line) <= 80 for line in table.splitlines())
    words = [line.split("│")[3].strip() for line in table.splitlines() if line.count("│") == 5]
    assert " ".join(" ".join(words).split()).startswith(CLAIMS[0].statement[:60])
    assert "to its end" in " ".join(" ".join(words).split())
    assert "[bold]" in table


def test_paper_interrupted(command, monkeypatch):
    def stop(*args, **keywords):
        raise sx.Interrupted(xr.Dataset())

    monkeypatch.setattr(reproduce_module, "reproduce", stop)
    code, out, err = command("paper --out here")
    assert (code, out) == (130, "")
    assert err == (
        "Interrupted: what is finished is kept in here; the same command, without --fresh, goes on from there.\n"
    )


def test_bench(command):
    code, out, err = command("bench --seconds 0.001")
    assert code == 0
    assert out.splitlines()[0].split()[:3] == ["steps", "per", "second"]
    assert out.splitlines()[-1].startswith("reduced, d = 1e9  ")
    assert err.startswith("PyTorch is not installed") or "times" in out


def test_bench_table_shows_ratios():
    rows = [Row("PyTorch loop", 2e3, {"PyTorch loop": 1.0}), Row("reduced", 2.5e7, {"PyTorch loop": 12500.0})]
    assert bench_command.summary(rows).splitlines()[2].split() == ["reduced", "2.5e+07", "1.25e+04"]


def test_sgd_is_callable_whatever_was_imported():
    assert callable(sx.sgd)
    assert sx.__getattr__("sgd") is sys.modules["seqindex.sgd"]
    assert list(inspect.signature(sx.sgd).parameters)[:2] == ["problem", "dim"]
