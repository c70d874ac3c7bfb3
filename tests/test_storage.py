"""Files are written whole or not at all, and a folder that cannot be written to is refused at once."""

import os
import stat

import numpy as np
import pytest
import xarray as xr

from seqindex.plotting.style import figure
from seqindex.storage import save_dataset, save_figure, writable_folder, write_whole


def test_folder_is_made_with_its_parents(tmp_path):
    folder = writable_folder(str(tmp_path / "a" / "b"))
    assert folder.is_dir()
    assert list(folder.iterdir()) == []
    assert writable_folder(folder) == folder


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_in_the_way_is_refused(tmp_path, inside):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ValueError, match=r"^out must be a folder that can be written to, got '.*file.*' \(.+\)$"):
        writable_folder(tmp_path / "file" / inside)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_without_permission_is_refused(tmp_path, monkeypatch):
    def refuse(*args, **keywords):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("seqindex.storage.tempfile.TemporaryFile", refuse)
    with pytest.raises(ValueError, match=r"\(Permission denied\)$"):
        writable_folder(tmp_path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, lambda temporary: temporary.write_text("old"))

    def fail(temporary):
        temporary.write_text("ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_no_half_file(tmp_path):
    def stop(temporary):
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.txt", stop)
    assert list(tmp_path.iterdir()) == []


def test_files_can_be_read_by_others(tmp_path):
    path = write_whole(tmp_path / "a.txt", lambda temporary: temporary.write_text("x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_datasets_come_back(tmp_path):
    data = xr.Dataset({"x": ("n", np.array([1.0, np.nan]))}, {"n": [3, 4]}, {"seed": 7, "loss": "square"})
    with xr.open_dataset(save_dataset(data, tmp_path / "a.nc"), engine="h5netcdf") as back:
        xr.testing.assert_identical(back.load(), data)


def test_figures_are_written_as_png_and_pdf(tmp_path):
    drawing, axes = figure(2.0, 2.0)
    axes.plot([0, 1])
    png, pdf = save_figure(drawing, tmp_path / "picture")
    assert (png.name, pdf.name) == ("picture.png", "picture.pdf")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert pdf.read_bytes().startswith(b"%PDF")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_a_killed_process_left_is_removed(tmp_path):
    old, young = tmp_path / ".partial-old.nc", tmp_path / ".partial-young.nc"
    for path in (old, young):
        path.write_text("half")
    os.utime(old, (0, 0))
    writable_folder(tmp_path)
    assert not old.exists()
    assert young.exists()
