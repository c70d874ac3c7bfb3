"""Experiment files of the paper's released repository, as studies: the same settings with the same meaning.

Such a file names groups of further files (``run``, ``run/student``, ``machine``) in folders beside it, overrides their
values, and lists values to sweep over as text with commas.  docs/released_configurations.md is the table of its keys.
"""

from __future__ import annotations

import difflib
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.special import softmax

from seqindex import check
from seqindex.study.spec import Study, YamlLoader

_SCALINGS = {
    "none": "{c}",
    "linear": "{c}*L",
    "square": "{c}*L**2",
    "sqrt": "{c}*sqrt(L)",
    "cbrtsquare": "{c}*L**(2/3)",
    "sqrttimelog": "{c}*sqrt(L)*log(L)",
}
"""Learning rate as a function of L, by the value of learning_rate_scaling_with_L."""
_STUDENTS = {"plain_network": "untied", "tied_network": "tied", "attention": "attention"}
_ACTIVATIONS = {"H2": "h2"}
_LOSSES = {"square": "square", "frobenius": "norm"}
_RUN_KEYS = (
    *("L", "d", "T", "learning_rate_coefficient", "learning_rate_scaling_with_L"),
    *("loss", "number_of_measures", "metrics", "metrics_kwargs", "teacher"),
    *("teacher_function", "student", "student_type", "student_activation", "ic_type"),
    *("ic_overlap", "ic_randomsign", "ic_seed", "ic_normalize", "data_seed"),
)
_SEEDS = ("run.data_seed", "run.ic_seed")
_MOST_SEEDS = 100_000


def read_hydra(path: str | Path) -> tuple[Study, list[str]]:
    """A study from an experiment file, and remarks on what was not taken as it stands.

    Args:
        path: the file, with its groups in folders beside it.

    Returns:
        The study, and one sentence a remark.

    Raises:
        ValueError: a file that cannot be read, or a value that has no meaning here, named in one line.
    """
    path = Path(path)
    remarks: list[str] = []
    own = _load(path)
    sweeps = {
        str(k): _values(v) for k, v in ((own.pop("hydra", None) or {}).get("sweeper", {}).get("params") or {}).items()
    }
    config = _composed(path.parent, own.pop("defaults", None) or [], own, remarks)
    replicas = math.prod(len(sweeps.pop(name, [0])) for name in _SEEDS)
    check.integer("number of seeds", replicas, 1, _MOST_SEEDS)
    if replicas > 1:
        remarks.append(f"the {replicas} pairs of run.data_seed and run.ic_seed become as many replicas")
    rows = []
    for values in itertools.product(*sweeps.values()):
        one = _copied(config)
        for name, value in zip(sweeps, values, strict=True):
            _put(one, path.parent, name, value, remarks)
        rows.append(_fields(one.get("run") or {}, remarks))
    shared = {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows)}
    points = [{key: value for key, value in row.items() if key not in shared} for row in rows]
    given = {"name": path.stem, "replicas": replicas, **_placeholders(rows[0]), **shared}
    record = given.pop("record", None) or rows[0]["record"]
    sweep = {"list": points} if len(points) > 1 else {}
    if len(points) > 1:
        for point in points:
            point.pop("record", None)
    return Study.model_validate({**given, "record": record, "sweep": sweep}), list(dict.fromkeys(remarks))


def _placeholders(row: dict[str, Any]) -> dict[str, Any]:
    """Fields that a study must have; a swept one is replaced at each point."""
    return {name: row[name] for name in ("target", "dim", "learning_rate", "steps")}


def _load(path: Path) -> dict[str, Any]:
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader=YamlLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or "no text"
        raise ValueError(f"study must be a YAML file that can be read, got {str(path)!r} ({reason})") from error
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"study must hold run: and its values, got {check.shown(given)} in {str(path)!r}")
    return given


def _composed(folder: Path, defaults: list[Any], own: dict[str, Any], remarks: list[str]) -> dict[str, Any]:
    """Groups in their order, then the file's own values on top of them."""
    config: dict[str, Any] = {}
    for entry in defaults:
        if not isinstance(entry, dict):
            continue  # _self_: the file's own values come last in any case
        for group, name in entry.items():
            if str(group).startswith("override ") or group == "machine":
                continue
            _merge(config, _nested(str(group), _group(folder, str(group), str(name))))
    others = [key for key in own if key not in ("run", "machine")]
    remarks.extend(f"{key} is no part of an experiment: left out" for key in others)
    _merge(config, {"run": own.get("run") or {}})
    return config


def _group(folder: Path, group: str, name: str) -> dict[str, Any]:
    path = folder / group / f"{name}.yaml"
    if not path.exists():
        known = sorted(one.stem for one in path.parent.glob("*.yaml"))
        raise ValueError(
            f"{group} must be one of {', '.join(known) or 'nothing, as there is no such folder'}, got {name!r}"
        )
    return _load(path)


def _nested(group: str, values: dict[str, Any]) -> dict[str, Any]:
    for part in reversed(group.split("/")):
        values = {part: values}
    return values


def _merge(config: dict[str, Any], values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            _merge(config[key], value)
        else:
            config[key] = _copied(value) if isinstance(value, dict) else value


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, dict) else value for key, value in values.items()}


def _values(given: Any) -> list[Any]:
    """Values of a sweep: text with commas, each part as YAML would read it."""
    if not isinstance(given, str):
        return list(given) if isinstance(given, list) else [given]
    return [yaml.load(part, Loader=YamlLoader) for part in given.split(",")]


