"""Plans as text, whole, and as JSON."""

from __future__ import annotations

import json

import pytest

from tests.planner.small_table import RTX_5090, TABLE, machine
from tests.schemas import obeys
from whygpu.cli.main import main
from whygpu.model.install_plan import PlanAnswer, Wish
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Absent
from whygpu.planner.advice import advice
from whygpu.planner.changes import changes
from whygpu.planner.matrix import matrix
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import parse, parse_all
from whygpu.render import plan_json, plan_text

TODAY = "2026-11-15"
_NOTHING = Absent("macOS")
MAC = machine(platform="macosx_arm64")._replace(driver=_NOTHING, gpus=_NOTHING)


def rendered(wishes: str, where: MachineSpec, *, color: bool = False) -> str:
    asked = parse_all(wishes.split())
    return plan_text.render(answered(asked, where), width=80, color=color)


def answered(asked: tuple[Wish, ...], where: MachineSpec) -> PlanAnswer:
    answer = make_plan(where, asked, TABLE)
    if answer.plan is None:
        return answer._replace(changes=changes(where, asked, TABLE))
    return answer._replace(advice=advice(answer, answer.plan, TODAY))


def test_the_builds_of_a_release_are_one_line() -> None:
    text = rendered("torch", machine(gpu=RTX_5090, driver="560.94", platform="win_amd64"))
    assert text.startswith("✗ torch cannot use the GPU on this machine.")
    assert "   2.11.0  cu130: needs driver 580 or newer, you have 560.94; cu128, cu126:" in text
    fits = rendered("torch", machine(gpu=RTX_5090, driver="570.86", platform="win_amd64"))
    assert "   2.11.0  the newest that fits (index cu128)\n" in fits
    assert "   2.8.0   fits (index cu128)\n" in fits


def test_what_is_likely_to_fail_is_no_fit() -> None:
    text = rendered("tensorflow", machine(gpu=RTX_5090))
    assert text.startswith(
        "? TensorFlow 2.21.0 can be installed here, but reports say that it may not work\n"
    )
    assert "   2.21.0            may not work, but nothing newer is better\n" in text


def test_a_mac_has_no_driver_and_no_glibc() -> None:
    text = rendered("torch", MAC)
    assert "\n  Python 3.11, macOS on Apple silicon\n" in text


PLAN = """\
✓ TensorFlow 2.12.1 fits this machine.
  Python 3.11, Linux on x86_64, glibc 2.39, driver 470.82, RTX A6000 (8.6)

First:
   conda create -n tensorflow-2.12 python=3.11 -c conda-forge cudatoolkit=11.8 'cudnn>=8.6,<9'
   conda activate tensorflow-2.12

Install:
   python -m pip install tensorflow==2.12.1

Check:
   whygpu check

Good to know:
   - tensorflow 2.12.1 does not include the CUDA libraries: CUDA 11.8 and cuDNN
     8.6 must be on the machine, from conda as shown or from NVIDIA's installers

Releases of TensorFlow:
   2.15.1 to 2.21.0  needs driver 525.60.13 or newer, you have 470.82
   2.12.1            the newest that fits
   1.15.5 to 2.10.1  has wheels for Python 3.6 to 3.10, you have 3.11
"""


def test_a_plan_for_people() -> None:
    assert rendered("tensorflow", machine(driver="470.82")) == PLAN


NO_PLAN = """\
✗ tensorflow==2.12.* cannot use the GPU on this machine.
  Python 3.13, Linux on x86_64, glibc 2.39, driver 580.65.06, RTX A6000 (8.6)

Possible with:
   - another release of tensorflow: tensorflow 2.20.0
   - Python 3.11: tensorflow 2.12.1

Releases of TensorFlow:
   2.12.1  has wheels for Python 3.8 to 3.11, you have 3.13
"""


def test_no_plan_for_people() -> None:
    assert rendered("tensorflow==2.12", machine(python="3.13")) == NO_PLAN


def test_a_conflict_is_in_the_headline() -> None:
    first = rendered("tensorflow==2.15 jax", machine()).split("\n  Python")[0]
    assert "do not work together on this machine" in first
    assert "needs" in first


