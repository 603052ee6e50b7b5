"""Each format is read into requirements with their lines; what is not understood is reported."""

from __future__ import annotations

import contextlib
import random

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.model.requirement_file import PinnedRequirement, RequirementsFile
from whygpu.readers.requirement_files import format_of, read_requirements
from whygpu.readers.requirement_files.poetry_versions import poetry_range


def read(path: str, text: str, **others: str) -> RequirementsFile:
    """`others` are files beside it: a name in which __ stands for a dot."""
    files = {path: text, **{name.replace("__", "."): other for name, other in others.items()}}

    def load(name: str) -> str:
        if name not in files:
            raise UsageError(f"there is no {name}")
        return files[name]

    return read_requirements(path, load)


def shown(requirement: PinnedRequirement) -> str:
    extras = f"[{','.join(requirement.extras)}]" if requirement.extras else ""
    build = f"={requirement.build}" if requirement.build else ""
    return f"{requirement.name}{extras}{requirement.specifier}{build}"


def listed(file: RequirementsFile) -> list[tuple[int, str]]:
    return [(item.place.line, shown(item)) for item in file.requirements]


@each(
    ("path", "kind"),
    [
        ("requirements.txt", "requirements.txt"),
        ("a/requirements-dev.in", "requirements.txt"),
        ("pyproject.toml", "pyproject.toml"),
        ("environment.yaml", "environment.yml"),
        ("uv.lock", "uv.lock"),
        ("b/poetry.lock", "poetry.lock"),
        ("pixi.lock", "pixi.lock"),
        ("pdm.lock", "pdm.lock"),
        ("conda-lock.yml", "conda-lock.yml"),
        ("envs/gpu.conda-lock.yaml", "conda-lock.yml"),
    ],
)
def test_the_name_shows_the_format(path: str, kind: str) -> None:
    assert format_of(path) == kind


@each("path", ["setup.py", "Pipfile.lock", "requirements", "conda-lock"])
def test_other_formats_are_refused_by_name(path: str) -> None:
    with pytest.raises(UsageError, match=r"does not read this kind of file.*requirements\.txt"):
        format_of(path)


REQUIREMENTS = """\
# a comment
--index-url https://example.org/simple
-r base.txt  # another file
--constraint limits.txt

torch==2.6.0+cpu   # the model
TensorFlow[and_cuda] >=2.15,<3 ; python_version >= "3.9"
jax==0.4.30 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
https://example.org/x/torchaudio-2.6.0%2Bcu124-cp311-cp311-linux_x86_64.whl
onnx @ https://example.org/onnx.zip
"""


def test_requirements_txt() -> None:
    file = read(
        "requirements.txt",
        REQUIREMENTS,
        base__txt="keras<3\n--extra-index-url https://download.pytorch.org/whl/cpu\n",
        limits__txt="jax<0.5\n",
    )
    assert listed(file) == [
        (1, "keras<3"),
        (6, "torch==2.6.0+cpu"),
        (7, "tensorflow[and-cuda]<3,>=2.15"),
        (8, "jax==0.4.30"),
        (11, "torchaudio==2.6.0+cu124"),
        (12, "onnx"),
    ]
    assert [shown(item) for item in file.constraints] == ["jax<0.5"]
    assert file.unread == ()
    assert file.requirements[1].place.text == "torch==2.6.0+cpu   # the model"
    assert file.requirements[2].marker == 'python_version >= "3.9"'
    assert file.requirements[5].url == "https://example.org/onnx.zip"
    for requirement in file.requirements:
        assert [
            (source.role, source.place.file, source.place.line) for source in requirement.sources
        ] == [
            ("index", "requirements.txt", 2),
            ("extra", "base.txt", 2),
        ]


def test_the_last_index_replaces_the_ones_before() -> None:
    text = "-i https://a.example\n--index-url=https://b.example\n-f https://c.example\ntorch\n"
    (torch,) = read("r.txt", text).requirements
    assert [source.url for source in torch.sources] == ["https://b.example", "https://c.example"]


@each(
    ("line", "reason"),
    [
        ("torch==${VERSION}", "environment variable"),
        ("-e .", "project that it installs"),
        ("--no-index", "option"),
        ("torch >>= 2", "not a requirement"),
        ("./folder", "was not read"),
        ("git+https://github.com/example/project@main", "was not read"),
        ("-r missing.txt", "missing.txt was not read"),
        ("-r https://example.org/r.txt", "does not use the network"),
    ],
)
def test_a_line_that_is_not_understood_is_reported(line: str, reason: str) -> None:
    file = read("r.txt", f"jax\n{line}\n")
    assert [shown(item) for item in file.requirements] == ["jax"]
    (unread,) = file.unread
    assert (unread.place.line, unread.place.text) == (2, line)
    assert reason in unread.reason


