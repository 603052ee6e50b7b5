"""`whygpu run` as a command: its words, its exit codes, what it says and writes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.launch.programs import PYTHON, WHYGPU, environment, run, script
from tests.schemas import obeys
from whygpu.cli.main import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 125, "what should run?"),
        (["--"], 125, "what should run?"),
        (["--memory", "much", "--", "true"], 125, "expected growth"),
        (["--cudnn", "on", "--", "true"], 125, "expected off"),
        (["--require", "cpu", "--", "true"], 125, "expected gpu"),
        (["--json", "--", "true"], 125, "--dry-run"),
        (["--report", "/no/such/folder/x", "--", "true"], 125, "no folder"),
        (["--report", "/", "--", "true"], 125, "this is a folder"),
        (["--device", "cpu", "--require", "gpu", "--", "true"], 126, "opposite"),
        (["--device", "gpu:99", "--", "true"], 126, "NVIDIA driver"),
        (["--device", "cpu,gpu", "--", "true"], 125, "expected one of cpu, gpu"),
        (["--device", "gpu:0,cpu", "--", "true"], 125, "expected one of cpu, gpu"),
    ],
)
def test_what_is_refused(
    words: list[str], code: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *words]) == code
    shown = capfd.readouterr()
    assert shown.out == ""
    assert said in shown.err


def test_help_has_examples_and_exit_codes() -> None:
    text = run([*WHYGPU, "--help"]).stdout
    for word in ("--device", "--require", "--dry-run", "whygpu run --", "125", "126", "127"):
        assert word in text


def test_the_plan_is_shown_and_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    command = [PYTHON, "-c", f"open({str(mark)!r}, 'w')"]
    done = run([*WHYGPU, "--device", "cpu", "--memory", "growth", "--dry-run", "--", *command])
    assert done.returncode == 0
    assert "CUDA_VISIBLE_DEVICES=-1" in done.stdout
    assert "TF_FORCE_GPU_ALLOW_GROWTH=true" in done.stdout
    data = json.loads(run([*WHYGPU, "--dry-run", "--json", "--", *command]).stdout)
    obeys("run-plan", data)
    assert data["argv"] == command
    assert not mark.exists()


def test_a_report_is_written_where_we_stood(tmp_path: Path) -> None:
    command = [PYTHON, "-c", "import os, sys; os.chdir('/'); sys.exit(3)"]
    done = run([*WHYGPU, "--report", "report.json", "--", *command], cwd=tmp_path)
    assert done.returncode == 3
    data = json.loads((tmp_path / "report.json").read_text())
    obeys("run", data)
    assert (data["exit_code"], data["device"], data["fallback"]) == (3, "none", False)
    # A program that is over at once was not seen, and what the kernel tells of it is ours.
    assert data["peak_memory_bytes"] is None or data["peak_memory_bytes"] > 0


def test_a_mistake_in_our_own_words_does_not_look_like_the_programs() -> None:
    for words in (["--no-such-option"], ["--memory", "-1GiB"]):
        done = run([*WHYGPU, *words, "--", PYTHON, "-c", "print('ran')"])
        assert (done.returncode, done.stdout) == (125, ""), words
        assert words[0] in done.stderr


def test_one_line_at_the_end_or_none() -> None:
    command = ["--device", "cpu", "--", PYTHON, "-c", "pass"]
    (line,) = run([*WHYGPU, *command]).stderr.splitlines()
    assert line == "whygpu: no process reported a deep-learning framework; exit code 0"
    assert run([*WHYGPU, "--quiet", *command]).stderr == ""


STAND_IN = """
class cuda:
    is_initialized = staticmethod(lambda: {gpu})
    device_count = staticmethod(lambda: 1)
    max_memory_reserved = staticmethod(lambda index: 1 << 30)
    get_device_name = staticmethod(lambda index: "a GPU")
