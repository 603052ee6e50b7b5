"""Package faults: wheel tags, mixed releases, two copies of one module, unmet requirements."""

from __future__ import annotations

import time

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu import diagnose
from whygpu.model.observed import Known, need

NO_PROBE = 'probes_left_out = "--no-probe"'


@each(
    ("tag", "status"),
    [
        ("cp311-cp311-manylinux_2_17_x86_64", "passed"),
        ("cp310-cp310-manylinux_2_17_x86_64", "found"),
        ("cp312-cp312-manylinux_2_17_x86_64", "found"),
        ("cp311-cp311t-manylinux_2_17_x86_64", "found"),
        ("cp38-abi3-manylinux2014_x86_64", "passed"),
        ("cp312-abi3-manylinux2014_x86_64", "found"),
        ("py3-none-any", "passed"),
        ("py2.py3-none-any", "passed"),
        ("py2-none-any", "found"),
        ("py39-none-any", "passed"),
        ("py312-none-any", "found"),
        ("py3-none-manylinux_2_27_x86_64", "passed"),
        ("py3-none-manylinux_2_27_aarch64", "found"),
        ("cp311-cp311-macosx_11_0_arm64", "found"),
        ("cp311-cp311-win_amd64", "found"),
        ("pp311-pypy311_pp73-manylinux_2_17_x86_64", "found"),
        ("graalpy311-native-manylinux_2_17_x86_64", "undetermined"),
    ],
)
def test_a_wheels_tag_is_held_against_the_interpreter(tag: str, status: str) -> None:
    text = f'only = ["torch"]\n{NO_PROBE}\n[target.packages.torch]\nwheel_tags = ["{tag}"]'
    assert run(cause_named("wheel-does-not-fit"), machine(text)).status == status


def test_one_tag_that_fits_is_enough() -> None:
    text = f"""
        {NO_PROBE}
        [target.packages.torch]
        wheel_tags = ["cp310-cp310-linux_x86_64", "cp311-cp311-linux_x86_64"]
    """
    assert run(cause_named("wheel-does-not-fit"), machine(text)).status == "passed"


def test_misfits_of_one_folder_are_one_finding_about_all_who_need_them() -> None:
    text = f"""
        {NO_PROBE}
        [target.packages.numpy]
        wheel_tags = ["cp310-cp310-linux_x86_64"]
        [target.packages.torch]
        wheel_tags = ["cp310-cp310-linux_x86_64"]
    """
    (found,) = run(cause_named("wheel-does-not-fit"), machine(text)).findings
    assert found.subject == "machine"
    for name in ("TensorFlow", "JAX", "PyTorch"):
        assert name in found.message


@each(
    ("libc", "tag", "found"),
    [
        ("musl", "cp311-cp311-manylinux_2_28_x86_64", True),
        ("musl", "cp311-cp311-musllinux_1_2_x86_64", False),
        ("glibc", "cp311-cp311-manylinux_2_28_x86_64", False),
        ("glibc", "cp311-cp311-musllinux_1_2_x86_64", True),
    ],
)
def test_a_wheel_is_for_one_c_library(libc: str, tag: str, found: bool) -> None:
    text = f"""
        {NO_PROBE}
        [system]
        libc = {{name = "{libc}", version = "2.39"}}
        [target.packages.torch]
        wheel_tags = ["{tag}"]
    """
    outcome = run(cause_named("wheel-does-not-fit"), machine(text))
    assert (outcome.status == "found") is found
    if libc == "musl" and found:
        (finding,) = outcome.findings
        assert "glibc" in finding.remedies[0].text
        assert finding.remedies[0].action is None


def test_on_a_jetson_only_nvidias_own_builds_have_gpu_code() -> None:
    build = 'only = ["torch"]\n[target.frameworks.torch.build]\nkind = "cpu"\n'
    jetson = build + '[graphics."0000:41:00.0"]\ndevice_id = "tegra234"\n'
    (finding,) = run(cause_named("cpu-only-build"), machine(jetson)).findings
    assert [command_of(remedy) for remedy in finding.remedies] == ["cat /etc/nv_tegra_release"]


def test_a_framework_that_was_imported_refutes_its_tag() -> None:
    text = '[target.packages.torch]\nwheel_tags = ["cp310-cp310-linux_x86_64"]'
    assert run(cause_named("wheel-does-not-fit"), machine(text)).status == "passed"


