"""The source code that pytest prints around an error holds texts of errors that did not happen."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained
from whygpu.readers.listings import without_listings, without_programs
from whygpu.readers.log import read_text
from whygpu.render.explain_text import render

FUNCTION = (
    "    def load(path):",
    "        if not torch.cuda.is_available():",
    '            raise RuntimeError("No CUDA GPUs are available")',
    "",
    "        data = open(path)",
)
STATEMENT = ">       return parse(data)"
CONTINUED = (">       return parse(", "            data,", "        )")
ERROR = "E       ValueError: not a number: 'x'"
TIME = "2024-05-01T10:11:12.1234567Z "


def kept(*lines: str) -> list[str]:
    numbered = [(number, line.encode()) for number, line in enumerate(lines, 1)]
    return [raw.decode() for _, raw in without_listings(numbered)]


@each(
    ("lines", "left"),
    [
        ((*FUNCTION, STATEMENT, ERROR), [STATEMENT, ERROR]),
        ((*FUNCTION, *CONTINUED, ERROR), [CONTINUED[0], ERROR]),
        ((*FUNCTION, ERROR), [ERROR]),
        (("train.py:3: in main", *FUNCTION, ERROR), ["train.py:3: in main", ERROR]),
        ((*FUNCTION, STATEMENT, ERROR, ERROR, "", "rest"), [STATEMENT, ERROR, ERROR, "", "rest"]),
        # Two functions, each with its error.
        ((*FUNCTION, ERROR, "____", *FUNCTION, ERROR), [ERROR, "____", ERROR]),
        ((ERROR,), [ERROR]),
        ((STATEMENT, ERROR), [STATEMENT, ERROR]),
        ((), []),
    ],
)
@each("before", ["", TIME])
def test_the_listing_above_an_error_is_left_out(
    lines: tuple[str, ...], left: list[str], before: str
) -> None:
    assert kept(*(before + line for line in lines)) == [before + line for line in left]


@each(
    "last",
    [
        "E tensorflow/core/a.cc:9] a record of TensorFlow",
        "E",
        "ValueError: of a traceback",
        "Error",
    ],
)
def test_lines_above_anything_else_stay(last: str) -> None:
    assert kept(*FUNCTION, last) == [*FUNCTION, last]


@each("stop", ["plain text", ">>> session", "> a quotation", "  two spaces"])
def test_a_listing_ends_at_the_first_line_that_is_no_source(stop: str) -> None:
    assert kept("    far above", stop, "    near", ERROR) == ["    far above", stop, ERROR]


@each(("length", "left"), [(299, 1), (300, 1), (301, 2)])
def test_a_listing_has_a_longest_length(length: int, left: int) -> None:
    assert len(kept(*["    x = 1"] * length, ERROR)) == left


def test_line_numbers_stay_and_messages_of_other_errors_are_not_read() -> None:
    log = read_text("\n".join((*FUNCTION, STATEMENT, ERROR)))
    assert [failure.line for failure in log.failures] == [7]
    assert "CUDA" not in log.text


PROGRAM = (
    "import torch",
    "try:",
    "    train()",
    "except RuntimeError as e:",
    '    print(f"CUDA out of memory error: {e}")',
)
RAISED = "RuntimeError: CUDA error: out of memory"


@each(
    ("lines", "left"),
    [
        (("Text", "```python", *PROGRAM, "```", RAISED), ["Text", "```python", "```", RAISED]),
        (("  ```py", *(f"  {line}" for line in PROGRAM), "  ```"), ["  ```py", "  ```"]),
        (("```python", "raise SystemExit(1)", "```"), ["```python", "```"]),
        # Output between the fences of a program, and a program that never ends.
        (("```python", RAISED, "```"), ["```python", RAISED, "```"]),
        (("```python", "Killed", "```"), ["```python", "Killed", "```"]),
        (("```python", *PROGRAM, RAISED, "```"), ["```python", *PROGRAM, RAISED, "```"]),
        (("```python", *PROGRAM), ["```python", *PROGRAM]),
        (("```", *PROGRAM, "```"), ["```", *PROGRAM, "```"]),
        (("```python", "x = " + "(" * 9999, "```"), ["```python", "x = " + "(" * 9999, "```"]),
    ],
)
def test_a_program_between_fences_is_left_out(lines: tuple[str, ...], left: list[str]) -> None:
    numbered = [(number, line.encode()) for number, line in enumerate(lines, 1)]
    assert [raw.decode() for _, raw in without_programs(numbered)] == left


def test_the_strings_of_a_program_that_a_page_shows_are_no_errors() -> None:
    page = "\n".join(("A page about memory.", "", "```python", *PROGRAM, "```", ""))
    assert read_text(page).allocations == ()
    assert read_text(f"{page}\n{RAISED}").allocations != ()


def test_an_earlier_answer_is_no_log() -> None:
    text = "AssertionError: Torch not compiled with CUDA enabled"
    answer = render(explained(text), width=80, color=False, verbose=False)
    assert "WG301" in answer
    assert explained(answer).verdict == "unknown"
    # What stands around it counts.
    around = explained(f"{answer}\nRuntimeError: CUDA error: invalid device ordinal\n")
    assert [root.cause for root in around.root_causes] == ["invalid-device-ordinal"]


SOURCE = """\
import tensorflow as tf

try:
    model.fit(x_train, y_train)
except tf.errors.ResourceExhaustedError as e:
    print(f"CUDA out of memory error: {e}")
"""


def test_the_source_of_a_program_is_no_log() -> None:
    answer = explained(SOURCE)
    assert answer.verdict == "unknown"
    assert "source of a program" in answer.headline
    # With what it printed, it is one.
    assert explained(f"{SOURCE}\nCUDA out of memory error: OOM\n").verdict == "found"
    cell = "import torch\nprint(torch.version.cuda)\nNone\n"
    assert explained(cell).root_causes[0].cause == "cpu-only-build"
    assert explained("torch.zeros(1).cuda()\nprint(1)").guidance is not None
