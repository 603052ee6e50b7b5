"""Requirements of a file that stand in each other's way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from whygpu.errors import UsageError
from whygpu.model.derived import and_list
from whygpu.model.install_plan import Wish
from whygpu.model.requirement_file import (
    LOCK_FORMATS,
    FileFormat,
    PinnedRequirement,
    RequirementVerdict,
)
from whygpu.planner.candidate_cache import SHARED_FOLDERS
from whygpu.planner.file_builds import FileContext, public_range, torch_source
from whygpu.planner.file_edits import with_change, without
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import BACKENDS, keras_backend
from whygpu.tables.distributions import provider
from whygpu.tables.keras_backends import backend_limit

_OTHER_SYSTEMS = ("tensorflow-macos", "tensorflow-intel", "tensorflow-cpu-aws")
"""Parts of tensorflow for macOS, Windows and aarch64, which older lock files list without that."""
_FOR_CPU = re.compile(r"(?i)(?<![a-z])cpu(?![a-z])")
"""A part of a project whose name says that it is for the CPU."""
_CUDA_PACKAGE = re.compile(r"^nvidia-(\w+)-cu(\d+)$")


def without_parts(verdicts: list[RequirementVerdict], kind: FileFormat) -> list[RequirementVerdict]:
    """Parts of tensorflow for other systems are nothing to judge if tensorflow is there as well."""
    if not any(verdict.requirement.name == "tensorflow" for verdict in verdicts):
        return verdicts
    reason = "is a part of tensorflow for another system: tensorflow requires it where it is needed"
    return [
        with_change(verdict._replace(reason=reason), without(verdict.requirement, kind))
        if verdict.requirement.name in _OTHER_SYSTEMS
        else verdict
        for verdict in verdicts
        if verdict.requirement.name not in _OTHER_SYSTEMS or kind not in LOCK_FORMATS
    ]


def with_owners(verdicts: list[RequirementVerdict], kind: FileFormat) -> list[RequirementVerdict]:
    """Two packages with one module overwrite each other's files."""
    owners: dict[str, list[RequirementVerdict]] = {}
    for verdict in verdicts:
        row = provider(verdict.requirement.name)
        is_here = verdict.requirement.name not in _OTHER_SYSTEMS
        if row is not None and verdict.requirement.manager == "pip" and is_here:
            owners.setdefault(row.module, []).append(verdict)
    changed = dict[PinnedRequirement, RequirementVerdict]()
    for module, found in owners.items():
        names = dict.fromkeys(verdict.requirement.name for verdict in found)
        groups = {verdict.requirement.group for verdict in found}
        if len(names) < 2 or len(groups) > 1:
            continue
        best = max(found, key=_use)
        for verdict in found:
            is_removed = verdict.kind == "removed"
            if is_removed or _have_same_files(verdict, best):
                continue
            if verdict.requirement.name != best.requirement.name:
                reason = (
                    f"and {best.requirement.name} both install the module {module}: the one that "
                    "is installed last overwrites the other"
                )
                replaced = RequirementVerdict(verdict.requirement, "cannot", reason, "two-owners")
                removed = without(verdict.requirement, kind)
                changed[verdict.requirement] = with_change(replaced, removed)
    return [changed.get(verdict.requirement, verdict) for verdict in verdicts]


def _use(verdict: RequirementVerdict) -> tuple[int, bool]:
    """Of several packages with one module, the one to keep has the most of it."""
    ability = ("cannot", "unknown", "can").index(verdict.ability)
    return ability, verdict.kind != "cpu-build"


def _have_same_files(one: RequirementVerdict, other: RequirementVerdict) -> bool:
    """From 2.1 to 2.11, tensorflow and tensorflow-gpu of one release are the same build."""
    pair = (one.requirement, other.requirement)
    if {each.name for each in pair} != {"tensorflow", "tensorflow-gpu"}:
        return False
    ranges = {each.specifier.replace(" ", "") for each in pair}
    found = re.fullmatch(r"(?:===?2\.(\d{1,3})(?:\.\d+)?|~=2\.(\d{1,3})\.\d+)", ranges.pop())
    return not ranges and found is not None and 1 <= int(found[1] or found[2]) <= 11


