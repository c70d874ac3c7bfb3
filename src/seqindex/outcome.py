"""How a run or a trajectory ended: one enumeration for the whole package."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np


class Outcome(IntEnum):
    """How a replica or a trajectory ended.

    Example:
        >>> Outcome.CONVERGED.name, int(Outcome.CONVERGED)
        ('CONVERGED', 3)
    """

    RECOVERED = 0
    """Crossed the threshold that was asked for."""
    ALREADY_ABOVE = 1
    """Started above that threshold."""
    CENSORED = 2
    """Watched for less time than was asked for; what it would have done is unknown."""
    CONVERGED = 3
    """Reached one of the end points that were asked for."""
    STUCK = 4
    """Stopped moving elsewhere."""
    STEP_LIMIT = 5
    """Made all the steps that were asked for."""
    DIVERGED = 6
    """Stopped being finite."""


def flag_attrs() -> dict[str, Any]:
    """CF attributes of a variable of outcomes (int8).

    Example:
        >>> flag_attrs()["flag_meanings"].split()[3]
        'converged'
    """
    return {
        "long_name": "outcome",
        "flag_values": np.array([int(outcome) for outcome in Outcome], dtype=np.int8),
        "flag_meanings": " ".join(outcome.name.lower() for outcome in Outcome),
    }
