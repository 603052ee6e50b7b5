"""Makes a plan from a machine, wishes and the table, or says what prevents it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from whygpu.errors import UsageError
from whygpu.model.install_plan import (
    Candidate,
    FitCheck,
    Plan,
    PlanAnswer,
    ReleaseAnswer,
    ReleaseVerdict,
    Solution,
    Wish,
)
from whygpu.model.machine_spec import MachineSpec
from whygpu.planner.candidate_cache import CandidateCache
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.constraints import checks
from whygpu.planner.release_search import GaveUp, Nothing, search
from whygpu.planner.resolve import Conflict, TooDeep, resolve, unmet
from whygpu.planner.wishes import allows, asks_for_newer, keras_backend

_INSTALLABLE = ("python", "platform", "glibc")
_FAR_BEHIND = 0.5
"""A release is far behind if it is in the older half of those that fit by themselves."""


Fitting = list[tuple[str, list[Candidate]]]
"""For each wish, the releases that fit by themselves, newest first."""
Company = dict[str, Candidate]
"""One release for each wish."""


def make_plan(
    machine: MachineSpec, wishes: Sequence[Wish], table: Table, *, may_guess: bool = False
) -> PlanAnswer:
    """The newest releases that fit the machine and each other.

    `may_guess`: if no others fit, also builds whose requirements are unknown. The verdicts say so.
    """
    cache = CandidateCache(machine, table, keras_backend(wishes))
    judged = {wish.framework: _judge_all(wish, cache) for wish in wishes}
    answer = PlanAnswer(machine, tuple(wishes), None, _flat(judged), _refused_by_others(judged))
    tried: list[Fitting] = []
    for fitting in _choices(judged, machine, may_guess=may_guess):
        if all(options for _, options in fitting) and fitting not in tried:
            answer = _together(tuple(wishes), judged, fitting, cache)
            if answer.plan is not None:
                return answer
            tried.append(fitting)
    return answer


def _choices(
    judged: dict[str, tuple[ReleaseVerdict, ...]], machine: MachineSpec, *, may_guess: bool
) -> Iterator[Fitting]:
    """What to choose from, best first; each includes the choices before it.

    A release with a defect that has a remedy is better than one whose build is not known, that is
    better than one that is likely to fail, that is better than one whose requirements are not
    known, and all are better than none.
    """
    accepted: list[Fitting] = [
        [
            (name, [verdict.candidate for verdict in verdicts if accepts(verdict)])
            for name, verdicts in judged.items()
        ]
        for accepts in (_is_sound, _is_sound_or_has_a_remedy, _is_not_refuted, _may_work)
    ]
    yield from (_preferred(fitting, machine) for fitting in accepted)
    if may_guess:
        yield from accepted


def _is_sound(verdict: ReleaseVerdict) -> bool:
    return verdict.fits and _is_sound_or_has_a_remedy(verdict)


def _is_sound_or_has_a_remedy(verdict: ReleaseVerdict) -> bool:
    return _is_not_refuted(verdict) and not verdict.candidate.unread


def _is_not_refuted(verdict: ReleaseVerdict) -> bool:
    return _may_work(verdict) and not verdict.likely_failure


def _may_work(verdict: ReleaseVerdict) -> bool:
    return verdict.fits or verdict.has_only_a_defect


def _share_libraries(frameworks: Iterable[str], machine: MachineSpec) -> bool:
    """Whether several wishes install packages of NVIDIA. Keras never does, nor anything on Windows.

    Which of these packages the builds on PyTorch's own indexes require was not read.
    """
    users = [name for name in frameworks if name != "keras"]
    return len(users) > 1 and machine.platform_name.startswith("linux")


def _preferred(fitting: Fitting, machine: MachineSpec) -> Fitting:
    """Builds whose requirements are known, if it matters and if there are any."""
    if not _share_libraries((name for name, _ in fitting), machine):
        return fitting
    return [
        (name, [item for item in options if not item.torch_index] or options)
        for name, options in fitting
    ]


def _refused_by_others(judged: dict[str, tuple[ReleaseVerdict, ...]]) -> str:
    """The reason if every release of a wish fits the machine, but not the packages it needs."""
    for verdicts in judged.values():
        if all(verdict.breaks == "conflict" for verdict in verdicts):
            newest = verdicts[0]
            return f"{newest.candidate.package} {newest.candidate.version} {newest.reason}"
    return ""


def judge(candidate: Candidate, machine: MachineSpec) -> ReleaseVerdict:
    """Judge a release by itself, up to the first constraint that it breaks."""
    seen: list[FitCheck] = []
    for check in checks(candidate, machine):
        seen.append(check)
        if check.outcome == "breaks":
            break
    last = seen[-1]
    broken = last.outcome == "breaks"
    return ReleaseVerdict(
        candidate,
        last.constraint if broken else None,
        last.reason if broken else "",
        tuple(check.reason for check in seen if check.outcome == "unchecked"),
        tuple(check.reason for check in seen if check.outcome == "note"),
        next((c.reason for c in seen if (c.constraint, c.outcome) == ("reports", "unchecked")), ""),
    )


def _judge_all(wish: Wish, cache: CandidateCache) -> tuple[ReleaseVerdict, ...]:
    every = candidates(wish.framework, cache.table, cache.machine.platform_name)
    allowed = [item for item in every if allows(wish, item.version)]
    if not allowed:
        raise UsageError(f"{wish}: {_not_in_table(wish, every, cache.table)}")
    return tuple(_installable(judge(item, cache.machine), cache) for item in allowed)


def _not_in_table(wish: Wish, every: Sequence[Candidate], table: Table) -> str:
    if not every:
        return "no such release in the table; it has none"
    newest = every[0].version
    if asks_for_newer(wish, newest):
        return (
            f"newer than {table.name}, which ends at {newest}; `whygpu plan --update` reads the "
            "package index for new releases"
        )
    return f"no such release in the table; it has {every[-1].version} to {newest}"


def _installable(verdict: ReleaseVerdict, cache: CandidateCache) -> ReleaseVerdict:
    """A release may fit although a required package does not, or its backend does not work."""
    limit = cache.backend_limit(verdict.candidate.package, verdict.candidate.version)
    if verdict.fits and limit is not None and limit.requirement is None:
        return verdict._replace(breaks="conflict", reason=limit.because)
    refused = unmet(verdict.candidate, cache) if verdict.fits or verdict.has_only_a_defect else None
    if refused is None:
        return verdict
    return verdict._replace(breaks="conflict", reason=refused.reason(verdict.candidate))


def _together(
    wishes: tuple[Wish, ...],
    judged: dict[str, tuple[ReleaseVerdict, ...]],
    fitting: Fitting,
    cache: CandidateCache,
) -> PlanAnswer:
    solution = _best(fitting, cache)
    if isinstance(solution, GaveUp):
        return PlanAnswer(cache.machine, wishes, None, _flat(judged), "", gave_up=str(solution))
    if isinstance(solution, Nothing):
        named, newest = _named(fitting, cache)
        marked = {
            name: tuple(_in_company(verdict, newest, cache) for verdict in verdicts)
            for name, verdicts in judged.items()
        }
        return PlanAnswer(cache.machine, wishes, None, _flat(marked), named.reason())
    chosen = {candidate.framework: candidate for candidate in solution.chosen}
    explained = {
        name: _explain_newer(name, verdicts, chosen, cache) for name, verdicts in judged.items()
    }
    chosen_verdicts = tuple(
        next(verdict for verdict in verdicts if verdict.candidate == chosen[name])
        for name, verdicts in judged.items()
    )
    if _share_libraries(chosen, cache.machine):
        chosen_verdicts = tuple(map(_with_unread_requirements, chosen_verdicts))
    return PlanAnswer(cache.machine, wishes, Plan(solution, chosen_verdicts), _flat(explained), "")


def _with_unread_requirements(verdict: ReleaseVerdict) -> ReleaseVerdict:
    index = verdict.candidate.torch_index
    if not index:
        return verdict
    reason = f"may require other packages of NVIDIA: those of the builds on {index} were not read"
    return verdict._replace(unchecked=(*verdict.unchecked, reason))


def _named(fitting: Fitting, cache: CandidateCache) -> tuple[Conflict, Company]:
    """Why the newest releases do not fit each other, if it is known that none do.

    A release may have builds for several CUDA releases. Files that two builds share are the reason
    only if no pair of builds has a better one.
    """
    builds = [
        [item for item in options if item.version == options[0].version] for _, options in fitting
    ]
    companies = [{item.framework: item for item in group} for group in product(*builds)]
    tried = [(_alone(company, cache), company) for company in companies]
    refused = [(found, company) for found, company in tried if isinstance(found, Conflict)]
    if not refused:
        return Conflict((), "no combination was found"), companies[0]
    return next((item for item in refused if not item[0].about_files), refused[0])


def _alone(company: Company, cache: CandidateCache) -> Solution | Conflict | TooDeep:
    """Exactly these releases, and no others."""
    return resolve([(name, [item]) for name, item in company.items()], cache)


def _in_company(verdict: ReleaseVerdict, company: Company, cache: CandidateCache) -> ReleaseVerdict:
    """A release that fits by itself, checked together with the other chosen releases."""
    if not verdict.fits:
        return verdict
    found = _alone({**company, verdict.candidate.framework: verdict.candidate}, cache)
    if not isinstance(found, Conflict):
        return verdict
    return verdict._replace(breaks="conflict", reason=found.reason(verdict.candidate))


def _best(fitting: Fitting, cache: CandidateCache) -> Solution | Nothing | GaveUp:
    """Earlier wishes choose first, unless that leaves a later one far behind."""
    solutions: list[tuple[float, Solution]] = []
    for first in range(len(fitting)):
        order = [fitting[first], *fitting[:first], *fitting[first + 1 :]]
        found = search(order, cache)
        if isinstance(found, Nothing):
            # The order of the choices does not change the combinations.
            return found
        if isinstance(found, GaveUp):
            continue
        by_name = {candidate.framework: candidate for candidate in found.chosen}
        solution = found._replace(chosen=tuple(by_name[name] for name, _ in fitting))
        age = _age(solution, fitting)
        if age <= _FAR_BEHIND:
            return solution
        solutions.append((age, solution))
    return min(solutions, key=lambda item: item[0])[1] if solutions else found


def _age(solution: Solution, fitting: Fitting) -> float:
    """How far the oldest choice is behind its newest release, as a fraction of all that fit."""
    return max(
        options.index(chosen) / len(options)
        for chosen, (_, options) in zip(solution.chosen, fitting, strict=True)
    )


def _explain_newer(
    framework: str, verdicts: tuple[ReleaseVerdict, ...], chosen: Company, cache: CandidateCache
) -> tuple[ReleaseVerdict, ...]:
    """Add the reason to releases that fit by themselves and are newer than those of the plan."""
    place = next(i for i, v in enumerate(verdicts) if v.candidate == chosen[framework])
    shared = _share_libraries(chosen, cache.machine)
    together = (_in_company(verdict, chosen, cache) for verdict in verdicts[:place])
    newer = (_with_unread_requirements(v) if shared and v.fits else v for v in together)
    return (*newer, *verdicts[place:])


def _flat(judged: dict[str, tuple[ReleaseVerdict, ...]]) -> tuple[ReleaseVerdict, ...]:
    return tuple(verdict for verdicts in judged.values() for verdict in verdicts)


def why_not(
    machine: MachineSpec, wish: Wish, others: Sequence[Wish], table: Table
) -> ReleaseAnswer:
    """Check the newest release that a wish allows against every constraint and the other wishes."""
    cache = CandidateCache(machine, table, keras_backend((wish, *others)))
    judged = _best_build(_judge_all(wish, cache))
    own = tuple(checks(judged.candidate, machine))
    if any(check.outcome == "breaks" and check.constraint in _INSTALLABLE for check in own):
        # A release that cannot be installed has no conflict with other packages.
        return ReleaseAnswer(judged.candidate, own, machine)
    conflict = _conflict_check(judged, wish, others, cache)
    return ReleaseAnswer(judged.candidate, (*own, conflict), machine)


def _best_build(verdicts: Sequence[ReleaseVerdict]) -> ReleaseVerdict:
    """Of the newest release, the first build that fits; the first one if none does."""
    newest = verdicts[0]
    name = newest.candidate.requirement
    builds = (verdict for verdict in verdicts if verdict.candidate.requirement == name)
    return next((build for build in builds if build.fits), newest)


def _conflict_check(
    judged: ReleaseVerdict, wish: Wish, others: Sequence[Wish], cache: CandidateCache
) -> FitCheck:
    candidate = judged.candidate
    if judged.breaks == "conflict":
        return FitCheck("conflict", "breaks", judged.reason)
    every = [
        (other.framework, [v.candidate for v in _judge_all(other, cache) if v.fits])
        for other in others
        if other.framework != wish.framework
    ]
    own: Fitting = [(wish.framework, [candidate])]
    rest = _preferred([*own, *every], cache.machine)[1:]
    alone = [framework for framework, options in rest if not options]
    if alone:
        reason = f"was not checked: no release of {alone[0]} fits this machine"
        return FitCheck("conflict", "unchecked", reason)
    found = search([*own, *rest], cache)
    if isinstance(found, Nothing):
        guess = search([*own, *every], cache)
        if not isinstance(guess, Solution):
            named, _ = _named([*own, *rest], cache)
            return FitCheck("conflict", "breaks", named.reason(candidate))
        found = guess
    if isinstance(found, GaveUp):
        return FitCheck("conflict", "unchecked", f"was not decided: {found}")
    company = " and ".join(f"{c.package} {c.version}" for c in found.chosen[1:])
    indexes = {c.torch_index for c in found.chosen if c.torch_index}
    if indexes and _share_libraries((c.framework for c in found.chosen), cache.machine):
        reason = (
            f"may be compatible with {company}: the requirements of the builds on "
            f"{' and '.join(indexes)} were not read"
        )
        return FitCheck("conflict", "unchecked", reason)
    text = f"is compatible with {company}" if company else "has all its requirements available"
    return FitCheck("conflict", "holds", text)
