"""Versions of software that a log mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.model.log import Line, Version
from whygpu.readers.words_in import words_in
from whygpu.tables.distributions import PROVIDERS

_DIGITS = r"\d+(?:\.\d+)*(?:(?:a|b|rc|\.?dev|\.?post)\d+)?"
_NUMBER = rf"({_DIGITS})"
_ASIDE = r"(?: \([^()\n]{1,40}\))?(?:\*\*)?"
"""What the forms of issue trackers add: TensorFlow version (use command below)**:"""
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (of, re.compile(pattern))
    for of, pattern in (
        ("driver", rf"libcuda reported version is: {_NUMBER}"),
        ("kernel-module", rf"kernel reported version is: {_NUMBER}"),
        ("kernel-module", rf"kernel version {_NUMBER} does not match DSO version"),
        ("driver", rf"kernel version [\d.]+ does not match DSO version {_NUMBER}"),
        ("kernel-module", rf"NVIDIA UNIX \S+ Kernel Module +{_NUMBER}"),
        ("driver", rf"Driver Version: {_NUMBER}"),
        ("driver", rf"Nvidia driver version: {_NUMBER}"),
        ("kernel-module", rf"NVIDIA UNIX Open Kernel Module for \S+ +{_NUMBER}"),
        ("cuda-of-driver", rf"CUDA Version: {_NUMBER}"),
        (
            "driver",
            # In a person's words, and not as a requirement.
            r"(?i:(?:^|[,/(] ?|\b(?:my|the|with|have|shows|installed|is|and) )(?:nvidia |gpu )?"
            r"driver(?: version)?(?: is|:)? v?)(?=[2-6]\d\d\b)"
            rf"(?![\d.]{{3,12}}(?:\+| or (?:newer|later|higher))){_NUMBER}",
        ),
        (
            "cuda-of-driver",
            rf"\bnvidia-smi (?:shows|says|reports|prints) CUDA (?:[Vv]ersion:? )?{_NUMBER}",
        ),
        ("cudnn", rf"Loaded cuDNN version {_NUMBER}"),
        ("cudnn", rf"Loaded runtime CuDNN library: {_NUMBER}"),
        ("cudnn-built", rf"source was compiled with:? {_NUMBER}"),
        (
            "tensorflow",
            rf"(?i:tensorflow(?:[-_](?:gpu|cpu|intel))?)(?: version{_ASIDE}:?|==?|-| ) ?['\"]?[vV]?"
            # Other packages begin with the same word: tensorflow-6.1.0 is one of theirs.
            rf"(?=[012]\.){_NUMBER}",
        ),
        (
            "tensorflow",
            # The forms of issue trackers ask twice: "TF 1.0: python -c ..., TF 2.0: python -c ...".
            r"(?<![\w./:-])(?i:tf(?:[-_ ]?gpu)?)"
            rf"(?: version(?: is)?)?(?: ?:| ?==?)? ?[vV]?([012]\.{_DIGITS})(?! ?:|\.?[\w/])",
        ),
        # What is installed comes before what an extension was built for.
        ("torch", rf"PyTorch \S{{1,24}} [^(\n]{{0,40}}\(you have {_NUMBER}"),
        ("torch", rf"\b(?:torch|[Pp]y[Tt]orch)(?: version:?|==|-| ) ?['\"]?v?{_NUMBER}"),
        ("jaxlib", rf"\bjaxlib(?: version|==|-|: {{0,8}}) ?{_NUMBER}"),
        ("jax", rf"\bjax(?: version:?|==|-|: {{0,8}}| ) ?['\"]?{_NUMBER}"),
        ("keras", rf"\b[Kk]eras(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("numpy", rf"\b[Nn]um[Pp]y(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("protobuf", rf"\bprotobuf(?: version:?|==|-| ) ?['\"]?{_NUMBER}"),
        ("python", r"[/\\][Pp]ython-?(\d\.\d{1,2})(?=[/\\. ])"),
        ("python", r"[/\\][Pp]ython(3\d{1,2})(?:-32)?[/\\]"),
        ("python", r"^Python (\d\.\d{1,2}\.\d{1,2})\+?(?= [|(]|\s{0,4}$)"),
        # JAX's and PyTorch's reports of an environment, and forms that people fill in.
        (
            "python",
            r"(?i:^[^\w\n]{0,8}python(?: ?(?:version|版本))?) ?[:：=]\W{0,4}"
            r"(3\.\d{1,2}(?:\.\d{1,2})?)\b",
        ),
        ("cuda", rf"[/\\]cuda-{_NUMBER}(?=[/\\: ])"),
        ("cuda", rf"compilation tools, release {_NUMBER}"),
        ("cuda", rf"(?i:cuda(?:[ -]?toolkit)?)[ /-]v?{_NUMBER}"),
    )
)
_ABOUT_VERSIONS = (
    *("version", "nvidia unix", "cudnn", "compiled with", "compilation tools", "cuda", "python"),
    *("tensorflow", "torch", "jax", "keras", "numpy", "protobuf", "driver", "tf"),
)
"""Every match contains one of these, in lower case; most numbers with a dot are no versions."""
_TELLING = re.compile(r"version|Module|==|\d\.\d|[Pp]ython3", re.I)
_LONGEST = 2000

_SHOWN = re.compile(r"Name: (?P<of>[\w.-]{2,40})\s{0,4}")
_SHOWN_VERSION = re.compile(rf"Version: {_NUMBER}(?:\+[\w.]{{1,40}})?\s{{0,4}}")
"""`pip show` prints the name and the version on two lines."""
_MODULES = {row.name: row.module for row in PROVIDERS}
_LISTED = re.compile(
    rf"(?P<of>[\w.-]{{2,40}}) {{2,40}}{_NUMBER}(?:\+[\w.]{{1,40}})?(?:\s[^\n]{{0,200}})?"
)
"""A row of `pip list`."""

_ASKED = re.compile(
    r"\b(?P<of>tf|tensorflow|torch|jaxlib|jax|keras|np|numpy)\."
    rf"(?:__version__|VERSION|version\.VERSION)(?:['\"`]?\)?(?: is |[ :=]{{1,4}})['\"`]?{_NUMBER})?"
)
_ANSWER = re.compile(
    rf"['\"]?(?:(?i:tf|tensorflow|pytorch|python|v) ?)?{_NUMBER}(?:[+-][\w.-]{{1,40}})?['\"]?"
    r"(?:\s[^\n]{0,80})?"
)
_HEADING = re.compile(r"#{1,6} (?P<of>tensorflow|pytorch|jax|keras|python) version", re.I)
"""Of the form of an issue tracker, with the answer below it."""
_ALIASES = {"tf": "tensorflow", "np": "numpy", "pytorch": "torch"}
_MOST_BETWEEN = 4
"""How many lines a framework prints at its import, before the program prints the version."""
_NOT_INSTALLED = re.compile(
    r"\b(?:Uninstalling|[Ss]uccessfully uninstalled|Found existing installation|Collecting"
    r"|Downloading|Using cached|Attempting uninstall|Would (?:install|remove))\b"
)
"""What pip removes, or only considers."""
_HAVE = re.compile(r"\brequires? [^\n]{1,200}?\bbut you(?:'ll)? have ")
_INSTALLED = re.compile(r"^\s{0,8}Successfully installed ")


def versions(lines: Sequence[Line]) -> tuple[Version, ...]:
    """Each version once, in order. A version that was replaced is not among them."""
    found: list[Version] = []
    shown = ""
    asked = _Question("", 0)
    about_versions = words_in(lines, _ABOUT_VERSIONS)
    for place, line in enumerate(lines):
        text = line.text[:_LONGEST]
        if (name := _SHOWN.fullmatch(text)) is not None:
            shown = name["of"].lower().replace("_", "-")
            continue
        if not _TELLING.search(text):
            shown = ""
            continue
        if shown and (below := _SHOWN_VERSION.fullmatch(text)) is not None:
            found.append(Version(line.number, _MODULES.get(shown, shown), below[1]))
        shown = ""
        row = _LISTED.fullmatch(text)
        if row is not None and (module := _MODULES.get(row["of"].lower().replace("_", "-"))):
            found.append(Version(line.number, module, row[2]))
        answer = asked.answered(text, place)
        if (question := _ASKED.search(text)) is not None:
            of = _ALIASES.get(question["of"], question["of"])
            asked, answer = _Question(of, place), question[2]
        elif (heading := _HEADING.fullmatch(text.strip())) is not None:
            of = heading["of"].lower()
            asked, answer = _Question(_ALIASES.get(of, of), place), ""
        if answer:
            found = _replaced(found, Version(line.number, asked.of, answer))
            asked = _Question("", 0)
        for of, number in _mentioned(text, about_versions):
            seen = Version(line.number, of, number)
            if _INSTALLED.match(text):
                found = _replaced(found, seen)
            elif not any(each[1:] == seen[1:] for each in found):
                found.append(seen)
    return tuple(found)


class _Question(NamedTuple):
    """An expression that has the version of a package as its value."""

    of: str
    """Empty if there is no question."""
    place: int

    def answered(self, text: str, place: int) -> str:
        answer = _ANSWER.fullmatch(text.strip()) if self.of else None
        return answer[1] if answer and place - self.place <= _MOST_BETWEEN else ""


def _mentioned(text: str, about_versions: Sequence[str]) -> Iterator[tuple[str, str]]:
    folded = text.lower()
    if not any(word in folded for word in about_versions) or _NOT_INSTALLED.search(text):
        return
    have = _HAVE.search(text)
    start = have.end() if have else 0
    for of, pattern in _PATTERNS:
        for match in pattern.finditer(text, start):
            yield of, _dotted(match[1]) if of == "python" else match[1]


def _dotted(python: str) -> str:
    """Folders of Windows have the version of Python without its dot: 310."""
    return python if "." in python else f"{python[0]}.{python[1:]}"


def _replaced(found: Sequence[Version], version: Version) -> list[Version]:
    """The program printed this version, or pip installed it: an earlier one is not in use."""
    return [*(seen for seen in found if seen.of != version.of), version]
