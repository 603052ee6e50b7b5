"""Whether results depend on random numbers that the program does not seed itself.

Every lane gets the same seed, because without it two runs of a program that sets none could not be
compared. But each device and backend has its own generator, which makes other numbers from the same
seed. Then the lanes differ in the random numbers, and not in how they compute with them. One more
run with another seed shows whether results depend on random numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from whygpu.comparer import measures, pair_verdict, steadiness
from whygpu.comparer.comparison_report import headline as headline_of
from whygpu.comparer.lane_processes import (
    Collected,
    Job,
    Progress,
    built_folder,
    environment_of,
    run_once,
    subject_of,
)
from whygpu.comparer.lanes import policy_of
from whygpu.comparer.reference_tasks import ReferenceRun, differences
from whygpu.launch.execution import prepare
from whygpu.model.comparison import ComparisonReport, PairVerdict, Reference
from whygpu.model.task_wire import LaneRequest

OWN_NUMBERS = (
    "its results depend on random numbers that the program does not seed. Another seed gives other "
    "results, and each device and backend makes different numbers from the same seed. So this is "
    "not a difference between devices. Seed the numbers in the program, or draw them with NumPy"
)
SAME_NUMBERS = (
    "the program does not seed its random numbers, so its results differ from run to run; here "
    "every lane used seed {}"
)


def with_seed_check(
    report: ComparisonReport, job: Job, ran: Sequence[Collected], progress: Progress
) -> ComparisonReport:
    """The report with the result of another seed, if that can matter."""
    if not _worth_asking(report, ran) or not depends_on_seed(job, ran, progress):
        return report
    pairs = tuple(_pair(each, ran) for each in report.pairs)
    if pairs == report.pairs:
        return report._replace(notes=(*report.notes, SAME_NUMBERS.format(job.seed)))
    all_ran = all(each.run.end == "ran" for each in report.lanes)
    verdict = pair_verdict.overall_verdict([each.verdict for each in pairs], all_ran)
    headline = headline_of(verdict, report.lanes, pairs, report.tolerance)
    return report._replace(pairs=pairs, verdict=verdict, headline=headline)


def _worth_asking(report: ComparisonReport, ran: Sequence[Collected]) -> bool:
    """Models get their weights and inputs from us, so only a layer that draws random numbers can
    matter."""
    if not ran or any(each.determinism.kind == "unseeded" for each in report.lanes):
        return False
    if ran[0].kind in ("call", "pair", "script"):
        return True
    parted = {
        each.first_layer
        for each in report.pairs
        if each.verdict == "different" and not _draw_the_same(each, ran)
    }
    if ran[0].kind == "torch":
        # PyTorch does not say whether a module draws random numbers.
        return bool(parted)
    drawing = _drawing_steps(ran[0].recorded[0])
    layers = {layer.layer for pair in report.pairs for layer in pair.layers}
    # A result of training follows from all layers.
    return bool(drawing) and any(name in drawing or name not in layers for name in parted)


def _drawing_steps(folder: str) -> set[str]:
    """The recorded steps that have a generator of random numbers."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        steps = json.load(file)["steps"]
    return {step["name"] for step in steps if step["settings"].get("draws_random_numbers")}


def depends_on_seed(job: Job, ran: Sequence[Collected], progress: Progress) -> bool:
    """Whether another seed changes the result of the first CPU lane, or else of the first lane."""
    chosen = next((each for each in ran if each.run.lane.device == "cpu"), ran[0])
    lane = chosen.run.lane
    folder = os.path.join(job.folder, "other-seed")
    other = job._replace(seed=job.seed + 1)
    environ = environment_of(lane, job.environ)
    prepared = prepare(job.words, policy_of(lane), environ)
    asked = LaneRequest(subject_of(other, lane), record=folder, built=built_folder(other, lane))
    end = run_once(asked, prepared, environ, other, progress, f"{lane.name}, another seed")
    if end.lane is None:
        return False
    pair = chosen._replace(recorded=(chosen.recorded[0], folder))
    nothing = ReferenceRun(Reference(False))
    found = measures.of_entries(differences(job, [pair], nothing, progress).entries)
    judged = steadiness.judge([chosen.run], found.own)
    return judged[lane.name].kind in ("unseeded", "different")


def _pair(pair: PairVerdict, ran: Sequence[Collected]) -> PairVerdict:
    if pair.verdict != "different" or _draw_the_same(pair, ran):
        return pair
    return pair._replace(verdict="undetermined", level=None, reasons=(OWN_NUMBERS, *pair.reasons))


def _draw_the_same(pair: PairVerdict, ran: Sequence[Collected]) -> bool:
    """Lanes of one device and backend draw the same numbers, so their verdict stands."""
    lanes = {each.run.lane.name: each.run.lane for each in ran}
    a, b = lanes[pair.a], lanes[pair.b]
    return (a.device, a.backend) == (b.device, b.backend)
