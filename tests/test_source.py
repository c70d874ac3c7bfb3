"""The folder of compiled expressions: shared by processes, the user's own, and never necessary."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqindex.model.link import Target
from seqindex.model.source import module_from_source

COUNT = """
import json, sys
import numba.core.event as event
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(str(happened.data["dispatcher"]))
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
import numpy as np, seqindex as sx
target = sx.Target("[exp(z1) + sum(He3(z)), softplus(z2)]", 2)
y = np.empty((2, 64))
target.kernel.function(np.full((2, 64), 0.5), target.kernel.parameters, y)
print(json.dumps([len(compiled), y[:, 0].tolist()]))
"""
WANTED = [math.exp(0.5) - 2.75, math.log1p(math.exp(0.5))]


def start(cache, **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", COUNT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
    )


def finish(process):
    """How many functions a process compiled, once its labels were right."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    number, values = json.loads(out)
    assert values == pytest.approx(WANTED, rel=1e-15)
    return number


def modules(cache):
    return sorted(cache.glob("seqindex/blocks-*/block_*.py"))


def test_a_second_process_compiles_nothing(tmp_path):
    assert finish(start(tmp_path / "new")) > 0
    assert len(modules(tmp_path / "new")) == 1
    assert finish(start(tmp_path / "new")) == 0
    assert not list(tmp_path.rglob("*.tmp"))


def test_processes_that_write_the_same_module_at_once(tmp_path):
    for process in [start(tmp_path) for _ in range(2)]:
        finish(process)
    assert len(modules(tmp_path)) == 1
    assert finish(start(tmp_path)) == 0


def folder_of(text):
    module = module_from_source(text)
    assert module.value == 3
    return Path(module.__file__).parent


def test_a_module_of_other_content_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = "value = 3  # replaced\n"
    folder_of(text)
    (path,) = modules(tmp_path)
    path.write_text("raise SystemExit(4)\n")
    module_from_source.cache_clear()
    folder_of(text)
    assert path.read_text() == text


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions as on Unix")
def test_a_folder_that_others_can_write_to_is_left_alone(tmp_path, monkeypatch):
    """What lies in it is run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = folder_of("value = 3  # own\n")
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    assert not folder_of("value = 3  # of a group\n").is_relative_to(tmp_path)
    folder.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not folder_of("value = 3  # of somebody else\n").is_relative_to(tmp_path)
    monkeypatch.undo()
    assert len(modules(tmp_path)) == 1


def test_no_folder_to_cache_in(tmp_path):
    """Neither a cache nor a home: a temporary folder, removed at the end."""
    (tmp_path / "temporary").mkdir()
    places = {"HOME": os.devnull, "TMPDIR": str(tmp_path / "temporary")}
    assert finish(start(os.devnull + "/cache", **places)) > 0
    assert not list(tmp_path.rglob("seqindex-*"))


def test_tests_leave_the_cache_of_the_user_alone():
    assert ".pytest_cache" in os.environ["XDG_CACHE_HOME"]
    Target("z1 + 0.123", 1).kernel  # noqa: B018
    assert modules(Path(os.environ["XDG_CACHE_HOME"]))
