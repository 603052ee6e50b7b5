"""What of a requirements file cannot use the GPU, why, and what to write instead."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.requirement_file import FileAnswer, RequirementVerdict
from whygpu.planner.candidates import Table
from whygpu.planner.file_judgement import judge_file
from whygpu.readers.requirement_files import read_requirements
from whygpu.tables.releases import versions_of

TABLE = Table(versions_of)
ADA = PlannedGpu("GeForce RTX 4090", (8, 9), "geforce")


def spec(
    python: str = "3.11", platform: str = "linux_x86_64", driver: str | None = "550.54.14"
) -> MachineSpec:
    nothing = Absent("a test")
    return MachineSpec(
        python=Known(python, "a test"),
        platform=Known(platform, "a test"),
        glibc=Known("2.35", "a test") if platform.startswith("linux") else nothing,
        driver=Known(driver, "a test") if driver else Unknown("nobody said"),
        gpus=nothing if platform.startswith("macosx") else Known((ADA,), "a test"),
    )


MINE = spec()


def judged(text: str, name: str = "requirements.txt", machine: MachineSpec = MINE) -> FileAnswer:
    return judge_file(read_requirements(name, lambda path: text), machine, TABLE)


def only(
    text: str, name: str = "requirements.txt", machine: MachineSpec = MINE
) -> RequirementVerdict:
    (verdict,) = judged(text, name, machine).verdicts
    return verdict


def change(verdict: RequirementVerdict) -> dict[int, str]:
    return {edit.place.line: edit.replacement for edit in verdict.edits}


@each(
    ("text", "kind", "edits"),
    [
        ("torch==2.6.0+cpu", "cpu-build", {1: "torch==2.6.0"}),
        (
            "--index-url https://download.pytorch.org/whl/cpu\ntorch>=2.4  # why\n",
            "cpu-build",
            {1: "--index-url https://download.pytorch.org/whl/cu126"},
        ),
        (
            "--extra-index-url https://mirror.example/pytorch-wheels/cpu\ntorch==2.6.0+cpu\n",
            "cpu-build",
            {1: "--extra-index-url https://download.pytorch.org/whl/cu124", 2: "torch==2.6.0"},
        ),
        # pip would take the newest release, which needs a newer driver.
        (
            "torch",
            "driver-too-old",
            {1: "--extra-index-url https://download.pytorch.org/whl/cu126\ntorch==2.14.1+cu126"},
        ),
        ("torch==2.6.0+rocm6.2", "other-gpus", {1: "torch==2.6.0"}),
        ("torchvision==0.21.0+cpu", "cpu-build", {1: "torchvision==0.21.0"}),
        ("pytorch==2.6.0", "wrong-name", {1: "torch==2.6.0"}),
        (
            "tensorflow==2.18.0 ; python_version > '3.8'",
            "cuda-not-included",
            {1: "tensorflow[and-cuda]==2.18.0 ; python_version > '3.8'"},
        ),
        ("tensorflow-cpu>=2.15,<2.19", "cpu-build", {1: "tensorflow[and-cuda]<2.19,>=2.15"}),
        ("tensorflow-cpu", "cpu-build", {1: "tensorflow[and-cuda]==2.20.0"}),
        ("tensorflow-gpu", "removed", {1: "tensorflow[and-cuda]==2.20.0"}),
        ("tensorflow==2.10.0", "no-release-fits", {1: "tensorflow[and-cuda]==2.20.0"}),
        ("tensorflow[and-cuda]==2.21.0", "defect", {1: "tensorflow[and-cuda]==2.20.0"}),
        ("jax==0.4.30", "cpu-build", {1: "jax[cuda12]==0.4.30"}),
        ("jax[tpu]==0.4.30", "cpu-build", {1: "jax[cuda12,tpu]==0.4.30"}),
        ("jax[cuda13]", "driver-too-old", {1: "jax[cuda12]"}),
        # The extra of old instructions is gone; pip installs JAX for the CPU.
        ("jax[cuda12_pip]", "cpu-build", {1: "jax[cuda12]"}),
        ("onnxruntime==1.20.0", "cpu-build", {1: "onnxruntime-gpu==1.20.0"}),
    ],
)
def test_what_cannot_use_the_gpu(text: str, kind: str, edits: dict[int, str]) -> None:
    answer = judged(text)
    (verdict,) = answer.verdicts
    assert (verdict.ability, verdict.kind) == ("cannot", kind)
    assert change(verdict) == edits
    assert answer.exit_code == 1


def test_a_build_of_an_index_beside_another_framework_is_not_decided() -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cu118\n"
    answer = judged(f"{index}torch==2.7.1+cu118\ntensorflow[and-cuda]==2.20.0")
    assert answer.exit_code == 4
    assert "torch from the index cu118" in answer.unchecked[0]
    assert judged(f"{index}torch==2.7.1+cu118").exit_code == 0


def test_a_driver_that_has_dropped_the_gpu_is_not_called_old() -> None:
    pascal = PlannedGpu("Tesla P100", (6, 0), "data-center")
    machine = spec(driver="590.44")._replace(gpus=Known((pascal,), "a test"))
    assert only("torch==2.6.0", machine=machine).kind == "no-release-fits"


@each(
    "text",
    [
        "torch==2.6.0",
        "torch==2.6.0+cu124\n--extra-index-url https://download.pytorch.org/whl/cu124",
        "--index-url https://download.pytorch.org/whl/cu118\ntorch",
        "tensorflow[and-cuda]==2.18.0",
        "jax[cuda12]==0.4.30",
        "jax==0.7.2\njax-cuda12-plugin[with-cuda]==0.7.2",
        "torch==2.6.0\nkeras==3.8.0",
        "torch==2.6.0\ntorch==2.6.0+cpu ; sys_platform == 'darwin'",
    ],
)
def test_what_can(text: str) -> None:
    answer = judged(text)
    assert [verdict.ability for verdict in answer.verdicts] == ["can"]
    assert answer.exit_code == 0


@each(
    ("text", "reason"),
    [
        ("torch==99.0", "it is newer than this table"),
        ("--index-url https://intern.example/simple\ntorch==2.6.0", "is not on record"),
        ("--index-url https://download.pytorch.org/whl/nightly/cu128\ntorch", "nightly"),
        ("torch @ git+https://github.com/pytorch/pytorch", "it comes from git+https"),
        ("tf-nightly", "nightly builds"),
        ("jax[cuda12_local]==0.4.30", "libraries of the machine"),
        ("cupy-cuda12x", "needs CUDA 12 on the machine"),
        ("nvidia-tensorflow==1.15.5", "it is not in this table"),
        ("torch==2.6.0+git1234", "the build +git1234 is not on record"),
    ],
)
def test_what_nobody_can_tell(text: str, reason: str) -> None:
    answer = judged(text)
    (verdict,) = answer.verdicts
    assert (verdict.ability, verdict.kind, verdict.edits) == ("unknown", None, ())
    assert reason in verdict.reason
    assert answer.exit_code == 4


def test_a_file_without_frameworks_is_no_question_of_right_or_wrong() -> None:
    answer = judged("requests\nnumpy<2\n")
    assert (answer.verdicts, answer.standing, answer.exit_code) == ((), "answered", 0)


def test_a_line_that_was_not_read_leaves_a_doubt() -> None:
    assert judged("torch==2.6.0\n-e .\n").exit_code == 4


def test_a_constraint_limits_what_pip_chooses() -> None:
    files = {"requirements.txt": "torch\n-c limits.txt\n", "limits.txt": "torch<2.7\njax\n"}
    file = read_requirements("requirements.txt", lambda path: files[path])
    (verdict,) = judge_file(file, spec(), TABLE).verdicts
    assert verdict.reason == "installs torch 2.6.0"


def test_two_packages_with_one_module() -> None:
    answer = judged("tensorflow[and-cuda]==2.18.0\ntensorflow-cpu==2.18.0\n")
    good, bad = answer.verdicts
    assert (good.ability, bad.kind) == ("can", "two-owners")
    assert change(bad) == {2: ""}


def test_libraries_for_two_cuda_releases() -> None:
    answer = judged("nvidia-cudnn-cu12==9.1\nnvidia-cublas-cu12\nnvidia-cudnn-cu13==9.2\n")
    (verdict,) = answer.verdicts
    assert (verdict.requirement.name, verdict.kind) == ("nvidia-cudnn-cu13", "mixed-cuda")


@each(
    ("text", "named"),
    [
        ("torch==2.0.1\nkeras==3.15.1\n", "torch>=2.1"),
        ("torch==2.6.0\nkeras==2.15.0\n", "has no PyTorch backend"),
    ],
)
def test_pairs_that_do_not_work_together(text: str, named: str) -> None:
    answer = judged(text)
    verdict = answer.verdicts[-1]
    assert (verdict.requirement.name, verdict.kind) == ("keras", "conflict")
    assert named in f"{verdict.reason} {verdict.advice}"
    assert answer.exit_code == 1


@each(
    ("machine", "text", "ability", "reason"),
    [
        (
            spec("3.13"),
            "tensorflow[and-cuda]==2.18.0",
            "cannot",
            "has wheels for Python 3.9",
        ),
        (spec(driver="470.82"), "torch==2.6.0", "cannot", "needs driver 525.60.13"),
        (spec(driver=None), "torch==2.6.0", "unknown", "nobody said"),
        (spec(platform="win_amd64"), "torch==2.6.0", "cannot", "no GPU support on Windows"),
        (spec(platform="win_amd64"), "torch==2.6.0+cu124", "can", "torch 2.6.0+cu124"),
        (spec(platform="win_amd64"), "tensorflow==2.18.0", "cannot", "use WSL2"),
        (spec(platform="linux_aarch64"), "torch==2.9.1", "cannot", "has no GPU support"),
        (spec(platform="macosx_arm64"), "torch==2.6.0+cpu", "can", "torch 2.6.0"),
        (spec(platform="macosx_arm64"), "tensorflow==2.18.0", "cannot", "tensorflow-metal==1.2.0"),
        (spec(platform="macosx_arm64"), "jax", "cannot", "jax-metal"),
    ],
)
def test_the_machine_decides(machine: MachineSpec, text: str, ability: str, reason: str) -> None:
    verdict = only(text, machine=machine)
    assert verdict.ability == ability
    assert reason in verdict.reason


PROJECT = """\
[project]
requires-python = ">=3.10"
dependencies = ["torch>=2.4"]
[project.optional-dependencies]
cpu = ["jax"]
gpu = ["jax[cuda12]==0.7.2"]
[tool.uv.sources]
torch = { index = "cpu" }
[[tool.uv.index]]
name = "cpu"
url = "https://download.pytorch.org/whl/cpu"
"""


def test_a_project_with_indexes_of_uv() -> None:
    torch, cpu, gpu = judged(PROJECT, "pyproject.toml").verdicts
    assert change(torch) == {11: 'url = "https://download.pytorch.org/whl/cu126"'}
    assert (cpu.ability, cpu.is_alternative) == ("cannot", True)
    assert (gpu.ability, gpu.is_alternative) == ("can", False)


def test_an_optional_cpu_build_is_a_problem_if_there_is_no_other() -> None:
    text = '[project.optional-dependencies]\ncpu = ["jax"]\n'
    answer = judged(text, "pyproject.toml")
    assert not answer.verdicts[0].is_alternative
    assert answer.exit_code == 1


def test_a_project_for_another_python_than_the_one_that_was_given() -> None:
    given = MINE._replace(python=Known("3.11", "--python"))
    answer = judged(PROJECT.replace(">=3.10", ">=3.12"), "pyproject.toml", given)
    assert answer.unchecked == (
        "pyproject.toml is for Python >=3.12; it was judged for Python 3.11 (--python).",
    )


@each(
    ("wanted", "python"),
    [(">=3.12,<4", "3.12"), ("<3.10", "3.9"), (">=3.10", "3.11"), ("==3.9.*", "3.9")],
)
def test_a_project_decides_about_a_python_that_nobody_gave(wanted: str, python: str) -> None:
    answer = judged(PROJECT.replace(">=3.10", wanted), "pyproject.toml")
    assert (answer.machine.python_minor, answer.unchecked) == (python, ())


CONDA_LOCKED = """\
version: 7
environments:
  default:
    packages:
      linux-64:
      - conda: https://conda.anaconda.org/conda-forge/linux-64/python-3.12.4-h194c7f8_0_cpython.conda
      - conda: https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.10.0-BUILD_h1_302.conda
