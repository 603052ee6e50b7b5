"""Launch plans: from a policy and a machine, without touching anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases import each
from tests.kit import machine
from tests.schemas import obeys
from whygpu.causes import catalogue
from whygpu.cli.option_words import message
from whygpu.collectors.driver_answer import GpuIds
from whygpu.diagnosis.engine import diagnose
from whygpu.errors import PolicyError, UsageError
from whygpu.launch import devices
from whygpu.launch.ability import frameworks_lack
from whygpu.launch.devices import Chosen, find, gpus_of
from whygpu.launch.environment import changed
from whygpu.launch.launch_plan import BOOTSTRAP, Look, make_plan, needs_look
from whygpu.launch.policy_options import parse_device, parse_policy
from whygpu.launch.repairs import repairs_for
from whygpu.model.lack import Lack
from whygpu.model.policy import Action, LaunchPlan
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.render.run_json import plan_json
from whygpu.render.run_text import plan_text

ARGV = ("python", "train.py")

TWO = """
probes_left_out = "example"
[driver.gpus.0]
name = "NVIDIA L4"
[driver.gpus.1]
number = 1
name = "NVIDIA H100"
pci_address = "0000:02:00.0"
memory_total_bytes = 85899345920
"""
IDS = (GpuIds("GPU-aaaa1111-0000"), GpuIds("GPU-bbbb2222-0000"))
NO_GPU = 'start = "no-gpu"\nprobes_left_out = "example"'


def judged(snapshot: Snapshot) -> Report:
    return diagnose(snapshot, catalogue())


def planned(words: str, toml: str = TWO, environ: Mapping[str, str] | None = None) -> LaunchPlan:
    report = judged(machine(toml))
    look = Look(report, IDS, lambda _: report)
    return make_plan(ARGV, parse_policy(words), environ or {}, lambda _: look, repair=False)


def variables(plan: LaunchPlan, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    return changed(environ or {}, plan.all_actions)


def test_without_a_policy_only_our_part_is_added() -> None:
    assert variables(planned("")) == {"PYTHONPATH": BOOTSTRAP}


def test_every_action_has_a_reason_and_the_plan_its_schema() -> None:
    plan = planned(
        "gpu:1 memory=4GiB cudnn=off tf32=off xla=off deterministic log-level=debug require=gpu"
    )
    assert all(action.reason for action in plan.actions)
    obeys("run-plan", json.loads(plan_json(plan)))
    text = plan_text(plan)
    assert all(action.reason in text for action in plan.actions)
    assert all(call.reason in text and call.name in text for call in plan.calls)
    assert "  torch: set_memory_limit(bytes=4294967296, fraction=None)\n" in text
    assert all(note in text for note in plan.notes)


def test_the_cpu_needs_no_look_at_the_machine() -> None:
    def looks(words: str, *, repair: bool, named: str = "", **environ: str) -> bool:
        return needs_look(parse_policy(words), environ, named.split(), repair=repair)

    def traps() -> bool:
        return True

    assert not looks("cpu memory=4GiB", repair=True)
    assert needs_look(parse_policy("cpu"), {}, (), repair=True, traps=traps)
    assert not needs_look(parse_policy("cpu"), {}, (), repair=False, traps=traps)
    assert looks("cpu", repair=True, KERAS_BACKEND="jax")
    assert looks("cpu", repair=True, named="keras")
    assert not looks("cpu", repair=False, named="keras")
    assert looks("", repair=True)
    assert not looks("memory=growth", repair=False)
    assert looks("memory=4GiB", repair=False)
    assert looks("memory=50%", repair=False)
    assert looks("gpu", repair=False)
    assert looks("require=gpu", repair=False)
    plan = make_plan(ARGV, parse_policy("cpu"), {"JAX_PLATFORMS": "cuda"}, None)
    after = variables(plan, {"JAX_PLATFORMS": "cuda"})
    assert (after["CUDA_VISIBLE_DEVICES"], after["JAX_PLATFORMS"]) == ("-1", "cpu")
    assert any("instead of 'cuda'" in action.reason for action in plan.actions)


@each(
    ("words", "visible"),
    [
        ("gpu", None),
        ("gpu:0", "GPU-aaaa1111-0000"),
        ("gpu:1,0", "GPU-bbbb2222-0000,GPU-aaaa1111-0000"),
        ("GPU-BBBB", "GPU-bbbb2222-0000"),
        ("h100", "GPU-bbbb2222-0000"),
        ("nvidia", "GPU-aaaa1111-0000,GPU-bbbb2222-0000"),
    ],
)
def test_a_choice_of_gpus(words: str, visible: str | None) -> None:
    after = variables(planned(words))
    assert after.get("CUDA_VISIBLE_DEVICES") == visible
    assert after["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_a_gpu_that_is_split() -> None:
    ids = (GpuIds("GPU-aaaa", ("MIG-1111", "MIG-1222")), GpuIds("GPU-bbbb"))
    gpus = gpus_of(machine(TWO))
    assert find(["0"], gpus, ids) == (Chosen(0, "MIG-1111"),)
    assert find(["MIG-12", "1"], gpus, ids) == (Chosen(0, "MIG-1222"), Chosen(1, "GPU-bbbb"))
    with pytest.raises(PolicyError, match="several GPUs begin"):
        find(["MIG-1"], gpus, ids)


def test_names_where_the_driver_tells_no_uuid() -> None:
    assert find(["1"], gpus_of(machine(TWO)), ()) == (Chosen(1, ""),)


@each(
    ("words", "reason"),
    [
        ("gpu:2", "no GPU '2'.*gpu:0  NVIDIA L4.*gpu:1  NVIDIA H100, 80 GiB"),
        ("GPU-cccc", "no GPU 'GPU-cccc'"),
        ("T4", "no GPU 'T4'"),
        ("gpu:0,0", "named twice"),
        ("GPU-", "several GPUs begin"),
        ("cpu require=gpu", "opposite things"),
    ],
)
def test_a_policy_that_cannot_be_met(words: str, reason: str) -> None:
    with pytest.raises(PolicyError, match=f"(?s){reason}"):
        planned(words)


@each("words", ["banana", "gpu:x", "gpu:0,banana", "GPU-xyz", "rtx 4090 banana"])
def test_without_a_gpu_a_word_that_names_none_anywhere_is_wrong_usage(words: str) -> None:
    with pytest.raises(UsageError, match="expected one of cpu") as refused:
        devices.show_gpus(parse_device(words), machine(NO_GPU), (), {})
    # The rest of the option as it was typed is not known any more.
    word = words.removeprefix("gpu:").split(",")[-1]
    assert message(refused.value, ["run"]).startswith(f"--device: {word!r} names no GPU;")


@each("words", ["RTX 4090", "H100", "T4", "geforce", "NVIDIA L4", "gpu:7", "GPU-1a2b", "MIG-3c"])
def test_without_a_gpu_a_word_that_may_name_one_cannot_be_met(words: str) -> None:
    with pytest.raises(PolicyError, match="no NVIDIA driver was found"):
        devices.show_gpus(parse_device(words), machine(NO_GPU), (), {})


def test_a_driver_without_a_gpu_is_not_called_missing() -> None:
    with pytest.raises(PolicyError, match="the NVIDIA driver shows no GPU"):
        gpus_of(machine("[driver]\ngpus = []"))


def test_without_a_gpu() -> None:
    for words in ("gpu", "gpu:0", "require=gpu", "auto require=gpu"):
        with pytest.raises(PolicyError, match="no NVIDIA driver was found"):
            planned(words, NO_GPU)
    auto = planned("auto", NO_GPU)
    assert variables(auto)["CUDA_VISIBLE_DEVICES"] == "-1"
    assert auto.remarks[0].startswith("--device auto: on the CPU, because")
    assert variables(planned("auto")).get("CUDA_VISIBLE_DEVICES") is None


HIDDEN = (
    TWO
    + """
