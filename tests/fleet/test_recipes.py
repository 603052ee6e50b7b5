"""The scripts for Slurm do what they say, and the manifest for Kubernetes is one.

Whether a cluster accepts them was tried on a real slurmctld and slurmd, and with the schemas of
Kubernetes' own API (docs/measured/fleet.md); here, small programs stand for sinfo, sbatch and
whygpu.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest
import yaml

from tests.patience import PATIENCE
from whygpu import UsageError, fleet_recipe
from whygpu.cli.main import main


def program(folder: pathlib.Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def ran(script: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env=environ, timeout=PATIENCE
    )


def test_slurm_gets_one_job_for_each_node(tmp_path: pathlib.Path) -> None:
    program(tmp_path, "sinfo", "printf 'gpu-2 short\\ngpu-1 long\\ngpu-1 short\\n'")
    program(tmp_path, "sbatch", 'for word in "$@"; do printf "%s|" "$word"; done; echo')
    folder = tmp_path / "a shared folder"
    done = ran(fleet_recipe("slurm", folder=str(folder)), tmp_path)
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert "|--partition=long|--nodelist=gpu-1|" in first
    assert f"|--wrap=whygpu snapshot -o '{folder}/gpu-1.json'|" in first
    assert "|--partition=short|--nodelist=gpu-2|" in second
    command = f"whygpu fleet report '{folder}' --expect '{folder}/nodes.txt'"
    assert last == f"when the jobs have ended: {command}"
    assert (folder / "nodes.txt").read_text() == "gpu-1\ngpu-2\n"


def test_a_node_that_slurm_refuses_does_not_hold_up_the_others(tmp_path: pathlib.Path) -> None:
    program(tmp_path, "sinfo", "printf 'gpu-1 a\\ngpu-2 b\\n'")
    program(tmp_path, "sbatch", 'case "$*" in *gpu-1*) exit 1;; esac; echo "$*"')
    done = ran(fleet_recipe("slurm", folder=str(tmp_path / "out")), tmp_path)
    assert done.returncode == 0
    assert "no job for gpu-1 in partition a" in done.stderr
    assert "--nodelist=gpu-2" in done.stdout


CERTAIN = {"code": "WG107", "cause": "x", "severity": "error", "confidence": "certain"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (CERTAIN, 1),
        ({**CERTAIN, "severity": "warning"}, 0),
        ({**CERTAIN, "confidence": "likely"}, 0),
        ({**CERTAIN, "code": "WG401"}, 0),
        (None, 0),
    ],
)
def test_the_prolog_drains_a_node_for_certain_faults_of_its_hardware_only(
    cause: dict[str, str] | None, code: int, tmp_path: pathlib.Path
) -> None:
    report = {"root_causes": [] if cause is None else [{**cause, "message": "lost"}]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    exit_code = 1 if cause else 0
    program(tmp_path, "whygpu", f"cat {tmp_path}/report.json; exit {exit_code}")
    done = ran(fleet_recipe("slurm-prolog"), tmp_path)
    assert done.returncode == code
    assert ("whygpu: WG107 x: lost" in done.stderr) is bool(code)


def test_a_prolog_that_does_not_find_whygpu_says_so_and_lets_the_job_run(
    tmp_path: pathlib.Path,
) -> None:
    """Slurm starts it without PATH."""
    script = fleet_recipe("slurm-prolog").replace("/opt/whygpu/bin", str(tmp_path))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env={})
    assert done.returncode == 0
    assert "nothing was checked, because whygpu is not on" in done.stderr
    program(tmp_path, "whygpu", "echo '{}'; exit 1")
    program(tmp_path, "python3", "cat; exit 1")
    program(tmp_path, "timeout", 'shift; exec "$@"')
    assert subprocess.run(["sh", "-c", script], env={}, capture_output=True).returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["exit 3", "exit 4", "echo '{'; exit 1", "exit 1", "kill -9 $$"])
def test_whygpu_that_fails_drains_no_node(text: str, tmp_path: pathlib.Path) -> None:
    program(tmp_path, "whygpu", text)
    assert ran(fleet_recipe("slurm-prolog"), tmp_path).returncode == 0


def test_the_manifest_pins_a_pod_to_each_node_and_requests_no_gpu() -> None:
    text = fleet_recipe("kubernetes", image="registry.example.com/a/b:1")
    data = yaml.safe_load(text)
    assert data["kind"] == "DaemonSet"
    pod = data["spec"]["template"]["spec"]
    (snapshot,) = pod["initContainers"]
    assert snapshot["image"] == "registry.example.com/a/b:1"
    assert "nvidia.com/gpu" not in json.dumps(pod["initContainers"] + pod["containers"])
    assert data["spec"]["selector"]["matchLabels"].items() <= (
        data["spec"]["template"]["metadata"]["labels"].items()
    )


@pytest.mark.parametrize("image", ["x\n  hostPID: true", "", "a b", "$(id)", "x" * 400])
def test_a_hostile_image_is_refused(image: str) -> None:
    with pytest.raises(UsageError, match="expected the name of an image"):
        fleet_recipe("kubernetes", image=image)


def test_a_folder_cannot_end_the_quotes() -> None:
    with pytest.raises(UsageError, match="without ' and %"):
        fleet_recipe("slurm", folder="/x'; rm -rf /; '")


@pytest.mark.parametrize("folder", ["/a/$(touch x)", "/a/`touch x`", '/a/"; touch x; "'])
def test_a_folder_is_not_executed(folder: str, tmp_path: pathlib.Path) -> None:
    program(tmp_path, "sinfo", "echo gpu-1")
    program(tmp_path, "mkdir", "exit 0")
    script = fleet_recipe("slurm", folder=str(tmp_path) + folder)
    subprocess.run(["sh", "-n", "-c", script], check=True)
    ran(script, tmp_path)
    assert not (tmp_path / "x").exists()
    assert not pathlib.Path("x").exists()


@pytest.mark.parametrize(
    ("whygpu", "log"),
    [
        ("echo '{}'; echo a note >&2", "{}\n"),
        ("echo a reason >&2; exit 2", "a reason\n"),
    ],
)
def test_the_log_of_a_pod_is_the_snapshot_alone_or_why_there_is_none(
    whygpu: str, log: str, tmp_path: pathlib.Path
) -> None:
    """`kubectl logs` mixes what a container writes to its two streams."""
    program(tmp_path, "whygpu", whygpu)
    data = yaml.safe_load(fleet_recipe("kubernetes", image="a"))
    command = data["spec"]["template"]["spec"]["initContainers"][0]["command"]
    done = ran(command[2].replace("/tmp/", f"{tmp_path}/"), tmp_path)
    assert command[:2] == ["sh", "-c"]
    assert (done.stdout, done.stderr, done.returncode) == (log, "", 0)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "recipe", "slurm"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/sh")
    assert main(["fleet", "recipe", "lsf"]) == 2
    assert "choose one of slurm, slurm-prolog, kubernetes" in capsys.readouterr().err