"""


def test_a_lock_file_of_conda_installs_its_own_python() -> None:
    answer = judged(CONDA_LOCKED, "pixi.lock", spec("3.9"))
    assert answer.machine.python_minor == "3.12"


@each(
    ("build", "driver", "ability", "kind"),
    [
        ("cpu_mkl_py312", "550.54.14", "cannot", "cpu-build"),
        # Builds for CUDA name the library for the processor as well.
        ("cuda126_mkl_py312", "550.54.14", "unknown", None),
        ("cuda126_generic_py312", "550.54.14", "unknown", None),
        ("cuda130_mkl_py312", "550.54.14", "cannot", "driver-too-old"),
        ("py3.12_cuda11.0_cudnn8.0_0", "550.54.14", "unknown", None),
        ("py3.12_cuda10.1.243_cudnn7_0", "550.54.14", "cannot", "gpu-too-new"),
    ],
)
def test_the_build_string_of_conda(build: str, driver: str, ability: str, kind: str | None) -> None:
    text = CONDA_LOCKED.replace("BUILD", build)
    verdict = only(text, "pixi.lock", spec(driver=driver))
    assert (verdict.ability, verdict.kind) == (ability, kind)


def test_the_toolkit_of_an_environment_decides_which_gpus_it_supports() -> None:
    text = "dependencies:\n  - python=3.10\n  - pytorch\n  - cudatoolkit={}\n"
    old = only(text.format("10.1"), "environment.yml")
    assert (old.ability, old.kind) == ("cannot", "gpu-too-new")
    assert only(text.format("11.3"), "environment.yml").ability == "unknown"


@each(
    ("text", "installed"),
    [
        # Each torchvision requires one PyTorch, so pip takes that one.
        ("torch>=2.4\ntorchvision>=0.21,<0.22\n", "2.6.0"),
        ("torch\ntorchaudio==2.5.1\n", "2.5.1"),
        ("torch\ntorchvision<0.21\ntorchaudio<2.4\n", "2.3.1"),
        ("torch==2.6.0\ntorchvision==0.21.0+cu124\n", "2.6.0"),
    ],
)
def test_torchvision_and_torchaudio_limit_pytorch(text: str, installed: str) -> None:
    verdict = only(text)
    assert (verdict.ability, verdict.version) == ("can", installed)


def test_a_pytorch_that_its_torchvision_excludes() -> None:
    verdict = only("torch==2.4.0\ntorchvision==0.21.0\n")
    assert (verdict.ability, verdict.kind) == ("cannot", "conflict")
    assert "torch>=2.6,<2.7" in verdict.reason


def test_another_pytorch_needs_another_torchvision() -> None:
    verdict = only("torch==1.11.0\ntorchvision==0.12.0\ntorchaudio\n")
    assert change(verdict)[1].endswith("torch==2.14.1+cu126")
    assert verdict.advice == (
        "torchvision==0.12.0 belongs to another PyTorch: write torchvision==0.29.*."
    )


def test_an_old_pytorch_with_a_torchvision_that_is_not_on_record() -> None:
    machine = spec("3.7")._replace(gpus=Known((PlannedGpu("P4", (6, 1), None),), "a test"))
    assert only("torch==1.2.0\ntorchvision>=0.4\n", machine=machine).kind != "conflict"


def test_an_additional_index_does_not_hide_newer_releases_of_the_default_one() -> None:
    index = "https://download.pytorch.org/whl/cu118"
    verdict = only(f"--extra-index-url {index}\ntorch\n")
    assert (verdict.ability, verdict.version) == ("cannot", "2.15.0")
    assert change(verdict) == {
        1: "--extra-index-url https://download.pytorch.org/whl/cu126",
        2: "torch==2.14.1",
    }
    assert only(f"--index-url {index}\ntorch\n").version == "2.7.1"
    assert only(f"--extra-index-url {index}\ntorch==2.7.1\n").reason.endswith("2.7.1+cu118")


@each(
    ("requirement", "reason", "build"),
    [
        ("torch", "installs torch 2.15.0, which needs driver 580", "torch==2.11.0+cu128"),
        ("torch==2.6.0+cu124", "cannot be installed: the default index", "torch==2.6.0+cu124"),
    ],
)
def test_an_index_in_the_line_of_a_requirement_is_ignored(
    requirement: str, reason: str, build: str
) -> None:
    tag = build.partition("+")[2]
    index = f"https://download.pytorch.org/whl/{tag}"
    verdict = only(f"{requirement} --index-url {index}\n")
    assert verdict.ability == "cannot"
    assert verdict.reason.startswith(reason)
    assert "pip ignores the index in this line" in verdict.reason
    assert change(verdict) == {1: f"--extra-index-url {index}\n{build}"}


def test_an_ignored_index_does_no_harm_if_the_default_build_fits() -> None:
    index = "https://download.pytorch.org/whl/cu118"
    assert only(f"torch==2.6.0 --index-url {index}\n").ability == "can"


def test_a_project_gets_a_release_of_the_default_index() -> None:
    text = '[project]\ndependencies = ["torch>=2.2"]\n'
    assert change(only(text, "pyproject.toml")) == {2: 'dependencies = ["torch==2.10.0"]'}


def test_parts_of_tensorflow_for_other_systems() -> None:
    lines = 'tensorflow = {version = "2.18.0", extras = ["and-cuda"]}\ntensorflow-intel = "2.18.0"'
    tensorflow, intel = judged(f"[tool.poetry.dependencies]\n{lines}\n", "pyproject.toml").verdicts
    assert (tensorflow.ability, intel.ability, change(intel)) == ("can", "cannot", {3: ""})
    locked = "".join(
        f'[[package]]\nname = "{name}"\nversion = "2.18.0"\n'
        for name in ("tensorflow", "tensorflow-intel", "nvidia-cudnn-cu12")
    )
    assert only(f"version = 1\n{locked}", "uv.lock").requirement.name == "tensorflow"


def test_two_owners_in_a_lock_file() -> None:
    packages = "".join(
        f'[[package]]\nname = "{name}"\nversion = "2.18.0"\n'
        for name in ("tensorflow", "tensorflow-cpu", "nvidia-cudnn-cu12")
    )
    bad = judged(f"version = 1\n{packages}", "uv.lock").verdicts[-1]
    assert (bad.kind, bad.edits) == ("two-owners", ())
    assert bad.advice == (
        "In pyproject.toml, remove tensorflow-cpu, or what requires it; then run `uv lock`."
    )


def test_a_part_for_the_cpu_beside_one_for_the_gpu() -> None:
    text = (
        "[project.optional-dependencies]\n"
        'cpu = ["torch==2.6.0", "onnxruntime==1.20.0"]\ngpu = ["torch==2.6.0+cu124"]\n'
    )
    answer = judged(text, "pyproject.toml")
    assert [verdict.is_alternative for verdict in answer.verdicts] == [False, True, False]
    assert answer.exit_code == 0


def test_parts_of_a_lock_file_that_exclude_each_other() -> None:
    index = "https://download.pytorch.org/whl/"
    to_cpu, to_cuda = (
        f'{{ name = "torch", version = "2.6.0+{tag}", source = {{ registry = "{index}{tag}" }}, '
        f"marker = \"extra {sign} 'extra-4-tool-cpu'\" }}"
        for tag, sign in (("cpu", "=="), ("cu124", "!="))
    )
    text = f"""\
