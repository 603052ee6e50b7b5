"""A folder that any node may write to is walked to its end, and not beyond it."""

from __future__ import annotations

import inspect
import os
import pathlib
import sys

from whygpu.fleet.folders import files_below
from whygpu.model.fleet import UnreadFolder


def found(folder: pathlib.Path) -> tuple[list[str], list[UnreadFolder]]:
    closed: list[UnreadFolder] = []
    return [os.path.relpath(path, folder) for path in files_below(str(folder), closed)], closed


def test_files_come_in_the_order_of_their_names(tmp_path: pathlib.Path) -> None:
    for name in ("b/2", "b/1", "a/1", "z", "c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert found(tmp_path) == (["c", "z", "a/1", "b/1", "b/2"], [])


def test_folders_may_be_nested_deeper_than_python_recurses(tmp_path: pathlib.Path) -> None:
    below = tmp_path.joinpath(*"d" * 300)
    below.mkdir(parents=True)
    (below / "file").touch()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        files, closed = found(tmp_path)
    finally:
        sys.setrecursionlimit(before)
    assert (len(files), closed) == (1, [])


def test_a_link_to_a_folder_elsewhere_is_named_and_not_followed(tmp_path: pathlib.Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "today").mkdir(parents=True)
    outside.mkdir()
    for folder in (inside / "today", outside):
        (folder / "file").touch()
    (inside / "latest").symlink_to("today")
    (inside / "itself").symlink_to(".")
    (inside / "other").symlink_to(outside)
    (inside / "gone").symlink_to("nowhere")
    files, (closed,) = found(inside)
    assert files == ["gone", "today/file"]
    assert closed == UnreadFolder(str(inside / "other"), "links to folders are not followed")
