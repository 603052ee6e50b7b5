"""Who holds a GPU's memory: what is recognised, and what is reported as unknown."""

from __future__ import annotations

import json

import pytest

from tests.kit import machine
from tests.schemas import obeys
from whygpu.memory.gpu_holders import judge
from whygpu.model.holders import GpuMemory, Holder, HoldersReport, NewProcess
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.render.memory_holders import as_dict, render

GIB = 1 << 30


def judged(toml: str) -> HoldersReport:
    """Also checks what holds for every answer: its JSON is valid, its text fits."""
    report = judge(machine(toml))
    obeys("memory", as_dict(report))
    text = render(report, width=60, color=False)
    assert all(len(line) <= 60 for line in text.splitlines() if "(" not in line), text
    return report


def gpu(toml: str) -> GpuMemory:
    (found,) = need(judged(f"[driver.gpus.0]\n{toml}").gpus)
    return found


def process(held: float, *frameworks: str, settings: str = "[]", pid: int = 7) -> str:
    names = json.dumps(frameworks)
    return (
        f'{{pid = {pid}, name = "python", memory_bytes = {int(held * GIB)}, yours = true, '
        f'command = "python train.py", frameworks = {names}, settings = {settings}}}'
    )


def holding(held: float, *frameworks: str, settings: str = "[]") -> Holder:
    """The one process on a GPU of 48 GiB, of which half a GiB is the driver's."""
    row = process(held, *frameworks, settings=settings)
    found = gpu(
        f"memory_used_bytes = {int(held * GIB)}\nmemory_reserved_bytes = {GIB // 2}\n"
        f"processes = [{row}]"
    )
    (holder,) = found.holders
    return holder


@pytest.mark.parametrize(
    ("held", "settings", "held_as"),
    [
        (36.2, "[]", "reserved"),
        (37.0, "[]", "reserved"),
        (40.0, "[]", "unknown"),
        (20.0, "[]", "unknown"),
        (24.2, '[["XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5"]]', "reserved"),
        (36.2, '[["XLA_PYTHON_CLIENT_PREALLOCATE", "false"]]', "as-needed"),
    ],
)
def test_jax(held: float, settings: str, held_as: str) -> None:
    holder = holding(held, "jax", settings=settings)
    assert holder.held_as == held_as
    assert "only the program knows" in holder.what
    assert ("reserved it at the start" in holder.what) == (held_as == "reserved")


@pytest.mark.parametrize(("held", "held_as"), [(45.9, "reserved"), (30.0, "unknown")])
def test_tensorflow(held: float, held_as: str) -> None:
    assert holding(held, "tensorflow").held_as == held_as


def test_tensorflow_is_recognised_beside_others() -> None:
    rows = f"[{process(30.0, 'tensorflow')}, {process(15.5, 'torch', pid=8)}]"
    found = gpu(f"memory_used_bytes = {int(45.5 * GIB)}\nprocesses = {rows}")
    assert [(holder.pid, holder.held_as) for holder in found.holders] == [
        (7, "reserved"),
        (8, "as-needed"),
    ]


def test_pytorch_takes_as_needed() -> None:
    holder = holding(36.2, "torch")
    assert holder.held_as == "as-needed"
    assert "torch.cuda.memory_allocated()" in holder.what


def test_what_a_program_tells_of_itself_is_shown_and_not_called_unknown() -> None:
    row = process(36.2, "jax").removesuffix("}") + f", in_use_bytes = {3 * GIB}}}"
    toml = f"[driver.gpus.0]\nmemory_used_bytes = {int(36.2 * GIB)}\nprocesses = [{row}]"
    (found,) = need(judged(toml).gpus)
    assert "only the program knows" not in found.holders[0].what
    assert "in use: 3 GiB (example)" in render(judged(toml), width=80, color=False)


def test_the_amount_can_show_which_of_two_frameworks_holds_it() -> None:
    assert "most likely JAX reserved it" in holding(36.2, "tensorflow", "jax").what
    both = holding(20.0, "tensorflow", "torch")
    assert (both.held_as, "TensorFlow and PyTorch are loaded" in both.what) == ("unknown", True)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ('{unknown = "the process is another user\'s"}', "cannot tell: the process is another"),
        ('{absent = "/proc/7"}', "not visible from here (another container"),
        ("[]", "no framework that whygpu knows"),
    ],
)
def test_why_a_process_cannot_be_judged(facts: str, reason: str) -> None:
    row = f'{{pid = 7, name = "python", memory_bytes = {GIB}, frameworks = {facts}}}'
    found = gpu(f"memory_used_bytes = {GIB}\nprocesses = [{row}]")
    (holder,) = found.holders
    assert (holder.held_as, holder.command) == ("unknown", "python")
    assert reason in holder.what