version = 1
conflicts = [[{{ package = "tool", extra = "cpu" }}, {{ package = "tool", extra = "cuda" }}]]
[[package]]
name = "tool"
version = "1"
source = {{ virtual = "." }}
dependencies = [{{ name = "accelerate" }}]
[[package]]
name = "accelerate"
version = "1.9.0"
dependencies = [{to_cpu}, {to_cuda}]
[[package]]
name = "torch"
version = "2.6.0+cpu"
source = {{ registry = "{index}cpu" }}
[[package]]
name = "torch"
version = "2.6.0+cu124"
source = {{ registry = "{index}cu124" }}
"""
    cpu, cuda = judged(text, "uv.lock").verdicts
    assert (cpu.requirement.group, cpu.is_alternative) == ("extra cpu", True)
    assert (cuda.requirement.group, cuda.ability) == ("", "can")
    alone = text.replace("extra == 'extra-4-tool-cpu'", "sys_platform == 'linux'")
    assert judged(alone, "uv.lock").exit_code == 1


def test_a_replacement_without_cuda_says_so() -> None:
    verdict = only("tensorflow-gpu==2.12.0")
    assert change(verdict) == {1: "tensorflow==2.12.0"}
    assert "CUDA 11.8 must be installed on the machine" in verdict.advice


@each(
    ("line", "replacement"),
    [
        (
            'torch = {version = "^2.1", source = "cpu"}',
            'url = "https://download.pytorch.org/whl/cu126"',
        ),
        (
            'tensorflow = "2.18.0"',
            'tensorflow = {version = "2.18.0", extras = ["and-cuda"]}',
        ),
        (
            'jax = {version = "0.4.30", optional = true}',
            'jax = {extras = ["cuda12"], version = "0.4.30", optional = true}',
        ),
    ],
)
def test_a_project_of_poetry(line: str, replacement: str) -> None:
    text = f"""\
