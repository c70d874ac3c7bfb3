"""Scrambled Sobol points for expectations over many Gaussian variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from seqindex import check


def sobol_normals(dimensions: int, points: int, scrambles: int = 16, seed: int = 0) -> NDArray[np.float64]:
    """Independent scrambled Sobol sets mapped to normal variables, shape (scrambles, n, dimensions).

    The mean over a set is an unbiased estimate of the expectation, and the scatter of the means over the scrambles
    gives its error; with n points it falls like n^{-1} to n^{-3/2} for smooth integrands.

    Args:
        dimensions: number of Gaussian variables, at most 21201.
        points: points in all; each set gets the largest power of 2 that fits, but at least 2.
        scrambles: number of sets, at least 2.
        seed: seed of the scrambles.

    Raises:
        ValueError: a number out of range.
        TypeError: a number that is not an integer.

    Example:
        >>> x = sobol_normals(4, points=2**12, scrambles=8)
        >>> x.shape, bool(np.abs((x**2).mean() - 1.0) < 1e-3)
        ((8, 512, 4), True)
    """
    from scipy.stats import qmc  # scipy.stats takes most of a second to import

    dimensions = check.integer("dimensions", dimensions, 1, qmc.Sobol.MAXDIM)
    scrambles = check.integer("scrambles", scrambles, 2)
    log_size = max(1, int(np.log2(max(check.integer("points", points, 2) // scrambles, 1))))
    streams = np.random.default_rng(check.integer("seed", seed, 0)).spawn(scrambles)
    # 63 bits and the clip keep scrambled points off 0 and 1, where the normal quantile is infinite.
    sets = [qmc.Sobol(dimensions, scramble=True, bits=63, rng=stream).random_base2(log_size) for stream in streams]
    result: NDArray[np.float64] = ndtri(np.clip(np.stack(sets), 1e-16, 1.0 - 1e-16))
    return result
