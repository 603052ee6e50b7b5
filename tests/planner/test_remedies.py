"""Which release a remedy installs, on a machine and after a log."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import machine
from tests.planner import small_table
from tests.planner.small_table import release, table_of, tensorflow
from whygpu import api
from whygpu.model.commands import shell_text
from whygpu.model.finding import Finding, Remedy
from whygpu.model.log import Log, Version
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.release import Release
from whygpu.model.remedy import Install, InstallFramework, SetVariable, Steps
from whygpu.planner import release_search, remedies
from whygpu.planner.remedies import Destination, destination_of, destination_of_log, fulfilled
from whygpu.tables.release_defects import search_list_defect
from whygpu.tables.releases import shipped, versions_of


def answer(remedy: Remedy, destination: Destination) -> Remedy:
    finding = Finding("WG000", "example", "error", "machine", "", (), (remedy,), "none")
    return fulfilled((finding,), lambda: destination)[0].remedies[0]


def on(toml: str, wish: InstallFramework) -> Remedy:
    return answer(Remedy("Install it.", wish), destination_of(machine(toml)))


def after(wish: InstallFramework, **versions: str) -> Remedy:
    told = tuple(Version(1, name, version) for name, version in versions.items())
    return answer(Remedy("Install it.", wish), destination_of_log(Log((), versions=told)))


def requirements(remedy: Remedy) -> tuple[str, ...]:
    assert isinstance(remedy.action, Install)
    return remedy.action.requirements


def target(python: str, driver: str, *only: str) -> str:
    return f"""
