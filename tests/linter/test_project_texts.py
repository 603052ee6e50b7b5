"""The texts of a project, which an editor asks for again at each change of one file."""

from __future__ import annotations

import os
import pathlib
import re
from collections import Counter

from whygpu.api.source import lint_text
from whygpu.linter.project_files import GivenFiles
from whygpu.linter.project_texts import ProjectTexts

RUNTIME = re.compile("default-runtime")


class CountedFiles(GivenFiles):
    """Files that know their version, and count how often each was read."""

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(texts)
        self.reads: Counter[str] = Counter()
        self.versions = dict.fromkeys(texts, 1)

    def read(self, path: str) -> str | None:
        self.reads[path] += 1
        return super().read(path)

    def stamp(self, path: str) -> object:
        return self.versions.get(path)


def found(files: CountedFiles) -> list[str]:
    return [path for path, _ in ProjectTexts("compose.yaml", files).having(RUNTIME)]


def test_only_files_that_have_changed_are_read_again() -> None:
    texts = {"pyproject.toml": "", "compose.yaml": "services:", "README.md": "default-runtime"}
    files = CountedFiles(texts)
    assert found(files) == ["README.md"]
    assert found(files) == ["README.md"]
    assert set(files.reads.values()) == {1}

    changed = CountedFiles({**texts, "README.md": "nothing"})
    changed.versions["README.md"] = 2
    assert found(changed) == []
    assert changed.reads == {"README.md": 1}


def test_a_file_of_unknown_version_is_read_each_time() -> None:
    files = CountedFiles({"pyproject.toml": "", "compose.yaml": "", "README.md": "x"})
    files.versions.clear()
    found(files)
    found(files)
    assert files.reads["README.md"] == 2


SERVICE = "services:\n  train:\n    image: tensorflow/tensorflow:2.15.0-gpu\n"
NOTE = 'Set "default-runtime": "nvidia" in /etc/docker/daemon.json\n'


def levels(folder: pathlib.Path, open_texts: dict[str, str] | None = None) -> list[str]:
    report = lint_text(str(folder / "compose.yaml"), SERVICE, open_texts or {})
    return [item.located.finding.severity for item in report.findings]


def test_an_editor_sees_what_changes_on_the_disk_and_in_other_texts(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "pyproject.toml").touch()
    without = levels(tmp_path)
    readme = tmp_path / "README.md"
    readme.write_text(NOTE)
    with_note = levels(tmp_path)
    assert with_note != without
    readme.write_text("." * len(NOTE))
    os.utime(readme, ns=(1, 1))
    assert levels(tmp_path) == without
    assert levels(tmp_path, {str(readme): NOTE}) == with_note
    assert levels(tmp_path) == without
    readme.unlink()
    assert levels(tmp_path) == without
