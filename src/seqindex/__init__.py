"""Exact theory and fast simulation of one-pass spherical SGD on sequence single-index (SSI) targets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqindex.model.attention import Attention as Attention
    from seqindex.model.encoding import Encoding as Encoding
    from seqindex.model.encoding import OppositeEncoding as OppositeEncoding
    from seqindex.model.encoding import RandomEncoding as RandomEncoding
    from seqindex.model.encoding import SinusoidalEncoding as SinusoidalEncoding
    from seqindex.model.problem import Problem as Problem
    from seqindex.model.reduction import Projection as Projection
    from seqindex.model.reduction import Reduction as Reduction
    from seqindex.model.target import PositionalSemanticTarget as PositionalSemanticTarget
    from seqindex.model.target import Target as Target

__version__ = "0.1.0"

_HOMES = {
    "Attention": "seqindex.model.attention",
    "Encoding": "seqindex.model.encoding",
    "OppositeEncoding": "seqindex.model.encoding",
    "RandomEncoding": "seqindex.model.encoding",
    "SinusoidalEncoding": "seqindex.model.encoding",
    "Problem": "seqindex.model.problem",
    "Projection": "seqindex.model.reduction",
    "Reduction": "seqindex.model.reduction",
    "PositionalSemanticTarget": "seqindex.model.target",
    "Target": "seqindex.model.target",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import seqindex`` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'seqindex' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *globals()])