def mixed_cuda(requirements: Iterable[PinnedRequirement]) -> Iterator[RequirementVerdict]:
    """NVIDIA's wheels for two CUDA releases install the same files.

    Of two optional parts of a project, users install one: only what is in the same part, or always
    installed, is together.
    """
    seen: dict[str, list[tuple[str, PinnedRequirement]]] = {}
    for requirement in requirements:
        match = _CUDA_PACKAGE.match(requirement.name)
        if match is None or match[1] not in SHARED_FOLDERS:
            continue
        known = seen.setdefault(match[1], [])
        other = next(
            (
                each
                for release, each in known
                if release != match[2]
                and (each.group == requirement.group or not (each.group and requirement.group))
            ),
            None,
        )
        known.append((match[2], requirement))
        if other is not None:
            reason = (
                f"and {other.name} install the same files (nvidia/{match[1]}): the one that "
                "is installed last overwrites the other"
            )
            yield RequirementVerdict(
                requirement,
                "cannot",
                reason,
                "mixed-cuda",
                advice="Use builds of all frameworks for one CUDA release.",
            )


def with_alternatives(verdicts: list[RequirementVerdict]) -> list[RequirementVerdict]:
    """A CPU build in an optional part is the author's choice if another part has the GPU build."""
    served = {
        row.framework
        for verdict in verdicts
        if verdict.ability == "can" and (row := provider(verdict.requirement.name))
    }

    def is_alternative(verdict: RequirementVerdict) -> bool:
        row = provider(verdict.requirement.name)
        is_choice = verdict.ability == "cannot" and verdict.requirement.is_optional
        if not is_choice or row is None or not served:
            return False
        return row.framework in served or _FOR_CPU.search(verdict.requirement.group) is not None

    return [verdict._replace(is_alternative=is_alternative(verdict)) for verdict in verdicts]


def together(
    verdicts: list[RequirementVerdict],
    applying: Sequence[PinnedRequirement],
    context: FileContext,
    unchecked: list[str],
) -> Iterator[RequirementVerdict]:
    """Requirements that can use the GPU by themselves, but not in one environment."""
    usable = [v for v in verdicts if v.ability == "can" and not v.requirement.is_optional]
    wishes = {
        row.framework: Wish(row.framework, public_range(v.requirement.specifier))
        for v in usable
        if (row := provider(v.requirement.name))
    }
    keras = next((r for r in applying if r.name == "keras" and r.manager == "pip"), None)
    backends = [name for name in wishes if name in BACKENDS]
    if keras is not None and backends:
        wishes["keras"] = Wish("keras", public_range(keras.specifier))
    if len(wishes) < 2:
        yield from verdicts
        return
    try:
        answer = make_plan(context.machine, tuple(wishes.values()), context.table)
    except (UsageError, ValueError) as error:
        unchecked.append(f"Whether they work together was not checked: {error}.")
        yield from verdicts
        return
    if answer.gave_up:
        unchecked.append(f"Whether they work together was not decided: {answer.gave_up}.")
    if answer.plan is not None or answer.gave_up:
        unchecked.extend(_other_builds(usable, context))
        yield from verdicts
        return
    last = keras if keras is not None and "keras" in answer.conflict else usable[-1].requirement
    reason = f"does not work together with the other requirements: {answer.conflict}"
    replaced = RequirementVerdict(last, "cannot", reason, "conflict")
    replaced = replaced._replace(advice=_keras_advice(keras, tuple(wishes.values())))
    yield from (v for v in verdicts if v.requirement != last)
    yield replaced


def _other_builds(usable: Iterable[RequirementVerdict], context: FileContext) -> Iterator[str]:
    """The plan knows what PyTorch requires on the default index. A build from one of PyTorch's own
    requires other packages of NVIDIA, or none.
    """
    if not context.machine.platform_name.startswith("linux"):
        return
    others = [v.requirement.name for v in usable if v.requirement.name in ("tensorflow", "jax")]
    for verdict in usable:
        tag = torch_source(verdict.requirement).tag if verdict.requirement.name == "torch" else ""
        if tag.startswith("cu") and others:
            yield (
                f"Whether torch from the index {tag} can be installed beside "
                f"{and_list(others)} was not checked: which packages of NVIDIA that build requires "
                "is not on record."
            )


def _keras_advice(keras: PinnedRequirement | None, wishes: tuple[Wish, ...]) -> str:
    backend = keras_backend(wishes)
    if keras is None or backend is None:
        return ""
    match = re.search(r"==\s*([\d.]+)", keras.specifier)
    limit = backend_limit(match[1], backend) if match else None
    if limit is None:
        return ""
    if limit.requirement is None:
        return f"Keras {match[1] if match else ''} {limit.because}.".replace("  ", " ")
    return f"This Keras needs {limit.requirement}: it {limit.because}."
