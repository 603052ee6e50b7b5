"""GPU code and GPUs: mixtures, visibility, and what the three causes share out among them."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu import diagnose

TOO_OLD = cause_named("compute-capability-too-old")
TOO_NEW = cause_named("compute-capability-too-new")
COMPILED = cause_named("kernels-compiled-from-ptx")


def gpu(capability: str, *codes: str, framework: str = "torch", more: str = "") -> str:
    listed = ", ".join(f'"{code}"' for code in codes)
    return f"""
only = ["{framework}"]
[target.frameworks.{framework}.build]
architectures = [{listed}]
[driver.gpus.0]
compute_capability = "{capability}"
{more}
"""


@each(
    ("capability", "codes", "claimed"),
    [
        ("8.6", ("sm_80",), None),
        ("8.6", ("sm_86", "compute_86"), None),
        ("8.6", ("sm_89",), "too-old"),
        ("8.6", ("sm_90", "compute_90"), "too-old"),
        ("8.6", ("sm_75",), "too-new"),
        ("8.6", ("sm_75", "compute_75"), "compiled"),
        ("9.0", ("sm_90a",), None),
        ("10.0", ("sm_90a", "compute_90a"), "too-new"),
    ],
)
def test_exactly_one_cause_claims_a_gpu(
    capability: str, codes: tuple[str, ...], claimed: str | None
) -> None:
    snapshot = machine(gpu(capability, *codes))
    found = {
        name
        for name, cause in (("too-old", TOO_OLD), ("too-new", TOO_NEW), ("compiled", COMPILED))
        if run(cause, snapshot).findings
    }
    assert found == ({claimed} if claimed else set())


SECOND = '[driver.gpus.1]\nname = "NVIDIA GeForce GT 710"\ncompute_capability = "3.5"\n'


def test_an_old_second_card_is_no_more_than_a_warning() -> None:
    (finding,) = run(TOO_OLD, machine(gpu("8.6", "sm_80", more=SECOND))).findings
    assert finding.severity == "warning"
    assert "NVIDIA GeForce GT 710 (compute capability 3.5)" in finding.message
    assert "it has code for other GPUs of this machine" in finding.message
    assert "A6000" not in finding.message


def test_gpus_that_are_hidden_do_not_count() -> None:
    hidden = '[environment.visible_gpus]\ntext = "0"\nvisible = [0]\nignored = []\n'
    snapshot = machine(gpu("8.6", "sm_80", more=SECOND + hidden))
    assert run(TOO_OLD, snapshot).status == "passed"


def test_alike_gpus_are_counted() -> None:
    twin = '[driver.gpus.1]\nname = "NVIDIA RTX A6000"\ncompute_capability = "8.6"\n'
    (finding,) = run(TOO_NEW, machine(gpu("8.6", "sm_75", more=twin))).findings
    assert "2 x NVIDIA RTX A6000 (compute capability 8.6)" in finding.message
    assert finding.severity == "error"


def test_one_gpu_unknown_does_not_hide_the_other() -> None:
    lost = '[driver.gpus.1]\nname = "B"\ncompute_capability = {unknown = "GPU is lost"}\n'
    outcome = run(TOO_NEW, machine(gpu("8.6", "sm_75", more=lost)))
    assert len(outcome.findings) == 1
    assert outcome.reasons == ("compute capability of GPU 1 (B): GPU is lost",)


def test_a_code_of_another_form_is_a_gap() -> None:
    assert run(TOO_NEW, machine(gpu("8.6", "gfx90a"))).status == "undetermined"


def test_tensorflow_is_offered_a_release_that_serves_the_gpu() -> None:
    snapshot = machine(gpu("5.2", "sm_60", "compute_90", framework="tensorflow"))
    (finding,) = run(TOO_OLD, snapshot).findings
    command = command_of(finding.remedies[0], snapshot)
    assert command == "python -m pip install 'tensorflow[and-cuda]==2.16.2'"


@each(
    ("capability", "release"),
    [("6.1", "torch==2.8.0 --index-url"), ("7.0", "torch==2.8.0"), ("3.5", None)],
)
def test_pytorch_is_offered_a_release_with_code_for_the_gpu(
    capability: str, release: str | None
) -> None:
    snapshot = machine(gpu(capability, "sm_75", "sm_90"))
    (finding,) = run(TOO_OLD, snapshot).findings
    command = command_of(finding.remedies[0], snapshot) or ""
    assert ("install" in command) is (release is not None)
    assert (release or "") in command


def test_the_newest_ptx_that_fits_is_named() -> None:
    codes = ("sm_35", "compute_35", "compute_70", "compute_90")
    (finding,) = run(COMPILED, machine(gpu("8.6", *codes))).findings
    assert "(compute_70)" in finding.message


def test_a_driver_older_than_the_ptx_may_refuse_it() -> None:
    text = gpu("12.0", "sm_90", "compute_90", more='[driver]\ncuda = "12.4"\n')
    (finding,) = run(COMPILED, machine(text)).findings
    assert "CUDA 12.4" in finding.message
    assert "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in finding.message
    assert "driver" in finding.remedies[0].text


def test_jax_compiles_most_of_its_code_anyway() -> None:
    text = gpu("12.0", "sm_90", "compute_90", framework="jax")
    (finding,) = run(COMPILED, machine(text)).findings
    assert finding.severity == "info"


def test_no_driver_no_judgement() -> None:
    snapshot = machine('only = ["torch"]\n[driver]\ngpus = {absent = "no NVIDIA driver"}\n')
    assert run(TOO_OLD, snapshot).status == "not-applicable"


@each(
    ("capability", "reported"),
    [("12.0", True), ("10.0", False)],
)
def test_what_users_report_about_a_gpu_is_said(capability: str, reported: bool) -> None:
    codes = ("sm_90", "compute_90")
    (finding,) = run(COMPILED, machine(gpu(capability, *codes, framework="tensorflow"))).findings
    assert ("users report that it fails" in finding.message) is reported
    assert ("nvcr.io" in finding.remedies[0].text) is reported


def test_jax_keeps_its_release_with_the_plugin_that_still_has_the_gpu() -> None:
    snapshot = machine("""
        only = ["jax"]
        [driver.gpus.0]
        name = "Tesla V100-SXM2-16GB"
        compute_capability = "7.0"
        [target.frameworks.jax]
        version = "0.8.0"
        plugins = [
            {name = "jax-cuda13-plugin", version = "0.8.0"},
            {name = "jax-cuda13-pjrt", version = "0.8.0"},
        ]
        [target.frameworks.jax.build]
        cuda = "13"
        architectures = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120"]
        [target.packages.jax]
        version = "0.8.0"
    """)
    (finding,) = run(cause_named("compute-capability-too-old"), snapshot).findings
    assert command_of(finding.remedies[0], snapshot) == (
        "python -m pip uninstall -y jax-cuda13-plugin jax-cuda13-pjrt && "
        "python -m pip install 'jax[cuda12]==0.8.0' nvidia-cudnn-cu12==9.10.2.21"
    )


@each(
    ("slug", "first", "codes"),
    [
        ("compute-capability-too-old", "5.2", ("sm_75", "sm_86")),
        ("compute-capability-too-new", "12.0", ("sm_75", "sm_80")),
    ],
)
def test_a_card_without_code_that_the_framework_chose_is_the_reason(
    slug: str, first: str, codes: tuple[str, ...]
) -> None:
    """Another card, for which it has code, does not help a program that takes the first one."""
    capable = '[driver.gpus.1]\nname = "NVIDIA RTX 3090"\ncompute_capability = "8.6"\n'
    failed = (
        "[probes.torch]\n"
        'ended = "exception"\n'
        'stage = "matmul cuda:0"\n'
        'how = "CUDA error: no kernel image is available for execution on the device"\n'
        "operations = []\n"
    )
    report = diagnose(machine(gpu(first, *codes, more=capable + failed)))
    assert [(root.cause, root.severity) for root in report.root_causes] == [(slug, "error")]
    assert command_of(report.root_causes[0].remedies[0]) == (
        "export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1"
    )
