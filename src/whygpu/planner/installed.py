"""Rows for installed frameworks that are newer than the release table, from their own files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from whygpu.model.observed import Known, Observed
from whygpu.model.release import Release
from whygpu.model.target import Framework, Interpreter, Package, Target
from whygpu.tables.versions import release_numbers

VersionsOf = Callable[[str], Sequence[Release]]
_PLUGIN = re.compile(r"jax-(cuda\d+)-plugin")
_PUBLIC = re.compile(r"\d+(\.\d+)*(\.post\d+)?")


def newer_packages(packages: Iterable[Package], versions_of: VersionsOf) -> tuple[Package, ...]:
    """Packages of the table that are installed in a release after the newest of the table."""
    return tuple(
        package
        for package in packages
        if (rows := versions_of(package.name))
        and release_numbers(package.version) > release_numbers(rows[-1].version)
    )


def installed_rows(target: Target, versions_of: VersionsOf) -> tuple[Release, ...]:
    """One row for each framework, or plug-in of JAX, that is newer than the table."""
    packages, frameworks = target.packages, target.frameworks
    if not (isinstance(packages, Known) and isinstance(frameworks, Known)):
        return ()
    newer = {package.name: package for package in newer_packages(packages.value, versions_of)}
    here = target.interpreter
    python = here.value if isinstance(here, Known) else None
    return tuple(
        row
        for framework in frameworks.value
        if framework.distribution in newer
        for row in _rows(framework, newer[framework.distribution], python)
    )


def _rows(framework: Framework, package: Package, python: Interpreter | None) -> Iterator[Release]:
    version = _PUBLIC.match(package.version)
    if version is None:
        return
    pythons = (".".join(python.version.split(".")[:2]),) if python else ()
    build = framework.build
    unread = _unread(framework)
    own = Release(
        package=package.name,
        version=version.group(),
        file=f"the installed files of {package.name} {package.version}",
        pythons=pythons,
        requires_python="",
        platforms=(),
        glibc="",
        cuda="" if unread else _text(build.cuda),
        cudnn="" if unread else _text(build.cudnn),
        architectures=() if unread else _codes(build.architectures),
        requires=package.requires,
        unsearched=(),
        unread=unread,
        # A release with a wheel for the free-threaded build has one for the usual build too.
        free_threaded=pythons if python and python.free_threaded else (),
    )
    if framework.name == "keras":
        # Keras has no GPU code of its own.
        yield own._replace(unread="")
        return
    if framework.name != "jax":
        yield own
        return
    plain = own._replace(cuda="", cudnn="", architectures=(), unread="")
    extras = []
    for plugin in framework.plugins:
        match, number = _PLUGIN.fullmatch(plugin.name), _PUBLIC.match(plugin.version)
        if match and number:
            extras.append(f'{plugin.name}[with-cuda]=={number.group()}; extra == "{match[1]}"')
            yield own._replace(package=plugin.name, version=number.group(), requires=())
    yield plain._replace(requires=(*plain.requires, *extras))


def _unread(framework: Framework) -> str:
    """Why the installed files do not show what the release is built for."""
    build = framework.build
    if not isinstance(build.kind, Known) or not isinstance(build.cuda, Known):
        reason = getattr(build.cuda, "reason", "") or getattr(build.kind, "reason", "")
        return reason or "the installed build is not one for CUDA"
    return "" if build.kind.value == "cuda" else "the installed build is not one for CUDA"


def _text(fact: Observed[str]) -> str:
    return fact.value if isinstance(fact, Known) else ""


def _codes(fact: Observed[tuple[str, ...]]) -> tuple[str, ...]:
    return fact.value if isinstance(fact, Known) else ()
