"""Files that are not Python: the chain from the service to the requirement, and its findings."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from whygpu.model.code_finding import LintReport
from whygpu.readers.deployment import yaml_tree

WRONG_CUDA = "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu20.04\n"


def project(folder: pathlib.Path, files: dict[str, str]) -> LintReport:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return whygpu.lint(folder)


def found(folder: pathlib.Path, report: LintReport) -> list[tuple[str, str, int]]:
    return [
        (item.finding.code, str(pathlib.Path(item.path).relative_to(folder)), item.line)
        for item in report.findings
    ]


@pytest.mark.parametrize(
    ("dockerfile", "requirements"),
    [
        ("COPY requirements.txt .\nRUN pip install -r requirements.txt\n", "requirements.txt"),
        ("COPY requirements.txt /tmp/r.txt\nRUN pip install -r /tmp/r.txt\n", "requirements.txt"),
        ("WORKDIR /app\nCOPY . .\nRUN pip install -r deps/gpu.txt\n", "deps/gpu.txt"),
        ("WORKDIR /app\nADD deps /x/\nRUN cd /x\nRUN pip install -r /x/gpu.txt\n", "deps/gpu.txt"),
        ("COPY req*.txt ./\nRUN pip install -r requirements.txt\n", "requirements.txt"),
        ("COPY . /app\nWORKDIR /app\nRUN pip install .\n", "pyproject.toml"),
    ],
)
def test_files_that_a_dockerfile_copies_are_followed(
    tmp_path: pathlib.Path, dockerfile: str, requirements: str
) -> None:
    text = "numpy\ntensorflow==2.3.0\n"
    if requirements.endswith("toml"):
        text = '[project]\nname = "x"\ndependencies = [\n  "tensorflow==2.3.0",\n]\n'
    report = project(tmp_path, {"Dockerfile": WRONG_CUDA + dockerfile, requirements: text})
    line = 4 if requirements.endswith("toml") else 2
    assert found(tmp_path, report) == [("WG812", requirements, line)]


def test_a_file_above_the_dockerfile_is_found_by_its_context(tmp_path: pathlib.Path) -> None:
    docker = WRONG_CUDA + "COPY app/requirements.txt /r.txt\nRUN pip install -r /r.txt\n"
    files = {"docker/Dockerfile": docker, "app/requirements.txt": "tensorflow==2.3.0\n"}
    assert found(tmp_path, project(tmp_path, files)) == [("WG812", "app/requirements.txt", 1)]


def test_nothing_outside_of_the_build_context_is_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "outside.txt").write_text("tensorflow==2.3.0\n")
    copied = "COPY ../outside.txt /r.txt\nRUN pip install -r /r.txt\n"
    report = project(tmp_path / "in", {"Dockerfile": WRONG_CUDA + copied})
    assert report.findings == ()


def test_a_file_that_two_images_install_is_reported_once(tmp_path: pathlib.Path) -> None:
    docker = WRONG_CUDA + "COPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    files = {"Dockerfile": docker, "Dockerfile.dev": docker, "requirements.txt": "tensorflow-gpu\n"}
    assert found(tmp_path, project(tmp_path, files)) == [("WG318", "requirements.txt", 1)]


def test_the_chain_from_the_service_to_the_requirement(tmp_path: pathlib.Path) -> None:
    files = {
        "compose.yaml": "services:\n  train:\n    build: {context: app}\n    gpus: all\n",
        "app/Dockerfile": "FROM python:3.10\nCOPY r.txt .\nRUN pip install -r r.txt\n",
        "app/r.txt": "tensorflow==2.11.0\n",
    }
    report = project(tmp_path, files)
    assert found(tmp_path, report) == [("WG812", "app/r.txt", 1)]
    message = report.findings[0].finding.message
    assert "the service train gets a GPU" in message
    assert "python:3.10" in message


def test_comments_take_findings_back(tmp_path: pathlib.Path) -> None:
    above = "# whygpu: ignore[WG814] the builder has a GPU\nRUN nvidia-smi\n"
    report = project(tmp_path, {"Dockerfile": "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n" + above})
    assert report.findings == ()
    assert [item.reason for item in report.ignored] == ["the builder has a GPU"]


def test_safe_fixes_keep_the_rest_of_the_file(tmp_path: pathlib.Path) -> None:
    docker = tmp_path / "Dockerfile"
    docker.write_bytes(
        b"FROM nvidia/cuda:12.4.1-base-ubuntu22.04\r\n"
        b"ENV A=1 \\\r\n    NVIDIA_DRIVER_CAPABILITIES=utility \\\r\n    B=2\r\n"
        b"RUN pip install torch\r\n"
    )
    assert whygpu.lint(docker, fix=True).fixed == 1
    assert b"    NVIDIA_DRIVER_CAPABILITIES=compute,utility \\\r\n" in docker.read_bytes()
    assert whygpu.lint(docker).findings == ()


def test_without_the_reader_for_yaml_lint_says_what_it_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_tree, "find_spec", lambda name: None)
    report = project(tmp_path, {"compose.yaml": "services: {}\n"})
    assert "whygpu[infra]" in report.problems[0].message
    assert report.exit_code == 2


def test_templates_are_not_guessed_at(tmp_path: pathlib.Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: {{ .Values.image }}\n"
    report = project(tmp_path, {"templates/pod.yaml": text})
    assert (report.findings, report.problems) == ((), ())


@pytest.mark.parametrize("rest", ["  nvidia.com/gpu: 1\n", "  image: app\n"])
def test_broken_manifests_are_not_counted_as_checked(tmp_path: pathlib.Path, rest: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nspec:\n  containers: [\n{rest}"
    report = project(tmp_path, {"pod.yaml": text})
    (problem,) = report.problems
    assert (problem.kind, report.unread, report.exit_code) == ("syntax", 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "about: the keys apiVersion and containers: [\n",
        "#!/bin/sh\nset -e\nkubectl apply -f - <<EOF\napiVersion: v1\nspec: {containers: [\nEOF\n",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers: {{ containers }}\n",
    ],
)
def test_broken_yaml_that_is_no_manifest_is_quiet(tmp_path: pathlib.Path, text: str) -> None:
    assert project(tmp_path, {"values.yaml": text}).problems == ()


@pytest.mark.parametrize(
    ("image", "is_quiet"), [("server-cpu:local", True), ("server:cpu", True), ("server:1", False)]
)
def test_the_name_of_a_built_image_says_that_it_is_for_the_cpu(
    tmp_path: pathlib.Path, image: str, is_quiet: bool
) -> None:
    files = {
        "compose.yaml": f"services:\n  app:\n    build: .\n    image: {image}\n",
        "Dockerfile": "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nCMD python app.py\n",
    }
    assert (not project(tmp_path, files).findings) is is_quiet


def test_other_yaml_and_scripts_are_not_counted(tmp_path: pathlib.Path) -> None:
    files = {"a.yaml": "x: 1\n", "b.sh": "echo\n", "c.sh": "#SBATCH -p cpu\n", "d.py": "x = 1\n"}
    assert project(tmp_path, files).files == 2


def test_a_dev_container_in_its_hidden_folder_is_found(tmp_path: pathlib.Path) -> None:
    text = '{\n  "image": "nvcr.io/nvidia/pytorch:24.01-py3"\n}\n'
    report = project(tmp_path, {".devcontainer/devcontainer.json": text})
    assert [item.finding.code for item in report.findings] == ["WG811"]


def test_settings_apply_to_the_file_of_the_finding(tmp_path: pathlib.Path) -> None:
    settings = '[tool.whygpu.lint.per-file-ignores]\n"requirements.txt" = ["WG318"]\n'
    files = {"pyproject.toml": settings, "requirements.txt": "tensorflow-gpu\n"}
    assert project(tmp_path, files).findings == ()


def test_extras_that_exclude_each_other_may_own_one_module(tmp_path: pathlib.Path) -> None:
    lock = """\