def test_files_that_include_each_other_are_read_once() -> None:
    file = read("a.txt", "-r b.txt\ntorch\n", b__txt="-r a.txt\njax\n")
    assert [shown(item) for item in file.requirements] == ["jax", "torch"]


def test_a_backslash_at_the_end_of_the_file() -> None:
    assert listed(read("r.txt", "torch \\")) == [(1, "torch")]


PROJECT = """\
[project]
name = "demo"
requires-python = ">=3.10"
dependencies = [
    "torch>=2.4",
    "tensorflow==2.18.0; sys_platform == \\"linux\\"",
]

[project.optional-dependencies]
cpu = ["jax"]
gpu = ["jax[cuda12]"]

[dependency-groups]
dev = ["pytest", {include-group = "gpu"}]

[tool.uv]
extra-index-url = ["https://extra.example/simple"]

[tool.uv.sources]
torch = [
    { index = "pytorch-cpu", marker = "sys_platform != 'linux'" },
    { index = "pytorch-cu118", marker = "sys_platform == 'linux'" },
]
jax = { git = "https://github.com/jax-ml/jax", extra = "gpu" }

[[tool.uv.index]]
name = "pytorch-cpu"
url = "https://download.pytorch.org/whl/cpu"
explicit = true

[[tool.uv.index]]
name = "pytorch-cu118"
url = "https://download.pytorch.org/whl/cu118"
explicit = true
"""


def test_pyproject_toml() -> None:
    file = read("pyproject.toml", PROJECT)
    assert file.requires_python == ">=3.10"
    assert listed(file) == [
        (5, "torch>=2.4"),
        (5, "torch>=2.4"),
        (6, "tensorflow==2.18.0"),
        (10, "jax"),
        (11, "jax[cuda12]"),
        (14, "pytest"),
    ]
    groups = [item.group for item in file.requirements]
    assert groups == ["", "", "", "extra cpu", "extra gpu", "group dev"]


def test_the_sources_of_uv() -> None:
    on_other, on_linux, tensorflow, jax, jax_gpu, _ = read("pyproject.toml", PROJECT).requirements
    assert on_linux.marker == "(sys_platform == 'linux')"
    assert [(s.url, s.role, s.place.line) for s in on_linux.sources] == [
        ("https://download.pytorch.org/whl/cu118", "explicit", 33)
    ]
    assert [s.url for s in on_other.sources] == ["https://download.pytorch.org/whl/cpu"]
    assert [(s.url, s.role) for s in tensorflow.sources] == [
        ("https://extra.example/simple", "extra")
    ]
    assert (jax.url, jax_gpu.url) == ("", "https://github.com/jax-ml/jax")


def test_dynamic_dependencies_are_reported() -> None:
    file = read("pyproject.toml", '[project]\nname = "x"\ndynamic = ["dependencies"]\n')
    assert [(line.place.line, line.reason) for line in file.unread] == [
        (3, "the dependencies are computed when the project is built")
    ]


POETRY = """\
[tool.poetry]
name = "demo"

[tool.poetry.dependencies]
python = "^3.9"
torch = {version = "^2.1", source = "cpu"}
tensorflow = {version = "2.15.*", extras = ["and-cuda"], markers = "sys_platform == 'linux'"}
jax = [{version = "~0.4.20", python = "<3.12"}, {git = "https://github.com/jax-ml/jax"}]
onnxruntime = "1.2 || 1.4"

[tool.poetry.group.dev.dependencies]
cupy-cuda12x = "*"

[[tool.poetry.source]]
name = "cpu"
url = "https://download.pytorch.org/whl/cpu"
"""


def test_the_tables_of_poetry() -> None:
    file = read("pyproject.toml", POETRY)
    assert file.requires_python == ">=3.9,<4"
    assert listed(file) == [
        (6, "torch>=2.1,<3"),
        (7, "tensorflow[and-cuda]==2.15.*"),
        (8, "jax>=0.4.20,<0.5"),
        (8, "jax"),
        (12, "cupy-cuda12x"),
    ]
    torch, tensorflow, jax, from_git, cupy = file.requirements
    assert [(s.role, s.place.line) for s in torch.sources] == [("explicit", 16)]
    assert tensorflow.marker == "(sys_platform == 'linux')"
    assert jax.marker == '(python_version < "3.12")'
    assert from_git.url == "https://github.com/jax-ml/jax"
    assert cupy.group == "group dev"
    assert [(line.place.line, line.reason) for line in file.unread] == [
        (9, "the range '1.2 || 1.4' was not understood")
    ]


