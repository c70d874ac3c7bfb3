"""The tied and untied networks of section 3 and their targets, as in the released configurations (relu)."""

from __future__ import annotations

from seqindex.model.link import Target
from seqindex.model.problem import Problem
from seqindex.model.tied import TiedNetwork
from seqindex.model.untied import UntiedNetwork

FIRST = "sum(z)/sqrt(L)"
"""SIE 1."""
SECOND = "sum(He2(z))/sqrt(2)"
"""SIE 2."""
THIRD = "-z1*z2*z3"
"""SIE 3, a tensor that is not orthogonally decomposable; the sign is that of the third coefficient of tanh."""


def tied(target: str, length: int, activation: str = "relu") -> Problem:
    """One weight vector for all positions."""
    return Problem(Target(target, length), TiedNetwork(length, activation))


def untied(target: str, length: int, activation: str = "relu") -> Problem:
    """One weight vector a position, all rescaled together as in the released code."""
    return Problem(Target(target, length), UntiedNetwork(length, activation, sphere="joint"))
