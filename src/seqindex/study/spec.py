"""A study as a file: its fields, what each may hold, and where in the file a mistake is."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from seqindex import check
from seqindex.study.point import Point, resolve
from seqindex.study.sweep import Values, expanded

Number = Annotated[int | float | str, Field(union_mode="left_to_right")]


class Record(BaseModel):
    """What to keep of each run."""

    model_config = ConfigDict(extra="forbid")
    overlaps: int | list[int] | dict[str, int] = Field(
        default=100, description="states: a number, logarithmic: n, or steps"
    )
    thresholds: list[float] = Field(
        default=[], description="sizes of the overlap whose first crossing is kept to the step"
    )
    risk: bool = Field(default=False, description="population risk at the recorded states")


class Sweep(BaseModel):
    """Which fields take several values."""

    model_config = ConfigDict(extra="forbid")
    grid: dict[str, Values] = Field(default={}, description="every combination")
    together: dict[str, Values] = Field(default={}, alias="zip", description="values taken together")
    listed: list[dict[str, Any]] = Field(default=[], alias="list", description="points written out")


class Study(BaseModel):
    """All fields of a study file; those without a default must be given, or swept."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(default="study", description="what the study is called")
    target: str = Field(description="an expression in z1..zL, a name, or positional-semantic")
    length: int | None = Field(default=None, description="sequence length L")
    parameters: dict[str, float] = Field(default={}, description="values of further names in the target")
    omega: float | None = Field(default=None, description="share of the positional target")
    alignment: float | None = Field(default=None, description="a of the positional target")
    alignment_matrix: list[list[float]] | None = Field(
        default=None, description="A of the positional target, in place of a"
    )
    student: Literal["tied", "untied", "attention"] = Field(default="tied", description="the network that learns")
    activation: str | None = Field(default=None, description="of networks: a name, or an expression in u")
    weights: list[float] | Literal["random"] | None = Field(
        default=None, description="of the tied network: a weight a position"
    )
    weights_seed: int | None = Field(default=None, description="seed of random weights")
    sphere: Literal["rows", "joint"] | None = Field(default=None, description="of the untied network")
    encoding: str | None = Field(default=None, description="none, opposite, random, sinusoidal or injected")
    encoding_seed: int | None = Field(default=None, description="seed of a random encoding")
    injection: list[float] | None = Field(default=None, description="of an injected encoding: a constant a position")
    reduction: str | None = Field(default=None, description="of attention: trace, plain_trace or identity")
    scores: str | None = Field(default=None, description="of attention: softmax or linear")
    loss: Literal["square", "norm"] = Field(default="square", description="||y - f||^2 or ||y - f||")
    start: str | dict[str, Any] = Field(
        default="random", description="random, orthogonal, released, or name: and its values"
    )
    dim: Number = Field(description="dimension d")
    learning_rate: Number = Field(description="gamma: a number, or an expression in d and L")
    steps: Number = Field(description="number of steps: a number, or an expression in d and L")
    replicas: int = Field(default=64, ge=1, description="independent runs of every point")
    seed: int = Field(default=0, ge=0, description="seed of the study")
    batch: int = Field(default=1, ge=1, description="samples a step")
    engine: Literal["reduced", "explicit"] = Field(default="reduced", description="exact chain, or d-dimensional SGD")
    record: Record = Field(default_factory=lambda: Record())
    sweep: Sweep = Field(default_factory=lambda: Sweep())
    _lines: dict[str, int] = PrivateAttr(default_factory=dict)

    def at_lines(self, lines: dict[str, int]) -> Study:
        """The study, which now knows on which lines of its file the fields are."""
        self._lines = lines
        return self

    def where(self, message: str) -> str:
        """Such as "line 7: " for a message that begins with a field of the file."""
        line = self._lines.get(message.split(" ")[0])
        return f"line {line}: " if line else ""


_FIELDS: dict[str, Any] = Study.model_fields
_SETTINGS = [name for name in _FIELDS if name not in ("name", "record", "sweep")]
SWEPT = [*_SETTINGS, "parameters.NAME"]
"""What a sweep may name."""


