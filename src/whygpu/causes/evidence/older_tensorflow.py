"""Shared by setup detectors: the TensorFlow that a program was made for, as far as files show it.

A list with tensorflow-gpu and no release is some years old. Where the image has an older CUDA, or the
list has pins that the newest TensorFlow refuses, only an older release goes with the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.model.deployment import BaseImage
from whygpu.model.release import Release
from whygpu.model.requirement_file import PinnedRequirement
from whygpu.tables.base_images import cuda_serves
from whygpu.tables.releases import versions_of
from whygpu.tables.versions import release_numbers

_EXACT = re.compile(r"===?\s*(\d{1,9}(?:\.\d{1,9}){0,4})")
_SAME_MINOR = ("tensorboard", "tensorflow-estimator", "tensorflow-serving-api")
"""Packages that are published with TensorFlow, under its version."""
_KERAS_FOR_1 = (2, 3)
"""Releases of Keras before this one are for TensorFlow 1, which they do not require."""


class OlderTensorflow(NamedTuple):
    releases: tuple[Release, ...]
    """One, or one of TensorFlow 1 and one of TensorFlow 2 if both go with the rest."""
    because: str
    """What shows that the newest release does not go with the rest, as a part of a sentence."""


def older_tensorflow(
    requirements: Sequence[PinnedRequirement], base: BaseImage | None, python: str
) -> OlderTensorflow | None:
    """The releases of tensorflow-gpu that go with an image and the pins beside it.

    None if nothing shows that the newest TensorFlow does not.
    """
    pins = _pins(requirements)
    newest = versions_of("tensorflow")[-1]
    refused = next((f"{n}=={v}" for n, v in pins.items() if not _goes_with(newest, n, v)), "")
    image = base if base is not None and base.cuda and not base.framework else None
    fitting = [
        row
        for row in versions_of("tensorflow-gpu")
        if (not python or python in row.pythons)
        and (image is None or _is_served(row, image))
        and all(_goes_with(row, name, version) for name, version in pins.items())
    ]
    if not fitting or not (refused or image):
        return None
    # If the Python is not known, a release for many of them is the safer one.
    fitting.sort(key=lambda row: (0 if python else len(row.pythons), release_numbers(row.version)))
    if image is None:
        row = fitting[-1]
        needs = f"CUDA {row.cuda}" + (f" and cuDNN {row.cudnn}" if row.cudnn else "")
        return OlderTensorflow((row,), f"which goes with {refused} and needs {needs}")
    majors = {row.version.partition(".")[0]: row for row in fitting}
    because = f"built for the CUDA of {image.reference}"
    return OlderTensorflow(tuple(majors[major] for major in sorted(majors)), because)


def _pins(requirements: Sequence[PinnedRequirement]) -> dict[str, str]:
    found = {}
    for requirement in requirements:
        match = _EXACT.fullmatch(requirement.specifier.strip())
        if match is not None:
            found[requirement.name] = match[1]
    return found


def needs_another_cuda(wanted: str, base: BaseImage | None) -> bool:
    """Whether tensorflow-gpu==1.2.1 does not find its libraries in an image."""
    match = _EXACT.search(wanted)
    if match is None or "[" in wanted or base is None or not base.cuda or base.framework:
        return False
    rows = (row for row in versions_of("tensorflow-gpu") if row.version == match[1])
    return any(row.cuda and not _is_served(row, base) for row in rows)


def _is_served(row: Release, base: BaseImage) -> bool:
    return cuda_serves(row.cuda, base.cuda) and (not base.cudnn or row.cudnn == base.cudnn)


def _goes_with(row: Release, name: str, version: str) -> bool:
    """Whether a release of TensorFlow accepts a pin, or knows nothing of the package."""
    # Imported here because a check of a machine does not need it: it costs a tenth of its time.
    from packaging.requirements import Requirement

    numbers, own = release_numbers(version), release_numbers(row.version)
    if name in _SAME_MINOR:
        return numbers[:2] == own[:2]
    if name == "keras" and numbers < _KERAS_FOR_1:
        return own < (2,)
    wanted = (Requirement(line) for line in row.requires if line.startswith(name))
    return all(
        each.specifier.contains(version) or each.marker is not None
        for each in wanted
        if each.name == name
    )
