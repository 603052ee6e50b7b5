"""Which frameworks a test run has tested for real, for its summary: none is left out silently.

`tests.targets.python_of` notes each target that a test asks for. The reports of the tests carry the
notes to the process that writes the summary, also from the workers of a test run.
"""

from __future__ import annotations

import pathlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

FRAMEWORKS = {"tensorflow": "TensorFlow", "keras": "Keras", "jax": "JAX", "torch": "PyTorch"}
"""What whygpu is for, by the package; `tensorflow-gpu` has the module of `tensorflow`."""
PROPERTY = "target"
_PACKAGE = re.compile(r"(tensorflow|keras|jax|torch)(?:_gpu)?-(\d[^-]*)\.dist-info")
_NOT_BUILT = re.compile(r"the target (\S+) is not built: (.+)", re.DOTALL)

_asked: set[str] = set()


class Ended(NamedTuple):
    """A test that asked for targets."""

    targets: tuple[str, ...]
    passed: bool
    why_not: str
    """The reason for which it was skipped."""


def note(target: str) -> None:
    """The running test asks for this target."""
    _asked.add(target)


def noted() -> tuple[str, ...]:
    """What was asked for since the last call."""
    targets = tuple(sorted(_asked))
    _asked.clear()
    return targets


def versions_in(target: pathlib.Path) -> dict[str, str]:
    """The frameworks that are installed in a target."""
    found = target.glob("lib/python3*/site-packages/*.dist-info")
    matches = [match for path in found if (match := _PACKAGE.fullmatch(path.name))]
    return {match[1]: match[2] for match in sorted(matches, key=lambda match: match[0])}


class Summary(NamedTuple):
    """Lines for people. All are empty if no test asked for a framework."""

    tested: list[str]
    untested: list[str]
    """Targets that should have been built, and frameworks that no test has reached."""
    on_request: list[str]
    """Targets that are built only if somebody names them."""


def summary(
    ended: Iterable[Ended],
    versions: Mapping[str, Mapping[str, str]],
    on_request: Container[str] = (),
) -> Summary:
    passed: Counter[str] = Counter()
    missing: dict[str, str] = {}
    asked: set[str] = set()
    for test in ended:
        asked.update(test.targets)
        if test.passed:
            passed.update(test.targets)
        elif match := _NOT_BUILT.search(test.why_not):
            missing[match[1]] = " ".join(match[2].split())
    tested = []
    for target in sorted(passed):
        installed = ", ".join(f"{name} {number}" for name, number in versions[target].items())
        tested.append(f"{target}: {installed} ({passed[target]} tests passed)")
    left_out = {
        target: f"{target}: {missing.get(target, 'no test passed')}"
        for target in sorted(asked - set(passed))
    }
    untested = [line for target, line in left_out.items() if target not in on_request]
    reached = {name for target in passed for name in versions[target]}
    if untested:
        untested += [title for name, title in FRAMEWORKS.items() if name not in reached]
    return Summary(
        tested, untested, [line for target, line in left_out.items() if target in on_request]
    )
