"""The trials of typical searches, one by one: each costs its user a minute, so none may be wasted.

The other tests of the search bound how many trials it takes and how close it comes. These say which
batches it tries, so that a change of any rule shows what it does to which kind of step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from tests.cases import each
from tests.memory.test_batch_search import GIB, MIB, WISHES, Step, affine, saving, search
from whygpu.model.batch import SearchWishes, Trial


class Case(NamedTuple):
    step: Step
    batches: list[int]
    reason: str
    wishes: SearchWishes = WISHES


class Uncounted(Step):
    """A step of which nothing tells how much memory it takes."""

    def tried(self, batch: int) -> Trial:
        return super().tried(batch)._replace(gauges=())


def jump(step: Step, at: int, by: float) -> Step:
    """More memory from one batch on, which no line through smaller ones shows."""
    return step._replace(needs=lambda batch: step.needs(batch) + (by if batch >= at else 0))


def bent(needs: Callable[[int], float], limit: float, **facts: object) -> Step:
    return Step(needs, limit)._replace(**facts)  # type: ignore[arg-type]


PLAIN = affine(200 * MIB, 2 * MIB, GIB)
LARGE = affine(300 * MIB, 0.05 * MIB, 4 * GIB)
ON_GPU = affine(GIB, 10 * MIB, 16 * GIB)._replace(gauge="gpu")
WAVES = Step(lambda b: 200 * MIB + 2 * MIB * b + 30 * MIB * (b % 7), GIB, 140 * MIB)

CASES = {
    "a line": Case(PLAIN, [8, 79, 350, 411, 472], "predicted"),
    "a line, started high": Case(
        PLAIN, [4096, 512, 64, 361, 411], "predicted", WISHES._replace(start=4096)
    ),
    "a line, started near": Case(
        PLAIN, [400, 1600, 800, 565, 475, 435, 417, 408], "bracketed", WISHES._replace(start=400)
    ),
    "a flat line": Case(LARGE, [8, 292, 18688, 64531, 75757, 87120], "predicted"),
    "hardly any slope": Case(
        affine(900 * MIB, 0.02 * MIB, GIB), [8, 32, 692, 4919, 6142, 6365, 7063], "bracketed"
    ),
    "what is too large is measured": Case(
        PLAIN._replace(known_up_to=1.5), [8, 79, 350, 411, 472], "predicted"
    ),
    "multiples": Case(
        PLAIN, [24, 144, 384, 408, 456], "predicted", WISHES._replace(multiple_of=24)
    ),
    "few trials": Case(PLAIN, [8, 79, 350], "trials", WISHES._replace(trials=3)),
    "few trials on a GPU": Case(ON_GPU, [8, 275, 1305, 1533], "trials", WISHES._replace(trials=4)),
    "a largest batch": Case(PLAIN, [8, 79, 350, 411], "predicted", WISHES._replace(largest=430)),
    "a largest batch just above": Case(
        PLAIN, [8, 79, 350, 411], "predicted", WISHES._replace(largest=420)
    ),
    "slow steps": Case(PLAIN._replace(sample_seconds=0.5), [8, 79, 316], "too-slow"),
    "rather slow steps": Case(PLAIN._replace(sample_seconds=0.4), [8, 79, 350, 395], "too-slow"),
    "a GPU": Case(ON_GPU, [8, 275, 1305, 1533, 1589], "bracketed"),
    "a GPU with holes": Case(
        ON_GPU._replace(needs=lambda b: 1.1 * ON_GPU.needs(b), reported=ON_GPU.needs),
        [8, 275, 1305, 1533, 1425, 1365, 1395],
        "bracketed",
    ),
    "a GPU whose refusals tell": Case(
        ON_GPU._replace(known_up_to=math.inf), [8, 275, 1305, 1533, 1589], "bracketed"
    ),
    "a GPU with a jump": Case(
        jump(ON_GPU, 900, 5 * GIB), [8, 275, 1305, 790, 1213, 1001, 1071, 1037], "bracketed"
    ),
    "a GPU where counters exaggerate": Case(
        ON_GPU._replace(reported=lambda b: min(3 * ON_GPU.needs(b), 15.5 * GIB)),
        [8, 41, 377, 442, 462, 924, 1848, 1306, 1553, 1424, 1487, 1519],
        "bracketed",
    ),
    "a jump below the limit": Case(
        jump(PLAIN, 300, 300 * MIB), [8, 79, 350, 214, 325, 269, 297, 311, 304], "bracketed"
    ),
    "a jump near the limit": Case(
        jump(PLAIN, 395, 40 * MIB), [8, 79, 350, 411, 382, 396, 396, 439], "bracketed"
    ),
    "a jump that is measured": Case(
        jump(PLAIN, 300, 300 * MIB)._replace(known_up_to=2.0),
        [8, 79, 350, 290, 329, 312, 300, 311, 323, 335],
        "bracketed",
    ),
    "more than a line": Case(
        bent(lambda b: 200 * MIB + 900 * b * b, GIB),
        [8, 34, 2176, 1105, 569, 837, 1017, 927, 980, 953],
        "bracketed",
    ),
    "less than a line": Case(
        bent(lambda b: 200 * MIB + 40 * MIB * b**0.5, GIB),
        [8, 32, 134, 285, 386, 417, 433, 479],
        "bracketed",
    ),
    "less than a line, measured above": Case(
        bent(lambda b: 200 * MIB + 40 * MIB * b**0.5, GIB, known_up_to=1.4),
        [8, 32, 134, 285, 386, 417, 433, 479],
        "bracketed",
    ),
    "waves": Case(WAVES, [8, 56, 487, 271, 319, 361, 340, 350, 361, 402], "bracketed"),
    "waves, measured above": Case(
        WAVES._replace(known_up_to=1.3), [8, 56, 487, 364, 392, 406], "predicted"
    ),
    "a larger batch takes less": Case(
        bent(
            lambda b: 400 * MIB + b * (6.1 if b < 114 else 4.7) * MIB,
            1050 * MIB,
            before=380 * MIB,
            known_up_to=1.25,
        ),
        [8, 66, 106, 121, 133, 138, 158, 143],
        "bracketed",
    ),
    "address space": Case(
        PLAIN._replace(gauge="address-space"), [8, 79, 350, 411, 426, 472], "bracketed"
    ),
    "no counters": Case(
        Uncounted(*PLAIN), [8, 32, 128, 512, 256, 362, 430, 394, 411, 420], "bracketed"
    ),
    "no counters, started high": Case(
        Uncounted(*PLAIN),
        [900, 112, 317, 534, 411, 468, 438, 424],
        "bracketed",
        WISHES._replace(start=900),
    ),
    "counters that exaggerate ever more": Case(
        ON_GPU._replace(reported=lambda b: 1.7 * ON_GPU.needs(b)),
        [8, 91, 732, 859, 891, 1782, 1260, 1498, 1633, 1564, 1530],
        "bracketed",
    ),
    "a compiler that saves memory": Case(
        saving(7 * GIB, 0.65, 0), [8, 512, 643, 701, 1402, 982, 1017], "bracketed"
    ),
    "a compiler that saves much": Case(
        saving(7 * GIB, 0.45, 3), [8, 512, 643, 1286, 2572, 1419, 1470], "bracketed"
    ),
    "an update hides the batch": Case(
        bent(
            lambda b: max(2.2 * GIB, 1.3 * GIB + 0.45 * MIB * b),
            20 * GIB,
            before=1.3 * GIB,
            gauge="gpu",
        ),
        [8, 141, 9024, 43960, 26492, 42312, 43136],
        "bracketed",
    ),
    "an update hides it on the CPU": Case(
        bent(lambda b: max(600 * MIB, 300 * MIB + MIB * b), 2 * GIB, before=290 * MIB),
        [8, 38, 2432, 1235, 1883, 1619, 1742],
        "predicted",
    ),
    "a first failure from near": Case(
        jump(PLAIN, 60, 100 * MIB),
        [200, 800, 460, 348, 360],
        "predicted",
        WISHES._replace(start=200, multiple_of=4),
    ),
    "a largest batch that is tried again": Case(
        WAVES._replace(known_up_to=1.3),
        [8, 56, 395, 366, 379],
        "predicted",
        WISHES._replace(largest=395),
    ),
    "a largest batch on a GPU": Case(
        ON_GPU, [8, 275, 1305, 1500], "at-largest", WISHES._replace(largest=1500)
    ),
    "time runs short": Case(
        PLAIN._replace(sample_seconds=0.38),
        [8, 79, 350, 409],
        "predicted",
        WISHES._replace(timeout=590.0),
    ),
    "nothing fits": Case(affine(2 * GIB, MIB, GIB), [8, 1], "nothing-fits"),
    "one sample fits": Case(affine(0, 700 * MIB, GIB), [8, 1, 3, 2], "bracketed"),
}


@each(("name", "case"), CASES.items(), ids=lambda value: value if isinstance(value, str) else "")
def test_a_search_tries_these_batches(name: str, case: Case) -> None:
    found = search(case.step, case.wishes)
    assert (found.batches, found.reason) == (case.batches, case.reason), name
