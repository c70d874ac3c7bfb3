"""How much faster a tied network recovers the target than an untied one (the paper, theorem 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqindex.theory.exponents import sequence_information_exponent
from seqindex.theory.hermite_series import LinkFunction, hermite_tensors


@dataclass(frozen=True)
class Gain:
    """Ratio of the steps to weak recovery, untied over tied.

    Attributes:
        equal_rate: with the same learning rate for both.
        paper_maximal_rate: as the paper states it for the largest rates.  Its bound on the rate of the untied network
            is too small, by sqrt(L) for k = 1 and L beyond, since the gradient of every row carries L^{-1/2}.
        best_rate: with each network at its own best rate, equal_rate^2 / L.
        exact: whether these are values up to constants; lower bounds where C_k has no orthogonal decomposition.
        order: the sequence information exponent k.
        contraction: <C_k, 1^{(x) k}>; where it is zero the tied network does not see C_k and the gains are zero.
        operator_norm: ||C_k||.
        ratio: S = |contraction| / operator_norm, at most L^{k/2}.
        lower_bound: L^{1 - k/2} S, of the gain at equal rates whatever C_k.
        naive_count: L^{(k - 1) v 1}, what counting parameters suggests.
    """

    equal_rate: float
    paper_maximal_rate: float
    best_rate: float
    exact: bool
    order: int
    contraction: float
    operator_norm: float
    ratio: float
    lower_bound: float
    naive_count: float


def predicted_gain(target: LinkFunction) -> Gain:
    """The gain of tying the weights, from the first Hermite tensor of the target that is not zero.

    With S = |<C_k, 1^k>| / ||C_k||, the gain at equal rates is S where C_k is orthogonally decomposable (always for
    k <= 2), sqrt(L) S at k = 1, and at least L^{1 - k/2} S otherwise.

    Args:
        target: any target with one output.

    Raises:
        ValueError: several outputs, a constant target, an undecided exponent, or a tensor with too many entries.

    Example:
        >>> gain = predicted_gain(sx.Target("sum(He2(z)) / sqrt(2)", length=4))
        >>> gain.equal_rate, gain.paper_maximal_rate, gain.best_rate, gain.exact
        (4.0, 16.0, 4.0, True)
    """
    order = sequence_information_exponent(target)
    if order.value is None or math.isinf(order.value):
        raise ValueError(f"target must have a decided and finite information exponent for a gain, got {order}")
    k, length = int(order), target.length
    tensors = hermite_tensors(target, k)
    if len(tensors) > 1:
        raise ValueError(f"target must have one output for a gain, got {len(tensors)}")
    (tensor,) = tensors
    contraction, norm = tensor.contract(np.ones(length)), tensor.operator_norm()
    ratio = 0.0 if abs(contraction) <= 10.0 * tensor.error * length ** (k / 2) else abs(contraction) / norm
    decomposable = tensor.decomposition() is not None
    bound = length ** (1.0 - 0.5 * k) * ratio
    if k == 1 or not decomposable:
        equal, paper = bound, bound * ratio if k == 1 else bound**2
    else:
        equal, paper = ratio, ratio**2
    naive = float(length ** max(k - 1, 1))
    return Gain(equal, paper, equal**2 / length, decomposable, k, contraction, norm, ratio, bound, naive)
