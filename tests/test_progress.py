"""Progress: silent where nobody asked, plain lines in a log, a bar on a terminal."""

import io
import re

import pytest

import chains
import seqindex as sx
from seqindex import progress
from seqindex.progress import track
from seqindex.sgd.run import sgd


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("show", [None, False])
def test_silent_where_there_is_no_terminal(show, clock, capsys):
    with track("job", 100, show) as advance:
        for _ in range(100):
            clock.now += 100.0
            advance(1)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_lines(clock, capsys):
    with track("job", 1000, show=True) as advance:
        for _ in range(1000):
            clock.now += 1.0
            advance(1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\r" not in captured.err
    lines = captured.err.splitlines()
    assert len(lines) == 33, "one every 30 seconds"
    assert lines[0] == "job: 3 %, about 970 s left"
    assert lines[-1] == "job: 99 %, about 10 s left"


def test_quick_jobs_say_nothing(clock, capsys):
    with track("job", 10, show=True) as advance:
        for _ in range(10):
            clock.now += 1.0
            advance(1)
    assert capsys.readouterr().err == ""


def test_a_million_steps_in_a_log_are_few_lines(capsys):
    problem = chains.positional_semantic(2, sx.OppositeEncoding())
    sgd(problem, dim=100, learning_rate=0.1, steps=1_000_000, replicas=1, records=2, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") < 100
    assert "\r" not in captured.err


def test_bar(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with track("job", 10) as advance:
        advance(2)
        assert terminal.getvalue() == "", "nothing in the first two seconds"
        clock.now += 3.0
        advance(3)
        assert advance(5) is None
    assert re.search("job", terminal.getvalue())


def test_bar_of_a_quick_job_stays_away(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with track("job", 10) as advance:
        advance(10)
    assert terminal.getvalue() == ""


def test_bar_is_taken_down_on_errors(monkeypatch, clock):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    taken_down = []
    monkeypatch.setattr("rich.progress.Progress.stop", lambda bar: taken_down.append(bar))

    def fail():
        with track("job", 10) as advance:
            clock.now += 3.0
            advance(1)
            raise ZeroDivisionError("stop")

    with pytest.raises(ZeroDivisionError, match="stop"):
        fail()
    assert len(taken_down) == 1
