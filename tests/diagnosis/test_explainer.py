"""How findings compete: with causes made for the purpose, so that nothing else decides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import each
from whygpu.diagnosis.explainer import explain
from whygpu.model.cause import Cause
from whygpu.model.commands import shell_text
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Confidence, Effect, Evidence, Finding, Remedy, Severity
from whygpu.model.log import Failure, Log
from whygpu.readers.log import read_text

EARLY = "W gpu.cc:1] the driver sneezed"
WORK = "Epoch 3/5 loss: 0.123"
STRANGER = "ValueError: not enough values to unpack (expected 2, got 1)"
FAILURE = "RuntimeError: CUDA error: the widget fell off"
TRACEBACK = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 3, in <module>'


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


@each(
    ("confidence", "roots"),
    [("possible", ["WG194"]), ("likely", ["WG193"])],
)
def test_a_guess_does_not_explain_what_is_more_certain(
    confidence: Confidence, roots: list[str]
) -> None:
    sure = phrase("WG194", "widget", confidence="likely")
    deeper = phrase("WG193", "sneezed", confidence=confidence, explains=(sure.slug,))
    answer = explain(read_text(f"{EARLY}\n{FAILURE}"), (deeper, sure))
    assert sorted(finding.code for finding in answer.root_causes) == roots


def test_a_guess_explains_another_guess() -> None:
    guess = phrase("WG194", "widget", confidence="possible")
    deeper = phrase("WG193", "sneezed", confidence="possible", explains=(guess.slug,))
    answer = explain(read_text(f"{EARLY}\n{FAILURE}"), (deeper, guess))
    assert [finding.code for finding in answer.root_causes] == ["WG193"]


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


POSSIBLE = phrase("WG194", "perhaps the driver", confidence="possible")
ANOTHER = phrase("WG195", "perhaps the library", confidence="possible")


def test_a_log_that_ends_inside_a_traceback_is_unknown_unless_a_cause_was_found() -> None:
    cut = meaning(WORK, TRACEBACK, FRAME)
    assert cut.verdict == "unknown"
    assert "ends in the middle of a traceback" in cut.headline
    assert cut.guidance is not None
    assert cut.guidance.ask == "Is there more of the output?"
    found = meaning(FAILURE, TRACEBACK, FRAME)
    assert (found.verdict, found.guidance) == ("found", None)
    remark = meaning("no driver here", TRACEBACK, FRAME)
    assert (remark.verdict, codes(remark)) == ("unknown", [])
    assert meaning("it sneezed", STRANGER, TRACEBACK, FRAME).verdict == "unknown"


@each(
    ("lines", "verdict"),
    [
        (("GPU available: True", "[E] CUDA_ERROR_NO_DEVICE"), "unknown"),
        (("GPU available: True", "nothing to see: CUDA_ERROR_NO_DEVICE"), "nothing-wrong"),
        (("nothing to see", "[E] CUDA_ERROR_NO_DEVICE", WORK, WORK), "nothing-wrong"),
        ((WORK, "[E] CUDA_ERROR_NO_DEVICE"), "unknown"),
    ],
)
def test_an_error_of_cuda_that_nothing_explains_stays_open(
    lines: tuple[str, ...], verdict: str
) -> None:
    assert meaning(*lines).verdict == verdict


@each(
    ("line", "command"),
    [
        ("tensorflow: Num GPUs Available:  0", "TF_CPP_VMODULE=dso_loader=1"),
        ("keras: Num GPUs Available:  0", "TF_CPP_VMODULE=dso_loader=1"),
        ("torch: CUDA available: False", "torch.zeros(1).cuda()"),
        ("jax: GPU available: False", "JAX_PLATFORMS=cuda"),
        ("tensorflow 1.15.0: GPU available: False", "python PROGRAM.py 2>&1"),
        ("GPU available: False", "python PROGRAM.py 2>&1"),
    ],
)
def test_the_next_command_makes_the_framework_say_why(line: str, command: str) -> None:
    guidance = meaning(line, WORK).guidance
    assert guidance is not None
    assert shell_text(guidance.steps[0].action) == "whygpu check"
    assert command in str(shell_text(guidance.steps[1].action))


def test_a_machine_whose_gpu_is_listed_has_a_driver() -> None:
    def candidates(*lines: str) -> tuple[str, ...]:
        guidance = meaning(*lines, "CUDA available: False", WORK).guidance
        assert guidance is not None
        return guidance.candidates

    listed = candidates("GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-1)")
    assert candidates() == ("no driver or no GPU on that machine", *listed)


def test_a_part_that_was_not_read_may_hold_the_failure() -> None:
    work, failed = (
        read_text(line)._replace(unread="the archive is damaged") for line in (WORK, FAILURE)
    )
    explanation = explain(work, ALL)
    assert explanation.verdict == "unknown"
    assert "a part of it was not read: the archive is damaged" in explanation.headline
    assert explain(failed, ALL).verdict == "found"


@each("line", ["hello world", "Num GPUs Available:  0", ""])
def test_what_was_not_read_is_said_before_what_little_was_read(line: str) -> None:
    explanation = explain(read_text(line)._replace(unread="the archive is damaged"), ALL)
    assert explanation.verdict == "unknown"
    assert explanation.headline.endswith("a part of it was not read: the archive is damaged")


def test_a_failure_that_was_read_outweighs_what_was_not_read() -> None:
    failed = read_text(UNKNOWN_FAILURES[0])._replace(unread="the archive is damaged")
    assert "line 1 ended the program" in explain(failed, ALL).headline


def test_nothing_is_said_to_be_fine_where_a_detector_crashed() -> None:
    broken = phrase("WG197", "never")
    broken.log_detector = None
    broken.on_log(lambda log: iter([1 // 0]))  # type: ignore[list-item]
    explanation = meaning(WORK, causes=(broken,))
    assert explanation.verdict == "unknown"
    assert "a part of whygpu failed on it" in explanation.headline


def test_a_loss_that_is_no_number_is_not_fine() -> None:
    explanation = meaning(WORK, "Epoch 4/5 loss: nan", "Epoch 5/5 loss: nan")
    assert explanation.verdict == "unknown"
    assert "the loss is not a number at line 2" in explanation.headline


@each(
    ("line", "reason"),
    [
        ("Num GPUs Available:  0", "sees none (line 1: Num GPUs Available:  0)"),
        ("Using device: cpu", "says that it works on the CPU (line 1: Using device: cpu)"),
    ],
)
def test_work_on_the_cpu_without_a_reason_in_the_log_is_unknown(line: str, reason: str) -> None:
    explanation = meaning(line, WORK)
    assert explanation.verdict == "unknown"
    assert reason in explanation.headline
    assert explanation.guidance is not None
    assert "a container that was started without GPUs" in explanation.guidance.candidates


def test_that_a_program_sees_no_gpu_is_said_although_it_reports_nothing_else() -> None:
    explanation = meaning("Num GPUs Available:  0")
    assert explanation.verdict == "unknown"
    assert "the framework sees no GPU (line 1: Num GPUs Available:  0)" in explanation.headline
    assert "did its work" not in explanation.headline
    assert "did its work without a GPU" in meaning("Num GPUs Available:  0", WORK).headline


@each(
    ("lines", "verdict", "headline"),
    [
        ((EARLY,), "found", "sneezed was said"),
        (("the widget fell off",), "found", "widget fell off was said"),
        ((FAILURE,), "found", "widget fell off was said"),
        ((TRACEBACK, FRAME), "unknown", "it ends in the middle of a traceback"),
        ((WORK, TRACEBACK, FRAME), "unknown", "it ends in the middle of a traceback"),
        (("RuntimeError: CUDA error: who knows",), "unknown", "line 2 ended the program"),
        ((STRANGER,), "not-gpu", "see line 2: ValueError"),
    ],
)
def test_a_stronger_statement_outweighs_that_no_gpu_is_seen(
    lines: tuple[str, ...], verdict: str, headline: str
) -> None:
    explanation = meaning("Num GPUs Available:  0", *lines)
    assert explanation.verdict == verdict
    assert headline in explanation.headline
    assert "sees no GPU" not in str(explanation.guidance)


def test_that_a_program_sees_no_gpu_outweighs_that_it_works_on_the_cpu() -> None:
    assert "line 2" in meaning("Using device: cpu", "Num GPUs Available:  0", WORK).headline


def test_work_on_the_cpu_whose_reason_the_log_gives_is_fine_and_says_so() -> None:
    explanation = meaning("Using device: cpu", "no driver here", WORK)
    assert (explanation.verdict, explanation.on_cpu) == ("nothing-wrong", True)
    assert explanation.headline == (
        "the program did its work on the CPU; that is not a fault unless it should use a GPU: "
        "no driver here was said"
    )


@each(
    "cause",
    [
        phrase("WG198", "no driver here", severity="info", effect="none"),
        phrase("WG199", "no driver here", severity="info", confidence="possible"),
    ],
    ids=["no effect", "only possible"],
)
def test_what_does_not_explain_work_on_the_cpu_is_not_given_as_its_reason(cause: Cause) -> None:
    beside = meaning("Using device: cpu", "no driver here", WORK, causes=(cause,))
    assert (beside.verdict, beside.on_cpu) == ("unknown", False)
    alone = meaning("no driver here", WORK, causes=(cause,))
    assert (alone.verdict, alone.on_cpu) == ("nothing-wrong", False)
    assert "nothing in this log shows a fault" in alone.headline
    other = phrase("WG182", "asked for the CPU", severity="info")
    both = meaning("no driver here", "asked for the CPU", WORK, causes=(cause, other))
    assert both.headline.endswith("asked for the CPU was said")


@each(("confidence", "ask"), [("likely", "Who?"), ("possible", "Who?"), ("certain", None)])
def test_only_what_is_not_certain_leaves_a_question(
    confidence: Confidence, ask: str | None
) -> None:
    asking = phrase("WG190", "never")
    finding = asking.finding(
        subject="machine", message="", evidence=(), remedies=(), confidence=confidence, ask="Who?"
    )
    asking.log_detector = lambda log: iter([finding])
    (root,) = meaning("hello", causes=(asking,)).root_causes
    assert root.ask == ask


def test_what_is_only_possible_comes_last_unless_it_ended_the_program() -> None:
    survived = meaning("perhaps the driver", EARLY, causes=(POSSIBLE, SNEEZE))
    assert codes(survived) == ["WG191", "WG194"]
    ended = meaning(EARLY, "RuntimeError: CUDA perhaps the driver", causes=(POSSIBLE, SNEEZE))
    assert codes(ended) == ["WG194", "WG191"]


def test_what_is_normal_without_a_gpu_comes_after_a_warning_and_before_a_guess() -> None:
    assert codes(meaning("no driver here", EARLY)) == ["WG191", "WG192"]
    guessed = meaning("perhaps the driver", "no driver here", causes=(POSSIBLE, NO_GPU))
    assert codes(guessed) == ["WG192", "WG194"]


def test_a_guess_is_put_aside_where_it_is_known_what_ended_the_program() -> None:
    explanation = meaning("perhaps the driver", FAILURE, causes=(POSSIBLE, WIDGET))
    assert codes(explanation) == ["WG291"]
    assert [finding.code for finding in explanation.symptoms] == ["WG194"]


def test_a_guess_is_kept_where_it_may_itself_have_ended_the_program() -> None:
    guess = phrase("WG196", "CUDA error", confidence="possible")
    assert codes(meaning(FAILURE, causes=(WIDGET, guess))) == ["WG291", "WG196"]


def test_of_two_that_may_have_ended_the_program_the_surer_one_comes_first() -> None:
    guess = phrase("WG196", "CUDA error", confidence="possible")
    survived = phrase("WG197", "sneezed", confidence="possible")
    ordered = meaning(EARLY, FAILURE, causes=(survived, guess))
    assert codes(ordered) == ["WG196"]
    assert codes(meaning(EARLY, "coughed", causes=(survived, phrase("WG198", "coughed")))) == [
        "WG198",
        "WG197",
    ]


def test_a_cause_that_reads_no_logs_and_evidence_that_is_no_line_disturb_nothing() -> None:
    on_machines = phrase("WG189", "never")
    on_machines.log_detector = None
    looked = phrase("WG188", "never")
    evidence = (Evidence("machine", "/dev", "no node"), Evidence("log", "line 2", "sneezed", 2))
    finding = looked.finding(subject="machine", message="", evidence=evidence, remedies=())
    looked.log_detector = lambda log: iter([finding])
    explanation = meaning(
        "coughed", "sneezed", causes=(on_machines, looked, phrase("WG187", "coughed"))
    )
    assert codes(explanation) == ["WG187", "WG188"], "the earlier line first"
    assert explanation.crashed == ()
    without_line = finding._replace(evidence=evidence[:1])
    looked.log_detector = lambda log: iter([without_line])
    explanation = meaning("coughed", causes=(looked, phrase("WG187", "coughed")))
    assert codes(explanation) == ["WG188", "WG187"], "what is seen anyway before the first line"


@each("evidence", [(Evidence("machine", "/dev", "no node"),), ()])
def test_work_excuses_what_is_seen_without_a_line_of_the_log(
    evidence: tuple[Evidence, ...],
) -> None:
    looked = phrase("WG186", "never", severity="info", effect="none")
    finding = looked.finding(subject="machine", message="", evidence=evidence, remedies=())
    looked.log_detector = lambda log: iter([finding])
    assert meaning(WORK, causes=(looked,)).verdict == "nothing-wrong"


def test_a_failure_comes_before_a_known_trouble_that_is_not_the_gpus() -> None:
    explanation = meaning("bind: Address already in use", FAILURE, causes=())
    assert explanation.headline.startswith("cannot tell from this log: line 2 ended the program")


def test_the_headline_does_not_read_like_an_answer_where_causes_are_only_possible() -> None:
    one = meaning("perhaps the driver", causes=(POSSIBLE, ANOTHER))
    assert one.headline == (
        "this log alone does not show the cause; it may be: perhaps the driver was said"
    )
    two = meaning("perhaps the driver", "perhaps the library", causes=(POSSIBLE, ANOTHER))
    assert two.headline == (
        "this log alone does not show the cause; it may be one of slug-WG194, slug-WG195. "
        "The first: "
        "perhaps the driver was said"
    )
    assert meaning(FAILURE).headline == "widget fell off was said"


def failing(first: int, last: int, *lines: str, **facts: Any) -> Log:
    """A log in which one failure takes several lines."""
    failure = Failure(first, last, "exception", "RuntimeError: it broke")._replace(**facts)
    return read_text("\n".join(lines))._replace(failures=(failure,))


@each(("place", "explained"), [(1, False), (2, True), (3, True), (4, True), (5, False)])
def test_a_failure_is_explained_by_evidence_on_any_of_its_lines(
    place: int, explained: bool
) -> None:
    lines = ["quiet"] * 5
    lines[place - 1] = "sneezed"
    explanation = explain(failing(2, 4, *lines), (SNEEZE,))
    assert explanation.verdict == ("found" if explained else "not-gpu")
    assert [evidence.line for evidence in explanation.unexplained] == ([] if explained else [2])


def test_a_failure_of_its_own_counts_beside_one_that_is_explained() -> None:
    log = failing(1, 1, "sneezed", STRANGER)
    both = log._replace(failures=(*log.failures, Failure(2, 2, "exception", STRANGER)))
    assert explain(both, (SNEEZE,)).verdict == "found"


@each(
    ("facts", "verdict"),
    [
        ({}, "not-gpu"),
        ({"kind": "fatal"}, "not-gpu"),
        ({"kind": "signal"}, "unknown"),
        ({"kind": "exit"}, "unknown"),
        ({"about_gpu": True}, "unknown"),
    ],
)
def test_only_a_failure_that_gives_a_reason_is_said_to_have_nothing_to_do_with_the_gpu(
    facts: dict[str, Any], verdict: str
) -> None:
    assert explain(failing(1, 1, "it broke", **facts), ()).verdict == verdict


def test_an_exception_that_passes_no_reason_on_is_not_said_to_have_nothing_to_do_with_the_gpu() -> (
    None
):
    log = failing(1, 1, "it broke", says_why=False, text="InternalError: Failed to create session.")
    explanation = explain(log, ())
    assert explanation.verdict == "unknown"
    assert "TensorFlow could not create a session; the reason is in" in explanation.headline


def test_of_several_failures_the_last_with_a_reason_of_its_own_is_named() -> None:
    log = read_text("a\nb\nc\nd")._replace(
        failures=(
            Failure(1, 1, "exception", "ValueError: one"),
            Failure(2, 2, "exception", "ValueError: two"),
            Failure(3, 3, "exception", "RuntimeError: CUDA three", about_gpu=True),
            Failure(4, 4, "exit", "exit code 1"),
        )
    )
    assert "see line 2: ValueError: two" in explain(log, ()).headline


RECORD = "[INFO|trainer.py:1713] 2023-12-04 13:36:18,647 >> writing a file"
SUSPECTED = phrase("WG185", "maybe the cable", severity="warning", confidence="possible")


@each(
    ("lines", "verdict"),
    [
        (("maybe the cable", WORK), "nothing-wrong"),
        ((WORK, "maybe the cable"), "nothing-wrong"),
        (("maybe the cable",), "found"),
        # Records show that the program went on, but not that it worked.
        (("maybe the cable", RECORD, RECORD), "found"),
        (("maybe the cable", WORK, FAILURE), "found"),
        # Beside something that is more than a guess.
        (("maybe the cable", EARLY, WORK), "found"),
        (("maybe the cable", WORK, "no driver here"), "found"),
        (("maybe the cable", "no driver here", WORK), "nothing-wrong"),
    ],
)
def test_a_guess_about_a_program_that_works_is_no_answer(
    lines: tuple[str, ...], verdict: str
) -> None:
    explanation = meaning(*lines, causes=(*ALL, SUSPECTED))
    assert explanation.verdict == verdict
    assert "WG185" in [f.code for f in (*explanation.root_causes, *explanation.symptoms)]


def test_a_guess_without_any_work_is_all_there_is() -> None:
    guess = phrase("WG184", "maybe the cable", severity="info", confidence="possible")
    assert meaning("maybe the cable", causes=(guess,)).verdict == "found"
    assert meaning(WORK, "maybe the cable", causes=(guess,)).verdict == "nothing-wrong"


OPEN_FAILURE = "RuntimeError: CUDA error: who knows"


@each(
    ("cause", "lines", "verdict"),
    [
        (NO_GPU, ("no driver here", OPEN_FAILURE), "found"),
        (NO_GPU, ("no driver here", WORK, OPEN_FAILURE, OPEN_FAILURE), "found"),
        # It was found later, or after the first failure.
        (NO_GPU, (OPEN_FAILURE, "", "no driver here"), "unknown"),
        (NO_GPU, (OPEN_FAILURE, "", "no driver here", OPEN_FAILURE), "unknown"),
        # What is only possible, or has no effect, leads to nothing.
        (
            phrase("WG183", "no driver here", severity="info", confidence="possible"),
            ("no driver here", OPEN_FAILURE),
            "unknown",
        ),
        (
            phrase("WG182", "no driver here", severity="info", effect="none"),
            ("no driver here", OPEN_FAILURE),
            "unknown",
        ),
        # A failure that is not about the GPU does not follow from it.
        (NO_GPU, ("no driver here", STRANGER), "not-gpu"),
    ],
)
def test_a_failure_about_the_gpu_follows_from_what_was_found_before_it(
    cause: Cause, lines: tuple[str, ...], verdict: str
) -> None:
    explanation = meaning(*lines, causes=(cause,))
    assert explanation.verdict == verdict
    assert codes(explanation) == (["WG192"] if verdict == "found" else [])


def test_a_failure_does_not_follow_from_what_is_on_no_line_of_the_log() -> None:
    looked = phrase("WG186", "never", severity="info")
    evidence = (Evidence("machine", "/dev", "no node"),)
    finding = looked.finding(subject="machine", message="", evidence=evidence, remedies=())
    looked.log_detector = lambda log: iter([finding])
    assert meaning(OPEN_FAILURE, causes=(looked,)).verdict == "unknown"


OPEN_ERROR = "ERROR:root:the GPU did something odd"


@each(
    ("lines", "verdict"),
    [
        ((OPEN_ERROR, "nothing to see"), "unknown"),
        ((WORK, OPEN_ERROR), "unknown"),
        ((OPEN_ERROR, WORK), "nothing-wrong"),
        (("ERROR:root:nothing to see on the GPU",), "nothing-wrong"),
        (("ERROR:root:the printer did something odd", "nothing to see"), "nothing-wrong"),
        (("WARNING:root:the GPU did something odd", "nothing to see"), "nothing-wrong"),
        (("ERROR:root:Epoch 3/5 loss: 0.1 on the GPU",), "nothing-wrong"),
        # Something was found, and the program went on.
        (("no driver here", OPEN_ERROR, WORK), "nothing-wrong"),
    ],
)
def test_an_error_about_the_gpu_that_nobody_explains_stays_open(
    lines: tuple[str, ...], verdict: str
) -> None:
    assert meaning(*lines).verdict == verdict


@each(
    ("lines", "verdict"),
    [
        (("no driver here", RECORD, RECORD), "nothing-wrong"),
        (("no driver here", RECORD, RECORD, RECORD), "nothing-wrong"),
        (("no driver here", RECORD), "found"),
        ((RECORD, RECORD, "no driver here"), "found"),
        ((RECORD, "no driver here", RECORD), "found"),
        (("[INFO|trainer.py:1] 2023-12-04 13:36:18,6 >> no driver here", RECORD), "found"),
        # Not what the program says of its own course.
        (("no driver here", *[RECORD.replace("INFO", "WARNING")] * 2), "found"),
        (("no driver here", *["I tensorflow/core/a.cc:9] optimising"] * 2), "found"),
    ],
)
def test_records_of_the_programs_own_logger_show_that_it_went_on(
    lines: tuple[str, ...], verdict: str
) -> None:
    assert meaning(*lines).verdict == verdict


def test_work_on_the_line_of_the_evidence_does_not_excuse_it() -> None:
    assert meaning("no driver here, Epoch 3/5 loss: 0.1").verdict == "found"


READY = (
    "2023-05-02 10:00:00.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1] Created "
    "device /job:localhost/replica:0/task:0/device:GPU:0 with 21000 MB memory:  -> device: 0, "
    "name: NVIDIA RTX A6000, pci bus id: 0000:00:06.0, compute capability: 8.6"
)
IGNORED = (
    "2023-05-02 10:00:00.000001: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1] Ignoring "
    "visible gpu device (device: 0, name: Quadro K420, pci bus id: 0000:05:00.0, compute "
    "capability: 3.0) with Cuda compute capability 3.0."
)


def test_a_gpu_that_is_ready_is_fine_and_one_that_is_ignored_is_not() -> None:
    ready = read_text(READY)
    assert explain(ready, ()).verdict == "nothing-wrong"
    ignored = [device._replace(event="ignored") for device in ready.devices]
    assert explain(ready._replace(devices=tuple(ignored)), ()).verdict == "unknown"


@each(
    ("lines", "works"),
    [
        (
            (READY, "Using device: cuda:0", WORK),
            "TensorFlow can use the GPU (NVIDIA RTX A6000), line 1",
        ),
        (
            ("Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with",),
            "TensorFlow can use the GPU, line 1",
        ),
        (
            ("GPU 0: Tesla T4 (UUID: GPU-1)", READY),
            "TensorFlow can use the GPU (NVIDIA RTX A6000), line 2",
        ),
        (
            ("CUDA available: True", "GPU 0: Tesla T4 (UUID: GPU-1)", "Using device: cuda:0"),
            "the program says that it works on the GPU, line 3 (Using device: cuda:0)",
        ),
        (
            ("Using device: cuda:0 " + "and so on " * 10,),
            "the program says that it works on the GPU, line 1 (Using device: cuda:0 and so on and "
            "so on and so on and so on ...)",
        ),
        (("hello", "GPU 0: Tesla T4 (UUID: GPU-1)", WORK), "it shows a GPU (Tesla T4), line 2"),
        (
            (IGNORED, WORK, WORK),
            "the program does its work, line 2, and does not say on which device",
        ),
        (
            ("CUDA available: True",),
            "the framework sees a GPU, line 1 (CUDA available: True)",
        ),
    ],
)
def test_a_log_without_a_fault_says_what_works(lines: tuple[str, ...], works: str) -> None:
    colon = ": " if works else ""
    fine = f"nothing in this log shows a fault{colon}{works}"
    harmless = "; the lines that look like a problem are harmless"
    for more, headline in (((), fine), (("nothing to see",), fine + harmless)):
        explanation = meaning(*lines, *more)
        assert (explanation.verdict, explanation.headline) == ("nothing-wrong", headline)


SMI = "| N/A   34C    P0    62W / 400W |  38512MiB / 40960MiB |      {}%      Default |"
QUERY = "timestamp, name, utilization.gpu [%], memory.used [MiB]"
ROW = "2024/05/01 10:00:0{}.000, Tesla V100-SXM2-16GB, {} %, 15200 MiB"


@pytest.mark.parametrize(
    "pasted",
    [
        (SMI.format(3),),
        ("[0] NVIDIA GeForce RTX 2080 Ti | 38'C,   3 % |  9876 / 11264 MB | me(9870M)",),
        (" GPU[|                 3%] MEM[|||||||||||||22.1Gi/24.0Gi]",),
        (QUERY, ROW.format(1, 3), ROW.format(2, 2)),
        ("GPU utilization: 3%", "GPU utilization: 2%"),
    ],
)
def test_a_table_of_a_gpu_that_hardly_works_is_not_fine_wherever_it_was_pasted(
    pasted: tuple[str, ...],
) -> None:
    explanation = meaning(*pasted, WORK, WORK)
    assert explanation.verdict == "unknown"
    assert "GPU was busy for only 3 % of the time" in explanation.headline


@pytest.mark.parametrize(
    "pasted",
    [
        (SMI.format(97),),
        (QUERY, ROW.format(1, 3), ROW.format(2, 92)),
        ("GPU utilization: 0%", "GPU utilization: 0%"),
    ],
)
def test_a_busy_gpu_or_one_that_has_not_begun_is_fine(pasted: tuple[str, ...]) -> None:
    assert meaning(*pasted, WORK, WORK).verdict == "nothing-wrong"


def test_a_gpu_that_hardly_works_is_not_said_to_be_fine() -> None:
    explanation = meaning(WORK, "GPU utilization: 3%", WORK, "GPU utilization: 7%")
    assert explanation.verdict == "unknown"
    assert "its GPU was busy for only 7 % of the time at line 2" in explanation.headline
    assert explanation.guidance is not None
    assert "a sample between two steps" in explanation.guidance.candidates
    assert meaning(WORK, "GPU utilization: 97%").verdict == "nothing-wrong"


UNKNOWN_FAILURES = [f"RuntimeError: CUDA error: nobody knows {letter}" for letter in "abcdefghi"]


@each(
    ("count", "shown"),
    [
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (9, [1, 2, 3, 4, 6, 7, 8, 9]),
    ],
)
def test_of_many_lines_that_nobody_explains_the_first_and_the_last_are_shown(
    count: int, shown: list[int]
) -> None:
    explanation = meaning(*UNKNOWN_FAILURES[:count])
    assert [evidence.line for evidence in explanation.unexplained] == shown


def test_an_unknown_log_shows_the_lines_that_look_like_trouble_and_are_not_accounted_for() -> None:
    explanation = meaning(
        "a plain line",
        "nothing to see: it failed to matter",
        "E0502 10:00:00.000001 12 some_file.cc:1] a record of that level",
        "something could not be done",
        "RuntimeError: CUDA error: nobody knows",
    )
    assert explanation.verdict == "unknown"
    assert [evidence.line for evidence in explanation.unexplained] == [3, 4, 5]


def test_a_fatal_record_that_the_program_survived_is_shown_in_an_unknown_log() -> None:
    fatal = "F0719 14:04:18.123456  4321 syncedmem.hpp:56] a check of the sizes"
    explanation = meaning(fatal, WORK, WORK, OPEN_FAILURE)
    assert explanation.verdict == "unknown"
    assert [evidence.line for evidence in explanation.unexplained] == [1, 4]


def test_a_failure_that_is_not_the_gpus_is_shown_alone() -> None:
    explanation = meaning("something could not be done", TRACEBACK, FRAME, STRANGER)
    assert [evidence.line for evidence in explanation.unexplained] == [4]


@each(
    ("lines", "understood", "question"),
    [
        ((), "it is empty", "Did the output go elsewhere"),
        (("hello",), "nothing in it reports a failure, a GPU or work being done", "What did the"),
        (("something failed",), "it has lines that look like a problem", "What did the program do"),
        (
            ("bind: Address already in use",),
            "another process listens on the port",
            "Did the program end",
        ),
        (("Killed",), "line 1 says that the program was ended from outside", "Does `sudo dmesg"),
        (("Segmentation fault",), "the program crashed at line 1", "Which function is it in"),
        (
            ("RuntimeError: No CUDA GPUs are available",),
            "the program needs a GPU, and the framework saw none",
            "Does `nvidia-smi` list the GPU",
        ),
        (
            ("RuntimeError: No CUDA GPUs are available", FAILURE),
            "line 2 ended the program",
            "Which error comes first",
        ),
    ],
)
def test_an_unknown_log_comes_with_what_was_understood_and_what_would_decide(
    lines: tuple[str, ...], understood: str, question: str
) -> None:
    explanation = meaning(*lines, causes=())
    assert explanation.verdict == "unknown"
    assert explanation.headline.startswith(f"cannot tell from this log: {understood}")
    assert explanation.guidance is not None
    assert explanation.guidance.ask is not None
    assert explanation.guidance.ask.startswith(question)
    assert explanation.guidance.steps


def test_advice_is_given_for_a_known_failure_that_is_not_the_gpus() -> None:
    explanation = meaning("OSError: [Errno 98] Address already in use")
    assert explanation.verdict == "not-gpu"
    assert "line 1: another process listens on the port" in explanation.headline
    assert explanation.guidance is not None
    assert [step.text[:19] for step in explanation.guidance.steps] == ["End the earlier run"]
    assert meaning(TRACEBACK, FRAME, STRANGER).guidance is None


@each(
    ("confidence", "as_it_is", "verdict"),
    [
        ("likely", "RuntimeError: CUDA error: the wid", "found"),
        ("likely", "KeyError: 1", "found"),
        # A guess is no reason to believe that the lines were wrapped.
        ("possible", "KeyError: 1", "not-gpu"),
        # A log that is understood needs no other reading.
        ("likely", f"{WORK}\n{WORK}", "nothing-wrong"),
    ],
)
def test_another_reading_counts_if_the_log_as_it_is_shows_no_cause(
    confidence: Confidence, as_it_is: str, verdict: str
) -> None:
    cause = phrase("WG291", "widget fell off", confidence=confidence, effect="broken")
    log = read_text(as_it_is)._replace(other_readings=(read_text("nothing"), read_text(FAILURE)))
    assert explain(log._replace(unread="the end"), (cause,)).unread == "the end"
    assert explain(log, (cause,)).verdict == verdict


@each(
    ("after", "verdict"),
    [
        (("reading the data", "three molecules", "two are solved"), "nothing-wrong"),
        (("reading the data", "three molecules"), "found"),
        (("reading the data", "three molecules", "cannot solve any"), "found"),
        # Somebody looks for the GPU.
        (("reading the data", "three molecules", "CUDA available: False"), "found"),
        (("W x.cc:1] one", "W x.cc:1] two", "W x.cc:1] three"), "found"),
    ],
)
def test_ordinary_output_shows_that_the_program_went_on(
    after: tuple[str, ...], verdict: str
) -> None:
    answer = explain(read_text("\n".join(("no driver here", *after))), (NO_GPU,))
    assert answer.verdict == verdict


@each(
    ("between", "end", "verdict"),
    [
        (0, "RuntimeError: Failed to load backend", "found"),
        (9, "RuntimeError: Failed to load backend", "unknown"),
        (0, "Segmentation fault", "unknown"),
    ],
)
def test_what_directly_precedes_a_failure_without_a_reason_is_its_cause(
    between: int, end: str, verdict: str
) -> None:
    log = read_text("no driver here\n" + "ok\n" * between + end)
    assert explain(log, ALL).verdict == verdict