@pytest.mark.parametrize(
    ("how", "jaxlib"),
    [
        ("RuntimeError: jaxlib is version 0.6.2, but this version of jax requires version "
         ">= 0.7.2.", "0.6.2"),
        ("RuntimeError: jaxlib version <ip removed> is newer than and incompatible with jax "
         "version 0.7.2. Please update your jax and/or jaxlib packages.", "0.12.0.1"),
    ],
)  # fmt: skip
def test_jax_with_another_jaxlib_cannot_be_imported(how: str, jaxlib: str) -> None:
    text = f"""
        [probes.jax]
        ended = "exception"
        stage = "import"
        operations = []
        how = "{how}"
        [target.packages.jaxlib]
        version = "{jaxlib}"
    """
    (found,) = run(cause_named("jax-plugin-mismatch"), machine(text)).findings
    assert (found.confidence, found.effect) == ("certain", "broken")
    assert f"jaxlib {jaxlib}" in found.message


def plugin(version: str, more: str = "") -> str:
    return f'{more}\n[target.frameworks.jax.plugins.jax-cuda12-plugin]\nversion = "{version}"'


@each(
    ("version", "status"),
    [("0.7.2", "passed"), ("0.7.2.post1", "passed"), ("0.7.3", "found"), ("0.7.2.1", "found")],
)
def test_the_plugin_must_have_jaxlibs_numbers(version: str, status: str) -> None:
    outcome = run(cause_named("jax-plugin-mismatch"), machine(plugin(version, NO_PROBE)))
    assert outcome.status == status


def test_jaxs_own_warning_makes_it_certain() -> None:
    more = """
        [probes.jax]
        operations = []
        log = ["RuntimeWarning: JAX plugin jax_cuda12_plugin version 0.7.1 is installed, but it is \
not compatible with the installed jaxlib version 0.7.2, so it will not be used."]
    """
    outcome = run(cause_named("jax-plugin-mismatch"), machine(plugin("0.7.1", more)))
    assert [finding.confidence for finding in outcome.findings] == ["certain"]
    assert command_of(outcome.findings[0].remedies[0]) == (
        "python -m pip install --upgrade 'jax[cuda12]==0.7.2'"
    )


def test_a_jax_that_computes_on_the_gpu_has_the_right_plugin() -> None:
    assert run(cause_named("jax-plugin-mismatch"), machine(plugin("0.7.1"))).status == "passed"


def test_whether_a_plugin_matters_cannot_be_told_without_knowing_the_gpu() -> None:
    more = f"""
        {NO_PROBE}
        graphics = {{unknown = "no /sys"}}
        [driver]
        gpus = {{unknown = "x"}}
        kernel_module = {{unknown = "x"}}
        device_nodes = {{unknown = "x"}}
        cuda_library = {{unknown = "x"}}
    """
    outcome = run(cause_named("jax-plugin-mismatch"), machine(plugin("0.7.1", more)))
    assert outcome.status == "undetermined"


def twins(kind: str, start: str = "healthy") -> str:
    return f"""
        start = "{start}"
        [target.packages.tensorflow-cpu]
        version = "2.20.0"
        [target.frameworks.tensorflow.build]
        kind = "{kind}"
    """


@each(
    ("text", "severity"),
    [
        (twins("cpu"), "error"),
        (twins("cuda"), "warning"),
        (twins("cpu", "no-gpu"), "warning"),
        ('[target.packages.tensorflow-gpu]\nversion = "2.11.0"', "warning"),
        ('[target.packages.keras-nightly]\nversion = "3.12.0"', "warning"),
    ],
)
def test_two_packages_are_an_error_only_where_the_wrong_one_won(text: str, severity: str) -> None:
    (found,) = run(cause_named("two-packages-one-module"), machine(text)).findings
    assert found.severity == severity


def test_two_packages_where_nobody_knows_which_won_are_likely_an_error() -> None:
    text = """
        [target.packages.onnxruntime]
        version = "1.20.0"
        [target.packages.onnxruntime-gpu]
        version = "1.20.0"
    """
    (found,) = run(cause_named("two-packages-one-module"), machine(text)).findings
    assert (found.subject, found.severity, found.confidence) == ("onnxruntime", "error", "likely")
    assert command_of(found.remedies[0]) == (
        "python -m pip uninstall -y onnxruntime onnxruntime-gpu && "
        "python -m pip install onnxruntime-gpu==1.20.0"
    )


def test_the_cpu_machine_is_not_told_to_install_cuda() -> None:
    (found,) = run(cause_named("two-packages-one-module"), machine(twins("cpu", "no-gpu"))).findings
    assert (command_of(found.remedies[0]) or "").endswith(
        "&& python -m pip install tensorflow==2.20.0"
    )


def test_copies_in_different_folders_are_shadowed_and_not_mixed() -> None:
    text = """
        [target.packages.tensorflow-cpu]
        version = "2.20.0"
        location = "/elsewhere"
    """
    assert run(cause_named("two-packages-one-module"), machine(text)).status == "passed"


