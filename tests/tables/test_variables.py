"""The allow-list holds together: each row has a source, names are unique, secrets stay out."""

from __future__ import annotations

from tests.cases import each
from whygpu.tables.variable_readings import Row, Words
from whygpu.tables.variables import FAMILIES, ROWS, SECRET_NAME, row_of


@each("row", ROWS + FAMILIES, ids=lambda row: row.name)
def test_every_row_has_a_source(row: Row) -> None:
    assert row.source.startswith("https://")


def test_names_are_unique() -> None:
    names = [row.name for row in ROWS + FAMILIES]
    assert len(names) == len(set(names))


@each("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_found_by_its_name(row: Row) -> None:
    assert row_of(row.name) is row


@each("row", FAMILIES, ids=lambda row: row.name)
def test_a_family_is_a_beginning(row: Row) -> None:
    assert row.name.endswith("_")
    assert row_of(row.name + "NEW") is row
    assert row_of(row.name + "NEW_SECRET") is None


@each("row", [r for r in ROWS if isinstance(r.reading, Words)], ids=lambda r: r.name)
def test_no_word_has_two_meanings(row: Row) -> None:
    assert isinstance(row.reading, Words)
    words = [word for group, _ in row.reading.meanings for word in group.split()]
    assert len(words) == len(set(words))
    if row.reading.any_case:
        assert words == [word.lower() for word in words]


@each("name", ["HF_TOKEN", "TF_VAR_x", "TF_CONFIG", "PATH", "TFX", "cuda_home"])
def test_other_names_are_not_ours(name: str) -> None:
    assert row_of(name) is None


@each("name", ["X_Token", "SSH_AUTH_SOCK", "MY_PASSWD", "private_thing"])
def test_names_of_secrets(name: str) -> None:
    assert SECRET_NAME.search(name)
