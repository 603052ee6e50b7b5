"""The release table in use, and its update from a package index on this machine."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

from tests.package_index.local_index import LocalIndex, index
from tests.planner.small_table import release
from whygpu.api import release_table
from whygpu.api.release_table import current_table, update_releases
from whygpu.errors import UsageError
from whygpu.package_index import release_rows
from whygpu.package_index.release_rows import document
from whygpu.tables.releases import ReleaseTable

__all__ = ["index"]

DAY = "2020-01-02"
KERAS = release(
    "keras", "3.0", file="keras-3.0-py3-none-any.whl", requires_python=">=3.9", platforms=("any",)
)
TORCH = release(
    "torch",
    "2.0.0",
    file="torch-2.0.0-cp311-cp311-manylinux1_x86_64.whl",
    pythons=("3.11",),
    platforms=("manylinux1_x86_64",),
    glibc="2.5",
    cuda="11.7",
    architectures=("sm_80",),
)
NEW_TORCH = "torch-2.1.0-cp312-cp312-manylinux_2_28_x86_64.whl"


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """Where the updated table will be. The shipped one is small and of 2020-01-02."""
    small = ReleaseTable(document([KERAS, TORCH], DAY))
    monkeypatch.setattr(release_table, "shipped", lambda: small)
    monkeypatch.setattr(release_rows, "PACKAGES", ("keras", "torch"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "whygpu" / "releases.json"


@pytest.fixture
def served(index: LocalIndex, monkeypatch: pytest.MonkeyPatch, saved: pathlib.Path) -> LocalIndex:
    """An index with one more wheel of torch 2.0.0, a new release of it, and keras as it was."""
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/simple")
    monkeypatch.setenv("PIP_CERT", "")
    keras = index.add_wheel(KERAS.file, {"keras-3.0.dist-info/METADATA": b""})
    index.add_page("keras", keras)
    metadata = b"Requires-Dist: nvidia-cudnn-cu13==9.1\nRequires-Dist: filelock\n"
    index.add_page(
        "torch",
        f'<a href="{TORCH.file}">old</a>',
        '<a href="torch-2.0.0-cp312-cp312-manylinux1_x86_64.whl">for a newer Python</a>',
        index.add_wheel(NEW_TORCH, {"torch-2.1.0.dist-info/METADATA": metadata}),
    )
    return index


def test_an_update_adds_releases_and_guesses_nothing(
    served: LocalIndex, saved: pathlib.Path
) -> None:
    done = update_releases()
    assert (done.new, done.gone, done.unread) == (("torch 2.1.0",), (), ("torch 2.1.0",))
    assert (done.index_url, done.path) == (f"{served.url}/simple", str(saved))
    assert done.before.date == DAY
    table, edition = current_table()
    assert edition.origin == "updated"
    assert edition.date == done.edition.date > DAY
    old, new = table.versions_of("torch")
    assert old == TORCH._replace(pythons=("3.11", "3.12"))
    assert (new.pythons, new.glibc) == (("3.12",), "2.28")
    assert new.requires == ("nvidia-cudnn-cu13==9.1",)
    assert (new.cuda, new.architectures) == ("", ())
    assert "does not say which CUDA" in new.unread


def test_a_second_update_reads_no_release_twice(served: LocalIndex, saved: pathlib.Path) -> None:
    update_releases()
    served.asked.clear()
    assert update_releases().unread == ("torch 2.1.0",)
    assert not [path for path in served.asked if "/files/" in path]


def _server_error(served: LocalIndex) -> None:
    served.failures_left = 1000


def _page_is_gone(served: LocalIndex) -> None:
    del served.files["/simple/keras/"]


def _page_is_empty(served: LocalIndex) -> None:
    served.add_page("keras", "<html>Sign in to continue</html>")


def _no_text(served: LocalIndex) -> None:
    served.files["/simple/keras/"] = b"\xff\xfe\x00"


def _no_wheel(served: LocalIndex) -> None:
    served.files[f"/files/{NEW_TORCH}"] = b"PK\x05\x06 not a zip archive"


def _bomb(served: LocalIndex) -> None:
    served.add_wheel(NEW_TORCH, {"torch-2.1.0.dist-info/METADATA": b"x" * (5 << 20)})


def _hostile_python(served: LocalIndex) -> None:
    served.add_page("keras", f'<a href="{KERAS.file}" data-requires-python="$(reboot)">x</a>')


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_server_error, "503"),
        (_page_is_gone, "404"),
        (_page_is_empty, "1 of its 1 known releases are missing"),
        (_no_text, "not UTF-8"),
        (_no_wheel, "not a sound wheel"),
        (_bomb, "a very large one"),
        (_hostile_python, "Invalid specifier"),
    ],
)
def test_a_broken_or_hostile_index_changes_nothing(
    served: LocalIndex,
    saved: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[LocalIndex], None],
    why: str,
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    damage(served)
    with pytest.raises(UsageError, match=rf"(?s){why}.*The table of {DAY} is still in use"):
        update_releases()
    assert not saved.exists()


def _interrupt(text: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("stop", ["an error", "Ctrl-C"])
def test_an_update_that_does_not_end_keeps_the_earlier_one(
    served: LocalIndex, saved: pathlib.Path, stop: str
) -> None:
    update_releases()
    before = saved.read_bytes()
    if stop == "Ctrl-C":
        with pytest.raises(KeyboardInterrupt):
            update_releases(_interrupt)
    else:
        _page_is_gone(served)
        with pytest.raises(UsageError):
            update_releases()
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_folder_that_cannot_be_written_is_named(
    served: LocalIndex, saved: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(UsageError, match="cannot write"):
        update_releases()


@pytest.mark.parametrize(
    ("date", "origin"),
    [("2020-01-01", "shipped"), (DAY, "updated"), ("2020-01-03", "updated")],
)
def test_the_newer_table_is_used(saved: pathlib.Path, date: str, origin: str) -> None:
    saved.parent.mkdir(parents=True)
    saved.write_text(document([KERAS], date), encoding="utf-8")
    assert current_table().edition.origin == origin
    assert not current_table().edition.unused


@pytest.mark.parametrize(
    "content", [b"", b"{}", document([KERAS], "2030-01-01").encode()[:-40], b"\xff"]
)
def test_a_damaged_table_is_not_used_and_named(saved: pathlib.Path, content: bytes) -> None:
    saved.parent.mkdir(parents=True)
    saved.write_bytes(content)
    edition = current_table().edition
    assert (edition.origin, edition.date) == ("shipped", DAY)
    assert "is damaged" in edition.unused