def copies(winner: str, hidden: str, more: str = "") -> str:
    return f"""
        {more}
        [[target.packages]]
        name = "numpy"
        version = "1.21.5"
        location = "{winner}"
        [[target.packages]]
        name = "numpy"
        version = "2.1.3"
        location = "{hidden}"
        shadowed = true
    """


HOME = "~/.local/lib/python3.11/site-packages"
SITE = "~/venv/lib/python3.11/site-packages"
SYSTEM = "/usr/lib/python3/dist-packages"
USER_SITE = f'[target.interpreter]\nuser_site = "{HOME}"'


@each(
    ("winner", "hidden", "more", "status"),
    [
        ("/opt/shared", SITE, "", "found"),
        (HOME, SITE, USER_SITE, "found"),
        (HOME, SYSTEM, USER_SITE, "found"),
        (SITE, SYSTEM, "", "passed"),
        (SITE, HOME, USER_SITE, "passed"),
        ("/usr/local/lib/python3/dist-packages", SYSTEM, "", "passed"),
    ],
)
def test_only_a_stray_copy_is_a_finding(winner: str, hidden: str, more: str, status: str) -> None:
    outcome = run(cause_named("package-shadowed"), machine(copies(winner, hidden, more)))
    assert outcome.status == status


def test_a_package_of_another_name_hides_the_same_module() -> None:
    text = """
        [[target.packages]]
        name = "tensorflow-cpu"
        version = "2.15.1"
        location = "/opt/shared"
        [[target.packages]]
        name = "tensorflow"
        version = "2.20.0"
    """
    (found,) = run(cause_named("package-shadowed"), machine(text)).findings
    assert "tensorflow-cpu 2.15.1 instead of tensorflow 2.20.0" in found.message


def test_a_package_that_has_nothing_to_do_with_gpus_may_be_anywhere() -> None:
    text = copies("/opt/shared", SITE).replace("numpy", "requests")
    assert run(cause_named("package-shadowed"), machine(text)).status == "passed"


def conflict(package: str, requirement: str, found: str, more: str = "") -> str:
    return f"""
        {more}
        [[target.conflicts]]
        package = "{package}"
        requirement = "{requirement}"
        found = {found}
    """


@each(
    ("package", "requirement", "found"),
    [
        ("tensorflow", "protobuf>=6.31.1", '"5.29.5"'),
        ("tensorflow", "numpy<2", '"2.1.3"'),
        ("tensorflow", "keras>=3.12", '"3.0.5"'),
        ("tf-keras", "tensorflow<2.20,>=2.19", '"2.20.0"'),
        ("jax", "jaxlib<=0.7.2,>=0.7.2", '"0.6.2"'),
    ],
)
def test_a_conflict_is_reported_by_one_cause_and_by_one_only(
    package: str, requirement: str, found: str
) -> None:
    specialists = ("protobuf-conflict", "numpy-abi", "keras-tf-version-mismatch",
                   "jax-plugin-mismatch")  # fmt: skip
    general = "requirement-conflict"
    unseen = machine(conflict(package, requirement, found, NO_PROBE))
    reporting = [
        slug for slug in (*specialists, general) if run(cause_named(slug), unseen).findings
    ]
    assert len(reporting) == 1
    assert reporting != [general]
    refuted = machine(conflict(package, requirement, found))
    reporting = [
        slug for slug in (*specialists, general) if run(cause_named(slug), refuted).findings
    ]
    assert reporting == [general]


def test_a_failure_for_another_reason_leaves_the_conflict_a_warning() -> None:
    more = '[probes.tensorflow]\nended = "exception"\nstage = "import"\nhow = "OSError: disk"'
    snapshot = machine(conflict("tensorflow", "protobuf>=6.31.1", '"5.29.5"', more))
    assert run(cause_named("protobuf-conflict"), snapshot).status == "passed"
    (found,) = run(cause_named("requirement-conflict"), snapshot).findings
    assert (found.severity, found.confidence) == ("warning", "possible")


def test_a_missing_requirement_says_so() -> None:
    snapshot = machine(conflict("tensorflow", "h5py>=3.11.0", '{absent = "h5py"}'))
    (found,) = run(cause_named("requirement-conflict"), snapshot).findings
    assert found.message == "tensorflow 2.20.0 requires h5py>=3.11.0; it is missing"


def test_a_version_nobody_can_compare_is_a_gap_beside_the_others() -> None:
    text = conflict("torch", "triton==3.4.0", '"3.1.0"') + conflict(
        "torch", "nvidia-nccl-cu12==2.27", '{unknown = "not a valid version"}'
    )
    outcome = run(cause_named("requirement-conflict"), machine(text))
    assert [finding.subject for finding in outcome.findings] == ["torch"]
    assert len(outcome.reasons) == 1


