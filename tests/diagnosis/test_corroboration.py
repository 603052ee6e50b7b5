"""What a machine's facts do to what its log suggests."""

from __future__ import annotations

from tests.cases import each
from tests.diagnosis.test_engine import find, make
from tests.kit import machine
from whygpu.api import diagnose
from whygpu.causes import catalogue
from whygpu.diagnosis import engine
from whygpu.diagnosis.corroboration import corroborate
from whygpu.diagnosis.explainer import explain
from whygpu.model.cause import Cause
from whygpu.model.explanation import Explanation, LogVerdict
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap
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
    assert "cannot replace libcudnn.so.8" in first.message


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


NO_PROBE = 'probes_left_out = "--no-probe"'
LINE = Evidence("log", "line 1", "the driver is old", 1)


def suggests(code: str, slug: str, *evidence: Evidence) -> Finding:
    """What a log suggests, by causes made for the purpose."""
    found = find(code, slug, MACHINE)
    return found._replace(evidence=evidence or (LINE,), confidence="likely", ask="Which driver?")


def weighed(
    roots: list[Finding], causes: list[Cause], toml: str = NO_PROBE, log: str = "the driver is old"
) -> Explanation:
    """The explanation with these root causes, on a machine where these causes have their say."""
    read = read_text(log)
    verdict: LogVerdict = "found" if roots else "unknown"
    before = explain(read, ())._replace(
        verdict=verdict, root_causes=tuple(roots), headline="before"
    )
    catalogue_of_both = [*causes, *(make(root.code, root.cause) for root in roots)]
    known = {cause.code: cause for cause in reversed(catalogue_of_both)}
    return corroborate(before, read, engine.diagnose(machine(toml), causes), list(known.values()))


def words(explanation: Explanation) -> list[tuple[str, str]]:
    return [(finding.cause, finding.confidence) for finding in explanation.root_causes]


def test_what_the_machine_shows_too_is_certain_and_comes_first() -> None:
    old, other = suggests("WG106", "old"), suggests("WG199", "other")
    shown = find("WG106", "old", MACHINE)._replace(evidence=(Evidence("machine", "NVML", "470"),))
    after = weighed([other, old], [make("WG106", "old", shown)])
    assert words(after) == [("old", "certain"), ("other", "likely")]
    first = after.root_causes[0]
    assert first.ask is None
    assert [evidence.where for evidence in first.evidence] == ["line 1", "NVML"]
    assert after.headline == first.message


def test_what_the_machine_shows_as_a_consequence_is_replaced_by_its_reason() -> None:
    deep = make("WG101", "deep", find("WG101", "deep", MACHINE), explains=("old",))
    same = make("WG106", "old", find("WG106", "old", MACHINE))
    for causes in ([deep], [deep, same]):
        after = weighed([suggests("WG106", "old")], causes)
        (root,) = after.root_causes
        assert root.cause == "deep"
        assert "This machine shows why: deep of machine" in root.message
        assert root.ask is None


def test_a_warning_on_the_machine_does_not_explain_what_ended_a_program() -> None:
    warned = find("WG101", "deep", MACHINE, severity="warning")
    after = weighed([suggests("WG106", "old")], [make("WG101", "deep", warned, explains=("old",))])
    assert words(after) == [("old", "likely")]


def test_what_the_machine_clearly_does_not_show_follows_from_what_it_does() -> None:
    shown = make("WG106", "old", find("WG106", "old", MACHINE))
    after = weighed(
        [suggests("WG199", "gone"), suggests("WG106", "old")], [shown, make("WG199", "gone")]
    )
    assert words(after) == [("old", "certain")]
    assert [(f.cause, f.explained_by) for f in after.symptoms] == [("gone", "WG106")]


@each(
    ("code", "cause", "confidence"),
    [
        ("WG199", make("WG199", "gone"), "possible"),
        ("WG199", make("WG199", "gone", Gap("could not look")), "likely"),
        ("WG199", make("WG198", "another"), "likely"),
        ("WG199", make("WG198", "gone"), "likely"),
        ("WG599", make("WG599", "gone"), "likely"),
    ],
    ids=["passed", "could not look", "another cause", "the broader cause", "memory comes and goes"],
)
def test_only_a_lasting_fault_that_was_looked_for_is_doubted(
    code: str, cause: Cause, confidence: str
) -> None:
    after = weighed([suggests(code, "gone")], [cause])
    assert words(after) == [("gone", confidence)]
    assert (after.headline == "before") is (confidence == "likely")


def test_a_machine_that_shows_another_case_of_a_broader_cause_confirms_nothing() -> None:
    shown = make("WG301", "cpu-only-build", find("WG301", "cpu-only-build", "tensorflow"))
    after = weighed([suggests("WG323", "cpu-only-build")], [shown])
    assert [(root.code, root.confidence) for root in after.root_causes] == [("WG323", "likely")]
    assert after.headline == "before"


def test_a_healthy_machine_does_not_refute_what_it_never_looked_for() -> None:
    after = here("ValueError: Cannot use GPU, CuPy is not installed", "")
    (root,) = after.root_causes
    assert (root.code, root.confidence) == ("WG323", "certain")
    assert "This machine" not in after.headline


def test_what_is_doubted_comes_after_what_is_open() -> None:
    after = weighed([suggests("WG199", "gone"), suggests("WG198", "open")], [make("WG199", "gone")])
    assert words(after) == [("open", "likely"), ("gone", "possible")]


