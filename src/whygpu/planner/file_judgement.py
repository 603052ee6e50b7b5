"""What of a requirements file cannot use the GPU of a machine, why, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.markers import Marker

from whygpu.errors import UsageError
from whygpu.model.derived import display_name
from whygpu.model.install_plan import Candidate, PlanAnswer, ReleaseVerdict, Wish
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known, Observed
from whygpu.model.requirement_file import (
    LOCK_FORMATS,
    FileAnswer,
    FileFormat,
    LineEdit,
    PackageSource,
    PinnedRequirement,
    ProblemKind,
    RequirementsFile,
    RequirementVerdict,
)
from whygpu.planner.candidate_cache import marker_environment
from whygpu.planner.candidates import Table
from whygpu.planner.conda_judgement import conda_verdict
from whygpu.planner.constraints import is_driver_too_new, is_too_old
from whygpu.planner.file_builds import (
    FileContext,
    Problem,
    build_of,
    is_torch_index,
    other_index,
    public_range,
)
from whygpu.planner.file_companions import (
    COMPANIONS,
    torch_limit,
    unfit_companions,
    with_implied_torch,
)
from whygpu.planner.file_company import (
    mixed_cuda,
    together,
    with_alternatives,
    with_owners,
    without_parts,
)
from whygpu.planner.file_edits import Change, change_to, renamed, sources_of, unknown, with_change
from whygpu.planner.planning import judge, make_plan
from whygpu.planner.wishes import FRAMEWORKS, contains
from whygpu.tables.distributions import provider
from whygpu.tables.package_names import other_name
from whygpu.tables.python_releases import RELEASES
from whygpu.tables.versions import release_numbers

_NIGHTLY = ("tf-nightly", "tf-nightly-gpu", "keras-nightly", "ort-nightly", "ort-nightly-gpu")
_CPU_LOCAL = re.compile(r"===?[\w.]+\+cpu$")
_BROUGHT_ALONG = "Remove it if pip installs the framework, whose package says which CUDA it needs."
_CUDA_LIBRARIES = ("nvidia-cudnn-cu", "cudnn", "cudatoolkit", "cuda-toolkit", "cuda-libraries")
"""How the packages begin that bring the libraries which TensorFlow opens."""


def judge_file(file: RequirementsFile, machine: MachineSpec, table: Table) -> FileAnswer:
    machine, unchecked = _with_python(machine, file)
    applying = list[PinnedRequirement]()
    for requirement in file.requirements:
        applies = _applies(requirement, machine)
        if applies is None:
            unchecked.append(
                f"{_where(requirement)}: the condition {requirement.marker!r} was not understood."
            )
        elif applies:
            applying.append(_constrained(requirement, file.constraints))
    if file.format not in LOCK_FORMATS:
        applying = with_implied_torch(applying)
    ranges = {requirement.name: requirement.specifier for requirement in applying}
    context = FileContext(
        machine, table, ranges, torch_limit(applying, table), _only_in_parts(applying)
    )
    judged = _Judge(file.format, context, applying)
    verdicts = [v for each in applying if (v := judged.verdict(each)) is not None]
    verdicts = with_owners(without_parts(verdicts, file.format), file.format)
    verdicts += mixed_cuda(applying)
    verdicts = with_alternatives(verdicts)
    verdicts = list(together(verdicts, applying, judged.context, unchecked))
    order = {requirement: number for number, requirement in enumerate(applying)}
    verdicts.sort(key=lambda verdict: order.get(verdict.requirement, len(order)))
    return FileAnswer(machine, table.edition, file, tuple(verdicts), tuple(unchecked))


def _where(requirement: PinnedRequirement) -> str:
    return f"{requirement.place.file}:{requirement.place.line}"


def _with_python(machine: MachineSpec, file: RequirementsFile) -> tuple[MachineSpec, list[str]]:
    """The machine with the Python of the environment that the file creates, if it says one."""
    locked = _locked_python(machine, file)
    wanted = locked or file.requires_python
    known = machine.python
    mine = known.value if isinstance(known, Known) else None
    try:
        fits = mine is not None and contains(wanted, mine if mine.count(".") > 1 else f"{mine}.99")
        allowed = [row.version for row in RELEASES if contains(wanted, f"{row.version}.99")]
    except ValueError:
        return machine, [f"The Python that {file.path} asks for ({wanted}) was not understood."]
    if not wanted or fits:
        return machine, []
    pinned = re.fullmatch(r"===?(\d+\.\d+)(\.\d+)*(\.\*)?", wanted)
    if (file.format == "environment.yml" or locked) and pinned is not None:
        # conda installs this Python itself.
        return machine._replace(python=Known(pinned[1], file.path)), []
    if mine is None:
        return machine, []
    if not _is_given(known) and allowed:
        # The project cannot be installed with the Python that happens to be here.
        return machine._replace(python=Known(_nearest(allowed, mine), file.path)), []
    return machine, [
        f"{file.path} is for Python {wanted}; it was judged for Python {mine} (--python)."
    ]


def _nearest(pythons: Sequence[str], mine: str) -> str:
    return min(pythons, key=lambda version: _distance(version, mine))


def _distance(python: str, mine: str) -> tuple[int, int]:
    (major, minor), own = release_numbers(python)[:2], release_numbers(mine)
    return abs(major - own[0]), abs(minor - own[1])


def _locked_python(machine: MachineSpec, file: RequirementsFile) -> str:
    """The Python that a lock file installs as a package of conda; empty if it does not."""
    if file.format not in ("pixi.lock", "conda-lock.yml"):
        return ""
    return next(
        (
            requirement.specifier
            for requirement in file.requirements
            if (requirement.name, requirement.manager) == ("python", "conda")
            and not requirement.is_optional
            and _applies(requirement, machine)
        ),
        "",
    )


def _is_given(python: Observed[str]) -> bool:
    """Whether the user has named the Python."""
    return isinstance(python, Known) and python.source == "--python"


def _applies(requirement: PinnedRequirement, machine: MachineSpec) -> bool | None:
    """Whether its condition holds on the machine; None if the condition was not understood."""
    if not requirement.marker:
        return True
    try:
        environment = {**marker_environment(machine), "extra": ""}
        return Marker(requirement.marker).evaluate(environment)
    except (ValueError, RecursionError):
        # Every error of packaging's markers and versions is a ValueError.
        return None


def _only_in_parts(requirements: Sequence[PinnedRequirement]) -> dict[str, str]:
    """The packages that only an optional part installs, with that part."""
    always = {each.name for each in requirements if not each.is_optional}
    return {each.name: each.group for each in requirements if each.name not in always}


def _constrained(
    requirement: PinnedRequirement, constraints: Sequence[PinnedRequirement]
) -> PinnedRequirement:
    limits = [each.specifier for each in constraints if each.name == requirement.name]
    joined = ",".join(dict.fromkeys(filter(None, (requirement.specifier, *limits))))
    return requirement._replace(specifier=joined)


class _Judge:
    """Judges the requirements of one file, each by itself."""

    def __init__(
        self, kind: FileFormat, context: FileContext, applying: Sequence[PinnedRequirement]
    ) -> None:
        self._format = kind
        self.context = context
        self._applying = applying

    def verdict(self, requirement: PinnedRequirement) -> RequirementVerdict | None:
        """None for packages that do not decide whether the GPU is used."""
        if requirement.manager == "conda":
            return conda_verdict(requirement, self._format, self.context)
        row = provider(requirement.name)
        if row is None:
            return self._other(requirement)
        if row.framework not in FRAMEWORKS or row.framework == "keras":
            return None
        if requirement.name in _NIGHTLY:
            return unknown(requirement, "was not checked: nightly builds are not in the table")
        if requirement.url and "==" not in requirement.specifier:
            return unknown(requirement, f"was not checked: it comes from {requirement.url}")
        if requirement.name in ("onnxruntime",) or row.kind == "cpu":
            return self._cpu(requirement, row.framework)
        if row.kind in ("rocm", "directml", "other"):
            reason = f"is built for {row.kind}, not for CUDA"
            return RequirementVerdict(requirement, "cannot", reason, "other-gpus")
        if not self.context.table.versions(requirement.name):
            return unknown(requirement, f"was not checked: it is not in {self.context.table.name}")
        return self._framework(requirement, row.framework)

    def _other(self, requirement: PinnedRequirement) -> RequirementVerdict | None:
        wrong = other_name(requirement.name)
        if wrong is not None and not other_index(requirement):
            reason = f"is not the name of the package for pip, which is {wrong.right}"
            verdict = RequirementVerdict(requirement, "cannot", reason, "wrong-name")
            if wrong.framework is None and requirement.specifier:
                # The packages of NVIDIA have releases of their own.
                return verdict._replace(advice=_BROUGHT_ALONG)
            return with_change(verdict, renamed(requirement, wrong.right))
        if requirement.name in COMPANIONS and _CPU_LOCAL.match(requirement.specifier):
            reason = "is the build for the CPU"
            verdict = RequirementVerdict(requirement, "cannot", reason, "cpu-build")
            edit = LineEdit(requirement.place, requirement.place.text.replace("+cpu", ""))
            return with_change(verdict, Change((edit,)))
        return None

    def _cpu(self, requirement: PinnedRequirement, framework: str) -> RequirementVerdict:
        if self.context.machine.platform_name.startswith("macosx"):
            return unknown(requirement, "was not checked: the table has no such build for macOS")
        reason = f"is {display_name(framework)} for the CPU only"
        verdict = RequirementVerdict(requirement, "cannot", reason, "cpu-build")
        return self._changed(verdict, framework)

    def _framework(self, requirement: PinnedRequirement, framework: str) -> RequirementVerdict:
        verdict = self._by_its_build(requirement, framework)
        if not requirement.required_by:
            return verdict
        reason = f"is required by {requirement.required_by}, and {verdict.reason}"
        return verdict._replace(reason=reason)

    def _by_its_build(self, requirement: PinnedRequirement, framework: str) -> RequirementVerdict:
        if requirement.ignored is not None and is_torch_index(requirement.ignored.url):
            return self._without_index(requirement, requirement.ignored, framework)
        found = build_of(requirement, self.context)
        if isinstance(found, Problem):
            verdict = RequirementVerdict(requirement, found.ability, found.reason, found.kind)
            return verdict if found.ability == "unknown" else self._changed(verdict, framework)
        verdict = self._of_build(requirement, found)._replace(version=found.version)
        return self._changed(verdict, framework) if verdict.ability == "cannot" else verdict

    def _without_index(
        self, requirement: PinnedRequirement, index: PackageSource, framework: str
    ) -> RequirementVerdict:
        """The verdict on a requirement whose line names an index of PyTorch, which pip ignores."""
        line = requirement.place
        text = line.text.partition(" -")[0].rstrip()
        plain = requirement._replace(ignored=None, place=line._replace(text=text))
        if "+" in plain.specifier and not plain.sources:
            reason = "cannot be installed: the default index has no build with a local version"
            verdict = RequirementVerdict(plain, "cannot", reason, "no-release-fits")
            verdict = self._changed(verdict, framework)
        else:
            verdict = self._framework(plain, framework)
        if verdict.ability != "cannot":
            return verdict._replace(requirement=requirement)
        edits = tuple(
            edit._replace(place=line) if edit.place == plain.place else edit
            for edit in verdict.edits
        )
        meant = build_of(plain._replace(sources=(index,)), self.context)
        if isinstance(meant, Candidate) and judge(meant, self.context.machine).fits:
            build = f"{meant.package}=={meant.version}+{meant.torch_index}"
            edits = (LineEdit(line, f"--extra-index-url {index.url}\n{build}"),)
        return verdict._replace(
            requirement=requirement,
            reason=f"{verdict.reason}; pip ignores the index in this line",
            edits=edits,
            advice="pip reads an index from a line of its own only, and uv refuses this line.",
        )

    def _of_build(self, requirement: PinnedRequirement, build: Candidate) -> RequirementVerdict:
        """The verdict on the release that pip installs."""
        name = f"installs {_release(build)}, which"
        judged = judge(build, self.context.machine)
        if judged.breaks is not None and not judged.has_only_a_defect:
            kind = self._kind(build, judged)
            return RequirementVerdict(requirement, "cannot", f"{name} {judged.reason}", kind)
        missing = self._missing_libraries(requirement, build)
        if missing:
            return RequirementVerdict(
                requirement, "cannot", f"{name} {missing}", "cuda-not-included"
            )
        if judged.has_only_a_defect:
            return RequirementVerdict(requirement, "cannot", f"{name} {judged.reason}", "defect")
        if judged.unchecked:
            return unknown(requirement, f"{name} {judged.unchecked[0]}")
        if build.framework in ("onnxruntime", "cupy") and not self._brings_cuda():
            wanted = f"CUDA {build.cuda}"
            return unknown(requirement, f"{name} needs {wanted} on the machine: not checked")
        part = "" if requirement.is_optional else self._part_with_cuda(build)
        with_part = f", and what it needs of CUDA with {part} only" if part else ""
        return RequirementVerdict(requirement, "can", f"installs {_release(build)}{with_part}")

    def _part_with_cuda(self, build: Candidate) -> str:
        """The optional part without which the CUDA libraries of a release are not installed."""
        begins = {"jax": ("jax-cuda",), "tensorflow": _CUDA_LIBRARIES}.get(build.framework, ())
        if not begins or build.extra in ("",):
            return ""
        names = [name for name in self.context.ranges if name.startswith(begins)]
        parts = [self.context.parts.get(name, "") for name in names]
        return parts[0] if parts and all(parts) else ""

    def _kind(self, build: Candidate, judged: ReleaseVerdict) -> ProblemKind:
        if judged.breaks in ("platform", "build"):
            return "cpu-build"
        if judged.breaks == "driver" and not is_driver_too_new(self.context.machine):
            return "driver-too-old"
        gpus = self.context.machine.gpus
        if judged.breaks == "architecture" and isinstance(gpus, Known):
            too_old = any(is_too_old(build, gpu) for gpu in gpus.value)
            return "gpu-too-old" if too_old else "gpu-too-new"
        return "no-release-fits"

    def _missing_libraries(self, requirement: PinnedRequirement, build: Candidate) -> str:
        """TensorFlow without its extra, or without its plug-in on a Mac, finds no GPU by itself."""
        if build.uses == "metal":
            missing = [part for part in build.parts[1:] if part.package not in self.context.ranges]
            return f"needs {missing[0].package}=={missing[0].version}" if missing else ""
        if build.framework != "tensorflow" or self._brings_cuda():
            return ""
        if build.extra and build.extra in requirement.extras:
            return ""
        cudnn = f" and cuDNN {build.cudnn}" if build.cudnn else ""
        return (
            f"does not include the CUDA libraries: it uses the GPU only if CUDA {build.cuda}"
            f"{cudnn} are installed on the machine otherwise"
        )

    def _brings_cuda(self) -> bool:
        return any(name.startswith(_CUDA_LIBRARIES) for name in self.context.ranges)

    def _changed(self, verdict: RequirementVerdict, framework: str) -> RequirementVerdict:
        """The verdict with the smallest change that helps, if there is one."""
        requirement = verdict.requirement
        for specifier in self._ranges_to_try(requirement, framework):
            answer = _planned(framework, specifier, self.context)
            if answer is None or answer.plan is None or answer.needs_remedy:
                continue
            chosen = self._easy_to_write(answer, requirement)
            keeps_range = self._leads_to(requirement, chosen)
            change = change_to(requirement, chosen, self._format, keeps_range)
            change = self._with_the_rest(change, chosen)
            older = self._other_python(requirement) if verdict.kind == "no-release-fits" else ""
            advice = " ".join(filter(None, (change.advice, older)))
            return with_change(verdict, change._replace(advice=advice))
        advice = (
            f"No release of {display_name(framework)} can use the GPU here: "
            f"`whygpu plan {framework}` says what would have to change."
        )
        return verdict._replace(advice=advice)

    def _easy_to_write(self, answer: PlanAnswer, requirement: PinnedRequirement) -> Candidate:
        """The release of the plan, or the newest on the default index if the file names no other.

        In requirements.txt, another index is one more line. Elsewhere it is a setting of each tool.
        """
        chosen = answer.plan.chosen[0] if answer.plan else answer.candidates[0].candidate
        if not chosen.torch_index or self._format == "requirements.txt" or requirement.sources:
            return chosen
        fitting = (verdict for verdict in answer.candidates if verdict.fits)
        return next((v.candidate for v in fitting if not v.candidate.torch_index), chosen)

    def _ranges_to_try(self, requirement: PinnedRequirement, framework: str) -> Iterator[str]:
        """Smallest change first: a release that goes with the rest of the file, then any."""
        near = list(dict.fromkeys((*_near(requirement.specifier), "")))
        limit = self.context.torch_limit if framework == "torch" else ""
        if limit:
            yield from (",".join(filter(None, (specifier, limit))) for specifier in near)
        yield from near

    def _with_the_rest(self, change: Change, chosen: Candidate) -> Change:
        """The change, with what else the chosen release needs."""
        advice = [change.advice] if change.advice else []
        needs_cuda = chosen.framework == "tensorflow" and chosen.uses == "cuda" and not chosen.extra
        if needs_cuda and not self._brings_cuda():
            advice.append(
                f"CUDA {chosen.cuda} must be installed on the machine: "
                f"`whygpu plan tensorflow=={chosen.version}` shows how."
            )
        if chosen.framework == "tensorflow" and self._format not in LOCK_FORMATS:
            advice.append(self._unfit_keras(chosen))
        if chosen.framework == "torch" and self._format not in LOCK_FORMATS:
            advice.append(unfit_companions(self._applying, chosen.version))
        return change._replace(advice=" ".join(filter(None, advice)))

    def _unfit_keras(self, chosen: Candidate) -> str:
        """A Keras of the file that does not go with the chosen TensorFlow."""
        keras = next((r for r in self._applying if r.name == "keras" and r.manager == "pip"), None)
        if keras is None or not keras.specifier:
            return ""
        wishes = (
            Wish("tensorflow", f"=={chosen.version}"),
            Wish("keras", public_range(keras.specifier)),
        )
        try:
            answer = make_plan(self.context.machine, wishes, self.context.table)
        except (UsageError, ValueError):
            return ""
        if answer.plan is not None or answer.gave_up:
            return ""
        return (
            f"keras{keras.specifier} does not go with it: remove that line, because TensorFlow "
            "requires the Keras that belongs to it."
        )

    def _other_python(self, requirement: PinnedRequirement) -> str:
        """The nearest Python with which the requirement can stay as it is, as a sentence."""
        machine = self.context.machine
        mine = machine.python_minor
        if mine is None or self._format in ("environment.yml", "pixi.lock", "conda-lock.yml"):
            return ""
        others = [row.version for row in RELEASES if row.version != mine]
        for version in sorted(others, key=lambda other: _distance(other, mine)):
            python = Known(version, "a change")
            there = self.context._replace(machine=machine._replace(python=python))
            build = build_of(requirement, there)
            if isinstance(build, Candidate) and judge(build, there.machine).fits:
                return f"Or keep the line and use Python {version}."
        return ""

    def _leads_to(self, requirement: PinnedRequirement, chosen: Candidate) -> bool:
        """Whether pip chooses this release in the requirement's own range."""
        extras = tuple(sorted({*requirement.extras, chosen.extra} - {""}))
        same = requirement._replace(
            name=chosen.package, extras=extras, specifier=public_range(requirement.specifier)
        )
        if chosen.framework == "torch":
            same = same._replace(sources=sources_of(requirement, chosen))
        found = build_of(same, self.context)
        return isinstance(found, Candidate) and found.version == chosen.version


def _release(build: Candidate) -> str:
    local = f"+{build.torch_index}" if build.torch_index else ""
    return f"{build.package} {build.version}{local}"


def _near(specifier: str) -> Iterator[str]:
    """Ranges near that of a requirement: its own, then that of its minor release."""
    plain = public_range(specifier)
    yield plain
    exact = re.fullmatch(r"===?(\d+)\.(\d+)[\d.]*", plain)
    if exact is not None:
        yield f"=={exact[1]}.{exact[2]}.*"


def _planned(framework: str, specifier: str, context: FileContext) -> PlanAnswer | None:
    try:
        return make_plan(context.machine, (Wish(framework, specifier),), context.table)
    except (UsageError, ValueError):
        # A range that no release of the table is in.
        return None
