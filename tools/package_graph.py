"""The package graph: what each package imports, drawn into docs/architecture.md and judged."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "whygpu"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- package graph: begin (written by `make docs`) -->"
END = "<!-- package graph: end -->"

ORDER: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("__init__",),
    ("notebook",),
    ("cli",),
    ("agent", "editor"),
    ("api",),
    ("render",),
    ("memory", "comparer", "guard", "fleet", "stress"),
    ("launch", "work", "differences"),
    ("planner", "linter", "diagnosis", "privacy", "fixing", "past_runs", "profiling"),
    ("causes",),
    ("collectors", "probes", "package_index"),
    ("host", "readers"),
    ("tables",),
    ("model", "errors", "version"),
)
"""A package may import the rows below its own, and nothing of its own row or above."""

ONLY: Mapping[str, frozenset[str]] = {
    "render": frozenset({"model"}),
    "causes": frozenset({"tables", "model"}),
}
"""Packages that look at values only, so that they may import less than the order allows."""

TARGET_FOLDERS = frozenset({"scripts", "bootstrap", "inside"})
"""Folders whose files run in the target's interpreter: they may import nothing of whygpu."""

_MODULE_NAME = re.compile(r"whygpu(?:\.\w+)+")

Graph = Mapping[str, frozenset[str]]
"""Each package of whygpu and the other packages that it imports."""


class Package(NamedTuple):
    """What was read of one package."""

    imports: frozenset[str]
    lines: int


class Violation(NamedTuple):
    """An import that the order or `ONLY` does not allow."""

    importer: str
    imported: str

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"


def sources(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The modules that run in whygpu's own interpreter."""
    for path in sorted(folder.rglob("*.py")):
        if TARGET_FOLDERS.isdisjoint(path.relative_to(folder).parts):
            yield path


def target_sources(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """The modules that run in the target's interpreter."""
    for path in sorted(folder.rglob("*.py")):
        if not TARGET_FOLDERS.isdisjoint(path.relative_to(folder).parts):
            yield path


def package_of(path: pathlib.Path, folder: pathlib.Path) -> str:
    return path.relative_to(folder).parts[0].removesuffix(".py")


def read_packages(folder: pathlib.Path = SOURCE) -> dict[str, Package]:
    """Every package (and single module) of whygpu by its name."""
    paths = list(sources(folder))
    names = frozenset(package_of(path, folder) for path in paths)
    found: dict[str, Package] = {name: Package(frozenset(), 0) for name in sorted(names)}
    for path in paths:
        name = package_of(path, folder)
        text = path.read_text(encoding="utf-8")
        package = ".".join(("whygpu", *path.relative_to(folder).parent.parts))
        imports = frozenset(
            imported
            for module in imported_modules(ast.parse(text), package)
            if (imported := _package_in(module, names)) not in (None, name)
        )
        before = found[name]
        found[name] = Package(before.imports | imports, before.lines + text.count("\n"))
    return found


def imported_modules(tree: ast.Module, package: str) -> Iterator[str]:
    """The full names that a module of `package` imports, wherever in the module it does so.

    A string that is the name of a module of ours counts too: it is imported by that name later.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and _MODULE_NAME.fullmatch(str(node.value)):
            yield str(node.value)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that a `from` names, with the leading dots resolved."""
    if not node.level:
        return node.module or ""
    words = package.split(".")
    kept = words[: len(words) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _package_in(module: str, names: frozenset[str]) -> str | None:
    """The package of ours that a full name belongs to; `whygpu.check` is in `__init__`."""
    words = module.split(".")
    if words[0] != "whygpu":
        return None
    return words[1] if len(words) > 1 and words[1] in names else "__init__"


def graph_of(packages: Mapping[str, Package]) -> Graph:
    return {name: package.imports for name, package in packages.items()}


def violations(graph: Graph, order: Iterable[Iterable[str]] = ORDER) -> list[Violation]:
    """Every import that is not allowed."""
    rank = {name: place for place, row in enumerate(order) for name in row}
    return sorted(
        Violation(importer, imported)
        for importer, imports in graph.items()
        for imported in imports
        if rank[imported] <= rank[importer] or imported not in ONLY.get(importer, rank)
    )


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of packages that reach each other by imports."""
    reached = {name: _reachable(name, graph) for name in graph}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(start: str, graph: Graph) -> set[str]:
    found: set[str] = set()
    pending = [start]
    while pending:
        fresh = graph[pending.pop()] - found
        found |= fresh
        pending.extend(fresh)
    return found


def drawing(packages: Mapping[str, Package]) -> str:
    """One line for each package, in the order; a blank line between rows."""
    forbidden = set(violations(graph_of(packages)))
    column = {name: place for place, name in enumerate(name for row in ORDER for name in row)}
    lines = [f"{'package':<12}{'lines':>7}   imports"]
    for row in ORDER:
        lines.append("")
        for name in row:
            imports = sorted(packages[name].imports, key=column.__getitem__)
            marked = [
                f"{each} (!)" if Violation(name, each) in forbidden else each for each in imports
            ]
            size = about(packages[name].lines)
            lines.append(f"{name:<12}{size:>7}   {', '.join(marked)}".rstrip())
    return "\n".join(lines)


def about(lines: int) -> int:
    """Two digits of the number: exact ones differ in every branch, and would collide in a merge."""
    digits = max(len(str(lines)) - 2, 0)
    return round(lines, -digits)


def block(packages: Mapping[str, Package]) -> str:
    """What stands between the two markers."""
    return f"{BEGIN}\n```\n{drawing(packages)}\n```\n{END}"


def refreshed(page: str, packages: Mapping[str, Package]) -> str:
    """The page with the present graph drawn between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the graph: {BEGIN} ... {END}")
    return f"{before}{block(packages)}{after}"


def main() -> None:
    packages = read_packages()
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), packages), encoding="utf-8")
    for violation in violations(graph_of(packages)):
        print(f"not allowed: {violation}")


if __name__ == "__main__":
    main()
