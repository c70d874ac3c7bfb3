"""How long a study will take and how much it will write, before it does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqindex.gaussian.simd import WIDTH
from seqindex.sgd.run import sgd
from seqindex.study.point import Point

_SECONDS = 0.1
"""Length of a trial."""
_FILE = 40_000
"""Bytes of a file without its arrays."""


@dataclass(frozen=True)
class Estimate:
    """Size of a study.

    Attributes:
        steps: of all replicas.
        seconds: of one processor.
        disk: bytes.
    """

    steps: float
    seconds: float
    disk: float


def estimate(points: Sequence[Point]) -> Estimate:
    """Time a few steps of every kind of point, and count what would be written.

    Args:
        points: those to be computed.

    Example:
        >>> estimate([]).seconds
        0.0
    """
    speeds: dict[str, float] = {}
    seconds = 0.0
    for point in points:
        kind = _kind(point)
        if kind not in speeds:
            speeds[kind] = _speed(point)
        seconds += point.work / speeds[kind]
    disk = sum(_bytes(point) for point in points)
    return Estimate(sum(point.work for point in points), seconds, float(disk))


def _kind(point: Point) -> str:
    """What the time of a step depends on: all settings but a few."""
    explicit = point.settings["engine"] == "explicit"
    free = {
        "learning_rate",
        "steps",
        "replicas",
        "seed",
        "records",
        "thresholds",
        "start",
        "risk",
        "omega",
        "alignment",
    }
    return repr(sorted((k, v) for k, v in point.settings.items() if k not in free and (explicit or k != "dim")))


def _speed(point: Point) -> float:
    """Steps of a replica a second on one processor."""
    steps = 64
    while True:
        begin = time.perf_counter()
        settings = point.settings
        sgd(
            point.problem(),
            settings["dim"],
            settings["learning_rate"],
            steps,
            replicas=WIDTH,
            start=point.start(),
            records=2,
            batch=settings["batch"],
            engine=settings["engine"],
            workers=1,
            progress=False,
        )
        seconds = time.perf_counter() - begin
        if seconds > _SECONDS or steps > 2**30:
            return steps * WIDTH / seconds
        steps *= 4


def _bytes(point: Point) -> float:
    records, replicas = len(point.settings["records"]), point.replicas
    rows = point.settings["length"] if point.settings["student"] == "untied" else 1
    numbers = replicas * (records * (1 + rows + bool(point.settings["risk"])) + 2 * len(point.settings["thresholds"]))
    return _FILE + 8.0 * numbers + 8.0 * np.size(point.settings["records"])
