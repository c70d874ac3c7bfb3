"""A study from its file to its folder, and back as one Dataset."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from seqindex.study.block import REPLICAS
from seqindex.study.engine import Summary, run_points
from seqindex.study.spec import Study, points
from seqindex.study.store import Store, read_points


def run_study(
    study: Study,
    out: str | Path,
    text: str = "",
    workers: int | None = None,
    cluster: str | None = None,
    block: int = REPLICAS,
    progress: bool | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Summary:
    """Compute what is missing of a study in a folder.

    Args:
        study: as ``read_study`` returns it.
        out: the folder.
        text: the file it came from, kept beside the results.
        workers: local processes; None for one a processor.
        cluster: address of a Dask scheduler, in place of local processes.
        block: replicas that are simulated together; no result depends on it.
        progress: None for a live table on a terminal, True for plain lines elsewhere, False for nothing.
        say: told what fails.

    Raises:
        ValueError, TypeError: a study that does not fit together, or a folder that cannot be used.

    Example:
        >>> import tempfile
        >>> from seqindex.study.spec import parse_study
        >>> study = parse_study("{target: z1, length: 1, learning_rate: 0.1, steps: 99, replicas: 2, dim: 10}")
        >>> run_study(study, folder := tempfile.mkdtemp(), workers=1).done
        1
        >>> open_study(folder).sizes["replica"]
        2
    """
    every = points(study)
    store = Store(out)
    with store.locked():
        store.begin(text or json.dumps(study.model_dump(by_alias=True), indent=1), every)
        return run_points(every, store, workers, cluster, block, progress, say)


def open_study(folder: str | Path) -> xr.Dataset:
    """All finished points of a study, with the swept fields as dimensions.

    Args:
        folder: of the study.

    Returns:
        Dataset with what ``sgd`` and ``hitting_time`` return, "hitting_step" and "hitting_outcome" of each threshold.
        A grid of values gives a dimension a field; otherwise there is one dimension "point" with the fields as
        coordinates.  Points of other shapes are padded with NaN.  Loaded when it is used where Dask is installed.

    Raises:
        ValueError: a folder that holds no study, or none of whose points is finished.

    Example:
        >>> import tempfile
        >>> from seqindex.study.spec import parse_study
        >>> text = "{target: z1, length: 1, learning_rate: 0.1, steps: 9, dim: 9, sweep: {grid: {dim: [9, 8]}}}"
        >>> summary = run_study(parse_study(text), folder := tempfile.mkdtemp(), workers=1)
        >>> open_study(folder)["overlap_norm"].sizes["dim"]
        2
    """
    rows = read_points(folder)
    store = Path(folder) / "points"
    names = list(dict.fromkeys(name for row in rows for name in row["swept"]))
    # A field that is swept at some points only has its value in the settings of the others.
    found = [
        ({name: row["swept"].get(name, row["settings"].get(name)) for name in names}, store / f"{row['key']}.nc")
        for row in rows
        if (store / f"{row['key']}.nc").exists()
    ]
    if not found:
        raise ValueError(f"folder must hold finished points, got none in {str(folder)!r}; run the study first")
    parts = [_opened(path).assign_coords({n: _plain(swept[n]) for n in names}) for swept, path in found]
    data = xr.concat(parts, "point", data_vars="all", coords="all", compat="equals", join="outer", combine_attrs="drop")
    data = data.assign_attrs(_shared([part.attrs for part in parts]))
    if not names:
        return data.isel(point=0)
    return _unfolded(data, names, [swept for swept, _ in found])


def _opened(path: Path) -> xr.Dataset:
    try:
        import dask  # noqa: F401

        chunks: Any = {}
    except ImportError:
        chunks = None
    data = xr.open_dataset(path, engine="h5netcdf", chunks=chunks)
    if chunks is None:
        with data:
            data = data.load()
    # Steps differ from point to point: they are numbers of a record like any others.
    return data.reset_coords("step") if "step" in data.coords else data


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool) else json.dumps(value)


def _shared(attrs: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes that all points have alike."""
    first = attrs[0]
    return {name: first[name] for name in first if all(str(one.get(name)) == str(first[name]) for one in attrs)}


def _unfolded(data: xr.Dataset, names: list[str], swept: list[dict[str, Any]]) -> xr.Dataset:
    """One dimension a field where the points fill the grid of their values at least by half.

    A field that another one decides, as in a zip, becomes a coordinate along that one.
    """
    columns = {name: [_plain(one[name]) for one in swept] for name in names}
    leaders = _leaders(columns)
    kept = [name for name in names if name not in leaders]
    values = {name: list(dict.fromkeys(columns[name])) for name in kept}
    if math.prod(len(column) for column in values.values()) > 2 * len(swept):
        return data
    bare = data.drop_vars(list(leaders))
    if len(kept) == 1:
        result = bare.swap_dims(point=kept[0]).drop_vars("point", errors="ignore")
    else:
        # Unstacking sorts; the study's own order is what its author meant.
        result = bare.set_index(point=kept).unstack("point").sel(values)
    for name, leader in leaders.items():
        decided = dict(zip(columns[leader], columns[name], strict=True))
        result = result.assign_coords({name: (leader, [decided[value] for value in values[leader]])})
    return result.set_coords("step") if "step" in result else result


def _leaders(columns: dict[str, list[Any]]) -> dict[str, str]:
    """Fields that another field decides, with that one; of two that decide each other the first leads.

    Example:
        >>> _leaders({"dim": [10, 20, 10], "steps": [1, 2, 1], "seed": [0, 0, 1]})
        {'steps': 'dim'}
    """
    found: dict[str, str] = {}
    for name in reversed(columns):
        for other in columns:
            free = other != name and other not in found
            if free and len(set(zip(columns[other], columns[name], strict=True))) == len(set(columns[other])):
                found[name] = other
                break
    return found
