"""Where the replicas of a run ended: aligned with the target, with the encoding, or with neither."""

from __future__ import annotations

import numpy as np
import xarray as xr

ENDS = ("neither", "semantic", "positional")
"""Ends in the order of their flag values."""


def encoding_norm(runs: xr.Dataset) -> xr.DataArray:
    """|e| over (replica, record); zero without an encoding."""
    about = {"long_name": "|e|", "units": "1"}
    if "encoding_overlap" not in runs:
        return xr.zeros_like(runs["overlap_norm"]).assign_attrs(about)
    e = runs["encoding_overlap"]
    square = (e * e).sum("direction", skipna=False) if "direction" in e.dims else e * e
    return (square**0.5).assign_attrs(about)


def ends(runs: xr.Dataset) -> xr.DataArray:
    """Where each replica is at the last record: most of w along w*, or along the encoding, or neither.

    A replica is semantic where m^2 > 1/2 and positional where |e|^2 > 1/2, which exclude each other since
    m^2 + |e|^2 <= 1; a diverged one is neither.

    Example:
        >>> target = sx.PositionalSemanticTarget(0.5, alignment=1.0)
        >>> problem = sx.Problem(target, sx.Attention(2, sx.OppositeEncoding()))
        >>> start = sx.Start.overlaps(m=0.9, e=0.3)
        >>> runs = sx.sgd(problem, dim=100, learning_rate=0.01, steps=10, replicas=2, start=start)
        >>> [ENDS[k] for k in ends(runs).values]
        ['semantic', 'semantic']
    """
    last = runs.isel(record=-1)
    semantic = (last["overlap_norm"] ** 2 > 0.5).astype(np.int8)
    positional = (encoding_norm(last) ** 2 > 0.5).astype(np.int8)
    about = {
        "long_name": "where the replica ended",
        "flag_values": np.arange(len(ENDS), dtype=np.int8),
        "flag_meanings": " ".join(ENDS),
    }
    flags: xr.DataArray = semantic * ENDS.index("semantic") + positional * ENDS.index("positional")
    return flags.astype(np.int8).assign_attrs(about)
