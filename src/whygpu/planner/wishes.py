"""What the user requests: frameworks, and which of their releases are acceptable."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from whygpu.errors import UsageError
from whygpu.model.install_plan import Wish
from whygpu.model.whole_numbers import MOST_DIGITS

FRAMEWORKS = ("tensorflow", "keras", "jax", "torch", "cupy", "onnxruntime")
_ALIASES = {
    "tf": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "pytorch": "torch",
    "onnxruntime-gpu": "onnxruntime",
}
BACKENDS = ("tensorflow", "jax", "torch")
"""The backends of Keras."""

_WISH = re.compile(r"\s*([A-Za-z][\w.-]*)\s*(?:\[[\w, -]*\])?\s*(.*)")
_SHORT = re.compile(r"(==|!=)\s*(\d+(?:\.\d+)?)\s*(?=,|$)")

_LONG_NUMBER = re.compile(rf"\d{{{MOST_DIGITS + 1}}}")


@cache
def specifier_set(text: str) -> SpecifierSet:
    if _LONG_NUMBER.search(text):
        raise InvalidSpecifier(f"a number with more than {MOST_DIGITS} digits in {text[:100]!r}")
    return SpecifierSet(text)


@cache
def contains(specifier: str, version: str) -> bool:
    """Whether a range (>=1.2,<2) contains a version. It is cached, because it is slow."""
    return not specifier or specifier_set(specifier).contains(version)


def allows(wish: Wish, version: str) -> bool:
    return contains(wish.specifier, version)


def asks_for_newer(wish: Wish, newest: str) -> bool:
    """Whether a wish that excludes every known release asks for one after the newest."""
    floors = [
        part.version.removesuffix(".*")
        for part in specifier_set(wish.specifier)
        if part.operator in ("==", "===", "~=", ">=", ">")
    ]
    return any(_is_at_least(floor, newest) for floor in floors)


def _is_at_least(floor: str, newest: str) -> bool:
    try:
        return Version(floor) >= Version(newest)
    # Anything may follow ===, such as a name.
    except InvalidVersion:
        return False


def parse(text: str) -> Wish:
    """A wish in pip's notation. `==2.15` means any 2.15.x, because users mean that."""
    match = _WISH.fullmatch(text)
    name = match.group(1).lower().replace("_", "-") if match else ""
    framework = _ALIASES.get(name, name)
    if match is None or framework not in FRAMEWORKS:
        # Without the first letter, the rest has to be the same: numpy is not meant as cupy.
        names = (*FRAMEWORKS, *_ALIASES)
        alike = [known for known in names if known[:1] == name[:1]]
        near = difflib.get_close_matches(name, alike, 1) or [n for n in names if n[1:] == name]
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{text!r}: {meant}expected one of {', '.join(FRAMEWORKS)}; a version can follow, as "
            "in jax==0.5"
        )
    specifier = _SHORT.sub(r"\1\2.*", match.group(2).strip())
    try:
        specifier_set(specifier)
    except InvalidSpecifier:
        raise UsageError(
            f"{text!r}: {match.group(2)!r} is not a version range; write {framework}==2.15 or so"
        ) from None
    return Wish(framework, specifier)


def keras_backend(wishes: Sequence[Wish]) -> str | None:
    """The backend of Keras: its default if that is among the wishes, else the first wish."""
    names = [wish.framework for wish in wishes if wish.framework in BACKENDS]
    if not names or "keras" not in [wish.framework for wish in wishes]:
        return None
    return "tensorflow" if "tensorflow" in names else names[0]


def parse_all(texts: list[str]) -> tuple[Wish, ...]:
    """The wishes in their order; Keras without a backend gets its default one."""
    wishes = tuple(parse(text) for text in texts) or (Wish("tensorflow", ""),)
    names = [wish.framework for wish in wishes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name} is given twice; give one range, as in {name}>=2.14,<2.17")
    if "keras" in names and not set(names) & set(BACKENDS):
        return (*wishes, Wish("tensorflow", ""))
    return wishes
