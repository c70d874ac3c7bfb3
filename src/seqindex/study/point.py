"""One point of a study: settings without anything left to decide, from which a simulation follows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqindex import check
from seqindex.model.attention import Attention
from seqindex.model.encoding import Encoding, InjectedEncoding, OppositeEncoding, RandomEncoding, SinusoidalEncoding
from seqindex.model.grammar import parse_number
from seqindex.model.link import Target
from seqindex.model.named import NAMED_TARGETS, named_target
from seqindex.model.problem import Problem, StudentLike, TargetLike
from seqindex.model.target import PositionalSemanticTarget
from seqindex.model.tied import TiedNetwork, random_weights
from seqindex.model.untied import UntiedNetwork
from seqindex.sgd.random import STREAM_VERSION
from seqindex.sgd.run import recorded_steps
from seqindex.sgd.start import Start

FORMAT = 1
"""Changes whenever the files of a study change their meaning."""
POSITIONAL_SEMANTIC = "positional-semantic"
STUDENTS = ("tied", "untied", "attention")
ENCODINGS = ("none", "opposite", "random", "sinusoidal", "injected")
_MOST_RECORDS = 100_000


@dataclass(frozen=True)
class Point:
    """Settings of one simulation and the values of the sweep that lead to it.

    Attributes:
        settings: numbers and names as plain JSON types, expressions evaluated.
        swept: the swept values, by name.
    """

    settings: dict[str, Any]
    swept: dict[str, Any]

    @property
    def key(self) -> str:
        """A name that changes with anything that changes the numbers."""
        text = json.dumps([self.settings, FORMAT, STREAM_VERSION], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    @property
    def seed(self) -> int:
        """Seed of its streams: from the study's seed and all settings, so that no two points share a stream."""
        return int(hashlib.sha256(f"seed {self.key}".encode()).hexdigest()[:15], 16)

    @property
    def replicas(self) -> int:
        """Number of runs."""
        return int(self.settings["replicas"])

    @property
    def work(self) -> float:
        """Steps of all replicas, for progress; one pass for the overlaps and one a threshold."""
        passes = (len(self.settings["records"]) > 0) + len(self.settings["thresholds"])
        return float(self.settings["steps"]) * self.replicas * passes

    def problem(self) -> Problem:
        """Target, student and loss."""
        return problem_of(self.settings)

    def start(self) -> Start:
        """Law of the start."""
        return Start.from_spec(self.settings["start"])


def resolve(given: dict[str, Any], swept: dict[str, Any]) -> Point:
    """Evaluate expressions, choose the recorded steps, and build everything once, so that errors come before any work.

    Args:
        given: fields of a study, the swept ones at their value.
        swept: the swept values.

    Raises:
        TypeError, ValueError: anything that does not fit together, named in one line.
    """
    settings = {key: value for key, value in given.items() if value is not None}
    problem = problem_of(settings)
    dim = check.integer("dim", settings["dim"], 1, 2**62)
    values = {"d": dim, "L": problem.length}
    rate = _number("learning_rate", settings["learning_rate"], values)
    check.number("learning_rate", rate, positive=True)
    steps = check.integer("steps", round(_number("steps", settings["steps"], values)), 1, 2**62)
    start = _start(settings["start"])
    student_frame: Any = problem.student.frame
    start.draw(getattr(student_frame, "row", student_frame), max(dim, 3), np.random.default_rng(0))
    thresholds = [check.number("thresholds", one, 0.0, 1.0, positive=True) for one in settings["thresholds"]]
    settings.update(
        dim=dim,
        learning_rate=rate,
        steps=steps,
        start=start.spec(),
        length=problem.length,
        records=_records(settings.pop("overlaps"), steps),
        thresholds=thresholds,
    )
    if not settings["records"] and not thresholds:
        raise ValueError("record must name overlaps or thresholds, got neither")
    return Point(settings, swept)


def problem_of(settings: dict[str, Any]) -> Problem:
    """The problem that settings describe.

    Raises:
        TypeError, ValueError: settings that do not fit together.

    Example:
        >>> problem_of({"target": "z1*z2", "length": 2, "student": "tied", "activation": "softplus"}).length
        2
    """
    target = _target(settings)
    return Problem(target, _student(settings, target), settings.get("loss", "square"))


