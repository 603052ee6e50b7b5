"""From a machine, wishes and the table to a plan, or to what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
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
from whygpu.planner.candidate_cache import Shelf
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.constraints import checks
from whygpu.planner.release_search import GaveUp, Nothing, search
from whygpu.planner.resolve import Conflict, TooDeep, resolve, unmet
from whygpu.planner.wishes import allows, keras_backend

_INSTALLABLE = ("python", "platform", "glibc")
_FAR_BEHIND = 0.5
"""A release is far behind when it is among the older half of those that fit by themselves."""


Fitting = list[tuple[str, list[Candidate]]]
"""For each wish, the releases that fit by themselves, newest first."""
Company = dict[str, Candidate]
"""One release for each wish."""


def make_plan(machine: MachineSpec, wishes: Sequence[Wish], table: Table) -> PlanAnswer:
    """The newest releases that fit the machine and go together."""
    shelf = Shelf(machine, table, keras_backend(wishes))
    judged = {wish.framework: _judge_all(wish, shelf) for wish in wishes}
    for with_defects in (False, True):
        # A release with a defect that can be remedied is better than none.
        fitting = [
            (
                name,
                [v.candidate for v in verdicts if v.fits or (with_defects and v.has_only_a_defect)],
            )
            for name, verdicts in judged.items()
        ]
        if all(options for _, options in fitting):
            answer = _together(tuple(wishes), judged, fitting, shelf)
            if answer.plan is not None or with_defects or not _defects(judged):
                return answer
    return PlanAnswer(machine, tuple(wishes), None, _flat(judged), _refused_by_others(judged))


def _refused_by_others(judged: dict[str, tuple[ReleaseVerdict, ...]]) -> str:
    """Where every release of a wish would fit, were it not for what it has to work with."""
    for verdicts in judged.values():
        if all(verdict.breaks == "conflict" for verdict in verdicts):
            newest = verdicts[0]
            return f"{newest.candidate.package} {newest.candidate.version} {newest.reason}"
    return ""


def judge(candidate: Candidate, machine: MachineSpec) -> ReleaseVerdict:
    """A release by itself, up to the first constraint that it breaks."""
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
    )


def _judge_all(wish: Wish, shelf: Shelf) -> tuple[ReleaseVerdict, ...]:
    every = candidates(wish.framework, shelf.table)
    allowed = [item for item in every if allows(wish, item.version)]
    if not allowed:
        known = f"it has {every[-1].version} to {every[0].version}" if every else "it has none"
        raise UsageError(f"{wish}: no such release in the table; {known}")
    return tuple(_installable(judge(item, shelf.machine), shelf) for item in allowed)


def _installable(verdict: ReleaseVerdict, shelf: Shelf) -> ReleaseVerdict:
    """A release may fit and yet ask for packages that do not, or not work on its backend."""
    limit = shelf.backend_limit(verdict.candidate.package, verdict.candidate.version)
    if verdict.fits and limit is not None and limit.requirement is None:
        return verdict._replace(breaks="conflict", reason=limit.because)
    refused = unmet(verdict.candidate, shelf) if verdict.fits or verdict.has_only_a_defect else None
    if refused is None:
        return verdict
    return verdict._replace(breaks="conflict", reason=refused.reason(verdict.candidate))


def _defects(judged: dict[str, tuple[ReleaseVerdict, ...]]) -> bool:
    return any(verdict.has_only_a_defect for verdicts in judged.values() for verdict in verdicts)


def _together(
    wishes: tuple[Wish, ...],
    judged: dict[str, tuple[ReleaseVerdict, ...]],
    fitting: Fitting,
    shelf: Shelf,
) -> PlanAnswer:
    solution = _best(fitting, shelf)
    if isinstance(solution, GaveUp):
        return PlanAnswer(shelf.machine, wishes, None, _flat(judged), "", gave_up=str(solution))
    if isinstance(solution, Nothing):
        named, newest = _named(fitting, shelf)
        marked = {
            name: tuple(_in_company(verdict, newest, shelf) for verdict in verdicts)
            for name, verdicts in judged.items()
        }
        return PlanAnswer(shelf.machine, wishes, None, _flat(marked), named.reason())
    chosen = {candidate.framework: candidate for candidate in solution.chosen}
    explained = {
        name: _explain_newer(name, verdicts, chosen, shelf) for name, verdicts in judged.items()
    }
    chosen_verdicts = tuple(
        next(verdict for verdict in verdicts if verdict.candidate == chosen[name])
        for name, verdicts in judged.items()
    )
    return PlanAnswer(shelf.machine, wishes, Plan(solution, chosen_verdicts), _flat(explained), "")


def _named(fitting: Fitting, shelf: Shelf) -> tuple[Conflict, Company]:
    """Why the newest do not go together, where it is known that nothing does.

    A release may have builds for several CUDA releases; files that two builds share are a reason
    only where no pair of builds has a better one.
    """
    builds = [
        [item for item in options if item.version == options[0].version] for _, options in fitting
    ]
    companies = [{item.framework: item for item in group} for group in product(*builds)]
    tried = [(_alone(company, shelf), company) for company in companies]
    refused = [(found, company) for found, company in tried if isinstance(found, Conflict)]
    if not refused:
        return Conflict((), "no combination was found"), companies[0]
    return next((item for item in refused if not item[0].about_files), refused[0])


def _alone(company: Company, shelf: Shelf) -> Solution | Conflict | TooDeep:
    """Exactly these releases, and no others."""
    return resolve([(name, [item]) for name, item in company.items()], shelf)


def _in_company(verdict: ReleaseVerdict, company: Company, shelf: Shelf) -> ReleaseVerdict:
    """A release that fits by itself, in place of its like in a company of others."""
    if not verdict.fits:
        return verdict
    found = _alone({**company, verdict.candidate.framework: verdict.candidate}, shelf)
    if not isinstance(found, Conflict):
        return verdict
    return verdict._replace(breaks="conflict", reason=found.reason(verdict.candidate))


def _best(fitting: Fitting, shelf: Shelf) -> Solution | Nothing | GaveUp:
    """Earlier wishes choose first, unless that leaves a later one far behind."""
    solutions: list[tuple[float, int, Solution]] = []
    gave_up = GaveUp(0)
    for first in range(len(fitting)):
        order = [fitting[first], *fitting[:first], *fitting[first + 1 :]]
        found = search(order, shelf)
        if isinstance(found, Nothing):
            # Whatever is chosen first, the combinations are the same.
            return found
        if isinstance(found, GaveUp):
            gave_up = found
            continue
        by_name = {candidate.framework: candidate for candidate in found.chosen}
        solution = found._replace(chosen=tuple(by_name[name] for name, _ in fitting))
        age = _age(solution, fitting)
        if age <= _FAR_BEHIND:
            return solution
        solutions.append((age, first, solution))
    return min(solutions, key=lambda item: item[:2])[2] if solutions else gave_up


def _age(solution: Solution, fitting: Fitting) -> float:
    """How far the oldest of the chosen is behind its newest, as a share of all that fit."""
    return max(
        options.index(chosen) / len(options)
        for chosen, (_, options) in zip(solution.chosen, fitting, strict=True)
    )


def _explain_newer(
    framework: str, verdicts: tuple[ReleaseVerdict, ...], chosen: Company, shelf: Shelf
) -> tuple[ReleaseVerdict, ...]:
    """Releases that fit by themselves and are newer than the plan's: what keeps them out?"""
    place = next(i for i, v in enumerate(verdicts) if v.candidate == chosen[framework])
    newer = (_in_company(verdict, chosen, shelf) for verdict in verdicts[:place])
    return (*newer, *verdicts[place:])


