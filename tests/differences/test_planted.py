"""A change is planted among the changes of an ordinary week, and has to be named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from tests.cases import each
from tests.causes.driver_machines import on_the_cpu
from tests.differences.noise import noisy
from tests.kit import machine, machine_causes, machine_examples
from tests.test_recorded_machines import FOLDER
from whygpu import load_snapshot
from whygpu.causes import machine_catalogue
from whygpu.differences.answering import Named, answer
from whygpu.model.differences import DiffAnswer, Reason
from whygpu.model.environment import GpuSelection, Variable
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.snapshot import Snapshot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STARTS = ("start", "only", "nothing_seen")


def compared(before: Snapshot, after: Snapshot) -> DiffAnswer:
    return answer(Named("before", before), Named("after", after), machine_catalogue())


def titles(found: DiffAnswer, reason: Reason) -> list[list[str]]:
    return [[found.differences[place].title for place in each] for each in reason.sets]


def known(value: Any) -> Any:
    return Known(value, "planted")


class Example(NamedTuple):
    """An example of a page: a healthy machine, and what its page says of it with one change."""

    code: str
    number: int
    before: Snapshot
    after: Snapshot


@cache
def examples() -> list[Example]:
    """The examples of all pages that files alone show, and that differ from a healthy machine."""
    found = []
    for cause in machine_causes():
        for number, example in enumerate(machine_examples(cause)):
            changes = tomllib.loads(example.text)
            if example.expectation != "fires" or "probes" in changes:
                continue
            start = "".join(
                f"{name} = {changes[name]!r}\n".replace("'", '"')
                for name in STARTS
                if name in changes
            )
            before, after = machine(start), machine(example.text)
            first = compared(before, after)
            if any(r.finding and r.finding.code == cause.code for r in first.reasons):
                found.append(Example(cause.code, number, before, after))
    return found


@pytest.mark.slow
def test_there_are_enough_of_them() -> None:
    assert len(examples()) >= 60
    assert len({example.code for example in examples()}) >= 35


@pytest.mark.slow
def test_the_planted_change_is_named_among_noise() -> None:
    for seed, example in enumerate(examples()):
        quiet = compared(example.before, example.after)
        planted = {item.title for item in quiet.differences}
        loud = compared(example.before, noisy(example.after, seed))
        assert len(loud.differences) >= len(quiet.differences) + 40
        (reason,) = (r for r in loud.reasons if r.finding and r.finding.code == example.code)
        assert reason.sets, (example.code, example.number, reason.unexplained)
        named = {title for each in titles(loud, reason) for title in each}
        assert named <= planted, (example.code, example.number, named - planted)
        assert reason.certainly_all
        (alone,) = (r for r in quiet.reasons if r.finding and r.finding.code == example.code)
        assert sorted(titles(loud, reason)) == sorted(titles(quiet, alone))


def test_noise_alone_changes_nothing() -> None:
    for seed in range(10):
        found = compared(machine(), noisy(machine(), seed))
        assert found.reasons == ()
        assert found.standing == "answered"
        assert "the verdict is the same" in found.headline


H200 = load_snapshot(str(FOLDER / "h200-healthy-keras-jax.json"))
ON_CPU = load_snapshot(str(FOLDER / "h200-hidden-empty.json")).probes
"""What the frameworks do on that machine if they do not see the GPU."""


def variable(name: str, value: str) -> Callable[[Snapshot], Snapshot]:
    def plant(there: Snapshot) -> Snapshot:
        kept = [item for item in there.environment.variables if item.name != name]
        variables = (*kept, Variable(name, value, "planted"))
        return there._replace(environment=there.environment._replace(variables=variables))

    return plant


def visible(value: str) -> Callable[[Snapshot], Snapshot]:
    def plant(there: Snapshot) -> Snapshot:
        changed = variable("CUDA_VISIBLE_DEVICES", value)(there)
        selection = known(GpuSelection(value, known(()), ()))
        return changed._replace(environment=changed.environment._replace(visible_gpus=selection))

    return plant


def driver(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    return lambda there: there._replace(driver=there.driver._replace(**fields))


def gpu(**fields: Any) -> Callable[[Snapshot], Snapshot]:
    def plant(there: Snapshot) -> Snapshot:
        assert isinstance(there.driver.gpus, Known)
        gpus = tuple(item._replace(**fields) for item in there.driver.gpus.value)
        return there._replace(driver=there.driver._replace(gpus=known(gpus)))

    return plant


def removed(package: str) -> Callable[[Snapshot], Snapshot]:
    """Without one package of NVIDIA: its files are gone, and the loader does not find them."""

    def plant(there: Snapshot) -> Snapshot:
        assert isinstance(there.target.packages, Known)
        assert isinstance(there.target.frameworks, Known)
        assert isinstance(there.cuda, Known)
        gone = {c.path for c in there.cuda.value.copies if c.owner.partition(" ")[0] == package}
        assert gone, package
        frameworks = tuple(
            framework._replace(
                libraries=known(
                    tuple(
                        library._replace(
                            outcome="not-found",
                            path=None,
                            chain=(library.library,),
                            detail=f"{library.library}: cannot open shared object file",
                        )
                        if library.path in gone
                        else library
                        for library in framework.libraries.value
                    )
                )
            )
            if isinstance(framework.libraries, Known)
            else framework
            for framework in there.target.frameworks.value
        )
        packages = tuple(p for p in there.target.packages.value if p.name != package)
        copies = tuple(copy for copy in there.cuda.value.copies if copy.path not in gone)
        target = there.target._replace(packages=known(packages), frameworks=known(frameworks))
        cuda = known(there.cuda.value._replace(copies=copies))
        return there._replace(target=target, cuda=cuda)

    return plant


PLANTS: list[tuple[str, Callable[[Snapshot], Snapshot]]] = [
    ("CUDA_VISIBLE_DEVICES", visible("")),
    ("CUDA_VISIBLE_DEVICES", visible("-1")),
    ("CUDA_VISIBLE_DEVICES", visible("NoDevFiles")),
    (
        "the driver",
        driver(version=known("470.57.02"), cuda=known("11.4"), kernel_module=known("470.57.02")),
    ),
    (
        "the driver",
        driver(
            state=known("not-loaded"),
            version=Absent("planted"),
            cuda=Absent("planted"),
            kernel_module=Absent("planted"),
            gpus=Absent("planted"),
        ),
    ),
    ("the driver", driver(state=known("hung"), gpus=Absent("planted"))),
    ("the compute mode of GPU 0", gpu(compute_mode=known("prohibited"))),
    ("nvidia-cublas", removed("nvidia-cublas")),
    ("nvidia-cudnn-cu13", removed("nvidia-cudnn-cu13")),
    ("nvidia-cuda-runtime", removed("nvidia-cuda-runtime")),
    ("nvidia-cufft", removed("nvidia-cufft")),
    ("nvidia-cusparse", removed("nvidia-cusparse")),
]


@pytest.mark.slow
@each(("title", "plant"), PLANTS)
def test_a_recorded_machine_breaks(title: str, plant: Callable[[Snapshot], Snapshot]) -> None:
    good = H200
    bad = noisy(plant(H200), seed=7, packages=120)._replace(probes=ON_CPU)
    found = compared(good, bad)
    assert found.standing in ("wrong", "attention"), found.headline
    explained = [titles(found, reason) for reason in found.reasons]
    assert explained
    assert all(sets == [[title]] for sets in explained), explained
    assert title in found.headline
    cured = compared(bad, good)
    assert [titles(cured, reason) for reason in cured.reasons] == explained
    assert all(reason.present == "before" for reason in cured.reasons)


def test_two_changes_that_only_matter_together() -> None:
    """A second GPU is gone, and CUDA_VISIBLE_DEVICES now selects it."""
    assert isinstance(H200.driver.gpus, Known)
    first = H200.driver.gpus.value[0]
    two = H200._replace(
        driver=H200.driver._replace(
            gpus=known((first, first._replace(number=1, pci_address="0000:99:00.0")))
        )
    )
    hidden = variable("CUDA_VISIBLE_DEVICES", "1")(H200)
    selection = load_snapshot(str(FOLDER / "h200-hidden-out-of-range.json")).environment
    assert isinstance(selection.visible_gpus, Known)
    reason_text = selection.visible_gpus.value.ignored[0].reason.replace("9", "1")
    entry = selection.visible_gpus.value.ignored[0]._replace(text="1", reason=reason_text)
    visible_gpus = known(GpuSelection("1", known(()), (entry,)))
    bad = hidden._replace(
        environment=hidden.environment._replace(visible_gpus=visible_gpus), probes=ON_CPU
    )
    found = compared(two, noisy(bad, seed=3))
    (reason,) = found.reasons
    assert [sorted(each) for each in titles(found, reason)] == [["CUDA_VISIBLE_DEVICES", "GPU 1"]]
    assert "together" in found.headline


def test_two_changes_that_are_each_enough() -> None:
    bad = removed("nvidia-cublas")(removed("nvidia-cufft")(H200))._replace(probes=ON_CPU)
    found = compared(H200, noisy(bad, seed=4))
    for reason in found.reasons:
        assert sorted(titles(found, reason)) == [["nvidia-cublas"], ["nvidia-cufft"]]


def test_both_bad_for_different_reasons() -> None:
    first = visible("")(H200)._replace(probes=ON_CPU)
    second = driver(
        version=known("470.57.02"), cuda=known("11.4"), kernel_module=known("470.57.02")
    )(H200)._replace(probes=ON_CPU)
    found = compared(first, second)
    assert "the verdict is the same (cpu), but there is a new problem" in found.headline
    by_side = {reason.present: titles(found, reason) for reason in found.reasons}
    assert by_side == {"after": [["the driver"]], "before": [["CUDA_VISIBLE_DEVICES"]]}


@pytest.mark.parametrize("seed", range(3))
def test_a_fault_that_only_running_shows_has_suspects(seed: int) -> None:
    after = machine(
        '[probes.torch]\nended = "exception"\nhow = "ImportError: numpy.core.multiarray"\n'
        'stage = "import"\n[target.packages.numpy]\nversion = "3.0.0"\n'
    )
    found = compared(machine(), noisy(after, seed))
    # That it is worse is known, and only the reason is not.
    assert found.standing == "wrong"
    assert "does not show why" in found.headline
    (reason,) = (r for r in found.reasons if not r.sets)
    assert "numpy" in [found.differences[place].title for place in reason.suspects]


def not_run(there: Snapshot) -> Snapshot:
    return there._replace(probes=(), probes_left_out="the frameworks were not run (--no-probe)")


def with_numpy(there: Snapshot, version: str) -> Snapshot:
    assert isinstance(there.target.packages, Known)
    packages = tuple(
        package._replace(version=version) if package.name == "numpy" else package
        for package in there.target.packages.value
    )
    return there._replace(target=there.target._replace(packages=known(packages)))


def test_without_a_verdict_no_difference_is_called_harmless() -> None:
    found = compared(not_run(H200), not_run(with_numpy(H200, "1.0")))
    assert found.headline == (
        "cannot tell whether the only difference matters: nothing found against it, but the "
        "frameworks were not run (--no-probe)"
    )
    assert found.standing == "unknown"


def test_a_gpu_of_several_that_is_gone_is_not_called_harmless() -> None:
    gpu = H200.driver.gpus
    assert isinstance(gpu, Known)
    two = known((gpu.value[0], gpu.value[0]._replace(number=1, pci_address="0000:99:00.0")))
    several = H200._replace(driver=H200.driver._replace(gpus=two))
    found = compared(several, H200)
    assert "the verdict is the same (gpu), but there is 1 GPU instead of 2" in found.headline
    assert (found.standing, found.exit_code) == ("attention", 1)
    assert compared(H200, several).exit_code == 0
    blind = compared(not_run(several), not_run(H200))
    assert "1 GPU instead of 2" in blind.headline
    assert blind.exit_code == 1


def test_an_xid_is_shown_in_words() -> None:
    fault = '[[driver.xids]]\naddress = "0000:41:00"\nnumber = 79\ntimes = 2\nlast_second = 60\n'
    found = compared(machine("[driver]\nxids = []"), machine(fault))
    (values,) = (each.values for each in found.differences if each.name == "Xids in the kernel log")
    assert values.endswith("→ Xid 79 at 0000:41:00, 2 times")


def test_the_headline_counts_what_the_list_counts() -> None:
    """Free memory differs between any two moments, and is in the list."""
    memory = H200.system.memory._replace(available_bytes=known(1 << 36))
    system = H200.system._replace(kernel="6.9.9")
    for there, counted in (
        (system, "the only difference does not matter"),
        (system._replace(memory=memory), "none of the 2 differences matters"),
        (system._replace(memory=memory, wsl=Unknown("?")), "none of the 2 differences matters"),
        (system._replace(wsl=Unknown("?")), "the only known difference does not matter"),
    ):
        found = compared(H200, H200._replace(system=there))
        assert counted in found.headline
        count = sum(each.comparable for each in found.differences)
        assert count == (2 if "2 differences" in counted else 1)


def test_a_framework_that_cannot_be_judged_is_named() -> None:
    found = compared(H200, with_numpy(H200, "1.0"))
    assert "does not matter here, except perhaps to CuPy and Numba" in found.headline
    assert found.standing == "answered"


def test_packages_in_another_order_are_not_listed_one_by_one() -> None:
    assert isinstance(H200.target.packages, Known)
    turned = known(H200.target.packages.value[::-1])
    found = compared(H200, H200._replace(target=H200.target._replace(packages=turned)))
    (difference,) = found.differences
    assert difference.values == "in one order → in another order"


def test_free_memory_alone_is_no_difference() -> None:
    memory = H200.system.memory._replace(available_bytes=known(1 << 30))
    later = H200._replace(system=H200.system._replace(memory=memory))
    for before, after in ((H200, later), (not_run(H200), not_run(later))):
        found = compared(before, after)
        assert found.headline.startswith("nothing differs between before and after, except for")
        assert found.standing == "answered"


def test_a_verdict_that_was_unknown_before_is_not_called_the_same() -> None:
    old = driver(version=known("470.57.02"), cuda=known("11.4"), kernel_module=known("470.57.02"))(
        H200
    )
    found = compared(not_run(H200), not_run(old))
    assert found.headline.startswith(
        "Keras, JAX, PyTorch, CuPy and Numba do not use the GPU (whether they did before is "
        "unknown); there is a new problem: because of the driver"
    )
    assert found.standing == "attention"


def test_another_finding_of_the_same_cause_is_no_sign_of_the_fault() -> None:
    """A card beside the one in use is a warning of WG103, and no reason for a lost GPU."""
    after = machine("""
        only = ["torch"]
        [[graphics]]
        vendor = "nvidia"
        address = "0000:01:00.0"
        device_id = "2684"
        kernel_driver = {absent = "no driver"}
        [driver]
        state = "not-loaded"
        version = {unknown = "not loaded"}
        cuda = {unknown = "not loaded"}
        gpus = {unknown = "not loaded"}
        kernel_module = {absent = "/proc/driver/nvidia/version"}
        uvm = false
        device_nodes = {absent = "/dev/nvidia*"}
    """)
    before = machine('only = ["torch"]')
    found = compared(before, on_the_cpu(after, "100 CUDA_ERROR_NO_DEVICE"))
    (reason,) = (each for each in found.reasons if each.finding is not None)
    assert all("the driver" in names for names in titles(found, reason))
    assert titles(found, reason)
