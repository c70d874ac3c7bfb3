"""Names that every docstring example may use without importing them, how hypothesis runs, Ctrl-C, and a cache."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import seqindex as sx

# The same examples in every run, and no failure because a machine is busy or compiles.
settings.register_profile("seqindex", deadline=None, derandomize=True)
settings.load_profile("seqindex")


# Compiled expressions are kept with the project, not in the user's cache.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parent / ".pytest_cache" / "xdg")


def pytest_configure() -> None:
    """Let tests of Ctrl-C work where the caller ignores it, as a shell does for its background jobs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
    doctest_namespace["sx"] = sx
