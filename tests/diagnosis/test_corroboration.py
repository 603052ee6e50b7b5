"""What a machine's facts do to what its log suggests."""

from __future__ import annotations

from tests.kit import machine
from whygpu.api import diagnose
from whygpu.causes import catalogue
from whygpu.diagnosis.corroboration import corroborate
from whygpu.diagnosis.explainer import explain
from whygpu.model.explanation import Explanation
from whygpu.readers.log import read_text

HIDDEN = "RuntimeError: No CUDA GPUs are available"
MISSING_CUDNN = (
    "2023-05-02 10:00:00.000001: W tensorflow/compiler/xla/stream_executor/platform/default/"
    "dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: "
    "cannot open shared object file: No such file or directory\n"
    "2023-05-02 10:00:00.000002: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1956] Cannot "
    "dlopen some GPU libraries. Please make sure the missing libraries mentioned above are "
    "installed properly if you would like to use GPU.\nSkipping registering GPU devices...\n"
)
UNTELLING = "RuntimeError: CUDA something went wrong that nobody has ever seen before"
EMPTY_SELECTION = """
probes_left_out = "--no-probe"
[environment.visible_gpus]
text = ""
visible = []
ignored = []
"""


def here(log: str, toml: str) -> Explanation:
    seen = machine(toml)
    read = read_text(log)._replace(processor=seen.system.cpu)
    return corroborate(explain(read, catalogue()), read, diagnose(seen), catalogue())


def test_the_machine_confirms_one_of_two_and_refutes_the_other() -> None:
    before = explain(read_text(HIDDEN), catalogue())
    assert len(before.root_causes) > 1
    after = here(HIDDEN, EMPTY_SELECTION)
    first = after.root_causes[0]
    assert first.cause == "visible-devices-hides-gpu"
    assert first.confidence == "certain"
    assert first.ask is None
    assert "This machine confirms it" in first.message
    assert after.headline == first.message
    assert {evidence.kind for evidence in first.evidence} == {"log", "machine"}
    assert "no-nvidia-driver" not in [finding.cause for finding in after.root_causes]
    assert "no-nvidia-driver" in [finding.cause for finding in after.symptoms]


def test_what_a_healthy_machine_does_not_show_is_only_possible() -> None:
    after = here(MISSING_CUDNN, "")
    assert after.verdict == "found"
    assert after.root_causes[-1].confidence == "possible"
    assert "does not show it now" in after.root_causes[-1].message


def test_it_says_which_copy_is_here_instead() -> None:
    first = here(MISSING_CUDNN, "").root_causes[0]
    assert "libcudnn.so.9" in first.message
    assert "cannot serve as libcudnn.so.8" in first.message


def test_a_log_that_does_not_tell_leaves_the_word_to_the_machine() -> None:
    assert explain(read_text(UNTELLING), catalogue()).verdict == "unknown"
    after = here(UNTELLING, EMPTY_SELECTION)
    assert after.verdict == "found"
    assert after.root_causes[0].cause == "visible-devices-hides-gpu"
    assert after.root_causes[0].confidence == "possible"
    assert here(UNTELLING, "").verdict == "unknown"


REFUSED = "step 1 loss: 0.4\nIllegal instruction (core dumped)\n"
TRIED = """
[system.cpu]
instruction_sets = ["amx_tile", "avx"]
trials = [{{feature = "avx", outcome = "runs"}}, {{feature = "amx_tile", outcome = "{amx}"}}]
"""


def test_an_illegal_instruction_is_laid_on_what_traps_on_the_machine() -> None:
    after = here(REFUSED, TRIED.format(amx="traps"))
    assert [root.cause for root in after.root_causes] == ["listed-instruction-traps"]
    assert "lists amx_tile, but executing it fails here" in after.headline
    assert after.headline.count("fails here") == 1


def test_an_illegal_instruction_on_a_machine_where_all_work_is_not_explained() -> None:
    after = here(REFUSED, TRIED.format(amx="runs"))
    assert (after.verdict, after.root_causes) == ("unknown", ())
    assert "avx and amx_tile can be executed here" in after.headline


def test_an_illegal_instruction_on_a_machine_without_avx() -> None:
    after = here(REFUSED, '[system.cpu]\ninstruction_sets = ["sse4_2"]')
    assert [root.cause for root in after.root_causes] == ["avx-missing-sigill"]
