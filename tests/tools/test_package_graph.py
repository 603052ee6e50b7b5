"""Packages import each other in one direction, and docs/architecture.md draws what they import."""

from __future__ import annotations

import ast
import functools
import pathlib
import re

import pytest

from tests.file_tree import write_tree
from tools.package_graph import (
    BEGIN,
    END,
    ORDER,
    PAGE,
    SOURCE,
    Package,
    Violation,
    about,
    block,
    cycles,
    drawing,
    graph_of,
    imported_modules,
    read_packages,
    refreshed,
    target_sources,
    violations,
)

KNOWN_VIOLATIONS: list[Violation] = []
"""Imports that still have to go. Add none."""

our_packages = functools.cache(read_packages)
"""Reading every source file takes a second: once is enough."""

SIZES_MAY_DIFFER_BY = 0.2
"""Lines of code change with every commit; the page is refreshed by `make docs` only."""


def test_every_package_has_one_place_in_the_order() -> None:
    assert sorted(name for row in ORDER for name in row) == sorted(our_packages())


def test_no_package_imports_against_the_order() -> None:
    assert violations(graph_of(our_packages())) == KNOWN_VIOLATIONS


def test_the_known_violations_are_the_only_reason_for_a_cycle() -> None:
    known = set(KNOWN_VIOLATIONS)
    graph = {
        name: frozenset(other for other in imports if Violation(name, other) not in known)
        for name, imports in graph_of(our_packages()).items()
    }
    assert cycles(graph) == []


def test_what_runs_in_the_target_imports_nothing_of_whygpu() -> None:
    checked = list(target_sources(SOURCE))
    assert checked
    for path in checked:
        # The target sees these folders as they are, without whygpu above them.
        package = ".".join(("target", *path.relative_to(SOURCE).parent.parts))
        for module in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
            assert module.split(".")[0] != "whygpu", f"{path} imports {module}"


def test_the_drawing_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    now = block(our_packages())
    drawn = page[page.index(BEGIN) : page.index(END) + len(END)]
    size = re.compile(r"(?m)(?<=^.{12}) *(\d+)")
    assert size.sub("", drawn) == size.sub("", now), "run `make docs`"
    for then, today in zip(size.findall(drawn), size.findall(now), strict=True):
        assert abs(int(today) - int(then)) <= SIZES_MAY_DIFFER_BY * int(today), "run `make docs`"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """A small whygpu: `cli` imports in every way there is."""
    files = {
        "__init__.py": "",
        "cli/__init__.py": "",
        "cli/main.py": (
            "import os\nimport whygpu.api\nfrom whygpu.host import files\nfrom . import x\n"
        ),
        "cli/x.py": (
            "def later():\n    from whygpu.tables import rows\n"
            "if TYPE_CHECKING:\n    from whygpu import model\n"
            "LAZY = {'y': 'whygpu.render.y', 'z': 'whygpu is a tool'}\n"
            "from ..memory import trial\n"
        ),
        "cli/scripts/alone.py": "import whygpu.linter\n",
        **{
            f"{name}/__init__.py": ""
            for name in ("host", "tables", "model", "render", "memory", "linter")
        },
        "api.py": "import whygpu\nfrom whygpu import check\n",
    }
    return write_tree(tmp_path, files)


def test_every_way_to_import_counts(folder: pathlib.Path) -> None:
    packages = read_packages(folder)
    everything = {"api", "host", "tables", "model", "render", "memory"}
    assert packages["cli"] == Package(frozenset(everything), 10)
    assert packages["api"].imports == {"__init__"}
    assert [path.name for path in target_sources(folder)] == ["alone.py"]


def packages(**imports: str) -> dict[str, Package]:
    names = [name for row in ORDER for name in row]
    return {name: Package(frozenset(imports.get(name, "").split()), 1) for name in names}


def test_a_package_may_import_lower_rows_only() -> None:
    graph = graph_of(packages(api="memory model", memory="guard", model="host"))
    assert [str(each) for each in violations(graph)] == ["memory -> guard", "model -> host"]


def test_what_renders_imports_the_model_only() -> None:
    graph = graph_of(packages(render="model tables", causes="tables host model"))
    assert [str(each) for each in violations(graph)] == ["causes -> host", "render -> tables"]


def test_a_cycle_is_found_through_any_number_of_packages() -> None:
    ring = packages(launch="memory", memory="planner", planner="launch model", model="")
    assert cycles(graph_of(ring)) == [["launch", "memory", "planner"]]
    assert cycles(graph_of(packages(launch="memory", memory="planner"))) == []


def test_the_drawing_names_what_each_package_imports_and_marks_what_is_not_allowed() -> None:
    drawn = drawing(packages(render="planner model")).splitlines()
    assert drawn[0] == "package       lines   imports"
    assert "render            1   planner (!), model" in drawn
    assert "model             1" in drawn


def test_sizes_are_rounded_so_that_few_changes_touch_the_page() -> None:
    assert [about(lines) for lines in (7, 33, 192, 9472, 42_255)] == [7, 33, 190, 9500, 42_000]


def test_the_page_is_refreshed_between_its_markers_only() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    fresh = refreshed(page, packages())
    assert fresh == f"before\n{block(packages())}\nafter\n"
    assert refreshed(fresh, packages()) == fresh
    with pytest.raises(ValueError, match="no place for the graph"):
        refreshed("before\nafter\n", packages())
