"""`--html FILE` and `whygpu report`: which verbs write a page, when, and what a failure costs."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from tests.cases import each
from tests.kit import machine
from whygpu.cli.main import main
from whygpu.model.codec import encode

LOG = "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared \
object file: No such file or directory\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, with a snapshot, a log and a program."""
    snapshot = json.dumps(encode(machine('only = ["torch"]')))
    (tmp_path / "machine.json").write_text(snapshot, encoding="utf-8")
    (tmp_path / "train.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.Session()\n", encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("torch\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@each(
    ("words", "headline"),
    [
        ("check --snapshot machine.json", "PyTorch uses the GPU"),
        ("diff machine.json machine.json", "Nothing"),
        ("explain train.log", "libcudnn.so.8"),
        ("fleet report machine.json", "1 node: 1 on the GPU"),
        ("fleet explain train.log", "1 log: 1 with a cause that was found"),
        ("explain train.log train.py", "What 2 logs mean"),
        ("lint train.py", "1 finding in 1 of 1 file"),
        ("memory --snapshot machine.json", "GPU 0: "),
        ("plan torch --snapshot machine.json", "PyTorch "),
        ("plan --why-not torch==1.0 --snapshot machine.json", "does not fit this machine"),
        ("plan --from requirements.txt --snapshot machine.json", "requirements.txt: everything"),
    ],
)
def test_a_page_is_written_and_the_answer_is_printed_as_ever(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], words: str, headline: str
) -> None:
    code = main(words.split())
    plain = capsys.readouterr().out
    page = folder / "page.html"
    assert main([*words.split(), "--html", "page.html"]) == code
    told = capsys.readouterr()
    assert told.out == plain
    assert f"wrote {page}" in told.err.replace("\n", " ")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>\n")
    assert headline in text.partition("</header>")[0].partition("<main>")[2]
    page.unlink()


def test_a_report_is_check_memory_and_plan(folder: pathlib.Path) -> None:
    assert main(["report", "--snapshot", "machine.json"]) == 0
    text = (folder / "whygpu-report.html").read_text(encoding="utf-8")
    for verb in ("check", "memory", "plan"):
        assert f">whygpu {verb}</p>" in text
    assert "PyTorch uses the GPU" in text


def test_a_file_that_cannot_be_written_is_told_before_the_work(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--snapshot", "machine.json", "--html", "no/page.html"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--html no/page.html: there is no folder" in told.err


@each("path", ["", "-"])
def test_a_page_needs_the_name_of_a_file(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    assert main(["check", "--snapshot", "machine.json", "--html", path]) == 2
    assert "expected the name of a file" in capsys.readouterr().err
    assert not (folder / "-").exists()


@each(
    ("words", "why"),
    [
        ("lint --diff train.py", "--diff prints a patch"),
        ("fix --undo", "--undo takes one back"),
        ("run --dry-run -- python train.py", "with --dry-run, none runs"),
        ("memory --html page.html find train.py:step", "belongs to `whygpu memory` alone"),
    ],
)
def test_what_has_no_page_is_refused(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], words: str, why: str
) -> None:
    verb, *others = words.split()
    assert main([verb, "--html", "page.html", *others]) in (2, 125)
    assert why in capsys.readouterr().err
    assert not (folder / "page.html").exists()


@pytest.mark.slow
def test_a_run_has_a_page_even_if_the_program_fails(
    folder: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["--", sys.executable, "-c", "import sys; print('here'); sys.exit(3)"]
    assert main(["run", "--html", "run.html", *command]) == 3
    assert "here" in capfd.readouterr().out
    assert "exit code 3" in (folder / "run.html").read_text(encoding="utf-8")
    assert main(["run", "--quiet", "--html", "run.html", *command]) == 3
    assert capfd.readouterr().err == ""


@each(
    "words",
    [
        ["explain", "train.log", "--html", "train.log"],
        ["lint", "train.py", "--html", "train.py"],
        ["report", "--snapshot", "machine.json", "-o", "machine.json"],
    ],
)
def test_a_page_replaces_nothing_but_a_page(
    words: list[str], folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / words[-1]).read_bytes()
    assert main(words) == 2
    assert "this file exists and is not a page" in capsys.readouterr().err
    assert (folder / words[-1]).read_bytes() == before


def test_a_page_replaces_an_older_page(folder: pathlib.Path) -> None:
    for _ in range(2):
        main(["explain", "train.log", "--html", "page.html"])
    assert (folder / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
