"""Who runs ptxas, and what it does not know: Triton's compiler, XLA's, the driver's."""

from __future__ import annotations

from tests.cases import each
from tests.kit import command_of, explained
from whygpu.model.finding import Finding
from whygpu.model.remedy import InstallFramework

PTXAS_ERROR = "triton.runtime.errors.PTXASError: PTXAS error: Internal Triton PTX codegen error\n"


def refused(target: str) -> str:
    return f"ptxas fatal   : Value '{target}' is not defined for option 'gpu-name'\n"


def root(log: str) -> Finding:
    explanation = explained(log)
    assert not explanation.crashed
    assert len(explanation.root_causes) == 1, explanation
    return explanation.root_causes[0]


@each(
    ("target", "release"),
    [
        ("sm_120", "12.8"),
        ("sm_121a", "12.9"),
        ("sm_90a", "11.8"),
        ("sm_80", "11.0"),
        ("sm_103", ""),
    ],
)
def test_the_first_release_that_knows_a_gpu(target: str, release: str) -> None:
    finding = root(PTXAS_ERROR + refused(target))
    assert (finding.code, finding.cause) == ("WG212", "compute-capability-too-new")
    assert f"does not know {target}" in finding.message
    assert (f"CUDA {release} and newer" in finding.message) is bool(release)
    assert ("release " in finding.remedies[1].text) is bool(release)


@each(
    ("log", "code"),
    [
        (refused("sm_120"), "WG303"),
        (
            "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: ptxas exited with non-zero error "
            f"code 65280, output: {refused('sm_120')}",
            "WG303",
        ),
        (
            "torch._dynamo.exc.BackendCompilerFailed: see above\n"
            "2024-01-01 10:00:00.1: W external/xla/xla/stream_executor/cuda/a.cc:1] ptxas a.ptx, "
            "line 5; fatal   : Unsupported .version 8.5; current version is '8.0'\n",
            "WG206",
        ),
        (
            f"{PTXAS_ERROR}ptxas application ptx input, line 9; fatal   : Unsupported .version "
            "7.8; current version is '7.4'\n",
            "WG106",
        ),
        (
            f"{PTXAS_ERROR}{refused('sm_120')}RuntimeError: CUDA error: no kernel image is "
            "available for execution on the device\n",
            "WG303",
        ),
    ],
)
def test_others_run_ptxas_too(log: str, code: str) -> None:
    assert explained(log).root_causes[0].code == code


def test_a_gpu_that_ptxas_no_longer_knows_is_not_too_new_for_triton() -> None:
    codes = [each.code for each in explained(PTXAS_ERROR + refused("sm_37")).root_causes]
    assert "WG212" not in codes


def test_noise_of_another_framework_does_not_hide_that_triton_ran_it() -> None:
    noise = (
        "2024-11-01 10:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] "
        "Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when "
        "one has already been registered\n"
    )
    assert root(noise + PTXAS_ERROR + refused("sm_120")).code == "WG212"


def test_code_that_is_newer_than_ptxas() -> None:
    finding = root(
        f"{PTXAS_ERROR}ptxas /tmp/a.ptx, line 9; fatal   : Unsupported .version 8.4; current "
        "version is '8.0'\nRepro command: /usr/local/cuda-12.0/bin/ptxas -v /tmp/a.ptx\n"
    )
    assert (finding.code, finding.cause) == ("WG212", "ptxas-libdevice-missing")
    assert finding.message == (
        "the ptxas that Triton runs (/usr/local/cuda-12.0/bin/ptxas) is older than Triton: it "
        "supports PTX 8.0, but the code is PTX 8.4"
    )


def test_without_a_reason_it_is_only_possible() -> None:
    finding = root(PTXAS_ERROR)
    assert (finding.cause, finding.confidence) == ("triton-ptxas-too-old", "possible")
    assert "stderr" in (finding.ask or "")


def test_remedies_in_order() -> None:
    log = f"torch==2.5.1\nTRITON_PTXAS_PATH=/opt/ptxas\n{PTXAS_ERROR}{refused('sm_120')}"
    unset, upgrade, other, *rest = root(log).remedies
    assert command_of(unset) == "unset TRITON_PTXAS_PATH"
    assert upgrade.action == InstallFramework("torch", "2.5.1", options=("upgrade",), newer=True)
    assert command_of(other) == "export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas"
    assert not rest
    compiled = root(f"torch._inductor.exc.InductorError: {PTXAS_ERROR}{refused('sm_120')}")
    assert compiled.remedies[0].action == InstallFramework("torch", "", options=("upgrade",))
    assert command_of(compiled.remedies[-1]) == "export TORCHDYNAMO_DISABLE=1"


def test_another_ptxas_does_not_help_if_llvm_does_not_know_the_gpu() -> None:
    finding = root(
        'File "/x/triton/backends/nvidia/compiler.py", line 350, in make_llir\n'
        "'sm_121a' is not a recognized processor for this target (ignoring processor)\n"
    )
    assert "its LLVM does not know sm_121a" in finding.message
    assert len(finding.remedies) == 1


@each(("rest", "severity"), [("step 10 loss 2.3\nstep 20 loss 2.1\n", "warning"), ("", "error")])
def test_a_program_may_go_on_without_compiled_code(rest: str, severity: str) -> None:
    log = f"WARNING torch._dynamo: will not compile this frame\n{refused('sm_120')}{rest}"
    assert root(log).severity == severity