version = 1
[[package]]
name = "mine"
version = "1"
source = { virtual = "." }
[package.optional-dependencies]
cpu = [{ name = "onnxruntime" }]
gpu = [{ name = "onnxruntime-gpu" }]
[[package]]
name = "onnxruntime"
version = "1.20.1"
[[package]]
name = "onnxruntime-gpu"
version = "1.20.1"
"""
    assert found(tmp_path, project(tmp_path, {"uv.lock": lock})) == []
    both = lock.replace("]\ngpu = [", ", ")
    assert found(tmp_path, project(tmp_path, {"uv.lock": both})) == [("WG311", "uv.lock", 9)]


RUNTIME = "services:\n  train:\n    build: .\n    runtime: nvidia\n"


@pytest.mark.parametrize(
    ("dockerfile", "more", "refused"),
    [
        ("FROM python:3.11\n", "", True),
        ("FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n", "", False),
        ("FROM python:3.11\nENV NVIDIA_VISIBLE_DEVICES=all\n", "", False),
        ("FROM python:3.11\n", "    environment: [NVIDIA_VISIBLE_DEVICES]\n", False),
        ("FROM python:3.11\n", "    env_file: .env\n", False),
        ("FROM example/mine:1\n", "", False),
    ],
)
def test_the_runtime_alone_gives_no_gpu_to_a_plain_image(
    tmp_path: pathlib.Path, dockerfile: str, more: str, refused: bool
) -> None:
    files = {"compose.yaml": RUNTIME + more, "Dockerfile": dockerfile}
    wanted = [("WG811", "compose.yaml", 4)] if refused else []
    assert found(tmp_path, project(tmp_path, files)) == wanted


def test_the_machine_that_it_is_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.4.1\n")
    assert found(tmp_path, whygpu.lint(tmp_path)) == []
    for driver, gpu, code in (("580.65", "RTX 5090", "WG303"), ("470.82", "8.0", "WG106")):
        report = whygpu.lint(tmp_path, driver=driver, gpu=gpu)
        assert found(tmp_path, report) == [(code, "requirements.txt", 1)]
    assert found(tmp_path, whygpu.lint(tmp_path, driver="550.54", gpu="A100")) == []


def test_a_misspelt_resource_is_fixed(tmp_path: pathlib.Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    resources:\n"
    files = {"pod.yaml": f"{pod}      limits:\n        nvidia.com/gpus: 1 # one\n"}
    assert found(tmp_path, project(tmp_path, files)) == [("WG811", "pod.yaml", 8)]
    assert whygpu.lint(tmp_path, fix=True).findings == ()
    assert (tmp_path / "pod.yaml").read_text().endswith("        nvidia.com/gpu: 1 # one\n")


def test_the_chain_ends_at_the_statement_that_needs_a_gpu(tmp_path: pathlib.Path) -> None:
    files = {
        "compose.yaml": "services:\n  train:\n    build: app\n",
        "app/Dockerfile": "FROM python:3.11\nCOPY . /srv/app\nCMD python /srv/app/src/train.py\n",
        "app/src/train.py": "import torch\ntorch.zeros(1).cuda()\n",
    }
    (item,) = project(tmp_path, files).findings
    assert (item.finding.code, item.line) == ("WG811", 2)
    assert "train.py:2 needs one" in item.finding.message


def test_workflows_in_their_hidden_folder_are_read(tmp_path: pathlib.Path) -> None:
    job = "jobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install "
    files = {".github/workflows/a.yml": f"{job}tensorflow-gpu==2.12.0\n"}
    assert found(tmp_path, project(tmp_path, files)) == [("WG318", ".github/workflows/a.yml", 5)]


def test_a_replaced_search_path_is_fixed(tmp_path: pathlib.Path) -> None:
    docker = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV LD_LIBRARY_PATH=/opt/lib\n"
    assert found(tmp_path, project(tmp_path, {"Dockerfile": docker})) == [
        ("WG817", "Dockerfile", 2)
    ]
    assert whygpu.lint(tmp_path, fix=True).findings == ()
    wanted = "ENV LD_LIBRARY_PATH=/opt/lib:${LD_LIBRARY_PATH}\n"
    assert (tmp_path / "Dockerfile").read_text().endswith(wanted)


def test_a_second_framework_for_the_cpu_is_a_choice(tmp_path: pathlib.Path) -> None:
    base = "FROM {}\nRUN pip install tensorflow-cpu==2.15.0\n"
    torch = base.format("pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime")
    assert found(tmp_path, project(tmp_path, {"Dockerfile": torch})) == []
    plain = base.format("nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04")
    assert found(tmp_path, project(tmp_path, {"Dockerfile": plain})) == [("WG301", "Dockerfile", 2)]


@pytest.mark.parametrize(
    ("above", "command", "quiet"),
    [
        ("# CPU testing, without GPUs\n", "", True),
        ("# for training\n", "", False),
        ("", "    command: tensorboard --logdir /logs\n", True),
    ],
)
def test_services_that_need_no_gpu(
    tmp_path: pathlib.Path, above: str, command: str, quiet: bool
) -> None:
    service = f"{above}services:\n  a:\n    image: tensorflow/tensorflow:2.15.0-gpu\n{command}"
    assert (found(tmp_path, project(tmp_path, {"compose.yaml": service})) == []) is quiet


def test_optional_packages_of_poetry_are_alternatives(tmp_path: pathlib.Path) -> None:
    text = """\
