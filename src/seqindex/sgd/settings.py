"""What every simulation is told: checked in one place, written down in the attributes of its results."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numba
import numpy as np

import seqindex
from seqindex import check
from seqindex.model.problem import Problem
from seqindex.sgd.geometry import geometry_of
from seqindex.sgd.random import START, STREAM_VERSION, sequence
from seqindex.sgd.rounds import processors
from seqindex.sgd.start import Start

_LARGEST = 2**62
_Engine = TypeVar("_Engine")


@dataclass(frozen=True)
class Settings:
    """The arguments that all simulations share; see ``seqindex.sgd.run.sgd``."""

    problem: Problem
    dim: int
    learning_rate: float
    steps: int
    replicas: range
    seed: int
    start: Start
    batch: int
    threads: int

    @classmethod
    def checked(
        cls,
        problem: Problem,
        dim: int,
        learning_rate: float,
        steps: int,
        replicas: int | range,
        seed: int,
        start: Start | None,
        batch: int,
        workers: int | None,
    ) -> Self:
        """The settings with their defaults filled in.

        Raises:
            TypeError, ValueError: a bad argument, named in one line.
        """
        if not isinstance(problem, Problem):
            raise TypeError(f"problem must be a seqindex.Problem, got {problem!r:.80}")
        rank = geometry_of(problem).rank(problem.student.frame)
        dim = check.integer("dim", dim, 1, _LARGEST)
        if dim < rank + 1:
            raise ValueError(f"dim must be at least {rank + 1}, the rank {rank} of span(w*, P) plus one, got {dim}")
        rate = check.number("learning_rate", learning_rate, positive=True)
        steps = check.integer("steps", steps, 1, _LARGEST)
        indices = _indices(replicas)
        seed = check.integer("seed", seed, 0)
        start = Start.random() if start is None else start
        if not isinstance(start, Start):
            raise TypeError(f"start must be a Start such as Start.random(), got {start!r:.80}")
        batch = check.integer("batch", batch, 1, _LARGEST)
        threads = check.integer("workers", processors() if workers is None else workers, 1)
        return cls(problem, dim, rate, steps, indices, seed, start, batch, threads)

    def engine(self, make: Callable[..., _Engine], **keywords: Any) -> _Engine:
        """An engine with the replicas at their starts."""
        draw, frame = geometry_of(self.problem).draw, self.problem.student.frame
        starts = [
            draw(frame, self.start, self.dim, np.random.default_rng(sequence(self.seed, replica, START)))
            for replica in self.replicas
        ]
        s, nu = (np.stack(parts, axis=-1) for parts in zip(*starts, strict=True))
        first = self.replicas.start
        return make(self.problem, self.dim, self.learning_rate, self.batch, s, nu, self.seed, first=first, **keywords)

    def identity(self, **more: object) -> str:
        """What decides the numbers of a simulation, with what its own kind adds."""
        own = [self.replicas.start, self.replicas.stop]
        return json.dumps([self.attrs(), own, more], sort_keys=True, default=str)

    def attrs(self) -> dict[str, Any]:
        """Attributes of a Dataset from which the simulation can be repeated."""
        return {
            **self.problem.to_attrs(),
            "dim": self.dim,
            "learning_rate": self.learning_rate,
            "steps": self.steps,
            "batch": self.batch,
            "seed": self.seed if self.seed < 2**63 else str(self.seed),  # NetCDF holds no larger integers
            "start": json.dumps(self.start.spec()),
            "stream_version": STREAM_VERSION,
            "seqindex_version": seqindex.__version__,
            "numpy_version": np.__version__,
            "numba_version": numba.__version__,
            "processor": platform.machine(),
        }


def _indices(replicas: int | range) -> range:
    """Indices of the replicas: 0 to n - 1, or a stretch of them."""
    if not isinstance(replicas, range):
        return range(check.integer("replicas", replicas, 1))
    if len(replicas) == 0 or replicas.step != 1 or replicas.start < 0:
        raise ValueError(f"replicas must be a number or a stretch such as range(16, 32), got {replicas}")
    return replicas
