"""The verb explain: files, pipes, exit codes, JSON, and what must not leave the machine."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from benchmarks.explain_speed import FAULT, START, WARNING, write_log
from tests.launch.programs import unread
from tests.patience import PATIENCE, wait_until
from tests.schemas import obeys
from whygpu.cli.main import main

FOUND = """\
Traceback (most recent call last):
  File "/home/someone/code/train.py", line 3, in <module>
    model.cuda()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 9.77 GiB total \
capacity; 7.10 GiB already allocated; 1.21 GiB free; 7.43 GiB reserved in total by PyTorch)
"""
NOT_GPU = """\
2024-05-21 10:12:44.501873: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable \
to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already \
been registered
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    open("labels.csv")
FileNotFoundError: [Errno 2] No such file or directory: 'labels.csv'
"""
FINE = "Epoch 1/2 - loss: 0.51\nEpoch 2/2 - loss: 0.43\n"
UNKNOWN = "hello\n"


def written(folder: pathlib.Path, text: str, name: str = "train.log") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def explain(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """The program itself, with something on its standard input."""
    return subprocess.run(
        [sys.executable, "-m", "whygpu", "explain", *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [
        (FOUND, 1, "found"),
        (NOT_GPU, 1, "not-gpu"),
        (FINE, 0, "nothing-wrong"),
        (UNKNOWN, 4, "unknown"),
        ("", 4, "unknown"),
    ],
)
def test_the_verdict_decides_the_exit_code(
    text: str,
    code: int,
    verdict: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "--json", written(tmp_path, text)]) == code
    answer = json.loads(capsys.readouterr().out)
    obeys("explain", answer)
    assert answer["verdict"] == verdict


def test_the_first_line_is_the_verdict(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["explain", written(tmp_path, NOT_GPU)])
    first = capsys.readouterr().out.splitlines()[0]
    assert "is unrelated to the GPU; see line 5" in first.replace("\n", " ")


def test_evidence_has_line_numbers(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["explain", "--json", written(tmp_path, "before\n" * 50 + FOUND)])
    root = json.loads(capsys.readouterr().out)["root_causes"][0]
    assert 54 in [evidence["line"] for evidence in root["evidence"]]


@pytest.mark.slow
def test_a_pipe_is_read() -> None:
    done = explain("--json", text=FOUND)
    assert done.returncode == 1
    assert json.loads(done.stdout)["name"] == ""
    assert explain("-", "--json", text=FOUND).stdout == done.stdout


def test_several_files_give_a_line_of_json_each(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [written(tmp_path, FOUND, "a.log"), written(tmp_path, FINE, "b.log")]
    assert main(["explain", "--json", *names]) == 1
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["verdict"] for answer in answers] == ["found", "nothing-wrong"]
    assert [answer["name"].rpartition("/")[2] for answer in answers] == ["a.log", "b.log"]


def test_several_files_are_told_apart_in_text(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["explain", written(tmp_path, FOUND, "a.log"), written(tmp_path, FINE, "b.log")])
    out = capsys.readouterr().out
    assert out.index("a.log ==") < out.index("b.log ==")


def test_a_missing_file_is_the_callers_mistake(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(tmp_path / "none.log")]) == 2
    said = capsys.readouterr().err
    assert "No such file" in said
    assert "one word" not in said


def test_a_message_of_one_word_can_be_piped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Killed"]) == 2
    assert "a message of one word: echo WORD | whygpu explain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Torch not compiled with CUDA enabled", 1),
        ("CUDA_ERROR_OUT_OF_MEMORY", 1),
        ("Failed to create session", 4),
        ("Keras does not see my GPU", 4),
    ],
)
def test_a_message_in_quotes_is_explained_itself(
    message: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", message]) == code
    assert "line 1" in capsys.readouterr().out or code == 4


def test_a_message_without_quotes_is_told_to_need_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "Failed", "to", "create", "session"]) == 2
    assert "whygpu explain 'Failed to create session'" in capsys.readouterr().err


def test_an_address_is_not_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "https://example.org/issues/1"]) == 2
    assert "paste the text" in capsys.readouterr().err


def test_a_file_with_a_space_in_its_name_is_a_file(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", written(tmp_path, FOUND, "my log")]) == 1
    capsys.readouterr()
    assert main(["explain", "my other log.txt"]) == 2
    assert "cannot read my other log.txt" in capsys.readouterr().err


def test_a_folder_is_no_log(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_a_program_is_for_lint(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "train.py"
    program.write_text("print(1)\n")
    assert main(["explain", str(program)]) == 4
    assert f"`whygpu lint {program}` reads programs" in capsys.readouterr().err


def test_one_unreadable_file_does_not_hide_the_others(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(tmp_path / "none.log"), written(tmp_path, FOUND)]) == 2
    captured = capsys.readouterr()
    assert "none.log" in captured.err
    assert "WG" in captured.out


def test_python_without_here_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--python", sys.executable, "x.log"]) == 2
    assert "--here" in capsys.readouterr().err


def test_what_is_private_is_not_quoted(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "hf_" + "a1B2" * 9
    text = NOT_GPU.replace("'labels.csv'", f"'/home/someone/data/{secret}'")
    for words in (["--json"], ["-v"]):
        main(["explain", *words, written(tmp_path, text)])
        out = capsys.readouterr().out
        assert "FileNotFoundError" in out
        assert "someone" not in out
        assert secret not in out


def test_colour_is_for_terminals(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = written(tmp_path, FOUND)
    main(["explain", name])
    assert "\x1b" not in capsys.readouterr().out
    main(["explain", "--color", "always", name])
    assert "\x1b" in capsys.readouterr().out


def test_no_line_is_wider_than_80(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["explain", "-v", written(tmp_path, NOT_GPU + FOUND)])
    lines = capsys.readouterr().out.splitlines()
    # A command has to survive copy and paste, and stands alone on its line.
    assert all(len(line) <= 80 or line.startswith(" " * 10) for line in lines)


def test_a_file_that_grows_is_read_to_where_it_ended(tmp_path: pathlib.Path) -> None:
    from whygpu.host.log_files import pieces_of_file

    path = tmp_path / "growing.log"
    path.write_bytes(b"x" * 1_000_000)
    read = 0
    for piece in pieces_of_file(str(path), lambda done, size: None):
        read += len(piece)
        with open(path, "ab") as file:
            file.write(b"y" * 500_000)
    assert read == 1_000_000


@pytest.mark.slow
def test_a_device_that_has_no_size_is_read_to_its_end(tmp_path: pathlib.Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", "explain", "--json", str(fifo)], stdout=subprocess.PIPE
    )
    fifo.write_text(FINE)
    out, _ = process.communicate(timeout=PATIENCE)
    assert json.loads(out)["verdict"] == "nothing-wrong"


@pytest.mark.slow
def test_being_interrupted_while_waiting_for_input() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", "explain"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"Epoch 1\n")
    process.stdin.flush()
    pipe = process.stdin.fileno()
    wait_until(lambda: not unread(pipe), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"interrupted" in err


def test_the_help_has_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    out = capsys.readouterr().out
    assert "2>&1 | whygpu explain" in out
    assert "exit codes:" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_a_notebook(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    traceback = ["\x1b[0;31mRuntimeError\x1b[0m  Traceback (most recent call last)\n", FOUND]
    notebook = {"cells": [{"outputs": [{"output_type": "error", "traceback": traceback}]}]}
    for indent in (None, 1):
        text = json.dumps(notebook, indent=indent)
        main(["explain", "--json", written(tmp_path, text, "a.ipynb")])
        assert json.loads(capsys.readouterr().out)["verdict"] == "found"


@pytest.mark.slow
def test_a_long_log_gives_the_answer_of_a_short_one_with_the_right_lines(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = tmp_path / "long.log"
    fault_at = write_log(long, 4)
    short = written(tmp_path, START + WARNING.format(minute=1, size=2) + "\n" + FAULT + FAULT)
    answers = []
    for name in (str(long), short):
        assert main(["explain", "--json", name]) == 1
        answers.append(json.loads(capsys.readouterr().out))
    causes = [[root["cause"] for root in answer["root_causes"]] for answer in answers]
    assert causes[0] == causes[1] != []
    assert fault_at in [e["line"] for e in answers[0]["root_causes"][0]["evidence"]]
    assert answers[0]["lines_read"] == long.read_bytes().count(b"\n")


@pytest.mark.slow
def test_with_this_machine_an_illegal_instruction_is_judged_by_its_processor(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if " avx " not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX")
    log = tmp_path / "train.log"
    log.write_text("Illegal instruction (core dumped)\n")
    words = ["explain", "--here", "--python", sys.executable, "--json", str(log)]
    main(words)
    found = json.loads(capsys.readouterr().out)
    assert "avx-missing-sigill" not in [root["cause"] for root in found["root_causes"]]
    assert "illegal instruction" in found["headline"]
    assert "executed here" in found["headline"] or "fails here" in found["headline"]


def test_a_snapshot_is_no_log(tmp_path: pathlib.Path) -> None:
    snapshot = written(tmp_path, '{\n "schema": 1,\n "whygpu": "0.1.0",\n "system": {}}')
    answer = explain(snapshot)
    assert answer.returncode == 2
    assert f"whygpu check --snapshot {snapshot}" in answer.stderr
    assert explain(written(tmp_path, '{"schema": 1, "message": "x"}')).returncode != 2


def test_what_whygpu_wrote_as_json_is_no_log_in_a_pipe_either() -> None:
    snapshot = '{\n "schema": 1,\n "whygpu": "0.1.0",\n "system": {}}'
    check = '{\n  "schema": 1,\n  "verdict": "no-gpu",\n  "headline": "CUDA out of memory"'
    for text in (snapshot, check):
        answer = explain(text=text)
        assert answer.returncode == 2
        assert "whygpu check --snapshot -" in answer.stderr
    own = explain("--json", text="RuntimeError: CUDA out of memory").stdout
    assert "an answer of whygpu and no log" in explain(text=own).stderr
    assert explain(text='{"schema": 1, "name": "train", "message": "x"}').returncode != 2
