"""``seqindex bench``."""

from __future__ import annotations


def bench() -> None:
    """Steps per second of each engine on this machine, one core.

    Where PyTorch is installed, the plain training loop is timed too and the ratios are shown.
    """
    from seqindex.sgd.bench import benchmark

    raise NotImplementedError(benchmark)
