"""Explanations as text and as JSON, whole."""

from __future__ import annotations

import json

import pytest

from tests.cases import each
from tests.kit import examples, explained
from tests.schemas import obeys
from whygpu.causes import catalogue
from whygpu.model.cause import Cause
from whygpu.model.explanation import STANDARD_ERROR, Explanation, Guidance
from whygpu.model.finding import Evidence, Finding, Remedy
from whygpu.model.remedy import Install
from whygpu.render.explain_json import as_dict, render_line
from whygpu.render.explain_json import render as render_json
from whygpu.render.explain_text import render

ROOT = Finding(
    code="WG203",
    cause="cudnn-missing",
    severity="error",
    subject="tensorflow",
    message="TensorFlow 2.4 needs libcudnn.so.8, and the loader did not find it",
    evidence=(Evidence("log", "train.log:4", "Could not load dynamic library 'libcudnn.so.8'", 4),),
    remedies=(Remedy("Install cuDNN 8.", Install(("nvidia-cudnn-cu11",))), Remedy("Or look.")),
    effect="cpu",
    confidence="likely",
    ask="Is there a libcudnn.so.8 in LD_LIBRARY_PATH?",
)
FOLLOWER = ROOT._replace(
    code="WG401", cause="gpu-unused", message="the GPU is not used", explained_by="WG203"
)
NOISE = ROOT._replace(
    code="WG902",
    cause="numa-node-unknown",
    severity="info",
    message="the NUMA node is not known; it does not matter (on 2 lines)",
    evidence=(Evidence("log", "train.log:2", "NUMA", 2), Evidence("log", "train.log:3", "NUMA", 3)),
)
FOUND = Explanation("found", ROOT.message, (ROOT,), (FOLLOWER,), (NOISE,), (), (), "train.log", 9)


def text(explanation: Explanation, *, verbose: bool = False) -> str:
    return render(explanation, width=80, color=False, verbose=verbose)


def test_a_root_cause() -> None:
    assert text(FOUND) == (
        """\
✗ TensorFlow 2.4 needs libcudnn.so.8, and the loader did not find it

1. WG203 cudnn-missing  likely
   seen   line 4: Could not load dynamic library 'libcudnn.so.8'
   ask    Is there a libcudnn.so.8 in LD_LIBRARY_PATH?
   fix    Install cuDNN 8.
          python -m pip install nvidia-cudnn-cu11
   fix    Or look.
   also   explains WG401 gpu-unused

Harmless:
  line 2: the NUMA node is not known; it does not matter (on 2 lines) (WG902)

Details: whygpu rule WG203
"""
    )


@pytest.mark.parametrize(("name", "told"), [(STANDARD_ERROR, True), ("train.log", False)])
def test_after_a_run_the_lines_are_those_of_standard_error(name: str, told: bool) -> None:
    text = render(
        explained("CUDA error: out of memory")._replace(name=name),
        width=80,
        color=False,
        verbose=False,
    )
    assert ("those of the program's standard error" in text) is told


def test_verbose_shows_all_that_was_seen() -> None:
    out = text(FOUND, verbose=True)
    assert "line 2: the NUMA node is not known; it does not matter (on 2 lines) (WG902)" in out
    assert "line 3: NUMA" in out


def test_a_failure_that_is_not_the_gpus() -> None:
    evidence = Evidence("log", "a.log:7", "KeyError: 'classes'", 7)
    aside = ROOT._replace(severity="info")
    doubtful = ROOT._replace(code="WG801", cause="docker-no-gpu-runtime", confidence="possible")
    explanation = Explanation(
        "not-gpu",
        "the failure is unrelated to the GPU; see line 7: KeyError: 'classes'",
        (),
        (aside, doubtful),
        (),
        (evidence,),
    )
    assert text(explanation) == (
        """\
✗ The failure is unrelated to the GPU; see line 7: KeyError: 'classes'

The lines that matter:
  line 7: KeyError: 'classes'

Also seen, but not the cause:
  WG203 cudnn-missing: TensorFlow 2.4 needs libcudnn.so.8, and the loader did
  not find it
"""
    )
    assert "WG801" in text(explanation, verbose=True)


def test_doubt_shows_the_lines_that_look_like_trouble() -> None:
    evidence = Evidence("log", "line 3", "something failed", 3)
    out = text(Explanation("unknown", "cannot tell from this log", (), (), (), (evidence,)))
    assert out.startswith("? Cannot tell from this log\n")
    assert "Lines to look at:\n  line 3: something failed\n" in out


def test_doubt_says_what_it_could_be_what_decides_and_what_to_do() -> None:
    guidance = Guidance(
        "a session failed",
        candidates=("no memory", "an old driver"),
        ask="What comes first?",
        steps=(Remedy("Keep standard error."), Remedy("Look at the machine.")),
    )
    explanation = Explanation("unknown", "cannot tell", (), (), (), (), guidance=guidance)
    assert text(explanation) == (
        """\
? Cannot tell

   maybe  no memory; an old driver
   ask    What comes first?
   next   Keep standard error.
   next   Look at the machine.
"""
    )


def test_nothing_wrong() -> None:
    out = text(Explanation("nothing-wrong", "nothing is wrong", (), (), (), ()))
    assert out == "✓ Nothing is wrong\n"


def test_much_evidence_is_cut_and_says_so() -> None:
    lines = tuple(Evidence("log", f"a:{n}", f"text {n}", n) for n in range(1, 9))
    out = text(FOUND._replace(root_causes=(ROOT._replace(evidence=lines),)))
    assert "text 5" in out
    assert "text 6" not in out
    assert "... and 3 more (-v)" in out


def test_what_the_machine_says_has_its_own_source() -> None:
    machine = ROOT._replace(evidence=(Evidence("machine", "/proc/driver/nvidia", "not there"),))
    assert "seen   /proc/driver/nvidia: not there" in text(FOUND._replace(root_causes=(machine,)))


def test_a_bug_in_whygpu_is_not_hidden() -> None:
    assert "A bug in whygpu" in text(FOUND._replace(crashed=("WG203: KeyError: 1",)))


def test_the_keys_of_the_json() -> None:
    answer = json.loads(render_json(FOUND))
    assert list(answer) == [
        "schema",
        "name",
        "verdict",
        "headline",
        "root_causes",
        "symptoms",
        "noise",
        "unexplained",
        "crashed",
        "lines_read",
        "guidance",
        "unread",
    ]
    assert {"cause", "code", "confidence", "evidence", "ask"} <= set(answer["root_causes"][0])
    assert answer["root_causes"][0]["evidence"][0]["line"] == 4
    assert render_line(FOUND).count("\n") == 1


@pytest.mark.slow
@each("cause", [cause for cause in catalogue() if cause.log_detector], ids=lambda cause: cause.slug)
def test_every_example_gives_a_valid_answer(cause: Cause) -> None:
    for example in examples(cause.page):
        if example.kind == "log":
            explanation = explained(example.text)
            obeys("explain", json.loads(json.dumps(as_dict(explanation))))
            assert render(explanation, width=80, color=False, verbose=False)
