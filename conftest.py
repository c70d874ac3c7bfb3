"""Names that every docstring example may use without importing them, and how hypothesis runs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import seqindex as sx

# The same examples in every run, and no failure because a machine is busy or compiles.
settings.register_profile("seqindex", deadline=None, derandomize=True)
settings.load_profile("seqindex")


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
    doctest_namespace["sx"] = sx
