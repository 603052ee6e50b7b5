"""How findings compete: with causes made for the purpose, so that nothing else decides."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cases import each
from whygpu.diagnosis.explainer import explain
from whygpu.model.cause import Cause
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Confidence, Effect, Finding, Remedy, Severity
from whygpu.model.log import Log
from whygpu.readers.log import read_text

EARLY = "W gpu.cc:1] the driver sneezed"
WORK = "Epoch 3/5 loss: 0.123"
STRANGER = "ValueError: not enough values to unpack (expected 2, got 1)"
FAILURE = "RuntimeError: CUDA error: the widget fell off"


def phrase(
    code: str,
    text: str,
    *,
    severity: Severity = "error",
    confidence: Confidence = "certain",
    effect: Effect = "cpu",
    explains: tuple[str, ...] = (),
) -> Cause:
    """A cause that is found where the log says something."""
    page = f"The log says {text}."
    made = Cause(code, f"slug_{code}", page, severity=severity, effect=effect, explains=explains)

    @made.on_log
    def detect(log: Log) -> Iterator[Finding]:
        for match in log.find(re.compile(re.escape(text))):
            yield made.finding(
                subject="machine",
                message=f"{text} was said",
                evidence=log.evidence(match.line),
                remedies=(Remedy("Do something."),),
                confidence=confidence,
            )

    return made


SNEEZE = phrase("WG191", "sneezed", severity="warning")
WIDGET = phrase("WG291", "widget fell off", confidence="likely", effect="broken")
NO_GPU = phrase("WG192", "no driver here", severity="info")
NOISE = phrase("WG991", "nothing to see", severity="info", effect="none")
ALL = (SNEEZE, WIDGET, NO_GPU, NOISE)


def meaning(*lines: str, causes: tuple[Cause, ...] = ALL) -> Explanation:
    return explain(read_text("\n".join(lines)), causes)


def codes(explanation: Explanation) -> list[str]:
    return [finding.code for finding in explanation.root_causes]


def test_what_ended_the_program_comes_before_what_it_survived() -> None:
    explanation = meaning(EARLY, FAILURE)
    assert explanation.verdict == "found"
    assert codes(explanation) == ["WG291", "WG191"], "although the other is certain, and earlier"


def test_what_explains_another_is_its_root() -> None:
    root = phrase("WG193", "sneezed", explains=("slug-WG291",))
    explanation = meaning(EARLY, FAILURE, causes=(root, WIDGET))
    assert codes(explanation) == ["WG193"]
    assert [(f.code, f.explained_by) for f in explanation.symptoms] == [("WG291", "WG193")]


def test_among_equals_certain_comes_first_then_early() -> None:
    one = phrase("WG194", "sneezed", confidence="possible")
    two = phrase("WG195", "coughed", confidence="likely")
    three = phrase("WG196", "yawned", confidence="likely")
    explanation = meaning("sneezed", "coughed", "yawned", causes=(three, two, one))
    assert codes(explanation) == ["WG195", "WG196", "WG194"]


@pytest.mark.parametrize("first", [EARLY, "no driver here"])
def test_a_failure_that_is_not_the_gpus_makes_the_rest_beside_the_point(first: str) -> None:
    explanation = meaning(first, WORK, "Traceback (most recent call last):", STRANGER)
    assert explanation.verdict == "not-gpu"
    assert not explanation.root_causes
    assert len(explanation.symptoms) == 1
    assert [evidence.line for evidence in explanation.unexplained] == [4]
    assert "line 4" in explanation.headline
    assert explanation.exit_code == 1


def test_what_the_program_did_not_mind_is_put_aside() -> None:
    explanation = meaning("no driver here", FAILURE)
    assert codes(explanation) == ["WG291"]
    assert [(f.code, f.explained_by) for f in explanation.symptoms] == [("WG192", None)]


def test_a_folders_name_does_not_make_a_failure_the_gpus() -> None:
    failure = r"PermissionError: [WinError 32] in use: 'C:\\tools\\APP_NVIDIA_GPU\\model.npy'"
    assert meaning("no driver here", failure).verdict == "not-gpu"


def test_a_failure_that_sounds_like_a_gpus_and_that_nobody_knows_is_unknown() -> None:
    explanation = meaning("RuntimeError: CUDA error: a thing nobody has heard of")
    assert explanation.verdict == "unknown"
    assert [evidence.line for evidence in explanation.unexplained] == [1]
    assert explanation.exit_code == 4


def test_the_code_that_failed_can_make_a_failure_the_gpus() -> None:
    traceback = (
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    tf.config.set_visible_devices(gpus[0], 'GPU')",
        "IndexError: list index out of range",
    )
    assert meaning(*traceback).verdict == "unknown"


@each(
    ("lines", "verdict"),
    [
        (("no driver here", WORK), "nothing-wrong"),
        (("no driver here",), "found"),
        ((WORK, "no driver here"), "found"),
        ((EARLY, WORK), "found"),
        (("nothing to see",), "nothing-wrong"),
        ((WORK,), "nothing-wrong"),
        (("hello world",), "unknown"),
        (("",), "unknown"),
    ],
)
def test_work_that_goes_on_excuses_what_is_normal_without_a_gpu(
    lines: tuple[str, ...], verdict: str
) -> None:
    assert meaning(*lines).verdict == verdict


def test_noise_is_kept_apart() -> None:
    explanation = meaning("nothing to see", FAILURE)
    assert codes(explanation) == ["WG291"]
    assert [finding.code for finding in explanation.noise] == ["WG991"]


def test_a_detector_that_crashes_is_told_and_takes_nothing_down() -> None:
    broken = phrase("WG197", "never")
    broken.log_detector = None

    @broken.on_log
    def detect(log: Log) -> Iterator[Finding]:
        raise ZeroDivisionError("oops")
        yield

    explanation = meaning(FAILURE, causes=(broken, WIDGET))
    assert codes(explanation) == ["WG291"]
    assert explanation.crashed == ("WG197: ZeroDivisionError: oops",)


def test_a_crash_without_a_word_is_not_said_to_have_nothing_to_do_with_the_gpu() -> None:
    assert meaning("Segmentation fault").verdict == "unknown"
    assert meaning(EARLY, WORK, "Segmentation fault").verdict == "found"
