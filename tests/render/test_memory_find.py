"""What is said of a search for a batch size, for each way in which it can end."""

from __future__ import annotations

import json

import pytest

from tests.schemas import obeys
from whygpu.memory.answer import answer
from whygpu.memory.batch_search import StopReason
from whygpu.model.batch import BatchResult, Gauge, Trial, TrialOutcome
from whygpu.model.codec import decode
from whygpu.render.memory_find import as_dict, render

GIB = 1 << 30


def trial(batch: int, outcome: TrialOutcome, seconds: float = 0.5, how: str = "") -> Trial:
    peak = GIB + batch * (GIB // 50)
    gauge = Gauge("gpu", GIB, peak, peak, 8 * GIB)
    leak = GIB // 4 if outcome == "leaks" else None
    return Trial(batch, outcome, how, (gauge,), 3, seconds, 9.0, leak)


def result(reason: StopReason, *trials: Trial, **changes: object) -> BatchResult:
    found = answer("train.py:step", trials, reason)
    about = {"device": "NVIDIA H200", "frameworks": (("jax", "0.11.0"), ("keras", "3.15.1"))}
    return found._replace(**about, **changes)  # type: ignore[arg-type]


def said(found: BatchResult) -> str:
    obeys("memory-find", as_dict(found))
    fields = as_dict(found)
    del fields["schema"]
    assert decode(BatchResult, json.loads(json.dumps(fields))) == found
    return " ".join(render(found, width=80, color=False).split())


FITS, TWICE, NOT = trial(8, "fits"), trial(340, "fits", 40.0), trial(360, "does-not-fit", how="OOM")


def test_a_bracket() -> None:
    text = said(result("bracketed", FITS, TWICE, NOT))
    assert text.startswith("✓ The largest batch that fits: 340 train.py:step on NVIDIA H200")
    assert "with JAX 0.11.0 and Keras 3.15.1; GPU memory 8 GiB" in text
    assert "340 ran, 360 did not: the true maximum is 340 or between the two." in text
    assert "not the fastest: 8 does 16 samples a second, 340 does 8.5." in text
    assert "360 40" not in text
    assert "does not fit: OOM" in text
    assert "--margin 5% leaves some" in text


def test_which_trials_had_a_process_of_their_own() -> None:
    assert "Tried, each in its own process:" in said(result("bracketed", FITS, TWICE, NOT))
    shared = [each._replace(alone=False) for each in (TWICE, NOT)]
    text = said(result("bracketed", FITS, *shared, TWICE))
    assert "Tried:" in text
    assert text.count("in a new process: fits") == 2


def test_a_trial_that_a_new_process_contradicts_is_named() -> None:
    wrong = trial(350, "fits")._replace(alone=False)
    text = said(result("bracketed", FITS, wrong, trial(350, "does-not-fit"), TWICE))
    assert "340 ran, 350 did not" in text
    assert "350 fitted in a process that had tried other batches before, but a new process" in text
    wrong = trial(330, "does-not-fit")._replace(alone=False)
    text = said(result("bracketed", FITS, wrong, TWICE, NOT))
    assert "330 did not fit in a process that had tried other batches before" in text


def test_a_prediction_and_a_margin() -> None:
    found = result("predicted", FITS, TWICE, margin=0.1, batch=300, cached=True)
    text = said(found)
    assert text.startswith("✓ Batch size 300, with 10% of the memory left free")
    assert "340 ran. Judging by the trials, the limit is reached at about 350." in text
    assert "This is a remembered result; --no-cache searches again" in text
    assert "leaves some" not in text


@pytest.mark.parametrize(
    ("reason", "last", "words"),
    [
        ("leaks", trial(8, "leaks"), "train.py:step leaks: each step keeps about 256 MiB more"),
        ("failed", trial(8, "failed", how="KeyError: 1"), "failed: KeyError: 1"),
        ("nothing-fits", trial(1, "does-not-fit"), "Not even a batch of 1 fits"),
        ("nothing-fits", trial(1, "does-not-fit"), "the limit is 8 GiB"),
        ("too-slow", trial(8, "too-slow"), "Cannot tell what fits: train.py:step is too slow"),
        ("too-slow", trial(8, "too-slow"), "- --timeout gives a trial more time, --start 1"),
        ("at-largest", FITS, "Batch size 8, the largest that was asked for, fits"),
        ("trials", FITS, "A batch of 8 fits; whether more fits is not settled"),
    ],
)
def test_other_ends(reason: StopReason, last: Trial, words: str) -> None:
    assert words in said(result(reason, last))


def test_too_slow_for_more() -> None:
    text = said(result("too-slow", FITS, trial(340, "too-slow", how="not finished within 600 s")))
    assert text.startswith("? A batch of 8 fits; larger ones are too slow to try")
    assert "--timeout gives a trial more time" in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_why_a_batch_does_not_fit_stands_beside_it(width: int) -> None:
    dead = trial(360, "does-not-fit", how="more than the limit of main memory")
    text = render(result("bracketed", FITS, dead), width=width, color=False)
    assert "       360  does not fit: more than the limit of main memory\n" in text
    assert max(map(len, text.splitlines())) <= width


def test_the_end_of_a_traceback_is_shown() -> None:
    lines = [f"line {number}" for number in range(30)]
    failed = result("failed", trial(8, "failed"), traceback="\n".join(lines))
    text = render(failed, width=80, color=False)
    assert text.endswith("  line 28\n  line 29\n")
    assert "line 10" not in text