def read_study(path: str | Path) -> Study:
    """A study from a YAML file.

    Raises:
        ValueError: a file that cannot be read, or a field that is wrong: its name, its line, and what would be right.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text"
        raise ValueError(f"study must be a file that can be read, got {str(path)!r} ({reason})") from error
    return parse_study(text)


def parse_study(text: str) -> Study:
    """A study from YAML text; raises as ``read_study``.

    Example:
        >>> parse_study("{target: z1, length: 1, dim: 100, learning_rate: 0.1, steps: 100}").student
        'tied'
    """
    try:
        node = yaml.compose(text, Loader=YamlLoader)
        given = yaml.load(text, Loader=YamlLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{where}study must be YAML, got {getattr(error, 'problem', None) or error}") from error
    if not isinstance(given, dict):
        raise ValueError(f"study must hold fields such as target: z1*z2, got {check.shown(given)}")
    swept = given.get("sweep")
    names = _swept_names(swept) if isinstance(swept, dict) else set()
    filled = {**{name: _PLACEHOLDERS[name] for name in names if name in _PLACEHOLDERS}, **given}
    try:
        study = Study.model_validate(filled)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(_message(first, node)) from None
    study = study.at_lines({str(key.value): key.start_mark.line + 1 for key, _ in node.value})
    for name in names:
        if name not in _SETTINGS and not name.startswith("parameters."):
            near = difflib.get_close_matches(name, _SETTINGS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{_line(node, ('sweep',))}sweep must name fields of a study, got {name!r}{hint}")
    return study


_PLACEHOLDERS: dict[str, Any] = {"target": "z1", "dim": 100, "learning_rate": 1.0, "steps": 1}
"""For fields that must be given, where the sweep gives them."""


class YamlLoader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """YAML 1.1 takes 1e-3 for text; here it is a number, as in YAML 1.2."""


YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


def _swept_names(sweep: dict[str, Any]) -> set[str]:
    parts = [sweep.get("grid"), sweep.get("zip"), *(sweep.get("list") or [])]
    return {str(name) for part in parts if isinstance(part, dict) for name in part}


def _message(error: Any, node: yaml.Node) -> str:
    place = tuple(part for part in error["loc"] if not _is_branch(part))
    name = ".".join(map(str, place))
    where = _line(node, place)
    if error["type"] == "extra_forbidden":
        names = _names(_model(place))
        near = difflib.get_close_matches(str(place[-1]), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
        return f"{where}{name} must be a field of a study, got an unknown one{hint}"
    if error["type"] == "missing":
        return f"{where}{name} must be given ({_about(place)}), got nothing"
    got = check.shown(error["input"])
    return f"{where}{name} must be right ({_about(place)}): {error['msg'].lower()}, got {got}"


def _is_branch(part: Any) -> bool:
    """Whether pydantic's location names a branch of a union rather than a key."""
    return isinstance(part, str) and ("[" in part or part in ("int", "float", "str", "bool"))


def _model(place: tuple[Any, ...]) -> type[BaseModel]:
    """The part of a study in which a place lies."""
    parts: dict[str, type[BaseModel]] = {"record": Record, "sweep": Sweep}
    return parts.get(str(place[0]), Study) if len(place) > 1 else Study


def _names(model: type[BaseModel]) -> list[str]:
    fields: dict[str, Any] = model.model_fields
    return [field.alias or name for name, field in fields.items()]


def _about(place: tuple[Any, ...]) -> str:
    model = _model(place)
    fields: dict[str, Any] = model.model_fields
    name = str(place[0] if model is Study else place[1])
    known = next((field for key, field in fields.items() if name in (key, field.alias)), None)
    return known.description if known is not None else "see seqindex run --example"


def _line(node: yaml.Node, place: tuple[Any, ...]) -> str:
    """Such as "line 7: ": where the deepest part of a place that is in the file stands."""
    mark = node.start_mark
    for part in place:
        found = None
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == str(part)), None)
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = (node.value[part], node.value[part])
        if found is None:
            break
        mark, node = found[0].start_mark, found[1]
    return f"line {mark.line + 1}: "


def points(study: Study) -> list[Point]:
    """All points of a study, each checked; two that are the same are refused.

    Raises:
        ValueError, TypeError: a point that does not fit together, with its swept values.

    Example:
        >>> text = "{target: z1, length: 1, learning_rate: 1/d, steps: d, dim: 10, sweep: {grid: {dim: [10, 100]}}}"
        >>> [point.settings["learning_rate"] for point in points(parse_study(text))]
        [0.1, 0.01]
    """
    found: list[Point] = []
    keys: dict[str, dict[str, Any]] = {}
    for swept in _combinations(study.sweep):
        given = {name: getattr(study, name) for name in _SETTINGS}
        given["parameters"] = dict(study.parameters)
        for name, value in swept.items():
            if name.startswith("parameters."):
                given["parameters"][name.removeprefix("parameters.")] = value
            else:
                given[name] = value
        given.update(study.record.model_dump())
        shown = ", ".join(f"{name} = {value}" for name, value in swept.items())
        try:
            point = resolve(given, swept)
        except (ValueError, TypeError) as error:
            place = f" (at {shown})" if shown else ""
            raise ValueError(f"{study.where(str(error))}{error}{place}") from error
        if point.key in keys:
            raise ValueError(f"sweep must name each point once, got {shown} twice")
        keys[point.key] = swept
        found.append(point)
    return found


def _combinations(sweep: Sweep) -> Iterator[dict[str, Any]]:
    grid = {name: expanded(name, values) for name, values in sweep.grid.items()}
    together = {name: expanded(name, values) for name, values in sweep.together.items()}
    lengths = {len(values) for values in together.values()}
    if len(lengths) > 1:
        counts = ", ".join(f"{name}: {len(values)}" for name, values in together.items())
        raise ValueError(f"zip must hold as many values of each field, got {counts}")
    rows: list[dict[str, Any]] = [{}]
    if together:
        rows = [dict(zip(together, values, strict=True)) for values in zip(*together.values(), strict=True)]
    for listed, row in itertools.product(sweep.listed or [{}], rows):
        for values in itertools.product(*grid.values()):
            yield {**dict(zip(grid, values, strict=True)), **row, **listed}
