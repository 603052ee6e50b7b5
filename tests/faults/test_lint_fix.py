"""whygpu lint --fix: a file is mended wholly or left as it was, and the exit code says which."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from whygpu.cli import main as cli
from whygpu.host.writing import TEMPORARY

FILLING = "# a long comment that fills the file\n" * 2000
DEFECT = "import tensorflow as tf\ntf.config.set_memory_growth(1, True)\n" + FILLING
FIXED = DEFECT.replace("config.set", "config.experimental.set")
FIX = [sys.executable, "-m", "whygpu", "lint", "--fix"]


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    inside = tmp_path / "folder"
    inside.mkdir()
    (inside / "a.py").write_text(DEFECT)
    monkeypatch.chdir(inside)
    return inside


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_would_grow_too_large_is_left_as_it_is(folder: pathlib.Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *FIX, "a.py"],
        # Byte code that it wrote would be cut off, and break every later start.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "a.py is left as it is: File too large" in done.stderr
    assert (folder / "a.py").read_text() == DEFECT
    assert names(folder) == ["a.py"]


FULL = """
mount -t tmpfs -o size=112k none "$1" || exit 77
cp a.py "$1/" && cd "$1" || exit 77
shift
"$@" a.py
code=$?
cmp -s a.py "$OLDPWD/a.py" || exit 66
[ "$(ls -A)" = a.py ] || exit 67
exit $code
"""


def test_a_full_disk_leaves_the_file_as_it_is(folder: pathlib.Path) -> None:
    """On a file system with room for the file, and for half of it more."""
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare here")
    disk = folder.parent / "disk"
    disk.mkdir()
    done = subprocess.run(
        [unshare, "-Urm", "sh", "-c", FULL, "sh", str(disk), *FIX],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"no file system of our own can be made: {done.stderr}")
    assert done.returncode == 2, done.stderr
    assert "left as it is: No space left on device" in done.stderr


def test_a_link_that_leaves_the_folder_is_not_followed(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = folder.parent / "outside.py"
    outside.write_text(DEFECT)
    (folder / "a.py").unlink()
    (folder / "link.py").symlink_to(outside)
    for given in (".", "link.py", str(folder), str(folder / "link.py")):
        assert cli.main(["lint", "--fix", given]) == 2
        said = capsys.readouterr().err
        assert "link.py is left as it is: it is a link to " in said
        assert "outside.py, outside the given folders" in said
        assert outside.read_text() == DEFECT
    assert cli.main(["lint", "--fix", ".", str(outside)]) == 0
    assert outside.read_text() == FIXED
    assert (folder / "link.py").is_symlink()


def test_a_link_inside_the_folder_is_followed(folder: pathlib.Path) -> None:
    (folder / "deep").mkdir()
    (folder / "a.py").rename(folder / "deep" / "real.py")
    (folder / "a.py").symlink_to("deep/real.py")
    assert cli.main(["lint", "--fix", "."]) == 0
    assert (folder / "a.py").is_symlink()
    assert (folder / "deep" / "real.py").read_text() == FIXED


def test_a_folder_that_is_given_by_a_link_is_mended(folder: pathlib.Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    assert cli.main(["lint", "--fix", str(folder.parent / "link")]) == 0
    assert (folder / "a.py").read_text() == FIXED


def test_two_runs_at_once_mend_every_file_wholly(folder: pathlib.Path) -> None:
    for number in range(12):
        (folder / f"f{number}.py").write_text(DEFECT)
    runs = [subprocess.Popen([*FIX, "."], stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait(PATIENCE) for process in runs] == [0, 0, 0]
    assert {path.read_text() for path in folder.iterdir()} == {FIXED}
    assert len(names(folder)) == 13


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_whole_files_and_nothing_else(
    folder: pathlib.Path, number: signal.Signals
) -> None:
    """Sent as soon as the first of many files has been mended."""
    for place in range(30):
        (folder / f"f{place}.py").write_text(DEFECT)
    process = subprocess.Popen([*FIX, "."], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while (folder / "a.py").stat().st_size == len(DEFECT):
        assert process.poll() is None
    process.send_signal(number)
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number, (out, error)
    assert b"Traceback" not in error
    texts = [path.read_text() for path in folder.iterdir()]
    assert len(texts) == 31
    assert set(texts) == {DEFECT, FIXED}
    assert not any(name.startswith(TEMPORARY) for name in names(folder))


def test_a_folder_that_may_not_be_written_is_said(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder.chmod(0o555)
    assert cli.main(["lint", "--fix", "a.py"]) == 2
    assert "left as it is: Permission denied" in capsys.readouterr().err
    folder.chmod(0o755)
    assert (folder / "a.py").read_text() == DEFECT


def test_the_report_tells_what_is_left(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder.parent / "outside.py").write_text(DEFECT)
    assert cli.main(["lint", "--fix", "."]) == 2
    assert "1 finding in 1 of 2 files; --fix can fix 1; 1 fixed" in capsys.readouterr().out