def _target(settings: dict[str, Any]) -> TargetLike:
    name, length = settings["target"], settings.get("length")
    own = ("omega", "alignment", "alignment_matrix")
    if name == POSITIONAL_SEMANTIC:
        matrix = settings.get("alignment_matrix")
        alignment = settings.get("alignment", None if matrix is not None else 1.0)
        omega = settings.get("omega")
        if omega is None:
            raise ValueError(f"omega must be given with target {POSITIONAL_SEMANTIC!r}, got none")
        return PositionalSemanticTarget(omega, alignment, matrix, length)
    for key in own:
        if settings.get(key) is not None:
            raise ValueError(f"{key} goes with target {POSITIONAL_SEMANTIC!r}, got target {check.shown(name)}")
    if length is None:
        raise ValueError("length must be given with this target, got none")
    parameters = settings.get("parameters") or {}
    if name in NAMED_TARGETS:
        return named_target(name, length, **parameters)
    return Target(name, length, **parameters)


def _student(settings: dict[str, Any], target: TargetLike) -> StudentLike:
    kind = check.choice("student", settings.get("student", "tied"), STUDENTS)
    takes = {
        "tied": ("activation", "weights", "encoding", "encoding_seed", "injection"),
        "untied": ("activation", "sphere"),
        "attention": ("encoding", "encoding_seed", "injection", "reduction", "scores"),
    }
    for key in ("activation", "weights", "sphere", "encoding", "injection", "reduction", "scores"):
        if settings.get(key) is not None and key not in takes[kind]:
            raise ValueError(f"{key} does not go with student {kind!r}, got {check.shown(settings[key])}")
    if kind == "untied":
        return UntiedNetwork(target.length, settings.get("activation", "relu"), settings.get("sphere", "rows"))
    encoding = _encoding(settings, target.length)
    if kind == "tied":
        weights = settings.get("weights")
        if weights == "random":
            weights = random_weights(target.length, settings.get("weights_seed", 0))
        return TiedNetwork(target.length, settings.get("activation", "relu"), weights, encoding)
    usual = "trace" if target.outputs == 1 else "identity"
    return Attention(target.length, encoding, settings.get("reduction", usual), settings.get("scores", "softmax"))


def _encoding(settings: dict[str, Any], length: int) -> Encoding | None:
    name = check.choice("encoding", settings.get("encoding", "none"), ENCODINGS)
    injection = settings.get("injection")
    if (injection is not None) != (name == "injected"):
        raise ValueError(f"injection goes with encoding 'injected', got {check.shown(injection)} with {name!r}")
    if name == "opposite":
        return OppositeEncoding()
    if name == "random":
        return RandomEncoding(length, seed=settings.get("encoding_seed", 0))
    if name == "sinusoidal":
        return SinusoidalEncoding(length)
    return InjectedEncoding(injection) if injection is not None else None


def _number(name: str, value: Any, values: dict[str, int]) -> float:
    return parse_number(name, value, values) if isinstance(value, str) else check.number(name, value)


def _start(given: Any) -> Start:
    spec = {"name": given} if isinstance(given, str) else given
    if not isinstance(spec, dict):
        raise TypeError(f"start must be a name such as 'random', or name: and its values, got {check.shown(given)}")
    return Start.from_spec(spec)


def _records(given: Any, steps: int) -> list[int]:
    """Recorded steps of "overlaps": a number of them, equally spaced or by logarithm, or the steps themselves."""
    if given in (0, None):
        return []
    if isinstance(given, dict):
        if set(given) != {"logarithmic"}:
            raise ValueError(f"overlaps must be a number, logarithmic: a number, or steps, got {check.shown(given)}")
        count = check.integer("overlaps", given["logarithmic"], 2, _MOST_RECORDS)
        return [0, *np.unique(np.round(np.geomspace(1, steps, count - 1)).astype(np.int64)).tolist()]
    if not isinstance(given, list):
        given = check.integer("overlaps", given, 2, _MOST_RECORDS)
    return [int(step) for step in recorded_steps(given, steps)]