@each(
    ("theirs", "ours"),
    [
        ("*", ""),
        ("^2.1", ">=2.1,<3"),
        ("^0.4.1", ">=0.4.1,<0.5"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("~2.1.3", ">=2.1.3,<2.2"),
        ("~2", ">=2,<3"),
        ("2.1.*", "==2.1.*"),
        ("2.1", "==2.1"),
        (">=2.1,<3", ">=2.1,<3"),
        (">=2.1 <3", ">=2.1,<3"),
        ("2.1.0+cu118", "==2.1.0+cu118"),
        ("1 || 2", None),
        ("dev-main", None),
        (f"^{'9' * 5000}", None),
    ],
)
def test_ranges_of_poetry(theirs: str, ours: str | None) -> None:
    assert poetry_range(theirs) == ours


CONDA = """\
name: demo
channels:
  - pytorch
  - conda-forge
dependencies:
  - python=3.10   # the interpreter
  - pytorch=2.1
  - "tensorflow=2.15=cpu_py310h4655687_0"
  - conda-forge::jaxlib[version='>=0.4,<0.5', build=*cuda*]
  - numpy >=1.20,<2
  - scipy 1.10.* py310*
  - pip
  - pip:
      - --extra-index-url https://download.pytorch.org/whl/cpu
      - jax[cuda12]==0.4.30
  - cudatoolkit==11.8.0
variables:
  A: b
"""


def test_environment_yml() -> None:
    file = read("environment.yml", CONDA)
    assert file.requires_python == "==3.10.*"
    assert listed(file) == [
        (7, "pytorch==2.1.*"),
        (8, "tensorflow==2.15.*=cpu_py310h4655687_0"),
        (9, "jaxlib>=0.4,<0.5=*cuda*"),
        (10, "numpy>=1.20,<2"),
        (11, "scipy==1.10.*=py310*"),
        (12, "pip"),
        (15, "jax[cuda12]==0.4.30"),
        (16, "cudatoolkit==11.8.0"),
    ]
    managers = [item.manager for item in file.requirements]
    assert managers == ["conda"] * 6 + ["pip", "conda"]
    assert [item.channel for item in file.requirements[:3]] == ["pytorch", "pytorch", "conda-forge"]
    assert [source.place.line for source in file.requirements[6].sources] == [14]


@each(
    "text",
    [
        "name: x\n",
        "dependencies: [python, pytorch]\n",
        "dependencies:\n  - &anchor\n    x: 1\n",
        "services:\n  web:\n    image: x\n",
    ],
)
def test_yaml_that_is_not_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read("environment.yml", text)


UV_LOCK = """\
version = 1
requires-python = ">=3.11"

[[package]]
name = "demo"
source = { virtual = "." }

[[package]]
name = "torch"
version = "2.6.0+cpu"
source = { registry = "https://download.pytorch.org/whl/cpu" }
resolution-markers = ["sys_platform == 'linux'", "sys_platform == 'win32'"]

[[package]]
name = "jax"
version = "0.7.2"
source = { registry = "https://pypi.org/simple" }
"""


def test_uv_lock() -> None:
    file = read("uv.lock", UV_LOCK)
    assert listed(file) == [(9, "torch==2.6.0+cpu"), (15, "jax==0.7.2")]
    torch, jax = file.requirements
    assert torch.marker == "(sys_platform == 'linux') or (sys_platform == 'win32')"
    assert [source.url for source in torch.sources] == ["https://download.pytorch.org/whl/cpu"]
    assert jax.sources == ()
    with pytest.raises(UsageError, match="version 1 of uv"):
        read("uv.lock", UV_LOCK.replace("version = 1", "version = 2", 1))


POETRY_LOCK = """\
[[package]]
name = "torch"
version = "2.1.0+cpu"
optional = false

[package.source]
type = "legacy"
url = "https://download.pytorch.org/whl/cpu"
reference = "cpu"

[[package]]
name = "tensorflow"
version = "2.15.0"
optional = true
markers = "sys_platform == 'linux'"

[metadata]
lock-version = "2.1"
python-versions = "^3.9"
"""


def test_poetry_lock() -> None:
    file = read("poetry.lock", POETRY_LOCK)
    assert listed(file) == [(2, "torch==2.1.0+cpu"), (12, "tensorflow==2.15.0")]
    assert [source.url for source in file.requirements[0].sources] == [
        "https://download.pytorch.org/whl/cpu"
    ]
    assert file.requirements[1].marker == "sys_platform == 'linux'"
    with pytest.raises(UsageError, match="not a lock file of Poetry"):
        read("poetry.lock", '[[package]]\nname = "x"\n')


PIXI_LOCK = """\
version: 6
environments:
  default:
    channels:
    - url: https://conda.anaconda.org/conda-forge/
    packages:
      linux-64:
      - conda: https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.4.1-cpu_py312h1_2.conda
      - pypi: https://files.pythonhosted.org/packages/aa/jax-0.7.2-py3-none-any.whl
  gpu:
    packages:
      osx-arm64:
      - conda: https://conda.anaconda.org/conda-forge/osx-arm64/pytorch-2.4.1-cpu_py312h1_2.conda
      riscv-64:
      - conda: https://conda.anaconda.org/conda-forge/riscv-64/pytorch-2.4.1-0.conda
packages:
- conda: https://conda.anaconda.org/conda-forge/linux-64/other-1-0.conda
"""


def test_pixi_lock() -> None:
    file = read("pixi.lock", PIXI_LOCK)
    assert listed(file) == [
        (8, "pytorch==2.4.1=cpu_py312h1_2"),
        (9, "jax==0.7.2"),
        (13, "pytorch==2.4.1=cpu_py312h1_2"),
    ]
    assert [item.group for item in file.requirements] == ["", "", "environment gpu"]
    assert 'platform_machine == "x86_64"' in file.requirements[0].marker
    assert [line.place.line for line in file.unread] == [15]
    with pytest.raises(UsageError, match="versions 5 to 7"):
        read("pixi.lock", PIXI_LOCK.replace("version: 6", "version: 3"))


PDM_LOCK = """\
[metadata]
groups = ["default", "serve"]
strategy = ["inherit_metadata"]
lock_version = "4.5.0"

[[package]]
name = "torch"
version = "2.4.0+cpu"
requires_python = ">=3.8.0"
groups = ["default"]
files = [
    {file = "torch-2.4.0+cpu-cp311-cp311-linux_x86_64.whl", hash = "sha256:0"},
]

[[package]]
name = "jax"
version = "0.4.30"
extras = ["cuda12"]
groups = ["default"]

[[package]]
name = "tensorflow"
version = "2.17.0"
marker = "sys_platform == \\"linux\\""
groups = ["serve"]

[[package]]
name = "local"
path = "./local"
"""


def test_pdm_lock() -> None:
    file = read("pdm.lock", PDM_LOCK)
    assert listed(file) == [(7, "torch==2.4.0+cpu"), (22, "tensorflow==2.17.0")]
    assert [item.group for item in file.requirements] == ["", "group serve"]
    assert file.requirements[1].marker == 'sys_platform == "linux"'
    assert [line.place.line for line in file.unread] == [28]
    with pytest.raises(UsageError, match="not a lock file of PDM"):
        read("pdm.lock", '[[package]]\nname = "torch"\n')


CONDA_LOCK = """\
# written by conda-lock
version: 1
metadata:
  content_hash:
    linux-64: 0
  platforms:
  - linux-64
package:
- name: pytorch
  version: 2.1.0
  manager: conda
  platform: linux-64
  dependencies:
    python: '>=3.11'
    version: '0'
  url: https://conda.anaconda.org/conda-forge/linux-64/pytorch-2.1.0-cpu_generic_py311h1_0.conda
  hash:
    md5: '0'
  category: main
  optional: false
- name: tensorflow
  version: '2.17.0'
  manager: pip
  platform: linux-64
  url: https://files.example/tensorflow.whl
  category: serve
  optional: true
- name: pytorch
  version: 2.1.0
  manager: conda
  platform: plan9-64
"""


def test_conda_lock() -> None:
    file = read("conda-lock.yml", CONDA_LOCK)
    assert listed(file) == [
        (9, "pytorch==2.1.0=cpu_generic_py311h1_0"),
        (21, "tensorflow==2.17.0"),
    ]
    assert [item.manager for item in file.requirements] == ["conda", "pip"]
    assert [item.group for item in file.requirements] == ["", "category serve"]
    assert file.requirements[0].channel == "https://conda.anaconda.org/conda-forge"
    assert [line.place.line for line in file.unread] == [28]
    with pytest.raises(UsageError, match="version 1 of conda-lock"):
        read("conda-lock.yml", CONDA_LOCK.replace("version: 1\n", "version: 2\n", 1))


@each("path", ["pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock"])
def test_broken_toml_is_wrong_usage(path: str) -> None:
    with pytest.raises(UsageError, match="not valid TOML"):
        read(path, "[[[")
    with pytest.raises(UsageError, match="nested too deeply"):
        read(path, "x = " + "[" * 100_000)


SAMPLES = (
    ("requirements.txt", REQUIREMENTS),
    ("pyproject.toml", PROJECT),
    ("pyproject.toml", POETRY),
    ("environment.yml", CONDA),
    ("uv.lock", UV_LOCK),
    ("poetry.lock", POETRY_LOCK),
    ("pixi.lock", PIXI_LOCK),
    ("pdm.lock", PDM_LOCK),
    ("conda-lock.yml", CONDA_LOCK),
)
PIECES = (
    *("torch", "==", "+cpu", "[cuda12]", "{", "}", "[", "]", '"', "'", "=", "\n", "\\", "#", ";"),
    *("\x00", "\u202e", "${X}", "- pip:", "::", "*", "|", "9" * 40, "===x", "-r", "true", "://["),
)


@pytest.mark.slow
@each("seed", range(700))
def test_a_damaged_file_is_read_in_part_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    path, text = chance.choice(SAMPLES)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(text) + 1)
        cut = chance.choice((0, 0, 1, 30))
        text = text[:place] + chance.choice(PIECES) + text[place + cut :]
    with contextlib.suppress(UsageError):
        file = read(path, text)
        assert all(0 < item.place.line <= text.count("\n") + 2 for item in file.requirements)