only = {list(only)}
[target.interpreter]
version = "{python}"
[driver]
version = "{driver}"
"""


def test_after_a_log_that_tells_nothing_it_is_the_newest_release_without_a_defect() -> None:
    (wanted,) = requirements(after(InstallFramework("tensorflow")))
    name, _, version = wanted.partition("==")
    assert name == "tensorflow[and-cuda]"
    assert search_list_defect("tensorflow", version) is None
    # The newest one is known not to find its GPU; else this test would prove nothing.
    assert search_list_defect("tensorflow", versions_of("tensorflow")[-1].version) is not None


def test_what_is_not_known_of_the_machine_is_said() -> None:
    told = after(InstallFramework("torch"), python="3.11.9")
    assert told.text.startswith("Install it. Not known here: its driver and GPU.")
    assert "`whygpu plan torch`" in told.text
    seen = on(target("3.11.9", "580.65.06"), InstallFramework("torch"))
    assert seen.text == "Install it."


def test_a_log_tells_its_python_its_driver_and_windows() -> None:
    versions = (Version(1, "python", "3.11.9"), Version(2, "driver", "535.54.03"))
    told = destination_of_log(Log((), versions=versions), "win_amd64").machine
    assert told.python == Known("3.11.9", "the log")
    assert told.driver == Known("535.54.03", "the log")
    assert told.platform == Known("win_amd64", "the log")
    nothing = destination_of_log(Log(())).machine
    assert set(nothing) == {Unknown("the log does not say"), False}


def test_findings_without_a_wish_stay_as_they_are_and_no_machine_is_looked_at() -> None:
    plain = Remedy("Set it.", SetVariable("A", "1"))
    finding = Finding("WG000", "example", "error", "machine", "", (), (plain,), "none")

    def nowhere() -> Destination:
        raise AssertionError("the destination was asked for")

    assert fulfilled((finding,), nowhere) == (finding,)


@each(
    ("python", "wanted"),
    [("3.9.18", "tensorflow[and-cuda]==2.20.0"), ("3.8.10", "tensorflow==2.13.1")],
)
def test_a_python_that_the_log_tells_is_heeded(python: str, wanted: str) -> None:
    told = after(InstallFramework("tensorflow"), python=python)
    if "and-cuda" in wanted:
        assert requirements(told) == (wanted,)
    else:
        assert told.action is None
        assert "needs CUDA" in told.text


def test_a_machine_without_a_gpu_gets_no_cuda_libraries() -> None:
    nothing = Absent("no NVIDIA GPU")
    spec = destination_of(machine(target("3.11.9", "580.65.06"))).machine
    told = answer(
        Remedy("Install it.", InstallFramework("tensorflow")),
        Destination(spec._replace(driver=nothing, gpus=nothing)),
    )
    assert requirements(told) == ("tensorflow==2.20.0",)


def test_a_driver_decides_which_torch_it_is() -> None:
    new = on(target("3.11.9", "580.65.06"), InstallFramework("torch"))
    old = on(target("3.11.9", "535.54.03"), InstallFramework("torch"))
    assert requirements(new) != requirements(old)
    assert requirements(old) == ("torch==2.14.1",)
    assert isinstance(new.action, Install)
    assert isinstance(old.action, Install)
    assert new.action.index_url == ""
    assert old.action.index_url == "https://download.pytorch.org/whl/cu126"


def test_a_release_that_is_likely_to_fail_has_no_command_if_a_better_one_is_near() -> None:
    where = Destination(small_table.machine(driver="470.82", gpu=small_table.K80))
    told = answer(Remedy("Install it.", InstallFramework("torch")), where)
    assert told.action is None
    assert "torch 1.12.1, which is possible with Python 3.10" in told.text
    assert " torch 2.3.1 is likely not to work on Tesla K80 (3.7): its cuDNN" in told.text


def test_without_a_known_driver_jax_is_for_the_older_cuda() -> None:
    (wanted,) = requirements(after(InstallFramework("jax")))
    assert wanted.startswith("jax[cuda12]==")


def test_the_installed_release_is_kept_where_it_will_do() -> None:
    wish = InstallFramework("torch", installed="2.8.0+cpu", removes=("torch",))
    found = on(target("3.11.9", "580.65.06"), wish)
    assert found.action == Install(("torch==2.8.0",), removes=("torch",))


def test_a_release_with_a_defect_is_replaced_by_its_nearest() -> None:
    near = on(target("3.11.9", "580.65.06"), InstallFramework("tensorflow", installed="2.16.1"))
    assert requirements(near) == ("tensorflow[and-cuda]==2.16.2",)
    next_to = on(target("3.11.9", "580.65.06"), InstallFramework("tensorflow", installed="2.21.0"))
    assert requirements(next_to) == ("tensorflow[and-cuda]==2.20.0",)


@each(
    ("wish", "wanted"),
    [
        (InstallFramework("torch", installed="2.7.0"), "torch==2.7.0"),  # 2.7.1 would fit as well
        (InstallFramework("tensorflow", installed="2.16"), "tensorflow[and-cuda]==2.16.2"),
        (InstallFramework("tensorflow", installed="2"), "tensorflow[and-cuda]==2.20.0"),
        (InstallFramework("onnxruntime", installed="1.24.1"), "onnxruntime-gpu==1.24.1"),
    ],
)
def test_the_nearest_release_to_the_installed_one_is_taken(
    wish: InstallFramework, wanted: str
) -> None:
    assert requirements(on(target("3.11.9", "580.65.06"), wish)) == (wanted,)


@each(
    ("wish", "reason"),
    [
        (
            InstallFramework("tensorflow", installed="2.20.0", newer=True),
            "tensorflow 2.21.0 does not search the folder of its own cusolver, and none newer fits",
        ),
        (
            InstallFramework("jax", installed="99.0", newer=True),
            f"jax<100,>99.0: newer than this table of {shipped().date}, which ends at ",
        ),
    ],
)
def test_where_there_is_no_newer_release_the_reason_is_said(
    wish: InstallFramework, reason: str
) -> None:
    told = on(target("3.11.9", "580.65.06"), wish)
    assert told.action is None
    assert told.text.startswith(f"Install it. whygpu knows no command for it: {reason}")


def with_table(monkeypatch: pytest.MonkeyPatch, *rows: Release) -> None:
    monkeypatch.setattr(remedies, "versions_of", table_of(rows).versions)


def test_packages_that_exclude_each_other_are_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with_table(
        monkeypatch,
        tensorflow("2.20.0", "3.11", "12.5.1", "keras", "h5py", 'absl; extra == "and-cuda"'),
        release("keras", "3.0", requires=("six<2",)),
        release("h5py", "4.0", requires=("six>=2",)),
        *(release("six", version) for version in "12"),
    )
    told = on(target("3.11.9", "580.65.06"), InstallFramework("tensorflow"))
    assert told.action is None
    assert told.text.endswith(
        "whygpu knows no command for it: h5py 4.0 needs six>=2; keras 3.0 needs six<2."
    )


def test_a_search_that_gave_up_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_search, "MOST_TRIES", 0)
    told = on(target("3.11.9", "580.65.06"), InstallFramework("torch"))
    assert told.action is None
    assert "no combination was found in 0 steps, but not all were tried" in told.text


def test_without_a_known_driver_the_build_for_the_oldest_cuda_has_to_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wheels = {"12": ("3.12",), "13": ("3.11", "3.12")}
    with_table(
        monkeypatch,
        release(
            "jax",
            "0.9.0",
            requires=tuple(
                f'jax-cuda{cuda}-plugin[with-cuda]; extra == "cuda{cuda}"' for cuda in wheels
            ),
        ),
        *(release(f"jax-cuda{cuda}-plugin", "0.9.0", pythons=wheels[cuda]) for cuda in wheels),
    )
    for python, wanted in (("3.11.9", "jax[cuda13]==0.9.0"), ("3.12.1", "jax[cuda12]==0.9.0")):
        assert requirements(after(InstallFramework("jax"), python=python)) == (wanted,)


def test_a_newer_release_is_newer() -> None:
    wish = InstallFramework("torch", installed="2.8.0", newer=True)
    for installed in ((), ("torch",)):
        (wanted,) = requirements(on(target("3.11.9", "580.65.06", *installed), wish))
        assert wanted != "torch==2.8.0"


def test_tensorflow_1_is_not_replaced_by_tensorflow_2() -> None:
    wish = InstallFramework("tensorflow", installed="1.15.5", removes=("tensorflow",))
    for told, reason in (
        (after(wish, python="3.7.17"), "needs CUDA 10.0 and cuDNN 7 on the machine."),
        # The GPU of this machine is an Ampere one.
        (on(target("3.7.17", "470.82.01", "tensorflow"), wish), "is reported not to work on"),
    ):
        assert told.action is None
        assert "whygpu knows no command for it: tensorflow-gpu 1.15.5" in told.text
        assert reason in told.text


def test_a_release_without_a_known_cudnn_needs_its_cuda_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_table(monkeypatch, tensorflow("1.0.1", "3.5", "8.0", package="tensorflow-gpu", cudnn=""))
    told = after(InstallFramework("tensorflow"), python="3.5.2")
    assert told.text.endswith("needs CUDA 8.0 on the machine.")


def test_where_nothing_fits_the_reason_is_said() -> None:
    told = on(target("3.14.0", "580.65.06", "torch"), InstallFramework("tensorflow"))
    assert told.action is None
    assert "has wheels for Python" in told.text


def test_a_release_that_the_table_does_not_have_is_left_alone() -> None:
    wish = InstallFramework("tensorflow", installed="7.1.0")
    assert requirements(on(target("3.11.9", "580.65.06"), wish)) == (
        "tensorflow[and-cuda]==2.20.0",
    )


def test_what_is_installed_beside_it_has_to_go_on_working() -> None:
    beside = destination_of(machine('only = ["torch", "jax"]')).beside
    assert [str(wish) for wish in beside] == ["jax==0.7.2", "torch==2.8.0"]
    found = on('only = ["torch", "jax"]', InstallFramework("tensorflow"))
    assert requirements(found) == ("tensorflow[and-cuda]==2.20.0",)
    assert "not compatible" not in found.text


@each(
    "kind",
    ['"cpu"', '"rocm"', '{unknown = "no binary was read"}', '{absent = "it has no binaries"}'],
)
def test_only_gpu_builds_beside_it_have_to_go_on_working(kind: str) -> None:
    toml = f'only = ["torch", "jax"]\n[target.frameworks.torch.build]\nkind = {kind}'
    assert [str(wish) for wish in destination_of(machine(toml)).beside] == ["jax==0.7.2"]


def test_what_the_planner_has_no_releases_of_is_not_kept_beside_it() -> None:
    toml = """
