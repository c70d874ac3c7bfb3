"""Population risk of attention, E loss as a function of the overlaps: the landscape on which SGD moves.

The fields are z* ~ N(0, I_L) and z = m z* + sqrt(1 - m^2) xi + e_l + c_l, xi ~ N(0, I_L), with the shifts
e_l = P_l.w / sqrt(d) = (Q s)_l, s = (m, e), Q the coordinates of the encoding (the paper, section 2) and constants c_l
where it is injected.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.problem import Problem
from seqindex.theory.hermite_risk import RESOLUTIONS, HermiteRisk
from seqindex.theory.pair_risk import PairRisk
from seqindex.theory.sampled_risk import SampledRisk

Array = NDArray[np.float64]
QUANTITIES = ("value", "gradient", "hessian", "mean_square_gradient")
"""What ``PopulationRisk.error`` can speak about."""


class Engine(Protocol):
    """A way to compute expectations at overlaps m, shape (N,), and field shifts e_l, shape (N, L).

    Constant shifts c_l are part of the student: an engine adds them to the fields itself.
    """

    def derivatives(self, m: Array, shifts: Array, order: int) -> Array:
        """Derivatives of the given order in (m, shifts): shapes (N,), (N, 1 + L), (N, 1 + L, 1 + L)."""
        ...

    def sketch(self, m: Array, shifts: Array, order: int) -> Array:
        """The same, less exactly and faster."""
        ...

    def error(self, m: Array, shifts: Array, order: int) -> Array:
        """Absolute errors of ``derivatives``, of the same shape."""
        ...

    def mean_square_gradient(self, m: Array, shifts: Array) -> Array:
        """E |c|^2, shape (N,)."""
        ...

    def mean_square_gradient_error(self, m: Array, shifts: Array) -> Array:
        """Its absolute error, shape (N,)."""
        ...


class PopulationRisk:
    """R(m, e) = E loss of a problem, with derivatives, each with its error.

    Under the norm loss the derivative in m may diverge as |m| -> 1; there it is taken at sqrt(1 - m^2) = 1e-3 (0.03 for
    second derivatives), and ``error`` says by how much it still changes.

    The square loss at length up to 4 uses a Hermite series, the norm loss up to length 2 a four-dimensional grid, and
    longer sequences scrambled Sobol points.

    Args:
        problem: target, student and loss.
        points: Sobol points over all scrambles (only where the Sobol engine serves).
        scrambles: independent scrambles, from whose scatter the error is taken.
        seed: seed of the scrambles.

    Raises:
        ValueError: a target that is not finite somewhere on the nodes.

    Example:
        >>> from seqindex import Attention, OppositeEncoding, PositionalSemanticTarget
        >>> target = PositionalSemanticTarget(omega=0.67, alignment=1.0)
        >>> risk = PopulationRisk(Problem(target, Attention(2, OppositeEncoding())))
        >>> round(float(risk(0.5, 0.3)), 8), risk(np.linspace(-1, 1, 5), 0.0).shape
        (0.23882909, (5,))
        >>> risk.gradient(0.5, 0.3).round(6).tolist()  # dR/dm, dR/de
        [-0.072069, -0.033687]
    """

    def __init__(self, problem: Problem, *, points: int = 2**18, scrambles: int = 16, seed: int = 0) -> None:
        if not isinstance(problem, Problem):
            raise TypeError(f"problem must be a Problem, got {problem!r}")
        self.problem = problem
        positions = problem.frame.positions
        # d(m, shifts) / d(m, e): the first row is m itself, a target component of the encoding couples the shifts to m.
        self._chain = np.vstack([np.eye(1, problem.frame.rank), positions])
        sobol = (check.integer("points", points, 2), check.integer("scrambles", scrambles, 2), seed)
        self._engine: Engine
        square = problem.loss.name == "square"
        if square and problem.student.outputs == 1 and len(problem.student.combinations) == 1:
            from seqindex.theory.line_risk import LineRisk  # it needs SymPy, which takes long to import

            self._engine = LineRisk(problem, *sobol)
        elif square and problem.length in RESOLUTIONS:
            self._engine = HermiteRisk(problem, *sobol)
        elif problem.length <= 2:
            self._engine = PairRisk(problem)
        else:
            self._engine = SampledRisk(problem, *sobol)

    @property
    def engine(self) -> Engine:
        """What computes the expectations."""
        return self._engine

    def __call__(self, m: ArrayLike, e: ArrayLike | None = None) -> Array:
        """E loss.

        Args:
            m: overlap with the target, any shape.
            e: coordinates along the r directions of the encoding: broadcast with m where r = 1, else with last axis r;
                None for zeros.

        Returns:
            Array of the broadcast shape.

        Raises:
            ValueError: m^2 + |e|^2 > 1, or shapes that do not fit.
        """
        return self._evaluate(m, e, 0)

    def gradient(self, m: ArrayLike, e: ArrayLike | None = None) -> Array:
        """Euclidean gradient in (m, e_1, .., e_r), shape (..., 1 + r); arguments as for a call."""
        return self._evaluate(m, e, 1)

    def hessian(self, m: ArrayLike, e: ArrayLike | None = None) -> Array:
        """Euclidean Hessian in (m, e_1, .., e_r), shape (..., 1 + r, 1 + r); arguments as for a call."""
        return self._evaluate(m, e, 2)

    def sketch(self, m: ArrayLike, e: ArrayLike | None = None, order: int = 1) -> Array:
        """Value, gradient or Hessian (order 0, 1, 2) to about 1e-6 only, several times faster: for searches.

        Arguments as for a call; the gain is large where every point has its own shift of the fields.
        """
        return self._evaluate(m, e, check.integer("order", order, 0, 2), sketch=True)

    def mean_square_gradient(self, m: ArrayLike, e: ArrayLike | None = None) -> Array:
        """V = E |c|^2, c = d loss / d z: the strength of the noise of SGD, shape (...); arguments as for a call."""
        shape, s = self._states(m, e)
        return self._engine.mean_square_gradient(s[:, 0], self._shifts(s)).reshape(shape)

    def error(self, m: ArrayLike, e: ArrayLike | None = None, of: str = "value") -> Array:
        """Absolute error of a result: truncation and quadrature errors, or four standard errors for Sobol points.

        Args:
            m: overlap, as for a call.
            e: encoding coordinates, as for a call.
            of: "value", "gradient", "hessian" or "mean_square_gradient".

        Returns:
            Array of the shape of that result.

        Raises:
            ValueError: an unknown ``of``, or overlaps outside the ball.
        """
        order = QUANTITIES.index(check.choice("of", of, QUANTITIES))
        shape, s = self._states(m, e)
        shifts = self._shifts(s)
        if order == 3:
            return self._engine.mean_square_gradient_error(s[:, 0], shifts).reshape(shape)
        # Errors of the terms of the chain rule add up in the worst case.
        return self._pull(self._engine.error(s[:, 0], shifts, order), np.abs(self._chain), order, shape)

    def _evaluate(self, m: Any, e: Any, order: int, sketch: bool = False) -> Array:
        shape, s = self._states(m, e)
        compute = self._engine.sketch if sketch else self._engine.derivatives
        flat = compute(s[:, 0], self._shifts(s), order)
        return self._pull(flat, self._chain, order, shape)

    def _shifts(self, s: Array) -> Array:
        return np.asarray(s @ self.problem.frame.positions.T)

    @staticmethod
    def _pull(flat: Array, chain: Array, order: int, shape: tuple[int, ...]) -> Array:
        if order == 1:
            flat = flat @ chain
        elif order == 2:
            flat = np.einsum("ai,nab,bj->nij", chain, flat, chain, optimize=True)
        return flat.reshape(shape + flat.shape[1:])

    def _states(self, m: Any, e: Any) -> tuple[tuple[int, ...], Array]:
        """Shape of the result and states s = (m, e), shape (N, 1 + r)."""
        directions = self.problem.frame.directions
        overlap = _real("m", m)
        if e is None:
            coordinates = np.zeros((*overlap.shape, directions))
        else:
            coordinates = _real("e", e)
            if directions == 1:
                coordinates = coordinates[..., None]
            if directions == 0 or coordinates.ndim == 0 or coordinates.shape[-1] != directions:
                wanted = "None, as there is no encoding" if directions == 0 else f"an array with last axis {directions}"
                raise ValueError(f"e must be {wanted}, got shape {np.shape(e)}")
        try:
            shape = np.broadcast_shapes(overlap.shape, coordinates.shape[:-1])
        except ValueError as error:
            raise ValueError(f"m and e must broadcast, got shapes {overlap.shape} and {np.shape(e)}") from error
        count = int(np.prod(shape))
        s = np.concatenate(
            [
                np.broadcast_to(overlap, shape).reshape(count, 1),
                np.broadcast_to(coordinates, (*shape, directions)).reshape(count, directions),
            ],
            axis=1,
        )
        square = (s * s).sum(1)
        if (square > 1.0 + 1e-12).any():
            raise ValueError(f"m^2 + |e|^2 must be at most 1, got {square.max():.12g}")
        return shape, s


def _real(name: str, value: Any) -> Array:
    """Finite float64 array of any shape, or TypeError or ValueError naming ``name``."""
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number or an array of numbers, got {value!r:.80}") from error
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite, got {result[~np.isfinite(result)][0]}")
    return result
