"""Sequence information exponent: the order of the first Hermite tensor of a target that is not zero."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.gaussian.exact import to_float
from seqindex.order import Evidence, Order
from seqindex.theory.factors import TooManyEntriesError
from seqindex.theory.hermite_series import HermiteSeries, LinkFunction

Array = NDArray[np.float64]

TIMES = 1e3
"""A coefficient by quadrature is not zero if it is so many times its error ..."""
FLOOR = 1e-9
"""... and above this times the sum of the sizes of what it was added up from."""
NEGLIGIBLE = 1e-11
"""It is zero if it is below this times that sum and within ten errors of zero."""
VERDICTS = ("zero", "undecided", "not zero")
_PROBES = 4
_LONGEST = 2000


def sequence_information_exponent(target: LinkFunction, max_order: int = 12) -> Order:
    """SIE(g) = min{k >= 1: C_k(g) != 0}, where C_k(g) = E[grad^k g]; any output counts (the paper, section 2).

    Exact for polynomials, at any length and order.  For other targets a coefficient counts as zero or as not zero by
    its error (see ``TIMES``, ``FLOOR`` and ``NEGLIGIBLE``); one from random points counts as not zero beyond about five
    standard errors, and as zero only where a parity of the target says so.  What is neither stays undecided.

    Args:
        target: any target.
        max_order: highest order looked at where the target is not polynomial.

    Returns:
        The order, infinite for a constant target, with the largest coefficient of every order up to it as evidence.

    Raises:
        ValueError: a target that is not finite at a node, has no finite square mean, or expands to too many terms.

    Example:
        >>> order = sequence_information_exponent(sx.Target(lambda z: z[..., 0] * np.tanh(z[..., 1]), length=2))
        >>> int(order), order.evidence[0].verdict
        (2, 'zero')
    """
    series = HermiteSeries(target, check.integer("max_order", max_order, 1, 40))
    if series.constant:
        return Order(math.inf, (), (), "the target is constant: all Hermite tensors beyond the mean vanish")
    orders = range(1, series.degree + 1) if series.exact else range(1, max_order + 1)
    evidence: list[Evidence] = []
    undecided: list[int] = []
    for order in orders:
        try:
            found = _judged(series, order)
        except TooManyEntriesError as error:
            if series.sampled:
                return _open(undecided, order, evidence, str(error))
            found = _probed(series, order)
        if len(evidence) < _LONGEST or found.verdict != "zero":
            evidence.append(found)
        if found.verdict == "not zero":
            if undecided:
                return _open(undecided, order, evidence, "a coefficient is neither zero nor clearly different from it")
            how = "exactly" if found.exact else "by symmetry or within their errors"
            before = "" if order == 1 else f"; those below vanish {how}"
            return Order(order, (order,), tuple(evidence), f"C_{order} is the first Hermite tensor not zero{before}")
        if found.verdict == "undecided":
            undecided.append(order)
    return _open(undecided, None, evidence, f"no Hermite tensor up to order {max_order} is clearly different from zero")


def _open(undecided: list[int], last: int | None, evidence: list[Evidence], why: str) -> Order:
    candidates = (*undecided, *([] if last is None else [last]))
    return Order(None, candidates, tuple(evidence), why)


def _judged(series: HermiteSeries, order: int) -> Evidence:
    """The entries of C_order, every one judged."""
    parts = [
        _verdict(np.array([(to_float(e.value), e.error, e.gross) for e in entries.values()]), order, series)
        for entries in series.entries(order)
        if entries
    ]
    return _firmest(parts, order, series.exact)


def _verdict(entries: Array, order: int, series: HermiteSeries) -> Evidence:
    """The entry that says most about whether all vanish; rows of value, error and gross size."""
    value, error, gross = entries.T
    size = np.abs(value)
    if series.exact:
        tolerance, zero = 0.0 * size, size == 0.0
    else:
        tolerance = np.maximum(error if series.sampled else TIMES * error, FLOOR * gross)
        within = size <= 10.0 * error + 1e-15 * gross
        zero = within & (size <= NEGLIGIBLE * gross) & (not series.sampled or error == 0.0)
    rank = np.where(size > tolerance, 2, np.where(zero, 0, 1))
    first = int(np.lexsort((size, rank))[-1])
    return Evidence(
        order, float(value[first]), float(error[first]), float(tolerance[first]), VERDICTS[rank[first]], series.exact
    )


def _firmest(parts: list[Evidence], order: int, exact: bool) -> Evidence:
    nothing = Evidence(order, 0.0, 0.0, 0.0, "zero", exact)
    return max([nothing, *parts], key=lambda found: (VERDICTS.index(found.verdict), abs(found.coefficient)))


def _probed(series: HermiteSeries, order: int) -> Evidence:
    """C_order by its contractions with normal vectors, which all vanish only if it does."""
    vectors = np.random.default_rng(0).standard_normal((_PROBES, series.length))
    tables = [series.taylor_with_sizes(v, order)[..., order].T for v in vectors]
    return _firmest([_verdict(table, order, series) for table in tables], order, False)
