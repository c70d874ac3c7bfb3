"""Names that every docstring example may use without importing them."""

from typing import Any

import numpy as np
import pytest

import seqindex as sx


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["np"] = np
    doctest_namespace["sx"] = sx
