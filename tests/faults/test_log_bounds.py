"""Hostile files on the command line: bounded memory, no hang, and an answer."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests import bounded

OUT_OF_MEMORY = (
    b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB"
    b" total capacity; 14.20 GiB already allocated; 1.10 GiB free; 14.30 GiB reserved in total)\n"
)
LOGS = {
    "one line": b"error cuda failed " * 1_000_000,
    "nested objects": b'{"log": ' * 200_000 + b'"cuda error"' + b"}" * 200_000,
    "overwritten": b"".join(b"\rerror %d cuda" % number for number in range(500_000)),
    "empty lines": b"\n" * 10_000_000,
    "no text": bytes(range(256)) * 40_000,
    "escape sequences": b"\x1b[31m" * 1_000_000 + b"cuda error\n",
    "tracebacks": b"".join(
        b"Traceback (most recent call last):\n"
        + b'  File "a.py", line 1, in f\n' * 30
        + b"E: %d\n" % n
        for n in range(5_000)
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_that_are_bombs(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "a.log").write_bytes(LOGS[name])
    bounded.whygpu("explain", "a.log", folder=tmp_path)


def test_a_compressed_log_from_a_file_and_from_standard_input(tmp_path: pathlib.Path) -> None:
    packed = gzip.compress(OUT_OF_MEMORY)
    (tmp_path / "log").write_bytes(packed)
    for ended in (
        bounded.whygpu("explain", "log", folder=tmp_path),
        bounded.whygpu("explain", given=packed),
    ):
        assert (ended.code, "ran out of GPU memory" in ended.stdout) == (1, True)


def test_a_log_whose_end_is_missing_is_not_said_to_be_fine(tmp_path: pathlib.Path) -> None:
    fine = b"".join(b"Epoch %d/9000 loss: 0.5 accuracy: 0.9\n" % n for n in range(9_000))
    packed = gzip.compress(fine)
    assert bounded.whygpu("explain", given=packed).code == 0
    ended = bounded.whygpu("explain", "--json", given=packed[:-9])
    answer = json.loads(ended.stdout)
    assert (ended.code, answer["verdict"]) == (4, "unknown")
    assert answer["unread"] == "the gzip data are truncated: the end is missing"


def test_a_pipe_that_the_user_names_is_read(tmp_path: pathlib.Path) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write({OUT_OF_MEMORY!r})"]
    )
    ended = bounded.whygpu("explain", str(pipe))
    writer.wait()
    assert "ran out of GPU memory" in ended.stdout


@pytest.mark.parametrize("words", [("explain", "/dev/zero"), ("check", "--snapshot", "/dev/zero")])
def test_a_device_that_never_ends_is_refused(words: tuple[str, ...]) -> None:
    ended = bounded.whygpu(*words)
    assert (ended.code, "a device" in ended.stderr) == (2, True)


SNAPSHOTS = {
    "nested lists": (b"[" * 100_000, "is nested too deeply"),
    "nested in a snapshot": (
        b'{"schema": 1, "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        "is nested too deeply",
    ),
    "millions of values": (b"[" + b"{}," * 5_000_000 + b"{}]", "more than 1,200,000 values"),
    "as many values as may be": (b"[" + b'{"a":1},' * 590_000 + b"1]", "JSON of another kind"),
    "one long text": (f'{{"schema": "{"x" * 12_000_000}😀"}}'.encode(), "expected schema"),
    "twenty megabytes": (b" " * 20_000_000, "larger than 16 MiB"),
}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_snapshots_that_are_bombs(tmp_path: pathlib.Path, name: str) -> None:
    content, why = SNAPSHOTS[name]
    (tmp_path / "a.json").write_bytes(content)
    ended = bounded.whygpu("check", "--snapshot", "a.json", folder=tmp_path)
    assert (ended.code, why in ended.stderr) == (2, True), ended.stderr[:500]
    assert len(ended.stderr) < 500


def test_a_pipe_as_a_snapshot_is_not_waited_for_unless_somebody_writes(
    tmp_path: pathlib.Path,
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ended = bounded.whygpu("check", "--snapshot", "pipe", folder=tmp_path)
    assert (ended.code, "a named pipe without a writer" in ended.stderr) == (2, True)
    program = """
        import os
        ours, theirs = os.pipe()
        if os.fork() == 0:
            os.write(theirs, b'{"schema": 99}')
            os._exit(0)
        os.close(theirs)
        from whygpu.cli.main import main
        sys.exit(main(["check", "--snapshot", f"/dev/fd/{ours}"]))
    """
    assert "received 99" in bounded.run(program).stderr


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exec yes", "printed more than 1 MiB"),
        ("exec cat /dev/zero >&2", "printed more than 1 MiB"),
    ],
)
def test_an_interpreter_that_prints_for_ever(tmp_path: pathlib.Path, script: str, why: str) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    ended = bounded.whygpu("check", "--no-probe", "--json", "--python", str(python))
    assert why in ended.stdout


def test_an_environment_full_of_what_is_no_file(tmp_path: pathlib.Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for number, name in enumerate(("torch", "jax", "jaxlib", "tensorflow", "keras")):
        metadata = site / f"{name}-2.{number}.0.dist-info"
        metadata.mkdir()
        os.mkfifo(metadata / "METADATA")
        (metadata / "RECORD").symlink_to("/dev/zero")
        (site / name).mkdir()
        os.mkfifo(site / name / "version.py")
        os.mkfifo(site / name / "__init__.py")
    # A megabyte of source takes most of a gigabyte as a syntax tree.
    (site / "jax" / "version.py").unlink()
    (site / "jax" / "version.py").write_text("a\n" * 500_000)
    (site / "torch" / "lib").mkdir()
    os.mkfifo(site / "torch" / "lib" / "libtorch_cuda.so")
    (site / "tensorflow" / "libtensorflow_framework.so.2").symlink_to("/dev/zero")
    ended = bounded.whygpu("check", "--no-probe", "--python", str(tmp_path / "env"))
    assert "PyTorch" in ended.stdout
