"""The table of releases that `whygpu plan --matrix` prints: what each one needs."""

from __future__ import annotations

from whygpu.model.install_plan import PlanAnswer, ReleaseNeeds, ReleaseVerdict
from whygpu.tables.windows_driver_floors import floors_for


def matrix(answer: PlanAnswer) -> tuple[ReleaseNeeds, ...]:
    platform = answer.machine.platform_name
    return tuple(_row(verdict, platform) for verdict in answer.candidates)


def _row(verdict: ReleaseVerdict, platform: str) -> ReleaseNeeds:
    candidate = verdict.candidate
    binary = next((part for part in candidate.parts if part.pythons), candidate.parts[0])
    pythons = binary.pythons
    floors = floors_for(platform, candidate.cuda)
    return ReleaseNeeds(
        requirement=candidate.build,
        breaks=verdict.breaks,
        python=f"{pythons[0]}-{pythons[-1]}" if pythons else binary.requires_python,
        glibc=binary.glibc_for(platform),
        cuda="unknown" if candidate.unread else candidate.cuda,
        cudnn=candidate.cudnn,
        driver=floors[-1].driver if floors else "",
        architectures=candidate.architectures,
    )
