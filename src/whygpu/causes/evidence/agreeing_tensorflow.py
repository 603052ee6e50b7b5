"""Shared by setup detectors: which releases of TensorFlow agree with the files around it.

Files show which Python, CUDA and pins a TensorFlow has to go with, but seldom for which release its
program was written. So the advice names what has to agree, and all releases that do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from whygpu.model.deployment import BaseImage, Setup
from whygpu.model.derived import and_list
from whygpu.model.release import Release
from whygpu.model.requirement_file import PinnedRequirement
from whygpu.tables.base_images import cuda_serves
from whygpu.tables.releases import versions_of
from whygpu.tables.versions import release_numbers

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_EXACT = re.compile(r"===?\s*(\d{1,9}(?:\.\d{1,9}){0,4})")
_SAME_MINOR = ("tensorboard", "tensorflow-estimator", "tensorflow-serving-api")
"""Packages that are published with TensorFlow, under its version."""
_KERAS_FOR_1 = (2, 3)
"""Releases of Keras before this one are for TensorFlow 1, which they do not require."""
_ONE_PACKAGE = (2, 1)
"""Since this release, `tensorflow` has the GPU support; before, only tensorflow-gpu has it."""
_BRINGS_CUDA = (2, 14)
"""Since this release, tensorflow[and-cuda] brings its libraries."""
_ANY = (
    "Pin the release that the program was made for: up to 2.0, tensorflow-gpu has the GPU support, "
    "and since 2.1 tensorflow; since 2.14, tensorflow[and-cuda] brings its CUDA."
)


class Around(NamedTuple):
    """What a TensorFlow has to agree with."""

    python: str = ""
    """Empty if it is not known."""
    cuda: str | None = None
    """The CUDA that TensorFlow finds; empty if it finds no complete one, None if not known."""
    cudnn: str = ""
    """Empty if it is not known."""
    named: str = ""
    """What has this CUDA: the CUDA of nvidia/cuda:9.0-cudnn7-runtime."""
    pins: Mapping[str, str] = {}
    """The releases of the other packages."""


def around(setup: Setup) -> Around:
    """What the files of an image or a list show."""
    return Around(setup.python, *_libraries(setup, setup.base), _pins(setup.requirements))


def _libraries(setup: Setup, base: BaseImage | None) -> tuple[str | None, str, str]:
    if base is None or setup.has_own_cuda or base.framework:
        return None, "", ""
    if not base.cuda or base.flavour == "base":
        return "" if base.cuda or (base.is_plain and setup.for_gpu) else None, "", ""
    lacks_cudnn = not (base.cudnn or setup.has_own_cudnn)
    add = " (which has no cuDNN: install it as well)" if lacks_cudnn else ""
    cudnn = "" if setup.has_own_cudnn else base.cudnn
    return base.cuda, cudnn, f"the CUDA of {base.reference}{add}"


def _pins(requirements: Sequence[PinnedRequirement]) -> dict[str, str]:
    matches = {each.name: _EXACT.fullmatch(each.specifier.strip()) for each in requirements}
    return {
        name: match[1]
        for name, match in matches.items()
        if match is not None and not name.startswith(("tensorflow-gpu", "tensorflow-cpu"))
    }


def advice(version: str, given: Around, libraries: str = "a base image with") -> str:
    """What to do about a TensorFlow of this release, or of any release if it is empty.

    `libraries` is where its CUDA and cuDNN come from, as a part of a sentence.
    """
    kept = _row(version)
    others = _listed(row for row in _gpu_builds() if not row.unsearched and _fits(row, given))
    facts = and_list(list(_facts(given)))
    if kept is None:
        if not facts or not others:
            return _ANY
        return f"Pin the release that the program was made for. These go with {facts}: {others}."
    wanted = and_list(list(_needs(kept, given, libraries)))
    keep = f"To keep TensorFlow {version}, use {wanted}." if wanted else f"Write {_pin(kept)}."
    if not facts or not others:
        return keep
    return f"{keep} Or take one that goes with {facts}, if the program runs with it: {others}."


def agrees(version: str, given: Around) -> bool:
    """Whether a release goes with everything around it, as far as it is known."""
    row = _row(version)
    return row is None or _fits(row, given)


def pinned(requirement: str) -> str:
    """The release in tensorflow-gpu==1.2.1; empty if it names none."""
    match = _EXACT.search(requirement)
    return match[1] if match is not None else ""


def _row(version: str) -> Release | None:
    return next((row for row in _gpu_builds() if row.version in (version, f"{version}.0")), None)


def _gpu_builds() -> Iterator[Release]:
    """One for each release, from the package that has its GPU support."""
    for row in versions_of("tensorflow-gpu"):
        if release_numbers(row.version) < _ONE_PACKAGE:
            yield row
    for row in versions_of("tensorflow"):
        if release_numbers(row.version) >= _ONE_PACKAGE:
            yield row


def _brings_cuda(row: Release) -> bool:
    return release_numbers(row.version) >= _BRINGS_CUDA and not row.unsearched


def _package(row: Release) -> str:
    return "tensorflow[and-cuda]" if _brings_cuda(row) else row.package


def _pin(row: Release) -> str:
    return f"{_package(row)}=={row.version}"


def _fits(row: Release, given: Around) -> bool:
    return (
        _has_wheel(row, given)
        and (_brings_cuda(row) or _is_served(row, given))
        and not _refused(row, given)
    )


def _refused(row: Release, given: Around) -> list[str]:
    """The other packages whose pins this release does not accept."""
    return [name for name, version in given.pins.items() if not _goes_with(row, name, version)]


def _has_wheel(row: Release, given: Around) -> bool:
    return not given.python or given.python in row.pythons


def _is_served(row: Release, given: Around) -> bool:
    if given.cuda is None:
        return True
    same_cudnn = not given.cudnn or row.cudnn == given.cudnn
    return bool(given.cuda) and cuda_serves(row.cuda, given.cuda) and same_cudnn


def _needs(row: Release, given: Around, libraries: str) -> Iterator[str]:
    """What has to be otherwise for this release."""
    if not _has_wheel(row, given):
        yield f"Python {row.pythons[0]} to {row.pythons[-1]}"
    if not _is_served(row, given):
        minor = ".".join(row.cuda.split(".")[:2])
        own = f" (or write {_pin(row)}, which brings them)" if _brings_cuda(row) else ""
        cudnn = f" and cuDNN {row.cudnn}" if row.cudnn else " with a cuDNN for it"
        yield f"{libraries} CUDA {minor}{cudnn}{own}"
    if refused := _refused(row, given):
        yield f"another release of {and_list(refused)}"


def _facts(given: Around) -> Iterator[str]:
    """Those that exclude a release."""
    if given.python:
        yield f"Python {given.python}"
    if given.named:
        yield given.named
    for name, version in given.pins.items():
        if not all(_goes_with(row, name, version) for row in _gpu_builds()):
            yield f"{name}=={version}"


def _listed(rows: Iterable[Release]) -> str:
    """tensorflow-gpu 1.13 to 1.15, tensorflow 2.1 to 2.3"""
    minors = list(dict.fromkeys(map(_minor, _gpu_builds())))
    fitting = list(dict.fromkeys((_package(row), _minor(row)) for row in rows))
    found = []
    for (package, _), group in groupby(
        enumerate(fitting), lambda each: (each[1][0], minors.index(each[1][1]) - each[0])
    ):
        numbers = [".".join(map(str, minor)) for _, (_, minor) in group]
        span = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        found.append(f"{package} {span}")
    return ", ".join(found)


def _minor(row: Release) -> tuple[int, ...]:
    return release_numbers(row.version)[:2]


def _goes_with(row: Release, name: str, version: str) -> bool:
    """Whether a release of TensorFlow accepts a pin, or knows nothing of the package."""
    # Imported here because a check of a machine does not need it: it costs a tenth of its time.
    from packaging.requirements import Requirement

    numbers, own = release_numbers(version), release_numbers(row.version)
    if name in _SAME_MINOR:
        return numbers[:2] == own[:2]
    if name == "keras" and numbers < _KERAS_FOR_1:
        return own < (2,)
    # Some releases have a line for each range of Python.
    lines = [Requirement(line) for line in row.requires if line.startswith(name)]
    wanted = [each.specifier for each in lines if each.name == name and not _is_extra(each)]
    return not wanted or any(specifier.contains(version) for specifier in wanted)


def _is_extra(line: Requirement) -> bool:
    return "extra" in str(line.marker or "")
