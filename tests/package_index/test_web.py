"""Reading from the web: once, in part, again after a failure, and never for ever."""

from __future__ import annotations

import pathlib

import pytest

from tests.package_index.local_index import LocalIndex
from whygpu.package_index.pip_settings import settings_of
from whygpu.package_index.web import Unreadable, Web


def test_a_range_and_a_tail(index: LocalIndex, web: Web) -> None:
    index.files["/letters"] = b"abcdefghij"
    assert web.range(f"{index.url}/letters", 2, 5) == b"cde"
    assert web.tail(f"{index.url}/letters", 4) == (b"ghij", 10)
    assert web.tail(f"{index.url}/letters", 40) == (b"abcdefghij", 10)


def test_nothing_is_asked_for_twice(index: LocalIndex, tmp_path: pathlib.Path) -> None:
    index.files["/letters"] = b"abc\ndefghij"
    for _ in range(2):
        web = Web(tmp_path)
        assert web.range(f"{index.url}/letters", 2, 6) == b"c\nde"
        assert web.page(f"{index.url}/letters") == "abc\ndefghij"
    assert index.asked == ["/letters bytes=2-5", "/letters"]
    assert web.requests == 0


def test_a_page_is_read_again_when_it_is_old(index: LocalIndex, tmp_path: pathlib.Path) -> None:
    web = Web(tmp_path, page_age_seconds=0)
    for text in ("old", "new"):
        index.files["/page"] = text.encode()
        assert web.page(f"{index.url}/page") == text


def test_a_failure_that_passes_is_waited_for(index: LocalIndex, web: Web) -> None:
    index.files["/page"] = b"here"
    index.failures_left = 2
    assert web.page(f"{index.url}/page") == "here"
    assert len(index.asked) == 3


def test_a_failure_that_stays_is_reported(index: LocalIndex, web: Web) -> None:
    index.failures_left = 100
    with pytest.raises(Unreadable, match=r"503.*after 6 attempts"):
        web.page(f"{index.url}/page")


def test_a_page_in_another_encoding_is_not_of_an_index(index: LocalIndex, web: Web) -> None:
    index.files["/page"] = "Accès refusé".encode("latin-1")
    with pytest.raises(Unreadable, match="not UTF-8"):
        web.page(f"{index.url}/page")


def test_what_is_not_there_is_asked_for_once(index: LocalIndex, web: Web) -> None:
    with pytest.raises(Unreadable, match="404"):
        web.page(f"{index.url}/missing")
    assert len(index.asked) == 1


def test_a_server_without_ranges_is_refused(index: LocalIndex, web: Web) -> None:
    index.files["/letters"] = b"abcdefghij"
    index.ignores_ranges = True
    with pytest.raises(Unreadable, match="range requests"):
        web.range(f"{index.url}/letters", 0, 2)


def test_an_answer_that_is_too_large_is_refused(index: LocalIndex) -> None:
    index.files["/page"] = b"x" * 101
    with pytest.raises(Unreadable, match="larger than 100 bytes"):
        Web(None, largest_answer=100).page(f"{index.url}/page")
    assert len(Web(None, largest_answer=101).page(f"{index.url}/page")) == 101


def test_only_the_web_is_read() -> None:
    with pytest.raises(Unreadable, match="only http"):
        Web(None).page("file:///etc/hostname")


def test_a_password_goes_to_the_index_and_to_no_other_server(index: LocalIndex) -> None:
    index.files["/simple/x/"] = index.files["/files/x"] = b"here"
    secret = settings_of(index.url.replace("//", "//me:secret@") + "/simple")
    Web(None, secret).page(f"{index.url}/simple/x/")
    assert index.authorizations == [secret.authorization]
    Web(None, settings_of("https://me:secret@example.org/simple")).page(f"{index.url}/files/x")
    assert index.authorizations == [secret.authorization, ""]