def test_tensorflow_on_windows_is_judged_by_its_number_and_by_its_plugin() -> None:
    windows = 'only = ["tensorflow"]\n[system]\nos = "windows"\n'
    cause = cause_named("windows-native-unsupported")
    version = "[target.frameworks.tensorflow]\nversion = "
    assert run(cause, machine(windows + version + '"2.11.0"')).status == "found"
    assert run(cause, machine(windows + version + '"2.10.1"')).status == "passed"
    plugin = '[target.packages.tensorflow-directml-plugin]\nversion = "0.4.0"'
    assert run(cause, machine(windows + plugin)).status == "passed"
    assert run(cause, machine('start = "no-gpu"\n' + windows)).status == "not-applicable"
    assert run(cause, machine('only = ["tensorflow"]')).status == "passed"


PYTHONPATH = '[environment.variables.PYTHONPATH]\nvalue = "/opt/shared:/opt/mine"'


def test_a_copy_on_pythonpath_leaves_the_path_because_pip_cannot_replace_it() -> None:
    expected = 'export PYTHONPATH="/opt/mine"'
    (shadowed,) = run(
        cause_named("package-shadowed"), machine(copies("/opt/shared", SITE, PYTHONPATH))
    ).findings
    assert [command_of(remedy) for remedy in shadowed.remedies] == [expected]
    in_the_way = copies("/opt/shared", SITE, PYTHONPATH) + 'wheel_tags = ["cp311-cp311-any"]'
    needs = conflict("tensorflow", "numpy>=2", '"1.21.5"', NO_PROBE) + in_the_way
    (fault,) = run(cause_named("numpy-abi"), machine(needs)).findings
    assert command_of(fault.remedies[0]) == expected
    (warned,) = run(
        cause_named("requirement-conflict"),
        machine(conflict("ml-dtypes", "numpy>=2", '"1.21.5"') + in_the_way),
    ).findings
    assert [command_of(remedy) for remedy in warned.remedies] == [
        f"{expected} && python -m pip check"
    ]


def test_misfits_on_pythonpath_are_not_installed_again() -> None:
    text = f"""
        {PYTHONPATH}
        [target.packages.torch]
        location = "/opt/shared"
        wheel_tags = ["cp310-cp310-linux_x86_64"]
    """
    found = run(cause_named("wheel-does-not-fit"), machine(f"{NO_PROBE}\n{text}")).findings
    commands = [command_of(remedy) for remedy in found[0].remedies]
    assert commands == ['export PYTHONPATH="/opt/mine"']


def test_a_cpu_build_that_no_package_manager_knows_is_deleted_first() -> None:
    known = machine('only = ["torch"]\n[target.frameworks.torch.build]\nkind = "cpu"\n')
    others = tuple(item for item in need(known.target.packages) if item.name != "torch")
    bare = known._replace(target=known.target._replace(packages=Known(others, "test")))
    (described,) = run(cause_named("cpu-only-build"), known).findings
    (finding,) = run(cause_named("cpu-only-build"), bare).findings
    assert finding.remedies[1:] == described.remedies
    assert "First delete or move" in finding.remedies[0].text


TWICE = """
[[target.packages]]
name = "torch"
version = "2.8.0"
[[target.packages]]
name = "torch"
version = "{version}"
"""


def test_two_releases_in_one_folder_are_named_with_that_of_the_files() -> None:
    twice = cause_named("two-releases-installed")
    assert run(twice, machine(TWICE.format(version="2.8.0"))).status == "passed"
    (finding,) = run(twice, machine(TWICE.format(version="2.7.1"))).findings
    assert "torch 2.8.0 and 2.7.1" in finding.message
    assert "the files are those of 2.8.0" in finding.message
    (finding,) = run(twice, machine(NO_PROBE + TWICE.format(version="2.7.1"))).findings
    assert "which of them the files are is not known" in finding.message


def test_two_releases_in_one_folder_explain_nothing_else() -> None:
    report = diagnose(
        machine(TWICE.format(version="2.7.1") + '[target.frameworks.torch.build]\nkind = "cpu"\n')
    )
    found = {finding.cause: finding.explained_by for finding in report.findings}
    assert found["two-releases-installed"] is None
    assert report.standing != "fine"


def test_a_snapshot_with_very_many_packages_is_judged_in_linear_time() -> None:
    start = machine('only = ["tensorflow"]')
    assert isinstance(start.target.packages, Known)
    many = tuple(
        package._replace(version=str(number))
        for number in range(20_000)
        for package in start.target.packages.value
        if package.name == "tensorflow"
    )
    packages = Known(many, "example")
    began = time.process_time()
    run(
        cause_named("two-packages-one-module"),
        start._replace(target=start.target._replace(packages=packages)),
    )
    assert time.process_time() - began < 10
