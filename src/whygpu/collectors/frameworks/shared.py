"""Shared code of the framework collectors: their view of the target, and reading its files."""

from __future__ import annotations

import ast
import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from whygpu.host.base import Host
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Absent, Known, Observed, Undetermined, Unknown
from whygpu.model.target import (
    Build,
    BuildKind,
    Framework,
    FrameworkName,
    Interpreter,
    Package,
    active,
)
from whygpu.readers.code.tokens import check_tokens
from whygpu.tables.cpu_features import features_of
from whygpu.tables.cuda_libraries import is_cuda_library
from whygpu.tables.distributions import provider
from whygpu.tables.versions import release_numbers


class Loader(Protocol):
    """The dynamic loader in one process of the target."""

    def open(self, library: str, *, requester: str, required: bool = True) -> Resolution: ...


class Scene(NamedTuple):
    """The target as the collector of one framework sees it."""

    host: Host
    interpreter: Interpreter
    packages: tuple[Package, ...]
    make_loader: Callable[[], Loader]

    def package(self, *names: str) -> Package | None:
        """The installed package with the first of these names that is installed."""
        for name in names:
            copies = [package for package in active(self.packages) if package.name == name]
            if copies:
                return newest(copies)
        return None

    def provider(self, framework: FrameworkName, module: str) -> Package | None:
        """The package whose copy of a module an import loads: the first on sys.path.

        If several distributions share the module in one folder, it is unknown which of them owns
        the files. Then the newest counts, and the list of packages shows that there are several.
        """
        candidates = [
            package
            for package in active(self.packages)
            if (row := provider(package.name)) is not None
            and row.framework == framework
            and row.module == module
        ]
        if not candidates:
            return None
        first = candidates[0].location
        return newest([package for package in candidates if package.location == first])


def newest(packages: Sequence[Package]) -> Package:
    """The one with the highest version, because an interrupted upgrade leaves old metadata."""
    return max(packages, key=lambda package: release_numbers(package.version))


UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python's parser raises for text that is not Python or is nested too deeply."""


def constants(host: Host, path: str) -> Observed[dict[str, Any]]:
    """The literal values assigned at the top level of a Python file, without running it."""
    text = host.read(path)
    if not isinstance(text, Known):
        return text
    try:
        check_tokens(text.value)
        module = ast.parse(text.value)
    except UNPARSABLE as error:
        return Unknown(f"{path}: {error or 'too complex to be read'}")
    values: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                known, literal = literal_of(value)
                if known:
                    values[target.id] = literal
    return Known(values, path)


def literal_of(node: ast.expr) -> tuple[bool, Any]:
    """The value of a literal, or of a call such as OrderedDict([...]) around one."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    try:
        return True, ast.literal_eval(node)
    except (*UNPARSABLE, TypeError):
        return False, None


def architectures(host: Host, paths: Iterable[str]) -> Observed[tuple[str, ...]]:
    """GPU architectures in all these files together; files that do not exist do not count."""
    found: set[str] = set()
    read: list[str] = []
    looked: list[str] = []
    for path in paths:
        looked.append(path)
        code = host.gpu_code(path)
        if isinstance(code, Unknown):
            return code
        if isinstance(code, Known) and code.value:
            found.update(code.value)
            read.append(path)
    if not found:
        return Absent(f"fat binaries in {', '.join(looked)}")
    return Known(
        tuple(sorted(found, key=_architecture_order)), f"fat binaries in {', '.join(read)}"
    )


def _architecture_order(name: str) -> tuple[bool, int, str]:
    kind, _, number = name.partition("_")
    digits = "".join(character for character in number if character.isdecimal())
    return kind != "sm", int(digits or 0), name


def cuda_needs(host: Host, path: str) -> Observed[tuple[str, ...]]:
    """NVIDIA's libraries among those that a file is linked with."""
    facts = host.elf(path)
    if not isinstance(facts, Known):
        return facts
    return Known(tuple(name for name in facts.value.needed if is_cuda_library(name)), path)


def follow(
    scene: Scene, steps: Callable[[Loader], Iterable[Resolution]], source: str
) -> Observed[tuple[Resolution, ...]]:
    """The results of a framework's requests in a new process of the target, in order."""
    try:
        return Known(tuple(steps(scene.make_loader())), source)
    except Undetermined as error:
        return Unknown(error.reason)


def open_needs(
    loader: Loader, python: str, path: str, needs: Iterable[str], *, required: bool = True
) -> Iterator[Resolution]:
    """The libraries that a file is linked with, each with its own result.

    A process that cannot load the file stops at the first missing library, but a user who has to
    install them needs to know all. If none of them is the reason, the file's own result follows.
    """
    own = loader.open(path, requester=python, required=required)
    if own.outcome in ("not-found", "broken-file"):
        yield own
        return
    answers = [loader.open(name, requester=path, required=required) for name in needs]
    yield from answers
    if own.outcome != "loads" and all(answer.outcome == "loads" for answer in answers):
        yield own


def cpu_features(host: Host, package: Package) -> Observed[tuple[str, ...]]:
    row = features_of(package.name, package.version, host.platform.machine)
    if row is None:
        return Unknown(
            f"the instruction sets that {package.name} {package.version} needs on "
            f"{host.platform.machine} are not on record"
        )
    return Known(row.features, row.source)


def module_folder(host: Host, package: Package, *names: str) -> str | None:
    """The folder of the first of these modules that exists in the package's location."""
    for name in names:
        path = os.path.join(package.location, name)
        facts = host.stat(path)
        if isinstance(facts, Known) and facts.value.kind == "folder":
            return path
    return None


def wheel_requirement(host: Host, package: Package, pattern: str) -> Known[str] | None:
    """A version from the wheel's requirements, with extras: the first group of `pattern`."""
    name = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    path = os.path.join(package.location, name, "METADATA")
    text = host.read(path, whole=False)
    match = re.search(f"Requires-Dist: {pattern}", text.value) if isinstance(text, Known) else None
    return Known(match[1], path) if match else None


def no_cuda(kind: Observed[BuildKind]) -> Absent | Unknown:
    """The value of every CUDA fact of a build that is not for CUDA."""
    if isinstance(kind, Unknown):
        return kind
    return Absent(f"a build without CUDA, by {kind.source}")


def build_without_cuda(kind: Observed[BuildKind], features: Observed[tuple[str, ...]]) -> Build:
    none = no_cuda(kind)
    return Build(kind, none, none, none, features)


def broken_installation(framework: FrameworkName, package: Package) -> Framework:
    """Metadata without the module that they describe: an incomplete installation."""
    reason = Unknown(
        f"{package.location} has the metadata of {package.name} {package.version} but not its files"
    )
    return Framework(
        name=framework,
        distribution=package.name,
        version=package.version,
        location=package.location,
        build=Build(reason, reason, reason, reason, reason),
        libraries=reason,
    )