[[tool.poetry.source]]
name = "cpu"
url = "https://download.pytorch.org/whl/cpu"
[tool.poetry.dependencies]
{line}
"""
    verdict = only(text, "pyproject.toml")
    assert [edit.replacement for edit in verdict.edits] == [replacement]


@each(
    ("lines", "ability", "edits"),
    [
        ("pytorch=2.1\n  - cpuonly", "cannot", {4: "- pytorch-cuda=12.1"}),
        ("pytorch\n  - cpuonly", "cannot", {4: "- pytorch-cuda=12.4"}),
        ("pytorch-cpu=2.5", "cannot", {3: "- pytorch-gpu=2.5"}),
        ("pytorch=2.5=*cpu*", "cannot", {3: "- pytorch=2.5=*cuda*"}),
        ("tensorflow=2.15=cpu_py310_0", "cannot", {3: "- tensorflow=2.15=*cuda*"}),
        ("tensorflow-mkl", "cannot", {3: "- tensorflow-gpu"}),
        ("pytorch=2.5", "unknown", {3: "- pytorch-gpu=2.5"}),
        ("pytorch=2.5=*cuda*", "unknown", {}),
        ("pytorch-gpu", "unknown", {}),
        ("pytorch-cuda=12.1\n  - pytorch", "unknown", {}),
    ],
)
def test_an_environment_of_conda(lines: str, ability: str, edits: dict[int, str]) -> None:
    text = f"dependencies:\n  - python=3.10\n  - {lines}\n"
    verdict = only(text, "environment.yml")
    assert (verdict.ability, change(verdict)) == (ability, edits)


def test_cpuonly_beside_a_choice_of_cuda_is_removed() -> None:
    text = "dependencies:\n  - pytorch=2.1\n  - cpuonly\n  - pytorch-cuda=11.8\n"
    cpuonly, _ = judged(text, "environment.yml").verdicts
    assert change(cpuonly) == {3: ""}


def test_conda_installs_its_own_python() -> None:
    text = "dependencies:\n  - python=3.10\n  - pip:\n    - tensorflow[and-cuda]==2.18.0\n"
    answer = judged(text, "environment.yml", spec("3.13"))
    assert answer.machine.python_minor == "3.10"
    assert answer.exit_code == 0


def test_pytorch_cuda_for_a_newer_driver() -> None:
    text = "dependencies:\n  - pytorch-cuda=12.1\n"
    verdict = only(text, "environment.yml", spec(driver="470.82"))
    assert verdict.reason == "is for CUDA 12.1, which needs driver 525.60.13 or newer"
    assert change(verdict) == {2: "- pytorch-cuda=11.8"}


def test_a_lock_file_is_not_edited() -> None:
    text = """\