@pytest.mark.parametrize(
    ("toml", "reason"),
    [
        ("processes = []", "not visible from here"),
        (f"processes = []\nmemory_reserved_bytes = {GIB}", "or by a process that is ending"),
        ("processes = []\n[system.container]\nruntime = 'docker'\ndriver_mounts = []", "container"),
        (
            'processes = [{pid = 7, name = "x", memory_bytes = {unknown = "WSL"}}]',
            "the driver does not report how much each one holds",
        ),
        (
            'processes = {unknown = "NVML: Not Supported"}',
            "unknown: NVML: Not Supported",
        ),
    ],
)
def test_memory_that_no_process_accounts_for(toml: str, reason: str) -> None:
    found = gpu(f"memory_used_bytes = {10 * GIB}\n{toml}")
    nobody = found.holders[-1]
    assert (nobody.pid, nobody.held_as, nobody.held_bytes) == (
        None,
        "nobody",
        Known(10 * GIB, "example"),
    )
    assert reason in nobody.what


def test_the_account_adds_up() -> None:
    found = gpu(
        f"memory_used_bytes = {20 * GIB}\nmemory_reserved_bytes = {GIB}\n"
        f"processes = [{process(12.0, 'torch')}]"
    )
    held = sum(need(holder.held_bytes) for holder in found.holders)
    assert held + need(found.free_bytes) + need(found.reserved_bytes) == need(found.total_bytes)


def test_a_few_megabytes_are_the_drivers_own_affair() -> None:
    assert gpu(f"memory_used_bytes = {9 << 20}\nprocesses = []").holders == ()


def test_main_memory_in_use_is_not_held_on_a_gpu_without_memory_of_its_own() -> None:
    used = f"memory_used_bytes = {20 * GIB}\nprocesses = []"
    assert gpu(used).holders
    assert gpu(f'{used}\ncompute_capability = "12.1"').holders == ()


# --- a new process ---


def newcomers(toml: str) -> dict[str, NewProcess]:
    (found,) = need(judged(toml).gpus)
    return {new.framework: new for new in found.new_processes}


def test_a_full_gpu_is_reported_as_too_small_for_jax() -> None:
    toml = f"[driver.gpus.0]\nmemory_used_bytes = {45 * GIB}"
    new = newcomers(toml)
    assert (new["jax"].falls_short, new["torch"].falls_short) == (True, False)
    assert new["jax"].asks_bytes == 36 * GIB
    text = render(judged(toml), width=300, color=False)
    assert "it asks for 36 GiB (75% of the GPU's memory, its default), but only 3 GiB are" in text


def test_the_environment_counts() -> None:
    new = newcomers(
        '[environment.variables.TF_FORCE_GPU_ALLOW_GROWTH]\nvalue = "true"\n'
        '[environment.variables.XLA_PYTHON_CLIENT_MEM_FRACTION]\nvalue = "0.25"'
    )
    assert new["tensorflow"].start == "grows"
    assert new["jax"].asks_bytes == 12 * GIB


def test_what_keeps_a_process_off_the_gpu() -> None:
    hidden = newcomers('[environment.visible_gpus]\ntext = "1"\nvisible = [1]\nignored = []')
    assert {new.start for new in hidden.values()} == {"nothing"}
    cpu_build = newcomers('[target.frameworks.torch.build]\nkind = "cpu"')
    assert (cpu_build["torch"].start, cpu_build["jax"].start) == ("nothing", "reserves")
    prohibited = newcomers('[driver.gpus.0]\ncompute_mode = "prohibited"')
    assert {new.start for new in prohibited.values()} == {"fails"}
    taken = f'[driver.gpus.0]\ncompute_mode = "exclusive"\nprocesses = [{process(1.0, "torch")}]'
    assert newcomers(taken)["jax"].start == "fails"
    split = newcomers("[driver.gpus.0]\nmig = true")
    assert {new.start for new in split.values()} == {"unknown"}


def test_the_three_main_frameworks_are_shown_even_if_not_installed() -> None:
    new = newcomers('only = ["torch"]')
    assert [(name, bool(one.version)) for name, one in new.items()] == [
        ("tensorflow", False),
        ("jax", False),
        ("torch", True),
    ]


# --- whole answers ---


def test_no_gpu_is_an_answer() -> None:
    report = judged('start = "no-gpu"\n[driver]\ngpus = {absent = "NVIDIA driver"}')
    assert isinstance(report.gpus, Absent)
    assert report.exit_code == 0
    assert len(report.defaults) >= 3


@pytest.mark.parametrize(
    "toml",
    [
        '[driver]\ngpus = {unknown = "NVML gave no answer within 10 seconds"}',
        "[driver]\ngpus = []",
        '[driver.gpus.0]\nmemory_used_bytes = {unknown = "GPU is lost"}',
        '[driver.gpus.0]\nprocesses = {unknown = "processes are read through NVML only"}',
    ],
)
def test_an_unknown_answer_ends_with_4(toml: str) -> None:
    assert judged(toml).exit_code == 4


def test_a_driver_without_its_gpu_is_not_a_machine_without_one() -> None:
    report = judged('[driver]\ngpus = []\ndetail = "No devices were found"')
    assert isinstance(report.gpus, Unknown)
    assert "No devices were found" in report.gpus.reason
