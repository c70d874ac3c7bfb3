"""A problem: what is to be learned, by whom, under which loss."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqindex import check
from seqindex.model import blocks
from seqindex.model.attention import Attention
from seqindex.model.encoded_target import EncodedTarget
from seqindex.model.frame import Frame
from seqindex.model.link import Target
from seqindex.model.loss import LOSSES, Loss
from seqindex.model.rows import Rows
from seqindex.model.target import PositionalSemanticTarget
from seqindex.model.tied import TiedNetwork
from seqindex.model.untied import UntiedNetwork

Array = NDArray[np.float64]


class TargetLike(Protocol):
    """What a target offers to the layers above."""

    length: int

    @property
    def outputs(self) -> int:
        """Number k of labels."""
        ...

    @property
    def kernel(self) -> blocks.TargetKernel:
        """Compiled block function."""
        ...

    def __call__(self, z: Array) -> Array:
        """Labels of fields, shape (..., L) -> (..., k)."""
        ...

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        ...


class StudentLike(Protocol):
    """What a student offers to the layers above."""

    length: int

    @property
    def outputs(self) -> int:
        """Number k of outputs."""
        ...

    @property
    def frame(self) -> Frame | Rows:
        """Geometry of the weights: coordinates of the encoding for one weight vector, or one vector a position."""
        ...

    @property
    def kernel(self) -> blocks.StudentKernel:
        """Compiled block functions."""
        ...

    @property
    def combinations(self) -> Array:
        """V, shape (p, L), with orthonormal rows: the outputs depend on the fields through V z only."""
        ...

    @property
    def core(self) -> StudentLike:
        """The student of length p that sees V z: its outputs at V z are those of this student at z."""
        ...

    def __call__(self, z: Array) -> Array:
        """Outputs of fields, shape (..., L) -> (..., k)."""
        ...

    def pull_back(self, z: Array, r: Array) -> Array:
        """J^T r, shapes (..., L), (..., k) -> (..., L)."""
        ...

    def jacobian(self, z: Array) -> Array:
        """Jacobian of the outputs, shape (..., L) -> (..., k, L)."""
        ...

    def spec(self) -> dict[str, Any]:
        """Description as plain JSON types."""
        ...


_TARGET_MEMBERS = ("length", "outputs", "kernel", "spec", "__call__")
_STUDENT_MEMBERS = (*_TARGET_MEMBERS, "frame", "pull_back", "jacobian", "combinations", "core")
_EXAMPLES = {"target": "PositionalSemanticTarget(0.5, alignment=1.0)", "student": "Attention(length=2)"}

TARGETS: dict[str, Any] = {
    "PositionalSemanticTarget": PositionalSemanticTarget,
    "EncodedTarget": EncodedTarget,
    "Target": Target,
}
"""Targets that can be read back, by kind."""
STUDENTS: dict[str, Any] = {"Attention": Attention, "TiedNetwork": TiedNetwork, "UntiedNetwork": UntiedNetwork}
"""Students that can be read back, by kind."""


def _rebuild(name: str, text: str, kinds: dict[str, Any]) -> Any:
    try:
        spec = json.loads(text)
        kind = spec["kind"]
    except (TypeError, ValueError, KeyError):
        raise ValueError(f"attrs must hold a problem, got {name} {check.shown(text)}") from None
    kind = kinds[check.choice(f"{name} kind", kind, kinds)]
    try:
        result = kind.from_spec(spec)
    except (TypeError, KeyError):
        raise ValueError(f"attrs must hold a problem, got {name} {check.shown(text)}") from None
    if result.spec() != spec:
        raise ValueError(f"attrs must hold a problem, got {name} {check.shown(text)} of another version")
    return result


class Problem:
    """A target, a student and a loss; everything above the model layer needs nothing else.

    Args:
        target: link function of z* = X w*.
        student: function of z = (X + P / sqrt(d)) w.
        loss: "square" for ||y - f||^2 (the paper), "norm" for ||y - f|| (its released phase-diagram runs).

    Raises:
        TypeError: a target or a student that is none.
        ValueError: lengths or numbers of outputs that disagree, or an unknown loss.

    Example:
        >>> problem = Problem(Target(lambda z: z[..., 0] * z[..., 1], length=2), Attention(length=2, reduction="trace"))
        >>> problem.frame.rank
        1
    """

    def __init__(self, target: TargetLike, student: StudentLike, loss: str = "square") -> None:
        for name, value, members in (("target", target, _TARGET_MEMBERS), ("student", student, _STUDENT_MEMBERS)):
            # Looked up statically, since reading ``kernel`` would compile it.
            missing = [member for member in members if inspect.getattr_static(value, member, None) is None]
            if isinstance(value, type) or missing:
                raise TypeError(f"{name} must be a {name} such as {_EXAMPLES[name]}, got {check.shown(value)}")
        if target.length != student.length:
            raise ValueError(f"target and student must have the same length, got {target.length} and {student.length}")
        if target.outputs != student.outputs:
            raise ValueError(
                f"target and student must have the same number of outputs, got {target.outputs} and {student.outputs}"
            )
        self.target = target
        self.student = student
        self.loss: Loss = LOSSES[check.choice("loss", loss, LOSSES)]

    @property
    def length(self) -> int:
        """Sequence length L."""
        return self.student.length

    @property
    def frame(self) -> Frame:
        """Basis of span(w*, P), for students with one weight vector.

        Raises:
            TypeError: a student with one weight vector a position.
        """
        frame = self.student.frame
        if not isinstance(frame, Frame):
            raise TypeError(f"student must have one weight vector for all positions here, got {self.student!r:.80}")
        return frame

    @property
    def rows(self) -> Rows:
        """Spheres of the weight vectors, for students with one a position.

        Raises:
            TypeError: a student with one weight vector for all positions.
        """
        rows = self.student.frame
        if not isinstance(rows, Rows):
            raise TypeError(f"student must have one weight vector a position here, got {self.student!r:.80}")
        return rows

    def block_functions(self, student: StudentLike) -> tuple[Any, ...]:
        """What a simulation calls, in the order of the first eight arguments of its ``advance``.

        Args:
            student: that of the problem, or its core.
        """
        target, kernel = self.target.kernel, student.kernel
        return (
            target.function,
            target.parameters,
            self.target.outputs,
            kernel.forward,
            kernel.backward,
            kernel.parameters,
            kernel.work_rows,
            blocks.compiled(self.loss.kernel, blocks.LOSS),
        )

    def loss_at(self, zstar: Array, z: Array) -> Array:
        """Loss of fields, shapes (..., L), (..., L) -> (...)."""
        return self.loss.value(self.student(z) - self.target(zstar))

    def field_gradient(self, zstar: Array, z: Array) -> Array:
        """c = d loss / d z, shapes (..., L), (..., L) -> (..., L)."""
        return self.student.pull_back(z, self.loss.gradient(self.student(z) - self.target(zstar)))

    def to_attrs(self) -> dict[str, str]:
        """The problem as strings for the attributes of a Dataset."""
        return {
            "target": json.dumps(self.target.spec()),
            "student": json.dumps(self.student.spec()),
            "loss": self.loss.name,
        }

    @classmethod
    def from_attrs(cls, attrs: Mapping[Any, Any], target: TargetLike | None = None) -> Problem:
        """Rebuild the problem of a result from its attributes.

        Args:
            attrs: attributes of a Dataset that this package made.
            target: needed where the target was a callable, which is stored only by its name.

        Raises:
            ValueError: attributes that lack the problem, or a callable target that was not passed.

        Example:
            >>> problem = Problem(PositionalSemanticTarget(0.5, alignment=1.0), Attention(2))
            >>> Problem.from_attrs(problem.to_attrs()).target.omega
            0.5
        """
        missing = [key for key in ("target", "student", "loss") if key not in attrs]
        if missing:
            raise ValueError(f"attrs must hold a problem, got none under {', '.join(map(repr, missing))}")
        if target is None:
            target = _rebuild("target", attrs["target"], TARGETS)
        student = _rebuild("student", attrs["student"], STUDENTS)
        return cls(target, student, attrs["loss"])

    def __repr__(self) -> str:
        return f"Problem({self.target!r}, {self.student!r}, loss={self.loss.name!r})"
