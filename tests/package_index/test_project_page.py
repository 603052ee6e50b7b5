"""A project's page: which files count, and which releases they make."""

from __future__ import annotations

from tests.package_index.local_index import LocalIndex
from whygpu.package_index.project_page import final_releases, published, read_wheels
from whygpu.package_index.web import Web

PAGE = """<!DOCTYPE html><html><body><h1>Links for demo</h1>
<a href="https://files.example/a/demo-1.10.0-cp39-cp39-manylinux1_x86_64.whl#sha256=1"
   data-requires-python="&gt;=3.9">demo-1.10.0</a><br/>
<a href="../files/demo-1.9.0-py3-none-any.whl">demo-1.9.0</a>
<a href="../files/demo-1.9.0-py2-none-any.whl">demo-1.9.0</a>
<a href="../files/demo-1.8.0-py3-none-any.whl" data-yanked="broken">demo-1.8.0</a>
<a href="../files/demo-2.0rc1-py3-none-any.whl">demo-2.0rc1</a>
<a href="../files/demo-1.7.0.tar.gz">demo-1.7.0.tar.gz</a>
<a href="../files/demo-1.7.0-final-py3.6.exe">not a wheel</a>
</body></html>"""


def test_what_a_page_offers() -> None:
    wheels = read_wheels(PAGE, "https://index.example/simple/demo/")
    assert [(wheel.url, wheel.requires_python) for wheel in wheels[:2]] == [
        ("https://files.example/a/demo-1.10.0-cp39-cp39-manylinux1_x86_64.whl", ">=3.9"),
        ("https://index.example/simple/files/demo-1.9.0-py3-none-any.whl", ""),
    ]
    assert "demo-1.8.0-py3-none-any.whl" not in [wheel.filename for wheel in wheels]


def test_releases_are_final_and_in_order_of_their_versions() -> None:
    releases = final_releases("demo", read_wheels(PAGE, "https://index.example/simple/demo/"))
    assert [(str(one.version), len(one.wheels)) for one in releases] == [
        ("1.9.0", 2),
        ("1.10.0", 1),
    ]


def test_a_link_that_is_no_address_and_a_version_that_is_no_number_are_passed_over() -> None:
    page = (
        f'<a href="http://[/x-1.0-py3-none-any.whl">x</a><a href="x-{"9" * 5000}-py3-none-any.whl">'
    )
    assert read_wheels(page, "https://index.example/simple/x/") == []


def test_the_page_is_found_under_the_normalised_name(index: LocalIndex, web: Web) -> None:
    index.add_page("ml-dtypes", '<a href="ml_dtypes-0.5.0-py3-none-any.whl">x</a>')
    (release,) = published(web, f"{index.url}/simple", "ml_dtypes")
    assert release.wheels[0].url == f"{index.url}/simple/ml-dtypes/ml_dtypes-0.5.0-py3-none-any.whl"
