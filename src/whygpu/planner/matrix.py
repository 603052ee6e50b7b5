"""The table of releases that `whygpu plan --matrix` prints: what each one needs."""

from __future__ import annotations

from whygpu.model.install_plan import PlanAnswer, ReleaseNeeds, ReleaseVerdict
from whygpu.tables.driver_floors import driver_floors


def matrix(answer: PlanAnswer) -> tuple[ReleaseNeeds, ...]:
    return tuple(map(_row, answer.candidates))


def _row(verdict: ReleaseVerdict) -> ReleaseNeeds:
    candidate = verdict.candidate
    binary = next((part for part in candidate.parts if part.pythons), candidate.parts[0])
    pythons = binary.pythons
    floors = driver_floors(candidate.cuda)
    return ReleaseNeeds(
        requirement=candidate.build,
        breaks=verdict.breaks,
        python=f"{pythons[0]}-{pythons[-1]}" if pythons else binary.requires_python,
        glibc=binary.glibc,
        cuda=candidate.cuda,
        cudnn=candidate.cudnn,
        driver=floors[-1].driver if floors else "",
        architectures=candidate.architectures,
    )