UV_EXTRAS = """\
version = 1
[[package]]
name = "mine"
version = "1"
source = { editable = "." }
dependencies = [{ name = "numpy" }]
[package.optional-dependencies]
cpu = [{ name = "onnxruntime" }]
gpu = [{ name = "embeddings", extra = ["fast"] }, { name = "numpy" }]
[package.dev-dependencies]
test = [{ name = "pytest" }]
[[package]]
name = "numpy"
version = "2"
[[package]]
name = "onnxruntime"
version = "1.20"
[[package]]
name = "embeddings"
version = "1"
[package.optional-dependencies]
fast = [{ name = "onnxruntime-gpu" }]
[[package]]
name = "onnxruntime-gpu"
version = "1.20"
[[package]]
name = "pytest"
version = "8"
"""


def test_a_lock_of_uv_shows_what_only_an_extra_installs() -> None:
    groups = {each.name: each.group for each in read("uv.lock", UV_EXTRAS).requirements}
    assert groups == {
        "numpy": "",
        "onnxruntime": "extra cpu",
        "embeddings": "extra gpu",
        "onnxruntime-gpu": "extra gpu",
        "pytest": "group test",
    }


def test_a_lock_of_uv_shows_on_which_systems_a_package_is_installed() -> None:
    text = """\
version = 1
requires-python = ">=3.10"
[[package]]
name = "app"
version = "1"
source = { virtual = "." }
dependencies = [
  { name = "tensorflow-cpu", marker = "sys_platform == 'linux'" },
  { name = "tensorflow-macos", marker = "sys_platform == 'darwin'" },
  { name = "both", marker = "sys_platform == 'darwin'" },
  { name = "numpy" },
]
[[package]]
name = "tensorflow-cpu"
version = "2.16"
dependencies = [{ name = "numpy" }, { name = "both" }]
[[package]]
name = "tensorflow-macos"
version = "2.16"
dependencies = [{ name = "tensorflow", marker = "platform_machine == 'arm64'" }]
[[package]]
name = "tensorflow"
version = "2.16"
[[package]]
name = "numpy"
version = "2"
[[package]]
name = "both"
version = "1"
"""
    markers = {each.name: each.marker for each in read("uv.lock", text).requirements}
    assert markers == {
        "tensorflow-cpu": "(sys_platform == 'linux')",
        "tensorflow-macos": "(sys_platform == 'darwin')",
        "tensorflow": "(platform_machine == 'arm64') and (sys_platform == 'darwin')",
        "numpy": "",
        "both": "(sys_platform == 'darwin') or (sys_platform == 'linux')",
    }


def test_a_lock_of_poetry_shows_what_only_an_extra_or_a_group_installs() -> None:
    text = """\
[[package]]
name = "onnxruntime-gpu"
version = "1.20"
optional = true
groups = ["main"]
[[package]]
name = "numpy"
version = "2"
optional = false
groups = ["main", "dev"]
[[package]]
name = "pytest"
version = "8"
optional = false
groups = ["dev"]
[extras]
gpu = ["onnxruntime-gpu"]
[metadata]
lock-version = "2.1"
python-versions = ">=3.10"
"""
    groups = [each.group for each in read("poetry.lock", text).requirements]
    assert groups == ["extra gpu", "", "group dev"]