def test_builds_of_one_release_are_listed_apart() -> None:
    text = rendered("jax", machine(driver="570.86"))
    assert "Releases of JAX with cuda13:\n   0.7.2  needs driver 580 or newer" in text
    assert "Releases of JAX with cuda12:\n   0.7.2  the newest that fits" in text


def test_color_is_only_there_when_wanted() -> None:
    assert "\x1b[" in rendered("tensorflow", machine(), color=True)
    assert "\x1b[" not in rendered("tensorflow", machine())


def test_a_command_is_never_wrapped() -> None:
    text = rendered("tensorflow jax torch", machine())
    assert any(line.endswith(" torch==2.8.0") for line in text.splitlines())


CHAIN = """\
✗ tensorflow 2.20.0 does not fit this machine: it breaks one constraint.
  Python 3.11, Linux on x86_64, glibc 2.39, driver 470.82, RTX A6000 (8.6)

  ✓  python        has wheels for Python 3.11
  ✓  platform      has wheels for Linux on x86_64
  ✓  glibc         needs glibc 2.17 or newer
  ✓  build         is built for CUDA 12.5.1 and cuDNN 9
  ✗  driver        needs driver 525.60.13 or newer, you have 470.82
  ✓  architecture  has machine code for RTX A6000 (8.6): sm_60 to sm_90 and PTX
                   for 9.0
  ✓  reports       has no reported failure on record for this GPU
  ✓  defect        has no defect on record
  ✓  conflict      has all its requirements available

Read from tensorflow-2.20.0.whl
"""


def test_the_chain_of_one_release() -> None:
    where = machine(driver="470.82")
    release = why_not(where, parse("tensorflow==2.20"), (), TABLE)
    assert plan_text.render_chain(release, width=80, color=False) == CHAIN
    data = json.loads(plan_json.render_chain(release))
    obeys("plan-why-not", data)
    assert data["fits"] is False
    assert {step["constraint"] for step in data["chain"] if step["outcome"] == "breaks"} == {
        "driver"
    }


def test_the_matrix_has_a_row_for_every_release() -> None:
    answer = make_plan(machine(gpu=RTX_5090), parse_all(["tensorflow"]), TABLE)
    lines = plan_text.render_matrix(matrix(answer), color=False).splitlines()
    assert lines[0].split()[:3] == ["release", "fits", "Python"]
    assert len(lines) == 1 + len(answer.candidates)
    assert "defect" in lines[1]
    assert ">=525.60.13" in lines[1]


def test_json_has_the_documented_shape() -> None:
    data = json.loads(plan_json.render(answered(parse_all(["tensorflow"]), machine())))
    assert data["schema"] == 1
    assert data["machine"]["driver"] == {"known": "580.65.06", "source": "example"}
    assert {"name": "tensorflow", "version": "2.20.0"} in data["plan"]["packages"]
    assert len(data["plan"]["commands"]) == 2
    assert data["candidates"][0] == {
        "name": "tensorflow",
        "version": "2.21.0",
        "extra": "and-cuda",
        "index": None,
        "fits": False,
        "breaks": "defect",
        "reason": "does not search the folder of its own cusolver, so it finds no GPU as installed",
    }
    assert data["candidates"][1]["fits"] is True
    assert data["candidates"][1]["breaks"] is None


def test_json_without_a_plan_has_null_and_the_changes() -> None:
    where, asked = machine(python="3.13"), parse_all(["tensorflow==2.12"])
    data = json.loads(plan_json.render(answered(asked, where)))
    assert data["plan"] is None
    assert data["changes"][1] == {
        "what": "Python 3.11",
        "packages": [{"name": "tensorflow", "version": "2.12.1"}],
        "doubt": None,
    }


@pytest.mark.parametrize(
    "words",
    [
        ["tensorflow", "--python", "3.12", "--driver", "550.54.14", "--gpu", "H100"],
        ["tensorflow==2.15", "--python", "3.13", "--driver", "535.54", "--gpu", "A100"],
        ["jax", "torch", "--python", "3.11", "--driver", "470.82", "--gpu", "RTX 3090"],
    ],
)
def test_the_json_of_a_plan_obeys_its_schema(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "--json", *words])
    obeys("plan", json.loads(capsys.readouterr().out))
