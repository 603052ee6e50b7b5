"""The lines to write in a file so that a requirement uses the GPU."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.install_plan import Candidate
from whygpu.model.requirement_file import (
    LOCK_FORMATS,
    FileFormat,
    LineEdit,
    PackageSource,
    PinnedRequirement,
    RequirementVerdict,
)
from whygpu.planner.file_builds import is_torch_index, public_range
from whygpu.planner.wishes import contains
from whygpu.tables.torch_indexes import INDEX_ROOT, tag_of

_END = re.compile(r"[;#\"'\\]|\s@\s|\s--?\w")
"""What ends the name, extras and range of a requirement in a line."""
_VERSION_KEY = re.compile(r"""version\s*=\s*["'][^"']*["']""")
_RELOCK = {
    "uv.lock": "uv lock --upgrade-package {}",
    "poetry.lock": "poetry update {}",
    "pdm.lock": "pdm update {}",
    "pixi.lock": "pixi update {}",
    "conda-lock.yml": "conda-lock --update {}",
}
_LOCK_AGAIN = {
    "uv.lock": "uv lock",
    "poetry.lock": "poetry lock",
    "pdm.lock": "pdm lock",
    "pixi.lock": "pixi lock",
    "conda-lock.yml": "conda-lock",
}
_ASKED_IN = {"pixi.lock": "pixi.toml", "conda-lock.yml": "environment.yml"}
"""Where a project asks for what is locked, if not in pyproject.toml."""


class Change(NamedTuple):
    edits: tuple[LineEdit, ...] = ()
    advice: str = ""


def change_to(
    requirement: PinnedRequirement, candidate: Candidate, kind: FileFormat, keeps_range: bool
) -> Change:
    """How to ask for a build instead. `keeps_range` if the range of the requirement leads to it."""
    specifier = public_range(requirement.specifier)
    if not keeps_range or not contains(specifier, candidate.version):
        specifier = f"=={candidate.version}"
    if kind in LOCK_FORMATS:
        return Change(advice=_relock(requirement, candidate, kind, specifier))
    if requirement.required_by:
        wanted = _text(candidate, f"=={candidate.version}", requirement)
        index = f" from the index {INDEX_ROOT}{_tag(candidate)}" if candidate.torch_index else ""
        return Change(advice=f"Ask for {wanted}{index} as well.")
    if requirement.url:
        wanted = _text(candidate, specifier, requirement)
        index = f" from the index {INDEX_ROOT}{_tag(candidate)}" if candidate.torch_index else ""
        return Change(advice=f"Ask for {wanted}{index} instead of that file.")
    edits, advice = list[LineEdit](), ""
    if candidate.framework == "torch":
        if candidate.torch_index and not _torch_sources(requirement):
            return _with_index(requirement, candidate, specifier, kind)
        url = f"{INDEX_ROOT}{_tag(candidate)}"
        for source in _torch_sources(requirement):
            line = source.place.text.replace(source.url, url)
            edits.append(LineEdit(source.place, line))
    wanted = _text(candidate, specifier, requirement)
    if wanted != _written(requirement):
        edits.append(LineEdit(requirement.place, _line(requirement, wanted, specifier, candidate)))
    if requirement.place.text.endswith("\\"):
        advice = "The hashes on the next lines belong to the old release: replace them too."
    return Change(tuple(edits), advice)


def sources_of(requirement: PinnedRequirement, candidate: Candidate) -> tuple[PackageSource, ...]:
    """The sources of a requirement on PyTorch after the change."""
    if not candidate.torch_index and not _torch_sources(requirement):
        return ()
    url = f"{INDEX_ROOT}{_tag(candidate)}"
    there = _torch_sources(requirement)
    return (PackageSource(url, there[0].role if there else "explicit", requirement.place),)


def _torch_sources(requirement: PinnedRequirement) -> tuple[PackageSource, ...]:
    sources = (source for source in requirement.sources if is_torch_index(source.url))
    return tuple(dict.fromkeys(sources))


def _tag(candidate: Candidate) -> str:
    """The index of PyTorch with this build; those of the default index are there too."""
    return candidate.torch_index or tag_of(candidate.cuda)


def without(requirement: PinnedRequirement, kind: FileFormat) -> Change:
    """Remove the requirement."""
    if kind in LOCK_FORMATS:
        where = _ASKED_IN.get(kind, "pyproject.toml")
        return Change(
            advice=f"In {where}, remove {requirement.name}, or what requires it; then run "
            f"`{_LOCK_AGAIN[kind]}`."
        )
    return Change((LineEdit(requirement.place, ""),))


def renamed(requirement: PinnedRequirement, name: str) -> Change:
    """The same line with another package."""
    old = re.escape(requirement.name).replace("\\-", "[-_.]")
    line = re.sub(rf"(?i)(?<![\w-]){old}(?![\w-])", name, requirement.place.text, count=1)
    return Change((LineEdit(requirement.place, line),))


def unknown(requirement: PinnedRequirement, reason: str) -> RequirementVerdict:
    return RequirementVerdict(requirement, "unknown", reason)


def with_change(verdict: RequirementVerdict, change: Change) -> RequirementVerdict:
    return verdict._replace(edits=change.edits, advice=change.advice)


def _text(candidate: Candidate, specifier: str, requirement: PinnedRequirement) -> str:
    extras = sorted({*requirement.extras, candidate.extra} - {""})
    if candidate.framework == "jax":
        extras = [e for e in extras if not e.startswith("cuda") or e == candidate.extra]
    return f"{candidate.package}{_bracket(extras)}{specifier}"


def _bracket(extras: list[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


def _written(requirement: PinnedRequirement) -> str:
    return f"{requirement.name}{_bracket(sorted(requirement.extras))}{requirement.specifier}"


def _is_key(requirement: PinnedRequirement) -> bool:
    """Whether the line is a key of a table of Poetry, as in torch = "^2.1"."""
    name = re.escape(requirement.name).replace("\\-", "[-_.]")
    return re.match(rf"""(?i)["']?{name}["']?\s*=\s*["'{{\[]""", requirement.place.text) is not None


def _line(requirement: PinnedRequirement, wanted: str, specifier: str, candidate: Candidate) -> str:
    if _is_key(requirement):
        return _key_line(requirement, specifier, candidate)
    text = requirement.place.text
    name = re.escape(requirement.name).replace("\\-", "[-_.]")
    start = re.search(rf"(?i)(?<![\w-]){name}(?![\w-])", text)
    if start is None:
        return wanted
    end = _END.search(text, start.end())
    stop = end.start() if end else len(text)
    kept = text[start.end() : stop]
    space = " " if kept.endswith(" ") and stop < len(text) else ""
    return f"{text[: start.start()]}{wanted}{space}{text[stop:]}".rstrip("\\ ")


def _key_line(requirement: PinnedRequirement, specifier: str, candidate: Candidate) -> str:
    """A line of Poetry: a range, or a table whose other keys stay."""
    text = requirement.place.text
    version = specifier.removeprefix("==") or "*"
    extra = f'extras = ["{candidate.extra}"]' if candidate.extra else ""
    if "{" not in text:
        value = f'{{version = "{version}", {extra}}}' if extra else f'"{version}"'
        return f"{candidate.package} = {value}"
    line = _VERSION_KEY.sub(f'version = "{version}"', text)
    line = line.replace(requirement.name, candidate.package, 1)
    return line if not extra or "extras" in line else line.replace("{", f"{{{extra}, ", 1)


def _with_index(
    requirement: PinnedRequirement, candidate: Candidate, specifier: str, kind: FileFormat
) -> Change:
    """A build of PyTorch that is not on the default index, in a file that names no such index."""
    url = f"{INDEX_ROOT}{candidate.torch_index}"
    if kind == "requirements.txt":
        build = f"torch=={candidate.version}+{candidate.torch_index}"
        line = _line(requirement, build, specifier, candidate)
        return Change((LineEdit(requirement.place, f"--extra-index-url {url}\n{line}"),))
    line = _line(requirement, _text(candidate, specifier, requirement), specifier, candidate)
    edits = () if line == requirement.place.text else (LineEdit(requirement.place, line),)
    return Change(edits, f"Let torch come from the index {url}.")


def _relock(
    requirement: PinnedRequirement, candidate: Candidate, kind: FileFormat, specifier: str
) -> str:
    command = _RELOCK[kind].format(candidate.package)
    where = _ASKED_IN.get(kind, "pyproject.toml")
    wanted = _text(candidate, specifier, requirement)
    needs_index = candidate.torch_index or _torch_sources(requirement)
    index = f" from the index {INDEX_ROOT}{_tag(candidate)}" if needs_index else ""
    return f"In {where}, ask for {wanted}{index}; then run `{command}`."