def _put(config: dict[str, Any], folder: Path, name: str, value: Any, remarks: list[str]) -> None:
    """Set a swept value: run.KEY, or a group such as run/student."""
    if "/" in name:
        parent, _, last = name.rpartition("/")
        place = config
        for part in parent.split("/"):
            place = place.setdefault(part, {})
        place[last] = _group(folder, name, str(value))
        return
    *parents, last = name.split(".")
    if parents[:1] != ["run"]:
        remarks.append(f"sweep over {name}: left out, as it is no part of run")
        return
    place = config
    for part in parents:
        place = place.setdefault(part, {})
    place[last] = value


def _fields(run: dict[str, Any], remarks: list[str]) -> dict[str, Any]:
    """Fields of a study from the values of ``run``."""
    for key in run:
        if key not in _RUN_KEYS:
            near = difflib.get_close_matches(key, _RUN_KEYS, n=1)
            remarks.append(f"run.{key} is unknown: left out" + (f"; did you mean {near[0]!r}?" if near else ""))
    for key in ("L", "d", "T", "learning_rate_coefficient"):
        if run.get(key) is None:
            raise ValueError(f"run.{key} must be given, got nothing")
    length = check.integer("run.L", run["L"], 1)
    steps = check.integer("run.T", float(run["T"]), 1)
    scaling = check.choice(
        "run.learning_rate_scaling_with_L", run.get("learning_rate_scaling_with_L", "none"), _SCALINGS
    )
    rate = check.number("run.learning_rate_coefficient", run["learning_rate_coefficient"], positive=True)
    return {
        "dim": check.integer("run.d", run["d"], 2),
        "steps": steps,
        "learning_rate": _SCALINGS[scaling].format(c=f"{rate:.17g}") if scaling != "none" else rate,
        "loss": _LOSSES[check.choice("run.loss", run.get("loss", "square"), _LOSSES)],
        "start": _start(run),
        "record": _record(run, steps, remarks),
        **_target(run, length),
        **_student(run, remarks),
    }


def _target(run: dict[str, Any], length: int) -> dict[str, Any]:
    teacher = run.get("teacher") or {"type": "ssi", "function": run.get("teacher_function")}
    kinds = ("ssi", "positional_semantic_model")
    if check.choice("run.teacher.type", teacher.get("type", "ssi"), kinds) == "ssi":
        if not isinstance(teacher.get("function"), str):
            raise ValueError(
                f"run.teacher.function must be a name such as H2sum, got {check.shown(teacher.get('function'))}"
            )
        return {"target": teacher["function"], "length": length}
    given: Any = teacher.get("pre_softmax_A")
    scores = check.array("run.teacher.pre_softmax_A", given, (length, length))
    omega = check.number("run.teacher.omega", teacher.get("omega"), 0.0, 1.0)
    matrix = np.asarray(softmax(scores, axis=-1)).tolist()
    return {"target": "positional-semantic", "omega": omega, "alignment_matrix": matrix, "length": length}


def _student(run: dict[str, Any], remarks: list[str]) -> dict[str, Any]:
    given = dict(run.get("student") or {})
    # The flat spelling of older files wins where it is swept or given.
    kind = check.choice("run.student.type", run.get("student_type", given.get("type")), _STUDENTS)
    if kind != "attention":
        activation = run.get("student_activation", given.get("activation", "relu"))
        fields = {"student": _STUDENTS[kind], "activation": _ACTIVATIONS.get(str(activation), activation)}
        return {**fields, "sphere": "joint"} if kind == "plain_network" else fields
    encoding = (given.get("positional_encoding") or {}).get("type", "none")
    reduction = (given.get("reduction") or {}).get("type", "none")
    if reduction == "projection":
        raise ValueError(
            "run.student.reduction.type must be 'trace' or 'none', got 'projection', which no file defines"
        )
    names = {"none": "identity", "trace": "trace"}
    return {
        "student": "attention",
        "encoding": check.choice("run.student.positional_encoding.type", encoding, ("none", "opposite", "random")),
        "reduction": names[check.choice("run.student.reduction.type", reduction, names)],
    }


def _start(run: dict[str, Any]) -> Any:
    if run.get("ic_randomsign"):
        raise ValueError("run.ic_randomsign must be false, got true: starts with random signs are not available")
    if check.choice("run.ic_type", run.get("ic_type", "random"), ("overlapped", "random")) == "random":
        return "random"
    return {"name": "released", "overlap": run.get("ic_overlap")}


def _record(run: dict[str, Any], steps: int, remarks: list[str]) -> dict[str, Any]:
    count = check.integer("run.number_of_measures", run.get("number_of_measures", 300), 1)
    if count > steps:
        remarks.append(
            "run.number_of_measures exceeds run.T, where the released code divides by zero: every step is kept"
        )
    metrics = [str(name) for name in run.get("metrics") or []]
    if run.get("metrics_kwargs"):
        remarks.append("run.metrics_kwargs never reaches the released metrics; overlaps are signed here in any case")
    if "ic_normalize" in run:
        remarks.append("run.ic_normalize is never read by the released code: left out")
    risk = any(name.startswith("population") for name in metrics)
    if risk:
        remarks.append("the population loss is recorded as risk, without the factor 1/2 of the released code")
    return {"overlaps": min(max(count, 2), steps + 1), "risk": risk}
