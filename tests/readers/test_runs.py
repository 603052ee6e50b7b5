"""Runs that were appended to one log: the last one counts."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained
from whygpu.readers.log import read_text

NO_LIBRARY = (
    "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
)
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
START = "[2024-05-01 10:00:00] the training of a model starts"
AGAIN = "[2024-05-02 11:30:00] the training of a model starts"
WORK = "Epoch 1: loss 0.7\nEpoch 2: loss 0.6"


@each(
    ("lines", "kept"),
    [
        # The same command, with whatever options.
        (("$ python a.py", ECC, "$ python a.py --small", "KeyError: 1"), [3, 4]),
        (("me@box:~/x$ python3 a.py", ECC, "me@box:~/x$ python3 a.py", "KeyError: 1"), [3, 4]),
        (("(env) PS C:\\x> python a.py", ECC, "(env) PS C:\\x> python a.py", WORK), [3, 4, 5]),
        # What was done between the runs stays.
        (("$ python a.py", ECC, "$ pip install x", "$ python a.py", "KeyError: 1"), [3, 4, 5]),
        # The same first line.
        ((START, ECC, AGAIN, WORK), [3, 4, 5]),
        ((START, ECC, AGAIN, NO_LIBRARY, AGAIN, WORK), [5, 6, 7]),
    ],
)
def test_the_lines_of_earlier_runs_are_left_out(lines: tuple[str, ...], kept: list[int]) -> None:
    log = read_text("\n".join(lines))
    assert [line.number for line in log.lines] == kept
    assert log.earlier_runs >= 1


@each(
    "lines",
    [
        # Other commands help to understand the failure.
        ("$ python a.py", ECC, "$ nvidia-smi", "No devices were found"),
        ("$ python a.py", ECC, "$ python b.py", "KeyError: 1"),
        # Processes of one run begin alike.
        (START, AGAIN, ECC),
        # Nothing is known about the last run.
        ("$ python a.py", ECC, "$ python a.py"),
        # Errors begin alike.
        (ECC, "more", ECC, "KeyError: 1"),
        ("Traceback (most recent call last):", "KeyError: 1") * 2,
        ("W x.cc:1] a warning of some length", ECC, "W x.cc:1] a warning of some length", ECC),
        # A short line says too little.
        ("start", ECC, "start", "KeyError: 1"),
    ],
)
def test_other_logs_are_one_run(lines: tuple[str, ...]) -> None:
    log = read_text("\n".join(lines))
    assert log.earlier_runs == 0
    assert len(log.lines) == len(lines)


def test_the_answer_says_that_there_are_earlier_runs() -> None:
    text = "\n".join((START, ECC, AGAIN, NO_LIBRARY))
    answer = explained(text)
    assert [root.cause for root in answer.root_causes][:1] == ["cuda-runtime-missing"]
    assert answer.headline.startswith("in the last run (the log also has an earlier run): ")
    assert "(the log also has 2 earlier runs)" in explained(f"{text}\n{AGAIN}\n{WORK}").headline
    assert explained(f"{text}\n{AGAIN}\n{WORK}").verdict == "nothing-wrong"


def test_the_next_command_of_a_session_is_no_part_of_a_message() -> None:
    for prompt in ("$ ", "me@box:~/x$ ", ">>> ", "C:\\Users\\me>", "(env) $ "):
        (raised,) = read_text(f"KeyError: 1\nmore\n{prompt}pip list\n").raised
        assert raised.message == "1\nmore"


NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled"
TOO_OLD = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."


@each(
    ("text", "roots"),
    [
        (
            f'First I got "{NOT_COMPILED}".\nThen I reinstalled it and now I get\n{TOO_OLD}',
            ["driver-too-old-for-cuda"],
        ),
        (
            f"{NOT_COMPILED}\nI installed the build for CUDA. Now: {TOO_OLD}",
            ["driver-too-old-for-cuda"],
        ),
        (
            f"{NOT_COMPILED}\nIch habe es neu installiert, jetzt kommt\n{TOO_OLD}",
            ["driver-too-old-for-cuda"],
        ),
        # It did not help.
        (f"{NOT_COMPILED}\nI reinstalled it and now I still get the error", ["cpu-only-build"]),
        # Nothing shows what happens now.
        (f"{NOT_COMPILED}\nI reinstalled it, what now?", ["cpu-only-build"]),
        # No attempt lies between them.
        (f"{NOT_COMPILED}\nand in the other environment\n{TOO_OLD}", None),
    ],
)
def test_of_attempts_that_a_person_describes_the_last_one_counts(
    text: str, roots: list[str] | None
) -> None:
    found = [root.cause for root in explained(text).root_causes]
    assert len(found) == 2 if roots is None else found == roots
