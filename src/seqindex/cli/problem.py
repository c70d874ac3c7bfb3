"""Problems as the command line describes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqindex.cli.console import named_reals, reals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from seqindex.model.encoding import Encoding
    from seqindex.model.problem import StudentLike, TargetLike

ENCODINGS = ("opposite", "none", "random", "sinusoidal")
STUDENTS = ("attention", "tied", "untied")


def _together(given: dict[str, Any], where: str, got: str) -> None:
    """Refuse options that were given and say nothing here."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} goes with {where}, got {got}")


def target_of(
    text: str | None,
    parameters: Iterable[str],
    omega: float | None,
    alignment: float | None,
    matrix_file: Path | None,
    length: int | None,
) -> TargetLike:
    """The link function that ``text`` holds, with parameters as NAME=VALUE, or the positional-semantic target."""
    from seqindex.model.link import Target
    from seqindex.model.target import PositionalSemanticTarget

    if text is not None:
        given = {"omega": omega, "alignment": alignment, "alignment-matrix": matrix_file}
        _together(given, "the positional-semantic target", f"target {text!r}")
        if length is None:
            raise ValueError("length must be given with target, got none")
        return Target(text, length, **named_reals(parameters))
    _together({"param": list(parameters) or None}, "target EXPR", "none")
    omega = 0.67 if omega is None else omega
    if matrix_file is None:
        return PositionalSemanticTarget(omega, alignment=1.0 if alignment is None else alignment, length=length)
    return PositionalSemanticTarget(omega, alignment, _read_matrix(matrix_file), length)


def student_of(
    kind: str,
    target: TargetLike,
    encoding: Encoding | None,
    activation: str | None = None,
    weights: str | None = None,
    reduction: str | None = None,
    scores: str | None = None,
    sphere: str | None = None,
) -> StudentLike:
    """A student for a target; attention by default has a trace where there is one label."""
    from seqindex import check
    from seqindex.model.attention import Attention
    from seqindex.model.tied import TiedNetwork
    from seqindex.model.untied import UntiedNetwork

    kind = check.choice("student", kind, STUDENTS)
    if kind == "untied":
        given = {"reduction": reduction, "scores": scores, "weights": weights, "encoding": encoding}
        _together(given, "another student", f"student {kind!r}")
        if target.outputs > 1:
            raise ValueError(f"student 'untied' needs a target with one label, got {target.outputs}")
        return UntiedNetwork(target.length, activation or "relu", sphere or "rows")
    _together({"sphere": sphere}, "student 'untied'", f"student {kind!r}")
    if kind == "tied":
        _together({"reduction": reduction, "scores": scores}, "student 'attention'", f"student {kind!r}")
        if target.outputs > 1:
            raise ValueError(f"student 'tied' needs a target with one label, got {target.outputs}")
        numbers = None if weights is None else reals(weights)
        return TiedNetwork(target.length, activation or "relu", numbers, encoding)
    _together({"activation": activation, "weights": weights}, "student 'tied'", f"student {kind!r}")
    if reduction is None:
        reduction = "trace" if target.outputs == 1 else "identity"
    return Attention(target.length, encoding, reduction, scores or "softmax")


def encoding_of(name: str | None, student: str, length: int) -> Encoding | None:
    """An encoding by name, or as "injected:1,-1"; without a name the usual one of the student."""
    from seqindex import check
    from seqindex.model.encoding import InjectedEncoding, OppositeEncoding, RandomEncoding, SinusoidalEncoding

    if name is None:
        name = "none" if student in ("tied", "untied") else "opposite" if length == 2 else "random"
    if name.startswith("injected:"):
        return InjectedEncoding(reals(name.removeprefix("injected:")))
    name = check.choice("encoding", name, (*ENCODINGS, "injected:c1,c2,.."))
    if name == "opposite":
        return OppositeEncoding()
    if name == "random":
        return RandomEncoding(length)
    return SinusoidalEncoding(length) if name == "sinusoidal" else None


def _read_matrix(path: Path) -> NDArray[np.float64]:
    import numpy as np

    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        return np.loadtxt(path, delimiter="," if "," in path.read_text(encoding="utf-8") else None, ndmin=2)
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ValueError(f"alignment-matrix must be a file of numbers, got {str(path)!r} ({reason})") from error
