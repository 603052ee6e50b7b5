"""The language server, used by a real client: unsaved text, broken files, fixes, other formats."""

from __future__ import annotations

import pathlib

import pytest

from tests.editor.client import Editor, edited, types, with_editor

CPU_VISIBLE = "tf.config.set_visible_devices(tf.config.list_physical_devices('CPU'), 'CPU')"
FIXED = "tf.config.set_visible_devices([], 'GPU')"
BAD = f"import tensorflow as tf\n\n{CPU_VISIBLE}\n"
GOOD = f"import tensorflow as tf\n\n{FIXED}\n"


def codes(found: list[types.Diagnostic]) -> list[str | int | None]:
    return [diagnostic.code for diagnostic in found]


def test_unsaved_text_counts_and_not_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(GOOD)

    async def use(editor: Editor) -> None:
        (found,) = await editor.open(path, BAD)
        assert found.code == "WG712"
        assert found.source == "whygpu"
        assert found.severity == types.DiagnosticSeverity.Error
        assert found.range.start == types.Position(2, 0)
        assert found.range.end == types.Position(2, len(CPU_VISIBLE))
        assert found.code_description
        assert found.code_description.href.endswith("WG712-cpu-visibility-hides-nothing/")
        editor.change(path, GOOD)
        assert await editor.diagnostics(path) == []
        # Only the last of several quick changes is linted.
        for text in (BAD, GOOD, BAD * 2):
            editor.change(path, text)
        assert codes(await editor.diagnostics(path)) == ["WG712", "WG712"]

    with_editor(use)


def test_a_broken_file_is_reported_as_not_checked(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"

    async def use(editor: Editor) -> None:
        (found,) = await editor.open(path, BAD + "if\n")
        assert "has not checked this file" in found.message
        assert found.severity == types.DiagnosticSeverity.Information
        assert found.range.start.line == 3
        assert await editor.actions(path, 2) == []
        editor.change(path, BAD)
        assert codes(await editor.diagnostics(path)) == ["WG712"]

    with_editor(use)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_fixes_are_those_of_lint(tmp_path: pathlib.Path, ending: str) -> None:
    path = tmp_path / "train.py"
    # Outside the BMP, a character counts two units: 𝄞.
    text = BAD.replace("import tensorflow as tf", "import tensorflow as tf; s = '𝄞'")
    text = (text + f"s = '𝄞'; {CPU_VISIBLE}\n").replace("\n", ending)

    async def use(editor: Editor) -> None:
        await editor.open(path, text)
        (first,) = await editor.actions(path, 2, "quickfix")
        assert edited(text, first) == text.replace(CPU_VISIBLE, FIXED, 1)
        (second,) = await editor.actions(path, 3, "quickfix")
        assert edited(text, second) == FIXED.join(text.rsplit(CPU_VISIBLE, 1))
        assert await editor.actions(path, 0, "quickfix") == []
        (everything,) = await editor.actions(path, 0, "source.fixAll")
        assert edited(text, everything) == text.replace(CPU_VISIBLE, FIXED)
        assert await editor.actions(path, 2, "refactor") == []

    with_editor(use)


def test_hover_shows_the_page_of_the_cause(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"

    async def use(editor: Editor) -> None:
        await editor.open(path, BAD + "# whygpu: ignore[WG720]\n")
        assert "## Why it happens" in await editor.hover(path, 2, 4)
        assert "WG720" in await editor.hover(path, 3, 20)
        assert await editor.hover(path, 0, 3) == ""

    with_editor(use)


def test_a_document_that_is_neither_open_nor_there_has_no_page(tmp_path: pathlib.Path) -> None:
    async def use(editor: Editor) -> None:
        assert await editor.hover(tmp_path / "missing.py", 0, 0) == ""

    with_editor(use)


def test_files_that_are_not_python(tmp_path: pathlib.Path) -> None:
    docker = tmp_path / "Dockerfile"
    docker.write_text("FROM scratch\n")
    other = tmp_path / "notes.txt"
    text = "FROM nvidia/cuda:latest\nRUN pip install tensorflow\n"

    async def use(editor: Editor) -> None:
        assert codes(await editor.open(docker, text, "dockerfile")) == ["WG815"]
        editor.change(docker, text.replace("FROM", "# whygpu: ignore[WG815]\nFROM"))
        assert await editor.diagnostics(docker) == []
        assert await editor.open(other, text, "plaintext") == []
        broken = "services:\n  a: {image: x\n"
        (found,) = await editor.open(tmp_path / "compose.yaml", broken, "yaml")
        assert "not valid YAML" in found.message

    with_editor(use)


def test_other_open_documents_and_saved_files_count(tmp_path: pathlib.Path) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.whygpu.lint]\nignore = ["WG712"]\n')
    path = tmp_path / "train.py"

    async def use(editor: Editor) -> None:
        assert await editor.open(path, BAD) == []
        settings.write_text("[tool.whygpu.lint]\n")
        saved = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        editor.client.text_document_did_save(saved)
        assert codes(await editor.diagnostics(path)) == ["WG712"]
        settings.write_text("[tool.whygpu.lint]\nsolect = 1\n")
        editor.client.text_document_did_save(saved)
        (found,) = await editor.diagnostics(path)
        assert "no setting 'solect'" in found.message

    with_editor(use)


def test_a_finding_in_a_file_that_an_open_one_names(tmp_path: pathlib.Path) -> None:
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("numpy\n")
    docker = tmp_path / "Dockerfile"
    text = (
        "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nRUN apt-get install -y python3-pip\n"
        "COPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    )

    async def use(editor: Editor) -> None:
        assert await editor.open(docker, text, "dockerfile") == []
        # It is not saved, and both are about what is open.
        await editor.open(wanted, "numpy\ntensorflow==2.3.0\n", "pip-requirements")
        editor.change(docker, f"{text}\n")
        (found,) = await editor.diagnostics(docker)
        assert found.code == "WG318"
        assert found.message.startswith("requirements.txt: ")
        assert found.range.start.line == 0
        assert found.related_information
        (elsewhere,) = found.related_information
        assert elsewhere.location.uri == wanted.as_uri()
        assert elsewhere.location.range.start.line == 1

    with_editor(use)


def test_closing_a_document_removes_what_was_found(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"

    async def use(editor: Editor) -> None:
        assert await editor.open(path, BAD)
        closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        editor.client.text_document_did_close(closed)
        assert await editor.diagnostics(path) == []

    with_editor(use)


def test_positions_in_the_encoding_of_the_client(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    text = f"import tensorflow as tf\n'𝄞é'; {CPU_VISIBLE}\n"
    starts = {"utf-8": len("'𝄞é'; ".encode()), "utf-16": len("'𝄞é'; ") + 1, "utf-32": 6}
    for encoding, start in starts.items():

        async def use(editor: Editor) -> int:
            (found,) = await editor.open(path, text)
            return found.range.start.character

        assert with_editor(use, encoding) == start, encoding