def test_what_was_judged_with_the_machines_facts_is_not_judged_again() -> None:
    here_already = suggests("WG199", "gone", LINE, Evidence("machine", "/proc/cpuinfo", "no avx"))
    after = weighed([here_already], [make("WG199", "gone")])
    assert after.root_causes == (here_already,)


@each(
    ("finding", "counts"),
    [
        (find("WG101", "fault", MACHINE), True),
        (find("WG101", "fault", "torch"), True),
        (find("WG101", "fault", "jax"), False),
        (find("WG101", "fault", MACHINE, severity="warning"), False),
    ],
)
def test_only_a_fault_that_concerns_the_program_may_explain_a_log_that_does_not_tell(
    finding: Finding, counts: bool
) -> None:
    after = weighed(
        [], [make("WG101", "fault", finding)], log="torch 2.8.0: it broke\nimport torch"
    )
    assert after.verdict == ("found" if counts else "unknown")
    assert words(after) == ([("fault", "possible")] if counts else [])


@each(
    ("toml", "said"),
    [
        (
            "",
            "this environment has libcudnn.so.9 (9.10.2) from nvidia-cudnn-cu12 9.10.2.21 instead",
        ),
        (
            '[[cuda.copies]]\nname = "cudnn"\nsoname = "libcudnn.so.8"\npath = "/a/libcudnn.so.8"',
            "this environment has libcudnn.so.8 at /a/libcudnn.so.8",
        ),
        ("[cuda]\ncopies = []", "this environment has no copy of cudnn in any version"),
    ],
)
def test_it_says_what_is_here_of_a_library_that_the_log_misses(toml: str, said: str) -> None:
    assert said in here(MISSING_CUDNN, toml).root_causes[0].message


def test_nothing_is_said_of_libraries_where_none_could_be_looked_for() -> None:
    first = here(MISSING_CUDNN, 'cuda = {unknown = "no files"}').root_causes[0]
    assert "this environment" not in first.message


def test_the_headline_stays_while_the_first_root_does() -> None:
    roots = [suggests("WG198", "open"), suggests("WG199", "gone")]
    after = weighed(roots, [make("WG199", "gone")])
    assert words(after) == [("open", "likely"), ("gone", "possible")]
    assert after.headline == "before"


def test_the_processor_is_spoken_of_after_an_illegal_instruction_only() -> None:
    assert "illegal instruction" not in here(UNTELLING, "").headline
    elsewhere = weighed([], [], log="Illegal instruction (core dumped)")
    assert elsewhere.headline == "before", "the log of a machine whose processor is not known"


MISSES = (
    "2023-05-02 10:00:00.000001: W tensorflow/compiler/xla/stream_executor/platform/default/"
    "dso_loader.cc:64] Could not load dynamic library '{0}'; dlerror: {0}: cannot open shared "
    "object file: No such file or directory"
)
COPIES = """
[[cuda.copies]]
name = "cublas"
soname = "libcublas.so.12"
path = "/a/libcublas.so.12"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/a/libcudnn.so.9"
version = {unknown = "no metadata"}
owner = ""
"""


@each(
    ("libraries", "said"),
    [
        (
            ("libcudnn.so.8", "libcublas.so.11"),
            "; this environment has libcudnn.so.9 instead, which cannot replace libcudnn.so.8",
        ),
        (("libcuda.so.1", "libcudnn.so.8"), ""),
    ],
)
def test_only_libraries_on_the_lines_of_a_cause_are_spoken_of_and_never_the_drivers(
    libraries: tuple[str, str], said: str
) -> None:
    log = "\n".join(map(MISSES.format, libraries))
    (root,) = weighed([suggests("WG598", "missing")], [], COPIES, log).root_causes
    assert root.message == f"missing of machine{said}"


PINNED = (
    "2020-01-01 10:00:00.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call "
    "to cuInit: UNKNOWN ERROR (303)\n"
    "InvalidArgumentError: Cannot assign a device for operation w: node w was explicitly assigned "
    "to /device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. "
    "Make sure the device specification refers to a valid device.\n"
)
NO_GPU = """
start = "no-gpu"
"""


CONTAINER = """
[system.container]
runtime = "docker"
driver_mounts = {absent = "NVIDIA driver files in /proc/self/mountinfo"}
"""


def test_on_a_machine_without_a_gpu_the_program_that_requires_one_is_the_cause() -> None:
    assert explain(read_text(PINNED), catalogue()).root_causes[0].cause == "no-nvidia-driver"
    after = here(PINNED, NO_GPU)
    assert [root.cause for root in after.root_causes] == ["device-placement-nonexistent"]
    assert after.root_causes[0].confidence == "certain"
    assert "This machine has no GPU" in after.headline
    assert any("allow_soft_placement" in each.text for each in after.root_causes[0].remedies)
    assert "no-nvidia-driver" in [symptom.cause for symptom in after.symptoms]


def test_on_a_machine_without_a_gpu_a_log_without_one_needs_no_repair() -> None:
    after = here(PINNED.splitlines()[0], NO_GPU)
    assert [root.cause for root in after.root_causes] == ["no-nvidia-driver"]
    assert after.root_causes[0].ask is None
    assert "This machine has no GPU, so that is expected" in after.headline


def test_a_container_may_hide_the_gpu_of_its_host() -> None:
    after = here(PINNED, NO_GPU + CONTAINER)
    assert after.root_causes[0].cause == "no-nvidia-driver"