[tool.poetry.dependencies]
onnxruntime = {version = "1.20.1", optional = true}
onnxruntime-gpu = {version = "1.20.1", optional = true}
[tool.poetry.extras]
cpu = ["onnxruntime"]
gpu = ["onnxruntime-gpu"]
"""
    assert found(tmp_path, project(tmp_path, {"pyproject.toml": text})) == []


def test_steps_on_another_machine_are_not_judged(tmp_path: pathlib.Path) -> None:
    job = "jobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          {}\n"
    steps = "docker run --gpus all x"
    files = {".github/workflows/a.yml": job.format(steps)}
    assert found(tmp_path, project(tmp_path, files)) == [("WG811", ".github/workflows/a.yml", 2)]
    steps = f'eval "$(docker-machine env there)"\n          {steps}'
    assert found(tmp_path, project(tmp_path, {".github/workflows/a.yml": job.format(steps)})) == []


def test_an_extra_index_without_the_release_leaves_it_to_pypi(tmp_path: pathlib.Path) -> None:
    index = "https://download.pytorch.org/whl/cu113\ntorch==2.2.0\n"
    files = {"requirements.txt": f"--extra-index-url {index}"}
    assert found(tmp_path, project(tmp_path, files)) == []
    docker = "FROM python:3.10\nCOPY r.txt .\nRUN pip install -r r.txt\n"
    files = {"Dockerfile": docker, "r.txt": f"--index-url {index}"}
    assert found(tmp_path, project(tmp_path, files)) == [("WG318", "r.txt", 2)]


@pytest.mark.parametrize(
    ("file", "services", "line"),
    [
        ("compose.yaml", "  gpu:\n    build: .\n", 2),
        ("compose.yaml", "  gpu-exporter:\n    build: .\n", None),
        ("docker-compose-gpu.yml", "  app:\n    build: .\n  db:\n    image: postgres\n", 2),
        ("docker-compose-gpu.yml", "  app:\n    image: mine\n", 2),
        ("docker-compose-gpu.yml", "  app:\n    build: .\n  web:\n    build: web\n", None),
        ("docker-compose-gpu.yml", "  app:\n    build: .\n  a:\n    gpus: all\n", None),
    ],
)
def test_names_say_that_a_gpu_is_meant(
    tmp_path: pathlib.Path, file: str, services: str, line: int | None
) -> None:
    report = project(tmp_path, {file: f"services:\n{services}"})
    assert found(tmp_path, report) == ([("WG811", file, line)] if line else [])


def test_variables_choose_the_index_of_pip(tmp_path: pathlib.Path) -> None:
    docker = (
        "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n"
        "ENV PIP_INDEX_URL=https://download.pytorch.org/whl/{}\n"
        "RUN pip install torch==2.5.1\n"
    )
    for index, wanted in (("cpu", [("WG301", "Dockerfile", 3)]), ("cu124", [])):
        report = project(tmp_path, {"Dockerfile": docker.format(index)})
        assert found(tmp_path, report) == wanted