__version__ = "9.9"
"""


def test_devices_are_asked_for_at_the_end_in_every_process(tmp_path: Path) -> None:
    """A stand-in for PyTorch, which says what it is told to say."""
    script(
        tmp_path, STAND_IN.format(gpu="__import__('os').environ.get('ON_GPU') == '1'"), "torch.py"
    )
    program = script(
        tmp_path,
        "import os, subprocess, sys, torch\n"
        "if len(sys.argv) == 1:\n"
        "    subprocess.run([sys.executable, __file__, 'x'], env={**os.environ, 'ON_GPU': '1'})\n",
    )
    env = environment(PYTHONPATH=str(tmp_path))
    report = tmp_path / "report.json"
    done = run([*WHYGPU, "--report", report, "--", PYTHON, program], env=env)
    assert (
        "ran on the GPU (PyTorch 9.9 on gpu:0); peak GPU memory 1 GiB; no fallback" in done.stderr
    )
    assert json.loads(report.read_text())["device"] == "gpu"


def test_the_cpu_is_told_as_well(tmp_path: Path) -> None:
    script(tmp_path, STAND_IN.format(gpu="False"), "torch.py")
    env = environment(PYTHONPATH=str(tmp_path))
    done = run([*WHYGPU, "--device", "cpu", "--", PYTHON, "-c", "import torch"], env=env)
    assert (done.returncode, "ran on the CPU (PyTorch 9.9)" in done.stderr) == (0, True)


@pytest.mark.parametrize(
    "code",
    [
        "import torch, os; os._exit(4)",
        "import torch, sys; sys.exit(4)",
        "import torch, os, sys; os.execv(sys.executable, [sys.executable, '-c', 'exit(4)'])",
        "import torch, os\nif os.fork() == 0: os._exit(0)\nos.wait(); os._exit(4)",
    ],
)
def test_a_record_is_left_however_a_process_ends(tmp_path: Path, code: str) -> None:
    script(tmp_path, STAND_IN.format(gpu="True"), "torch.py")
    env = environment(PYTHONPATH=str(tmp_path))
    done = run([*WHYGPU, "--device", "cpu", "--", PYTHON, "-c", code], env=env)
    assert done.returncode == 4
    assert "ran on the GPU" in done.stderr


@pytest.mark.parametrize("handled", [False, True], ids=["default", "handled"])
def test_sigterm_ends_the_program_as_usual_and_leaves_a_record(
    tmp_path: Path, handled: bool
) -> None:
    script(tmp_path, STAND_IN.format(gpu="False"), "torch.py")
    code = "import torch, os, signal, sys\n"
    code += "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    if handled:
        code += "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    code += "os.kill(os.getpid(), signal.SIGTERM)\n"
    env = environment(PYTHONPATH=str(tmp_path))
    done = run([*WHYGPU, "--device", "cpu", "--", PYTHON, "-c", code], env=env)
    assert done.returncode == (7 if handled else 128 + signal.SIGTERM)
    assert "ran on the CPU (PyTorch 9.9)" in done.stderr
    assert ("as last reported before SIGTERM ended it" in done.stderr) is not handled


def test_a_gpu_that_was_started_and_not_used_yet_is_not_called_the_cpu(tmp_path: Path) -> None:
    torch = STAND_IN.format(gpu="True").replace("1 << 30", "0")
    script(tmp_path, torch, "torch.py")
    # As the thread that watches the GPU's memory does.
    code = (
        "import torch, os, signal\n"
        "from whygpu_bootstrap import process_record\n"
        "process_record.ask_so_far()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    env = environment(PYTHONPATH=str(tmp_path))
    done = run([*WHYGPU, "--device", "cpu", "--", PYTHON, "-c", code], env=env)
    assert "PyTorch 9.9 had reported no work on a device when SIGTERM ended it" in done.stderr


def test_a_failure_of_our_part_does_not_reach_the_program(tmp_path: Path) -> None:
    script(tmp_path, "__version__ = '9.9'\n", "torch.py")
    env = environment(PYTHONPATH=str(tmp_path))
    done = run([*WHYGPU, "--cudnn", "off", "--", PYTHON, "-c", "import torch; print(1)"], env=env)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "disable_cudnn failed: AttributeError: " in done.stderr


@pytest.mark.parametrize("customized", [False, True], ids=["plain", "with a sitecustomize"])
def test_nothing_is_imported_that_the_program_does_not_import(
    tmp_path: Path, customized: bool
) -> None:
    if customized:
        # As Debian's and Ubuntu's own Python has one.
        script(tmp_path, "customized = True", "sitecustomize.py")
    env = environment(PYTHONPATH=str(tmp_path))
    code = "import sys; print(*sorted(name for name in sys.modules if '.' not in name))"
    bare = set(run([PYTHON, "-c", code], env=env).stdout.split())
    ours = run([*WHYGPU, "--device", "cpu", "--quiet", "--", PYTHON, "-c", code], env=env)
    added = set(ours.stdout.split()) - bare
    assert added <= {"whygpu_bootstrap", "sitecustomize", "atexit"}


def test_a_command_runs_where_there_is_no_python_to_examine(tmp_path: Path) -> None:
    env = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    done = run([*WHYGPU, "--", "/bin/echo", "fine"], env=env)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "nothing is repaired, because" in done.stderr
    refused = run([*WHYGPU, "--require", "gpu", "--", "/bin/echo", "fine"], env=env)
    assert (refused.returncode, refused.stdout) == (125, "")


def test_a_script_whose_interpreter_is_not_there_is_not_called_missing(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("#!/nowhere/python\n")
    script.chmod(0o755)
    done = run([*WHYGPU, "--", "./train"], cwd=tmp_path)
    assert done.returncode == 127
    assert "./train: the interpreter that it names is not there" in done.stderr
    on_path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = run([*WHYGPU, "--", "train"], env=os.environ | on_path)
    assert "train: the interpreter that it names is not there" in found.stderr
    (tmp_path / "link").symlink_to("nowhere")
    linked = run([*WHYGPU, "--", "./link"], cwd=tmp_path)
    assert linked.returncode == 127
    assert "./link: it is a link to a file that is not there" in linked.stderr


def test_a_python_file_that_cannot_be_started_was_meant_for_python(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    meant = "did you mean `whygpu run -- python train.py`?"
    named = run([*WHYGPU, "--", "train.py"], cwd=tmp_path)
    assert named.returncode == 127
    assert f"train.py: command not found; {meant}" in named.stderr
    denied = run([*WHYGPU, "--", "./train.py"], cwd=tmp_path)
    assert denied.returncode == 126
    assert "run -- python ./train.py" in denied.stderr
    assert "did you mean" not in run([*WHYGPU, "--", "other.py"], cwd=tmp_path).stderr


def test_where_no_temporary_folder_can_be_made(tmp_path: Path) -> None:
    code = (
        "import tempfile; tempfile.tempdir = '/no/such/folder'\n"
        "from whygpu.cli.main import main\n"
        "raise SystemExit(main(['run', '--device', 'cpu', '--', 'true']))"
    )
    done = run([PYTHON, "-c", code])
    assert done.returncode == 125
    assert "set TMPDIR" in done.stderr
