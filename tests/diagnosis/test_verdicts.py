"""The verdict on each framework and on the machine: what was seen outranks what files suggest."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, machine
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.diagnosis.verdicts import judge_frameworks, judge_machine
from whygpu.model.finding import MACHINE, Confidence, Finding, Severity
from whygpu.model.report import FrameworkReport, FrameworkVerdict, Report
from whygpu.model.snapshot import Snapshot

LEFT_OUT = "the frameworks were not run (--no-probe)"
NO_PROBE = f'probes_left_out = "{LEFT_OUT}"'
ON_CPU = 'operations = [{kind = "cpu"}]'


def finding(
    slug: str,
    subject: str,
    *,
    severity: Severity = "error",
    confidence: Confidence = "certain",
    explained_by: str | None = None,
) -> Finding:
    cause = cause_named(slug)
    return Finding(
        code=cause.code,
        cause=slug,
        severity=severity,
        subject=subject,
        message=slug,
        evidence=(),
        remedies=(),
        effect=cause.effect,
        confidence=confidence,
        explained_by=explained_by,
    )


def judge(snapshot: Snapshot, *findings: Finding) -> dict[str, FrameworkReport]:
    return {report.name: report for report in judge_frameworks(snapshot, findings)}


def test_a_framework_that_computed_on_the_gpu_uses_it() -> None:
    reports = judge(machine())
    assert {name: report.verdict for name, report in reports.items()} == {
        "tensorflow": "gpu",
        "keras": "gpu",
        "jax": "gpu",
        "torch": "gpu",
    }
    assert reports["torch"].summary == "computes on NVIDIA RTX A6000"
    assert reports["keras"].summary == "TensorFlow backend: computes on NVIDIA RTX A6000"


def test_a_framework_cannot_leave_unused_what_is_not_there() -> None:
    """Without a GPU, a fault of a framework is worth telling, and is not why none is used."""
    bare = machine('start = "no-gpu"')
    reports = judge_frameworks(bare, [])
    fault = finding("keras-tf-version-mismatch", "keras", confidence="likely")
    verdict, headline = judge_machine(bare, [fault], reports)
    assert (verdict, headline.rpartition("; ")[2]) == ("no-gpu", "but see below")
    verdict, _ = judge_machine(bare, [finding("docker-no-gpu-runtime", MACHINE)], reports)
    assert verdict == "cpu"


def test_the_headline_blames_what_concerns_the_frameworks_it_names() -> None:
    report = diagnose(
        machine(
            """
            only = ["torch", "jax"]
            [target.frameworks.torch.build]
            kind = "cpu"
            [probes.torch]
            operations = [{kind = "cpu"}]
            """
        ),
        catalogue(),
    )
    other = finding("driver-too-old-for-cuda", "jax")
    _, headline = judge_machine(report.snapshot, [other, *report.findings], report.frameworks)
    assert headline == "PyTorch does not use the GPU (JAX does) (WG301 cpu-only-build)"


def test_a_gpu_that_was_computed_on_is_there() -> None:
    bare = machine('start = "no-gpu"\nonly = ["torch", "jax"]')
    reports = [
        FrameworkReport("jax", "1", "gpu", (), ""),
        FrameworkReport("torch", "1", "cpu", (), ""),
    ]
    assert judge_machine(bare, [], reports) == ("cpu", "PyTorch does not use the GPU (JAX does)")


def test_what_cannot_be_told_of_one_framework_does_not_hide_what_another_does() -> None:
    reports = [
        FrameworkReport("jax", "1", "gpu", (), ""),
        FrameworkReport("torch", "1", "unknown", (), "it was not run"),
    ]
    assert judge_machine(machine(), [], reports) == (
        "unknown",
        "cannot tell whether PyTorch uses the GPU (JAX does): it was not run",
    )


def test_nothing_to_fix_is_not_said_beside_a_warning() -> None:
    bare = machine('start = "no-gpu"\nonly = []')
    assert judge_machine(bare, [], [])[1].endswith("nothing to fix")
    warning = finding("requirement-conflict", "torch", severity="warning")
    assert judge_machine(bare, [warning], [])[1].endswith("but see below")


def test_information_alone_leaves_nothing_to_fix() -> None:
    bare = machine('start = "no-gpu"\nonly = []')
    hint = finding("requirement-conflict", "torch", severity="info")
    assert judge_machine(bare, [hint], [])[1].endswith("nothing to fix")


@each(
    ("gaps", "headline"),
    [
        ((), "PyTorch uses the GPU"),
        (
            ("no /dev",),
            "PyTorch uses the GPU; but not everything could be checked: no /dev",
        ),
        (
            ("no /dev", "no /sys"),
            "PyTorch uses the GPU; but not everything could be checked: no /dev "
            "(and 1 more, below)",
        ),
        (
            ("no /dev", "no /sys", "no /proc"),
            "PyTorch uses the GPU; but not everything could be checked: no /dev "
            "(and 2 more, below)",
        ),
    ],
)
def test_a_good_headline_names_what_could_not_be_looked_at(
    gaps: tuple[str, ...], headline: str
) -> None:
    reports = [FrameworkReport("torch", "1", "gpu", (), "")]
    assert judge_machine(machine(), [], reports, gaps) == ("gpu", headline)


def test_the_headline_blames_a_root_and_nothing_that_follows_from_it_or_is_a_warning() -> None:
    warned = finding("requirement-conflict", "torch", severity="warning")
    follower = finding("cudnn-missing", "torch", explained_by="WG301")
    root = finding("cpu-only-build", "torch")
    codes = (warned.code, follower.code, root.code)
    reports = [FrameworkReport("torch", "1", "cpu", codes, "")]
    verdict = judge_machine(machine(), [warned, follower, root], reports)
    assert verdict == ("cpu", f"PyTorch does not use the GPU ({root.code} cpu-only-build)")


UNSEEN_GPU = "nothing_seen = true"


@each(
    ("because", "verdict"),
    [((), "unknown"), (("WG301",), "cpu")],
)
def test_work_on_the_cpu_without_a_reason_is_no_fault_where_the_gpu_could_not_be_seen(
    because: tuple[str, ...], verdict: str
) -> None:
    reports = [FrameworkReport("torch", "1", "cpu", because, "")]
    seen = judge_machine(machine(UNSEEN_GPU), [], reports)
    assert seen[0] == verdict
    assert ("cannot tell whether there is a GPU" in seen[1]) is (verdict == "unknown")


def test_a_framework_at_work_on_the_gpu_needs_no_other_proof_of_it() -> None:
    reports = [FrameworkReport("torch", "1", "gpu", (), "")]
    assert judge_machine(machine(UNSEEN_GPU), [], reports) == ("gpu", "PyTorch uses the GPU")


def test_without_a_gpu_a_framework_that_cannot_be_judged_leaves_the_machine_unknown() -> None:
    reports = [FrameworkReport("torch", "1", "unknown", (), "its probe was stopped")]
    assert judge_machine(machine('start = "no-gpu"'), [], reports) == (
        "unknown",
        "this machine has no GPU; cannot tell whether PyTorch works: its probe was stopped",
    )


def test_without_a_gpu_a_framework_that_was_not_run_leaves_the_machine_unknown() -> None:
    reports = [FrameworkReport(name, "1", "cpu", (), "") for name in ("torch", "cupy")]
    bare = machine('start = "no-gpu"\nprobes_left_out = "--no-probe"')
    assert judge_machine(bare, [], reports[:1]) == (
        "unknown",
        "this machine has no GPU; whether PyTorch works was not tried: --no-probe",
    )
    verdict, headline = judge_machine(machine('start = "no-gpu"'), [], reports[1:])
    assert verdict == "unknown"
    assert headline.endswith("was not tried: whygpu has no probe for CuPy")


def test_without_a_gpu_only_what_was_seen_at_work_is_said_to_run() -> None:
    names = ("torch", "cupy")
    reports = [FrameworkReport(name, "1", "cpu", (), "") for name in names]
    _, headline = judge_machine(machine('start = "no-gpu"'), [], reports)
    assert headline == "this machine has no GPU; PyTorch runs on the CPU; nothing to fix"


def test_a_framework_that_whygpu_cannot_run_decides_where_there_is_no_other() -> None:
    reports = [FrameworkReport("cupy", "1", "unknown", (), "it was not run")]
    verdict, headline = judge_machine(machine(), [], reports)
    assert (verdict, headline) == (
        "unknown",
        "cannot tell whether CuPy uses the GPU: it was not run",
    )


def test_a_fault_without_effect_does_not_hide_a_gpu() -> None:
    bare = machine('start = "no-gpu"')
    harmless = finding("docker-no-gpu-runtime", MACHINE)._replace(effect="none")
    assert judge_machine(bare, [harmless], judge_frameworks(bare, []))[0] == "no-gpu"


def test_a_build_for_the_maker_of_the_gpu_that_is_there_shows_that_there_is_one() -> None:
    bare = machine('start = "no-gpu"')
    other_maker = finding("non-nvidia-backend", "torch")._replace(effect="cpu")
    assert judge_machine(bare, [other_maker], judge_frameworks(bare, []))[0] == "cpu"


def test_without_frameworks_a_warning_does_not_say_that_the_gpu_is_unusable() -> None:
    warning = finding("requirement-conflict", MACHINE, severity="warning")
    verdict, headline = judge_machine(machine("only = []"), [warning], [])
    assert (verdict, "could not be used" in headline) == ("unknown", False)


def test_the_machines_fault_is_no_concern_of_a_cpu_build() -> None:
    seen = machine(
        """
        probes_left_out = "--no-probe"
        [target.frameworks.torch.build]
        kind = "cpu"
        """
    )
    reports = judge(seen, finding("no-nvidia-driver", MACHINE))
    assert reports["torch"].because == ()
    assert reports["jax"].because == (cause_named("no-nvidia-driver").code,)


def test_a_gpu_without_a_description_is_called_by_its_name() -> None:
    seen = machine(
        """
        [probes.torch]
        devices = [{name = "cuda:0", kind = "gpu", description = ""}]
        """
    )
    assert judge(seen)["torch"].summary == "computes on cuda:0"


def test_reports_come_in_the_order_of_the_frameworks() -> None:
    assert list(judge(machine())) == ["tensorflow", "keras", "jax", "torch"]


def test_a_verdict_of_gpu_names_no_culprit() -> None:
    assert judge(machine(), finding("cudnn-missing", "torch"))["torch"].because == ()


def probe_example(text: str) -> Snapshot:
    return machine(f'only = ["torch"]\n[probes.torch]\noperations = []\n{text}')


@each(
    ("text", "verdict", "summary"),
    [
        ("", "unknown", "its probe finished without computing anything"),
        (
            'ended = "signal"\nstage = "import"\nhow = "SIGTERM"',
            "unknown",
            "stopped from outside at import: SIGTERM",
        ),
        (
            'ended = "not-started"\nhow = "Too many open files"',
            "unknown",
            "the interpreter could not be started: Too many open files",
        ),
        (
            'ended = "cut-short"\nstage = "import"\nhow = "120 s, and was still working"',
            "unknown",
            "not finished after 120 s, and was still working (at: import)",
        ),
        (
            'ended = "exception"\nstage = "import"\nhow = "ImportError: x"',
            "broken",
            "fails at import: ImportError: x",
        ),
        (
            'ended = "signal"\nstage = "matmul cuda:0"\nhow = "SIGSEGV"',
            "broken",
            "fails at matmul cuda:0: SIGSEGV",
        ),
        ('ended = "exit"\nstage = "import"\nhow = "exit code 1"', "broken", "exit code 1"),
        (
            'ended = "over-limit"\nstage = "import"\nhow = "more than 2 GiB of main memory"',
            "unknown",
            "stopped at import: it used more than 2 GiB of main memory",
        ),
        (
            'ended = "timed-out"\nstage = "devices"\nhow = "120 s"',
            "broken",
            "does not finish within 120 s (at: devices)",
        ),
        (
            "[[probes.torch.operations]]\n"
            'kind = "gpu"\noperation = "matmul"\nrequested = "cuda:0"\n'
            'ran_on = {unknown = "CUDA error"}\ncorrect = {unknown = "CUDA error"}',
            "broken",
            "matmul on cuda:0 fails: CUDA error",
        ),
        (
            "[[probes.torch.operations]]\n"
            'kind = "gpu"\noperation = "matmul"\nrequested = "cuda:0"\n'
            'ran_on = "cuda:0"\ncorrect = false',
            "broken",
            "its result is wrong",
        ),
        (
            "[[probes.torch.operations]]\n"
            'kind = "cpu"\noperation = "matmul"\nrequested = "cpu"\n'
            'ran_on = "cpu"\ncorrect = false',
            "broken",
            "matmul on cpu fails: its result is wrong",
        ),
        (
            "[[probes.torch.operations]]\n"
            'kind = "cpu"\noperation = "matmul"\nrequested = "cpu"\n'
            'ran_on = "cpu"\ncorrect = {unknown = "no NumPy"}',
            "unknown",
            "the result of matmul on cpu was not checked: no NumPy",
        ),
        (
            "[[probes.torch.operations]]\n"
            'kind = "other"\noperation = "matmul"\nrequested = "tpu:0"\n'
            'ran_on = "tpu:0"\ncorrect = true',
            "unknown",
            "neither a CPU nor a GPU",
        ),
        ('[[probes.torch.operations]]\nkind = "cpu"', "cpu", "computes on the CPU"),
    ],
)
def test_each_end_of_a_probe_has_its_verdict(
    text: str, verdict: FrameworkVerdict, summary: str
) -> None:
    if text.startswith("[["):
        snapshot = machine(f'only = ["torch"]\n{text}')
    else:
        snapshot = probe_example(text)
    report = judge(snapshot)["torch"]
    assert report.verdict == verdict
    assert summary in report.summary


def test_one_operation_that_fails_on_the_gpu_breaks_a_framework_whose_others_succeed() -> None:
    operations = "".join(
        f"""
        [[probes.torch.operations]]
        operation = "{name}"
        requested = "cuda:0"
        kind = "gpu"
        ran_on = {ran_on}
        correct = {correct}
        """
        for name, ran_on, correct in (
            ("matmul", '"cuda:0"', "true"),
            ("convolution", '{unknown = "cuDNN"}', '{unknown = "cuDNN"}'),
        )
    )
    report = judge(machine(f'only = ["torch"]\n{operations}'))["torch"]
    assert report.verdict == "broken"
    assert report.summary == "convolution on cuda:0 fails: cuDNN"


@each(
    ("findings", "verdict", "because"),
    [
        ((), "unknown", ()),
        ((finding("protobuf-conflict", "tensorflow"),), "broken", ("WG308",)),
        ((finding("cudnn-missing", "tensorflow"),), "cpu", ("WG202",)),
        ((finding("no-nvidia-driver", MACHINE),), "cpu", ("WG101",)),
        (
            (finding("cudnn-missing", "tensorflow", confidence="likely"),),
            "unknown",
            ("WG202",),
        ),
        ((finding("cudnn-missing", "torch"),), "unknown", ()),
        ((finding("cudnn-missing", "tensorflow", severity="warning"),), "unknown", ()),
        ((finding("gpu-unused", "tensorflow", explained_by="WG202"),), "cpu", ("WG202",)),
        ((finding("requirement-conflict", "tensorflow"),), "unknown", ()),
        (
            (finding("cudnn-missing", "tensorflow"), finding("protobuf-conflict", "tensorflow")),
            "broken",
            ("WG202", "WG308"),
        ),
    ],
)
def test_without_a_probe_certain_findings_decide(
    findings: tuple[Finding, ...], verdict: FrameworkVerdict, because: tuple[str, ...]
) -> None:
    report = judge(machine(f'only = ["tensorflow"]\n{NO_PROBE}'), *findings)["tensorflow"]
    assert report.verdict == verdict
    assert report.because == because


def test_without_a_probe_a_framework_with_nothing_against_it_is_unknown_and_says_why() -> None:
    report = judge(machine(f'only = ["torch"]\n{NO_PROBE}'))["torch"]
    assert report.summary == f"nothing found against it, but {LEFT_OUT}"


def test_without_a_probe_a_cpu_build_runs_on_the_cpu() -> None:
    text = f'only = ["torch"]\n{NO_PROBE}\n[target.frameworks.torch.build]\nkind = "cpu"'
    assert judge(machine(text))["torch"].verdict == "cpu"


def test_without_a_probe_and_without_a_gpu_there_is_only_the_cpu() -> None:
    report = judge(machine(f'start = "no-gpu"\nonly = ["torch"]\n{NO_PROBE}'))["torch"]
    assert (report.verdict, report.summary) == ("cpu", "no GPU to run on")


def test_a_framework_that_whygpu_cannot_run_is_told_by_its_files() -> None:
    report = judge(machine('[target.frameworks.cupy]\ndistribution = "cupy-cuda12x"'))["cupy"]
    assert report.verdict == "unknown"
    assert "no probe for CuPy" in report.summary


def test_keras_without_a_probe_is_as_well_off_as_its_backend() -> None:
    snapshot = machine(f'only = ["tensorflow", "keras"]\n{NO_PROBE}')
    reports = judge(snapshot, finding("cudnn-missing", "tensorflow"))
    assert reports["keras"].verdict == "cpu"
    assert reports["keras"].because == ("WG202",)
    assert reports["keras"].summary == "as its backend TensorFlow"


def test_keras_with_a_probe_is_judged_by_it_and_not_by_its_backend() -> None:
    reports = judge(machine(f"[probes.keras]\n{ON_CPU}"))
    assert reports["tensorflow"].verdict == "gpu"
    assert reports["keras"].verdict == "cpu"


def test_keras_on_the_cpu_with_its_backend_takes_over_the_backends_reason() -> None:
    snapshot = machine(f"[probes.keras]\n{ON_CPU}\n[probes.tensorflow]\n{ON_CPU}")
    reports = judge(snapshot, finding("library-path-conflict", "tensorflow"))
    assert reports["keras"].because == reports["tensorflow"].because == ("WG203",)


def test_keras_with_a_reason_of_its_own_keeps_it() -> None:
    snapshot = machine(f"[probes.keras]\n{ON_CPU}\n[probes.tensorflow]\n{ON_CPU}")
    reports = judge(
        snapshot,
        finding("library-path-conflict", "tensorflow"),
        finding("keras-backend-without-gpu", "keras"),
    )
    assert reports["keras"].because == ("WG601",)


def test_a_broken_keras_on_a_healthy_backend_stays_broken() -> None:
    text = f"{NO_PROBE}"
    reports = judge(machine(text), finding("keras-backend-missing", "keras"))
    assert reports["keras"].verdict == "broken"
    assert reports["tensorflow"].verdict == "unknown"


def test_keras_that_was_not_run_is_not_said_to_use_the_gpu_that_its_backend_uses() -> None:
    report = judge(machine("[probes.keras]\nremove = true"))["keras"]
    assert report.verdict == "unknown"
    assert report.summary == "not run itself; its backend is: computes on NVIDIA RTX A6000"


def test_keras_follows_a_backend_that_is_listed_after_it() -> None:
    snapshot = machine(f'{NO_PROBE}\n[target.frameworks.keras.keras]\nbackend = "jax"')
    reports = judge(snapshot, finding("cudnn-missing", "jax"))
    assert (reports["keras"].verdict, reports["keras"].because) == ("cpu", ("WG202",))


def test_keras_whose_backend_is_not_installed_is_judged_alone() -> None:
    text = f'only = ["keras"]\n{NO_PROBE}'
    assert judge(machine(text))["keras"].verdict == "unknown"
    missing = judge(machine(text), finding("keras-backend-missing", "keras"))
    assert missing["keras"].verdict == "broken"
    probed = judge(machine(f'only = ["keras"]\n[probes.keras]\n{ON_CPU}'))["keras"]
    assert (probed.verdict, probed.because) == ("cpu", ())


def test_keras_on_the_gpu_is_not_blamed_for_its_backend_on_the_cpu() -> None:
    snapshot = machine(f"[probes.tensorflow]\n{ON_CPU}")
    reports = judge(snapshot, finding("library-path-conflict", "tensorflow"))
    assert (reports["keras"].verdict, reports["keras"].because) == ("gpu", ())


def test_the_backend_is_the_one_that_the_probe_saw() -> None:
    snapshot = machine(f'[probes.keras]\nfacts = [["backend", "jax"]]\n{ON_CPU}')
    assert judge(snapshot)["keras"].summary == "JAX backend: computes on the CPU"


def verdict_of(snapshot: Snapshot, *findings: Finding) -> tuple[str, str]:
    frameworks = judge_frameworks(snapshot, findings)
    return judge_machine(snapshot, findings, frameworks)


def test_all_on_the_gpu() -> None:
    assert verdict_of(machine()) == ("gpu", "TensorFlow, Keras, JAX and PyTorch use the GPU")


def test_one_framework_alone_is_spoken_of_in_the_singular() -> None:
    assert verdict_of(machine('only = ["torch"]')) == ("gpu", "PyTorch uses the GPU")


def test_one_on_the_cpu_makes_the_machine_cpu_and_says_who_does_use_it() -> None:
    verdict, headline = verdict_of(
        machine(f'only = ["torch", "jax"]\n[probes.jax]\n{ON_CPU}'),
        finding("jax-plugin-mismatch", "jax"),
    )
    assert verdict == "cpu"
    assert headline.startswith("JAX does not use the GPU (PyTorch does)")
    assert "WG310" in headline


def test_one_broken_framework_outranks_one_on_the_cpu() -> None:
    snapshot = machine(
        f'only = ["torch", "jax"]\n[probes.jax]\n{ON_CPU}\n'
        '[probes.torch]\noperations = []\nended = "signal"\nhow = "SIGSEGV"'
    )
    verdict, headline = verdict_of(snapshot)
    assert verdict == "broken"
    assert headline == "PyTorch does not work"


def test_a_cpu_machine_with_a_healthy_installation_has_nothing_to_fix() -> None:
    assert verdict_of(machine('start = "no-gpu"')) == (
        "no-gpu",
        "this machine has no GPU; everything runs on the CPU; nothing to fix",
    )


def test_a_broken_import_on_a_cpu_machine_is_still_broken() -> None:
    snapshot = machine(
        'start = "no-gpu"\n[probes.torch]\noperations = []\nended = "exception"\nhow = "x"'
    )
    assert verdict_of(snapshot)[0] == "broken"


def test_without_probes_the_machine_is_unknown_and_the_headline_says_why() -> None:
    verdict, headline = verdict_of(machine(NO_PROBE))
    assert verdict == "unknown"
    assert headline.endswith(LEFT_OUT)


def test_a_framework_without_a_probe_does_not_make_the_machine_unknown() -> None:
    snapshot = machine('only = ["torch"]\n[target.frameworks.cupy]\ndistribution = "cupy"')
    assert verdict_of(snapshot)[0] == "gpu"


def test_no_frameworks_on_a_machine_with_a_gpu() -> None:
    assert verdict_of(machine("only = []")) == (
        "unknown",
        "no deep-learning framework is installed in the examined environment",
    )


def test_no_frameworks_and_no_driver_is_still_worth_mending() -> None:
    verdict, headline = verdict_of(machine("only = []"), finding("no-nvidia-driver", MACHINE))
    assert verdict == "cpu"
    assert "WG101" in headline


def test_a_build_for_another_makers_gpu_that_is_there_and_not_used_is_on_the_cpu() -> None:
    snapshot = machine(
        """
        start = "amd"
        [target.frameworks.torch.build]
        kind = "rocm"
        """
    )
    report = diagnose(snapshot, ())
    assert report.verdict == "cpu"
    assert "has no GPU" not in report.headline


def test_an_interpreter_that_does_not_start_is_never_nothing_to_fix() -> None:
    report = whole('start = "no-gpu"\nonly = []\n[target]\ninterpreter = {unknown = "exit code 1"}')
    assert (report.verdict, report.headline) == ("unknown", "cannot tell: exit code 1")


def test_no_frameworks_and_no_gpu_is_nothing_to_fix() -> None:
    verdict, headline = verdict_of(machine('start = "no-gpu"\nonly = []'))
    assert verdict == "no-gpu"
    assert "nothing to fix" in headline


@pytest.mark.parametrize("start", ["healthy", "no-gpu"])
def test_a_target_that_could_not_be_read_is_unknown(start: str) -> None:
    snapshot = machine(f'start = "{start}"\n[target.frameworks]\nunknown = "it does not start"')
    verdict, headline = verdict_of(snapshot)
    assert verdict == "unknown"
    assert "it does not start" in headline
    assert judge(snapshot) == {}


def whole(text: str) -> Report:
    return diagnose(machine(text), catalogue())


def test_keras_on_jax_that_is_kept_on_the_cpu_while_torch_has_the_gpu() -> None:
    report = whole(
        f"""
        only = ["keras", "jax", "torch"]
        [environment.variables.KERAS_BACKEND]
        value = "jax"
        [environment.variables.JAX_PLATFORMS]
        value = "cpu"
        [target.frameworks.keras.keras]
        backend = "jax"
        [probes.keras]
        facts = [["backend", "jax"]]
        {ON_CPU}
        [probes.jax]
        {ON_CPU}
        """
    )
    because = {item.name: (item.verdict, item.because) for item in report.frameworks}
    assert because == {
        "keras": ("cpu", ("WG403",)),
        "jax": ("cpu", ("WG403",)),
        "torch": ("gpu", ()),
    }
    assert report.verdict == "cpu"


def test_a_backend_that_cannot_be_imported_is_one_root_cause_for_keras_too() -> None:
    how = "ImportError: cannot import name 'runtime_version' from 'google.protobuf'"
    failing = f'ended = "exception"\nstage = "import"\n{ON_CPU}\nhow = "{how}"\nfacts = []'
    report = whole(
        f'only = ["tensorflow", "keras"]\n[probes.tensorflow]\n{failing}\n[probes.keras]\n{failing}'
    )
    assert [item.cause for item in report.root_causes] == ["protobuf-conflict"]
    assert {item.name: item.because for item in report.frameworks} == {
        "tensorflow": ("WG308",),
        "keras": ("WG308",),
    }
    assert report.verdict == "broken"