[environment.visible_gpus]
text = "{text}"
visible = {visible}
ignored = []
"""
)


@each(
    ("text", "visible", "words", "after"),
    [
        ("1", "[1]", "gpu", "1"),
        ("1", "[1]", "gpu:1", "1"),
        ("1,0", "[1, 0]", "gpu:0", "GPU-aaaa1111-0000"),
        ("7", '{unknown = "example"}', "gpu", "7"),
        ("7", '{unknown = "example"}', "gpu:1", "GPU-bbbb2222-0000"),
    ],
)
def test_visible_devices_that_are_set_already(
    text: str, visible: str, words: str, after: str
) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": text}
    plan = planned(words, HIDDEN.format(text=text, visible=visible), environ)
    assert variables(plan, environ)["CUDA_VISIBLE_DEVICES"] == after


@pytest.mark.parametrize(
    ("text", "visible", "words"), [("", "[]", "gpu"), ("1", "[1]", "gpu:0"), ("", "[]", "gpu:1")]
)
def test_nothing_outside_of_them_is_taken(text: str, visible: str, words: str) -> None:
    with pytest.raises(PolicyError, match="CUDA_VISIBLE_DEVICES"):
        planned(words, HIDDEN.format(text=text, visible=visible))


def test_gpu_frees_jax_from_the_cpu() -> None:
    environ = {"JAX_PLATFORMS": "cpu"}
    assert "JAX_PLATFORMS" not in variables(planned("gpu", TWO, environ), environ)
    environ = {"JAX_PLATFORMS": "cuda,cpu"}
    assert variables(planned("gpu", TWO, environ), environ)["JAX_PLATFORMS"] == "cuda,cpu"


def test_memory_is_a_part_of_the_largest_gpu() -> None:
    name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
    assert variables(planned("memory=8GiB"))[name] == "0.1000"
    assert variables(planned("memory=25%"))[name] == "0.2500"
    both = variables(planned("memory=25%", TWO, {"XLA_CLIENT_MEM_FRACTION": "0.9"}))
    assert name not in both
    growth = variables(planned("memory=growth"))
    assert growth["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert growth["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"


def test_flags_are_added_to_those_that_are_there() -> None:
    environ = {"TF_XLA_FLAGS": "--tf_one=1"}
    after = variables(planned("xla=off", TWO, environ), environ)
    assert after["TF_XLA_FLAGS"] == "--tf_one=1 --tf_xla_auto_jit=-1"
    assert "PYTHONHASHSEED" not in variables(planned("deterministic", TWO, {"PYTHONHASHSEED": "7"}))


def test_limits_are_told_for_frameworks_that_are_installed() -> None:
    assert any("no switch" in note for note in planned("cudnn=off").notes)
    assert planned("cudnn=off", 'only = ["torch"]\n' + TWO).notes == ()


def test_changes_to_search_paths() -> None:
    environ = {"P": "/a:/b:/a/"}
    add, remove = Action("prepend", "P", "/c", ""), Action("remove", "P", "/a", "")
    assert changed(environ, [add]) == {"P": "/c:/a:/b:/a/"}
    assert changed(environ, [remove]) == {"P": "/b"}
    assert changed(environ, [remove, Action("remove", "P", "/b", "")]) == {}
    # An empty entry would mean the current folder.
    assert changed({"P": ""}, [add]) == {"P": "/c"}
    assert environ == {"P": "/a:/b:/a/"}


SITE = "~/venv/lib/python3.11/site-packages"
NOT_SEARCHED = f"""
only = ["tensorflow"]
probes_left_out = "example"
[target.frameworks.tensorflow.libraries."libcusolver.so.11"]
outcome = "not-found"
chain = ["libcusolver.so.11"]
detail = "libcusolver.so.11: cannot open shared object file: No such file or directory"
[target.frameworks.tensorflow.libraries."libcusolver.so.11".other_copies]
"{SITE}/nvidia/cusolver/lib/libcusolver.so.11" = {{}}
"""


def test_a_repair_stays_only_if_it_mends() -> None:
    broken = judged(machine(NOT_SEARCHED))
    mended = judged(machine('only = ["tensorflow"]\nprobes_left_out = "example"'))
    looked: list[Mapping[str, str]] = []

    def examine(environ: Mapping[str, str]) -> Report:
        looked.append(environ)
        return mended

    (repair,) = repairs_for(broken, {}, examine)
    assert repair.code == "WG203"
    assert looked == [{"LD_LIBRARY_PATH": f"{SITE}/nvidia/cusolver/lib"}]
    assert repairs_for(broken, {}, lambda _: broken) == ()
    assert repairs_for(mended, {}, examine) == ()


def test_require_gpu_counts_what_repairs_mend() -> None:
    broken = judged(machine(NOT_SEARCHED))
    mended = judged(machine('only = ["tensorflow"]\nprobes_left_out = "example"'))
    look = Look(broken, (), lambda _: mended)
    policy = parse_policy("require=gpu")
    plan = make_plan(ARGV, policy, {}, lambda _: look)
    assert [repair.code for repair in plan.repairs] == ["WG203"]
    stuck = Look(broken, (), lambda _: broken)
    with pytest.raises(PolicyError, match="WG203"):
        make_plan(ARGV, policy, {}, lambda _: stuck)
    with pytest.raises(PolicyError, match="WG203") as refusal:
        make_plan(ARGV, policy, {}, lambda _: stuck, repair=False)
    # One line for a table; the message itself goes on with what to do.
    assert "\n" not in refusal.value.summary
    assert "cannot use it here: WG203" in refusal.value.summary
    assert len(refusal.value.problem.splitlines()) > 1


def test_isolation(tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "libcuda.so.1").touch()
    environ = {"LD_LIBRARY_PATH": f"/opt/other:{tmp_path}/driver"}
    policy = parse_policy("")._replace(isolate=True)
    plan = make_plan(ARGV, policy, environ, None, repair=False)
    after = variables(plan, environ)
    assert after["LD_LIBRARY_PATH"] == f"{tmp_path}/driver"
    assert after["PYTHONNOUSERSITE"] == "1"


BOTH_ARE_CPU_BUILDS = """
probes_left_out = "example"
only = ["tensorflow", "torch"]
[target.frameworks.tensorflow.build]
kind = "cpu"
[target.frameworks.torch.build]
kind = "cpu"
"""


@pytest.mark.parametrize(
    ("code", "named", "others"),
    [
        ("import torch", ["PyTorch"], ["TensorFlow"]),
        ("import tensorflow", ["TensorFlow"], ["PyTorch"]),
        ("import os", ["PyTorch", "TensorFlow"], []),
    ],
)
def test_a_refusal_names_the_frameworks_of_the_program_only(
    code: str, named: list[str], others: list[str]
) -> None:
    look = Look(judged(machine(BOTH_ARE_CPU_BUILDS)), (), lambda _: judged(machine("")))
    with pytest.raises(PolicyError) as refused:
        make_plan(
            [sys.executable, "-c", code],
            parse_policy("require=gpu"),
            {},
            lambda _: look,
            repair=False,
        )
    message = str(refused.value)
    assert all(name in message for name in named)
    assert not any(name in message for name in others), message


def test_a_framework_that_is_not_installed_lets_no_other_be_blamed() -> None:
    report = judged(machine(BOTH_ARE_CPU_BUILDS))
    assert frameworks_lack(report, {"jax"}) is None


def test_what_a_machine_lacks_is_data_until_it_is_shown() -> None:
    with pytest.raises(PolicyError) as refused:
        planned("require=gpu", NO_GPU)
    (lack,) = refused.value.args
    assert isinstance(lack, Lack)
    assert str(refused.value) == f"require_gpu=True: {lack}"
    old_driver = TWO + '[driver]\nversion = "418.39"\n'
    broken = planned("auto", old_driver)
    assert broken.lack is not None
    remedies = [obstacle.remedy for obstacle in broken.lack.obstacles]
    assert remedies
    for remedy in remedies:
        assert remedy is not None
        assert remedy.text in broken.remarks[0]
