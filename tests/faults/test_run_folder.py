"""A run keeps its report, its exit code and its folder, whatever the program does to them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.launch.programs import PYTHON, QUIET, WHYGPU, environment, run, script
from tests.patience import PATIENCE

FOLDER = "import os; folder = os.path.dirname(os.environ['WHYGPU_BOOTSTRAP_SETTINGS'])\n"
FRAMEWORK = "__version__ = '9.9'\nclass cuda:\n    is_initialized = staticmethod(lambda: False)\n"
REPORT = (*WHYGPU, "--device", "cpu", "--report")


def new_pid_namespace() -> list[str]:
    for options in (["--pid"], ["--user", "--map-root-user", "--pid"]):
        words = ["unshare", *options, "--fork", "--mount-proc"]
        try:
            if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
                return words
        except OSError:
            break
    pytest.skip("no PID namespace can be made here")


def reported(
    tmp_path: Path, command: list[str], **variables: str
) -> tuple[int, dict[str, object], str]:
    """The exit code, the report and what was said."""
    report = tmp_path / "report.json"
    done = run([*REPORT, report, "--", *command], env=environment(**variables))
    return done.returncode, json.loads(report.read_text()), done.stderr


def test_a_process_in_another_pid_namespace_leaves_the_folder_alone(tmp_path: Path) -> None:
    inside = [*new_pid_namespace(), PYTHON, "-c", "pass"]
    code = (
        f"{FOLDER}import subprocess\nsubprocess.check_call({inside!r})\nprint(os.listdir(folder))"
    )
    done = run([*QUIET, PYTHON, "-c", code])
    assert done.returncode == 0, done.stderr
    assert "settings.json" in done.stdout


NAMES = {"emoji": "\N{PILE OF POO} x", "quotes": "a\"b'c\\d", "not UTF-8": "caf\udce9", "e": "é"}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("version", ["3.6", ""])
def test_a_temporary_folder_may_have_any_name(
    name: str, locale: str, version: str, tmp_path: Path
) -> None:
    temporary = tmp_path / name
    temporary.mkdir()
    python = f"python{version}" if version else PYTHON
    if run([python, "-c", "pass"]).returncode:
        pytest.skip(f"no {python}")
    script(tmp_path, FRAMEWORK, "lib/torch.py")
    code, report, said = reported(
        tmp_path,
        [python, "-c", "import torch"],
        TMPDIR=str(temporary),
        LC_ALL=locale,
        PYTHONPATH=str(tmp_path / "lib"),
    )
    assert code == 0, said
    assert report["device"] == "cpu", said
    assert list(temporary.iterdir()) == []


BREAK = {
    "torn": "open(folder + '/reports/1-1.json', 'w').write('{\"pid\": 1, \"comp')",
    "empty": "open(folder + '/reports/1-1.json', 'w')",
    "a list": "open(folder + '/reports/1-1.json', 'w').write('[1]')",
    "types": 'open(folder + \'/reports/1-1.json\', \'w\').write(\'{"pid": "x", "notes": 5, '
    '"frameworks": [], "trace": {"torch": 1}, "memory": {"curves": [{}], "work": 3}}\')',
    "not UTF-8": "open(folder + '/reports/1-1.json', 'wb').write(b'{\"pid\": \"\\xff\"}')",
    "deep": "open(folder + '/reports/1-1.json', 'w').write('[' * 100000)",
    "a pipe": "os.mkfifo(folder + '/reports/1-1.json')",
    "a folder": "os.mkdir(folder + '/reports/1-1.json')",
    "a loop": "os.symlink('1-1.json', folder + '/reports/1-1.json')",
    "a device": "os.symlink('/dev/zero', folder + '/reports/1-1.json')",
    "huge": "open(folder + '/reports/1-1.json', 'w').truncate(1 << 40)",
    "denied": "open(folder + '/reports/1-1.json', 'w').write('{}')\n"
    "os.chmod(folder + '/reports/1-1.json', 0)",
    "infinite": "open(folder + '/reports/1-1.json', 'w').write('{\"ended\": Infinity}')",
    "a number": "open(folder + '/reports/1-1.json', 'w').write('{\"pid\": ' + '9' * 9999 + '}')",
    "removed": "import shutil; shutil.rmtree(folder)",
    "replaced": "import shutil; shutil.rmtree(folder + '/reports'); open(folder + '/reports', 'w')",
    "work": "open(folder + '/reports/1-1.json', 'w').write('{\"pid\": 1}')\n"
    "open(folder + '/reports/1.work', 'w').write('[[[')",
}


@pytest.mark.parametrize("attack", BREAK.values(), ids=BREAK)
def test_a_program_that_breaks_records_keeps_its_exit_code(attack: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    program = script(tmp_path, f"{FOLDER}{attack}\nos._exit(23)")
    done = run([*REPORT, report, "--", PYTHON, program])
    assert done.returncode == 23, done.stderr
    assert "a bug in whygpu" not in done.stderr
    written = json.loads(report.read_text())
    assert written["exit_code"] == 23
    readable = "chmod" in attack and not os.geteuid()
    assert readable or any("cannot be read" in note for note in written["notes"])


@pytest.mark.parametrize("how", ["whygpu", "group", "twice", "after the program"])
def test_a_program_that_is_terminated_leaves_its_report_and_exit_code(
    how: str, tmp_path: Path
) -> None:
    script(tmp_path, FRAMEWORK, "lib/torch.py")
    report = tmp_path / "report.json"
    program = script(
        tmp_path,
        "import os, signal, sys, time, torch\n"
        "def stop(number, frame):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        + ("    os.kill(os.getppid(), signal.SIGTERM)\n" if how == "after the program" else "")
        + "    sys.exit(23)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('ready', flush=True)\ntime.sleep(60)\n",
    )
    process = subprocess.Popen(
        [*REPORT, str(report), "--", PYTHON, str(program)],
        env=environment(PYTHONPATH=str(tmp_path / "lib")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if how == "group":
        os.killpg(process.pid, signal.SIGTERM)
    else:
        process.send_signal(signal.SIGTERM)
    if how == "twice":
        time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 23, said
    assert json.loads(report.read_text())["device"] == "cpu", said