def _flat(judged: dict[str, tuple[ReleaseVerdict, ...]]) -> tuple[ReleaseVerdict, ...]:
    return tuple(verdict for verdicts in judged.values() for verdict in verdicts)


def why_not(
    machine: MachineSpec, wish: Wish, others: Sequence[Wish], table: Table
) -> ReleaseAnswer:
    """The newest release that a wish allows against every constraint, together with the others."""
    shelf = Shelf(machine, table, keras_backend((wish, *others)))
    judged = _judge_all(wish, shelf)[0]
    own = tuple(checks(judged.candidate, machine))
    if any(check.outcome == "breaks" and check.constraint in _INSTALLABLE for check in own):
        # What cannot be installed at all meets no other packages.
        return ReleaseAnswer(judged.candidate, own, machine)
    conflict = _conflict_check(judged, wish, others, shelf)
    return ReleaseAnswer(judged.candidate, (*own, conflict), machine)


def _conflict_check(
    judged: ReleaseVerdict, wish: Wish, others: Sequence[Wish], shelf: Shelf
) -> FitCheck:
    candidate = judged.candidate
    if judged.breaks == "conflict":
        return FitCheck("conflict", "breaks", judged.reason)
    rest = [
        (other.framework, [v.candidate for v in _judge_all(other, shelf) if v.fits])
        for other in others
        if other.framework != wish.framework
    ]
    alone = [framework for framework, options in rest if not options]
    if alone:
        reason = f"was not checked: no release of {alone[0]} fits this machine"
        return FitCheck("conflict", "unchecked", reason)
    found = search([(wish.framework, [candidate]), *rest], shelf)
    if isinstance(found, GaveUp):
        return FitCheck("conflict", "unchecked", f"was not settled: {found}")
    if isinstance(found, Nothing):
        named, _ = _named([(wish.framework, [candidate]), *rest], shelf)
        return FitCheck("conflict", "breaks", named.reason(candidate))
    company = " and ".join(f"{c.package} {c.version}" for c in found.chosen[1:])
    text = f"goes together with {company}" if company else "finds all that it requires"
    return FitCheck("conflict", "holds", text)
