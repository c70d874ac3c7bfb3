"""Starting states of a run."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqindex import check
from seqindex.model.frame import Frame

_Sampler = Callable[[Frame, int, np.random.Generator], tuple[NDArray[np.float64], float]]


@dataclass(frozen=True)
class Start:
    """A law of the starting state (s, nu), |s|^2 + nu^2 = 1; made by the four class methods.

    Example:
        >>> from seqindex.model.frame import Frame
        >>> Start.overlaps(m=0.6).draw(Frame.of(2, None), 100, np.random.default_rng(0))
        (array([0.6]), 0.8)
    """

    name: str
    parameters: dict[str, Any]
    _sampler: _Sampler = field(repr=False, compare=False)

    @classmethod
    def random(cls) -> Start:
        """w uniform on the sphere of radius sqrt(d): the paper's start."""

        def sample(frame: Frame, dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
            # The first R coordinates of a uniform unit vector; the other d - R enter through their norm alone.
            inside = rng.standard_normal(frame.rank)
            rest = rng.chisquare(dim - frame.rank)
            norm = math.sqrt(float(inside @ inside) + rest)
            return inside / norm, math.sqrt(rest) / norm

        return cls("random", {}, sample)

    @classmethod
    def overlaps(cls, m: float, e: ArrayLike | None = None) -> Start:
        """Overlap m = w.w*/d and encoding coordinates e given exactly (e None: zero).

        Raises:
            TypeError: m or e that are no real numbers.
            ValueError: m outside [-1, 1]; when drawn, e of the wrong size or m^2 + |e|^2 > 1.
        """
        check.number("m", m, -1.0, 1.0)
        entries: Any = [e] if np.ndim(e) == 0 else e  # type: ignore[arg-type]
        given = None if e is None else check.array("e", entries, (None,))
        parameters = {"m": float(m), "e": None if given is None else given.tolist()}

        def sample(frame: Frame, dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
            s = frame.state(m, given)
            return s, math.sqrt(max(0.0, 1.0 - float(s @ s)))

        return cls("overlaps", parameters, sample)

    @classmethod
    def orthogonal(cls) -> Start:
        """w orthogonal to w* and to every P_l, m = e = 0: the start of the released phase-diagram runs."""

        def sample(frame: Frame, dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
            return np.zeros(frame.rank), 1.0

        return cls("orthogonal", {}, sample)

    @classmethod
    def released(cls, overlap: float | None = None) -> Start:
        """The released code's "overlapped" start: w along (1 - o) u + o w*, u orthogonal to w* and to every P_l.

        Its true overlap is o / sqrt((1 - o)^2 + o^2), a little more than what was asked for: 0.1 gives 0.110.

        Args:
            overlap: o in [0, 1]; None for 1 / sqrt(d).
        """
        if overlap is not None:
            check.number("overlap", overlap, 0.0, 1.0)

        def sample(frame: Frame, dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
            o = 1.0 / math.sqrt(dim) if overlap is None else float(overlap)
            norm = math.hypot(1.0 - o, o)
            s = np.zeros(frame.rank)
            s[0] = o / norm
            return s, (1.0 - o) / norm

        return cls("released", {"overlap": overlap}, sample)

    def draw(self, frame: Frame, dim: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
        """One starting state: s, shape (R,), and nu >= 0."""
        return self._sampler(frame, dim, rng)

    def moments(self, frame: Frame, dim: int) -> tuple[NDArray[np.float64], float]:
        """Mean of s, shape (R,), and the standard deviation of each of its coordinates.

        Example:
            >>> from seqindex.model.frame import Frame
            >>> Start.random().moments(Frame.of(2, None), 100)
            (array([0.]), 0.1)
        """
        if self.name == "random":
            return np.zeros(frame.rank), 1.0 / math.sqrt(dim)
        return self.draw(frame, dim, np.random.default_rng(0))[0], 0.0  # the others are fixed

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        return {"name": self.name, **self.parameters}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Start:
        """Inverse of ``spec``.

        Raises:
            TypeError, ValueError: an unknown name, or arguments that this start does not take.
        """
        makers: dict[str, Callable[..., Start]] = {
            maker.__name__: maker for maker in (cls.random, cls.overlaps, cls.orthogonal, cls.released)
        }
        arguments = {key: value for key, value in spec.items() if key != "name"}
        name = check.choice("start", spec.get("name"), makers)
        signature = inspect.signature(makers[name])
        try:
            signature.bind(**arguments)
        except TypeError:
            allowed, got = (", ".join(names) or "nothing" for names in (signature.parameters, arguments))
            raise TypeError(f"start {name!r} takes {allowed}, got {got}") from None
        return makers[name](**arguments)
