"""One-dimensional rules for expectations over a standard normal variable.

Softmax of z z^T has poles at z_i (z_j - z_k) = i pi (2n + 1), so its analyticity strip shrinks like 1/|z|.  That stalls
Gauss-Hermite rules (300 nodes an axis for 1e-12) but not the trapezoid rule (about 110), which is the default here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_hermitenorm

from seqindex import check


@dataclass(frozen=True)
class Rule:
    """Nodes and weights with E f(x) = sum_i weights_i f(nodes_i) for x ~ N(0, 1).

    Raises:
        ValueError: weights that are negative or not finite, or moments up to order six that are wrong.
    """

    nodes: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.nodes).all() and (self.weights >= 0).all()):
            raise ValueError("a rule must have finite nodes and non-negative weights")
        for order, exact in ((0, 1.0), (2, 1.0), (4, 3.0), (6, 15.0)):
            moment = float(self.weights @ self.nodes**order)
            if abs(moment - exact) > 1e-5 * exact:
                raise ValueError(f"a rule must give E x^{order} = {exact:g}, got {moment:.9g}; take more nodes")


def trapezoid(step: float = 0.1, extent: float = 11.0) -> Rule:
    """Trapezoid rule on a grid symmetric about 0.

    Args:
        step: distance of the nodes; the error falls faster than any power of it for analytic integrands.
        extent: largest node; at 11 the Gaussian tail is below 1e-27.

    Raises:
        ValueError: a step or an extent that is not positive, or too coarse a grid.

    Example:
        >>> rule = trapezoid(0.25, 10.0)
        >>> round(float(rule.weights @ rule.nodes**6), 10)
        15.0
    """
    step = check.number("step", step, positive=True)
    half = round(check.number("extent", extent, positive=True) / step)
    nodes: NDArray[np.float64] = np.arange(-half, half + 1, dtype=np.float64) * step
    weights = np.exp(-0.5 * nodes**2)
    return Rule(nodes, weights / weights.sum())


def panels(width: float = 0.5, count: int = 12, extent: float = 12.0) -> Rule:
    """Composite Gauss-Legendre rule with a panel boundary at 0: for integrands with a kink or a jump there.

    Args:
        width: width of a panel.
        count: nodes in a panel.
        extent: the panels cover at least [-extent, extent].

    Raises:
        ValueError: a width or an extent that is not positive, or too coarse a rule.

    Example:
        >>> rule = panels()
        >>> abs(float(rule.weights @ np.abs(rule.nodes)) - (2 / np.pi) ** 0.5) < 1e-14
        True
    """
    width = check.number("width", width, positive=True)
    half = int(np.ceil(check.number("extent", extent, positive=True) / width))
    inner, inner_weights = np.polynomial.legendre.leggauss(check.integer("count", count, 1, 100))
    centres = (np.arange(-half, half) + 0.5) * width
    nodes = (centres[:, None] + 0.5 * width * inner).ravel()
    weights = np.tile(inner_weights, 2 * half) * np.exp(-0.5 * nodes**2)
    return Rule(nodes, weights / weights.sum())


def split_panels(breaks: Sequence[float], width: float = 0.5, count: int = 12, extent: float = 12.0) -> Rule:
    """Composite Gauss-Legendre rule on [-extent, extent] with panel boundaries at 0 and at given points.

    Args:
        breaks: where the integrand has kinks or jumps; those beyond the extent are left out.
        width: largest width of a panel.
        count: nodes in a panel.
        extent: end of the range.

    Raises:
        ValueError: a width or an extent that is not positive, or too coarse a rule.

    Example:
        >>> rule = split_panels([1.0])
        >>> abs(float(rule.weights @ (rule.nodes > 1.0)) - 0.158655253931457051) < 1e-14
        True
    """
    width = check.number("width", width, positive=True)
    extent = check.number("extent", extent, positive=True)
    edges = np.unique([-extent, 0.0, extent, *(x for x in breaks if abs(x) < extent)])
    parts = [np.linspace(a, b, int(np.ceil((b - a) / width)) + 1)[:-1] for a, b in itertools.pairwise(edges)]
    left = np.concatenate(parts)
    half = 0.5 * np.diff(np.append(left, extent))
    inner, inner_weights = np.polynomial.legendre.leggauss(check.integer("count", count, 1, 100))
    nodes = (left + half)[:, None] + half[:, None] * inner
    weights = half[:, None] * inner_weights * np.exp(-0.5 * nodes**2)
    return Rule(nodes.ravel(), (weights / weights.sum()).ravel())


def gauss_hermite(count: int) -> Rule:
    """Gauss-Hermite rule for the standard normal weight; exact for polynomials up to degree 2 count - 1.

    Raises:
        ValueError: fewer than 4 or more than 2000 nodes.

    Example:
        >>> rule = gauss_hermite(20)
        >>> round(float(rule.weights @ rule.nodes**6), 10)
        15.0
    """
    nodes, weights = roots_hermitenorm(check.integer("count", count, 4, 2000))
    return Rule(nodes, weights / weights.sum())