version = 1
[[package]]
name = "torch"
version = "2.6.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
"""
    verdict = only(text, "uv.lock")
    assert verdict.edits == ()
    assert verdict.advice == (
        "In pyproject.toml, ask for torch==2.6.0 from the index "
        "https://download.pytorch.org/whl/cu124; then run `uv lock --upgrade-package torch`."
    )


def test_a_lock_file_with_the_libraries_of_tensorflow() -> None:
    text = 'version = 1\n[[package]]\nname = "tensorflow"\nversion = "2.18.0"\n'
    assert only(text, "uv.lock").kind == "cuda-not-included"
    libraries = '[[package]]\nname = "nvidia-cudnn-cu12"\nversion = "9.3.0.75"\n'
    assert only(text + libraries, "uv.lock").ability == "can"


@each("marker", ["sys_platform === 'linux'", "os_name > 'a' and nonsense", "(" * 2000])
def test_a_condition_that_is_not_understood_leaves_a_doubt(marker: str) -> None:
    text = 'version = 1\n[[package]]\nname = "jax"\nversion = "0.7.2"\n'
    answer = judged(f'{text}resolution-markers = ["{marker}"]\n', "uv.lock")
    assert len(answer.unchecked) == 1
    assert answer.exit_code == 4


def test_a_release_without_an_extra_needs_cuda_on_the_machine() -> None:
    verdict = only("tensorflow==2.13.1")
    assert (verdict.kind, verdict.edits) == ("cuda-not-included", ())
    assert verdict.advice.startswith("CUDA 11.8 must be installed on the machine")


def test_a_wheel_that_is_named_by_its_address() -> None:
    name = "torch-2.6.0%2Bcpu-cp311-cp311-linux_x86_64.whl"
    verdict = only(f"torch @ https://download.pytorch.org/whl/cpu/{name}")
    assert (verdict.kind, verdict.edits) == ("cpu-build", ())
    assert verdict.advice == "Ask for torch==2.6.0 instead of that file."


def test_hashes_are_mentioned() -> None:
    verdict = only("jax==0.4.30 \\\n  --hash=sha256:aa\n")
    assert "hashes" in verdict.advice


@each(
    ("text", "ability", "advice"),
    [
        # Its newest release requires the newest PyTorch, which needs a newer driver.
        ("torchvision>=0.16", "cannot", "Ask for torch==2.14.1 from the index"),
        ("torchvision<0.25\ntorchaudio", "can", ""),
    ],
)
def test_a_companion_brings_pytorch(text: str, ability: str, advice: str) -> None:
    verdict = only(text)
    assert (verdict.ability, verdict.edits) == (ability, ())
    assert verdict.reason.startswith("is required by torchvision, and installs torch 2.")
    assert verdict.advice.startswith(advice)


def test_a_keras_that_does_not_go_with_another_tensorflow() -> None:
    old = only("tensorflow==2.3.1\nKeras==2.4.3\n")
    assert old.advice.startswith("keras==2.4.3 does not go with it: remove that line")
    assert only("tensorflow==2.18.0\nkeras>=3.5\n").advice == ""


@each(
    ("text", "advice"),
    [
        ("tensorflow==2.11.0", "Or keep the line and use Python 3.10."),
        # This release cannot use the GPU with any Python.
        ("tensorflow==1.15.5", ""),
    ],
)
def test_another_python_may_be_the_smaller_change(text: str, advice: str) -> None:
    assert only(text).advice == advice


def test_the_channel_of_pytorch_has_packages_of_its_own() -> None:
    text = "channels:\n  - pytorch\n  - conda-forge\ndependencies:\n  - pytorch=2.1\n"
    verdict = only(text, "environment.yml")
    assert change(verdict) == {5: "- pytorch=2.1\n- pytorch-cuda=12.1"}
    forge = text.replace("  - pytorch\n  - conda", "  - conda")
    assert change(only(forge, "environment.yml")) == {4: "- pytorch-gpu=2.1"}


def test_an_optional_part_with_what_jax_needs_of_cuda() -> None:
    text = """\
version = 1
[[package]]
name = "tool"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "jax" }]
[package.optional-dependencies]
gpu = [{ name = "jax-cuda12-plugin" }]
[[package]]
name = "jax"
version = "0.7.2"
[[package]]
name = "jax-cuda12-plugin"
version = "0.7.2"
"""
    verdict = only(text, "uv.lock")
    assert verdict.ability == "can"
    assert verdict.reason.endswith("what it needs of CUDA with extra gpu only")