only = ["keras"]
[target.frameworks.numba]
version = "0.61.0"
[target.frameworks.numba.build]
kind = "cuda"
"""
    assert destination_of(machine(toml)).beside == ()


def test_what_does_not_go_together_is_said() -> None:
    old = '[target.frameworks.torch]\nversion = "1.13.1"\n'
    found = on(f'only = ["torch"]\n{old}', InstallFramework("jax"))
    assert "is not compatible with PyTorch 1.13.1" in found.text
    assert shell_text(found.action) is not None


def test_other_steps_of_a_remedy_stay() -> None:
    both = Steps((InstallFramework("torch"), SetVariable("A", "1")))
    found = answer(Remedy("Do it.", both), destination_of(machine()))
    assert isinstance(found.action, Steps)
    assert found.action.steps[1] == SetVariable("A", "1")


def test_a_report_has_no_wish_left() -> None:
    report = api.diagnose(
        machine('only = ["tensorflow"]\n[target.frameworks.tensorflow.build]\nkind = "cpu"')
    )
    remedies = [remedy for finding in report.findings for remedy in finding.remedies]
    assert any(isinstance(remedy.action, Install) for remedy in remedies)
    assert not any(remedy.wishes for remedy in remedies)


def test_the_machine_beside_a_log_decides_its_releases_and_its_commands() -> None:
    log = (
        "tensorflow.python.framework.errors_impl: Could not load dynamic library 'libcudart.so.12'"
    )
    here = machine(target("3.11.9", "580.65.06", "torch"))
    alone, beside = api.explain(log), api.explain(log, here=here)
    assert alone.installer.python == beside.installer.python == "python"
    wishes = [r.wishes for e in (alone, beside) for f in e.root_causes for r in f.remedies]
    assert wishes
    assert not any(wishes)
