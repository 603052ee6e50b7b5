"""What a user may name, and what is said where it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from whygpu.errors import UsageError
from whygpu.model.work import What, WhatKind
from whygpu.work.named_work import parse_what

ALL: tuple[WhatKind, ...] = ("model-file", "function", "script")
SOURCE = """
from elsewhere import imported
made = make = lambda: None
def build_model(): ...
class Net: ...
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return path


def complaint(text: str, allowed: tuple[WhatKind, ...] = ALL) -> str:
    with pytest.raises(UsageError) as caught:
        parse_what(text, allowed)
    return str(caught.value)


@pytest.mark.parametrize("name", ["build_model", "Net", "Net.make", "made", "make", "imported"])
def test_a_name_of_a_file(file: Path, name: str) -> None:
    assert parse_what(f"train.py:{name}", ALL) == What("function", str(file), name)


def test_a_script_and_a_saved_model(file: Path) -> None:
    (file.parent / "Saved.KERAS").write_bytes(b"PK\x03\x04...")
    assert parse_what("train.py", ALL) == What("script", str(file))
    saved = parse_what("Saved.KERAS", ALL)
    assert (saved.kind, os.path.basename(saved.path)) == ("model-file", "Saved.KERAS")


def test_a_name_that_is_not_there(file: Path) -> None:
    assert "did you mean build_model?" in complaint("train.py:build_modle")
    assert "it has Net, build_model" in complaint("train.py:xyz")
    assert "which function of it? expected train.py:function" in complaint("train.py:")
    file.write_text("".join(f"def f{i:02}():\n    def inner(): ...\n" for i in range(30)))
    assert complaint("train.py:xyz").endswith("f10, f11, ...")
    file.write_text("import os\n")
    assert "it defines no function" in complaint("train.py:xyz")


def test_a_file_that_may_define_any_name(file: Path) -> None:
    file.write_text("from elsewhere import *\n")
    assert parse_what("train.py:anything", ALL).name == "anything"


def test_a_file_for_another_python_is_left_to_that(file: Path) -> None:
    file.write_text("print 'old'\ndef build(): pass\n")
    assert parse_what("train.py:build", ALL).name == "build"


def test_what_is_no_file(file: Path) -> None:
    assert "absent.py does not exist" in complaint("absent.py:f")
    (file.parent / "folder.py").mkdir()
    assert "folder.py is a folder" in complaint("folder.py:f")
    assert "expected model.keras, file.py:function or script.py" in complaint("notes.txt")
    assert complaint("notes").startswith("'notes' does not exist: expected")
    (file.parent / "notes").mkdir()
    assert complaint("notes").startswith("'notes' is a folder: expected")
    assert complaint("notes:f").startswith("'notes:f': notes is a folder: expected")


def test_what_does_not_serve_here(file: Path) -> None:
    assert "expected train.py:function" in complaint("train.py", ("function", "model-file"))
    assert complaint("train.py:Net", ("model-file",)).endswith("expected model.keras")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("net.pt", "name a function that builds the module and loads them"),
        ("model.ONNX", "it is an exported model"),
        ("train.ipynb", "save its code as a .py file"),
        ("exported", "it is a SavedModel"),
    ],
)
def test_what_else_people_have(file: Path, text: str, words: str) -> None:
    (file.parent / "exported").mkdir()
    (file.parent / "exported" / "saved_model.pb").touch()
    assert words in complaint(text)


def test_only_what_serves_is_expected(file: Path) -> None:
    assert "expected model.keras or file.py:function" in complaint("x", ("model-file", "function"))
    assert "expected model.keras, file.py:function or script.py" in complaint("x")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither a zip archive nor HDF5"),
        (b"<html>not found</html>", "neither a zip archive nor HDF5"),
        (b"version https://git-lfs.github.com/spec/v1\n", "`git lfs pull` fetches the model"),
    ],
)
def test_a_file_that_is_no_model(file: Path, content: bytes, words: str) -> None:
    (file.parent / "model.keras").write_bytes(content)
    assert words in complaint("model.keras")


def test_hdf5_under_any_ending(file: Path) -> None:
    for name in ("old.h5", "old.keras"):
        (file.parent / name).write_bytes(b"\x89HDF\r\n\x1a\n...")
        assert parse_what(name, ALL).kind == "model-file"
