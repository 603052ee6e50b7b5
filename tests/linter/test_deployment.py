"""Files that are not Python: the chain from the service to the requirement, and its findings."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from tests.file_tree import write_tree
from whygpu.model.code_finding import LintReport
from whygpu.readers.deployment import yaml_tree

WRONG_CUDA = "FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu20.04\n"


def project(folder: pathlib.Path, files: dict[str, str]) -> LintReport:
    return whygpu.lint(write_tree(folder, files))


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
    assert (report.findings, report.problems, report.templates) == ((), (), 1)
    assert report.standing == "answered"


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
        "compose.yaml": f"services:\n  app:\n    build: .\n    image: {image}\n    tty: true\n",
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


@pytest.mark.parametrize(
    ("directives", "command"),
    [
        ("#SBATCH --ntasks=4\n#SBATCH --gpus-per-task=1", "export CUDA_VISIBLE_DEVICES=0,1,2,3"),
        ("#SBATCH --gres=gpu:1", 'CUDA_VISIBLE_DEVICES="" python prepare.py'),
        ("#PBS -l select=2:ngpus=1", "export CUDA_VISIBLE_DEVICES=0,1"),
        ('#BSUB -gpu "num=1/task"', "export CUDA_VISIBLE_DEVICES=0,1"),
    ],
)
def test_gpus_of_jobs_that_cannot_be_counted(
    tmp_path: pathlib.Path, directives: str, command: str
) -> None:
    script = f"#!/bin/bash\n{directives}\n{command}\npython train.py\n"
    assert found(tmp_path, project(tmp_path, {"train.sh": script})) == []


def test_a_partition_alone_is_only_a_hint(tmp_path: pathlib.Path) -> None:
    script = "#!/bin/bash\n#SBATCH -p gpu-a100\npython train.py\n"
    report = project(tmp_path, {"train.sh": script})
    assert [item.finding.severity for item in report.findings] == ["info"]
    assert "whole nodes" in report.findings[0].finding.message
    both = "#!/bin/bash\n#SBATCH -p gpu,cpu\npython train.py\n"
    assert found(tmp_path, project(tmp_path, {"train.sh": both})) == []


@pytest.mark.parametrize(
    "pod",
    [
        "volumes: [{name: d, hostPath: {path: /dev/nvidia0}}]",
        "containers: [{name: a, image: x/y:gpu, securityContext: {privileged: true}}]",
        "containers: [{name: a, image: x/y:gpu, resources: {limits: {tke.example/qgpu-core: 20}}}]",
    ],
)
def test_pods_that_may_get_gpus_in_another_way(tmp_path: pathlib.Path, pod: str) -> None:
    plain = "" if pod.startswith("containers") else "containers: [{name: a, image: x/y:gpu}], "
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{{plain}{pod}}}\n"
    assert found(tmp_path, project(tmp_path, {"pod.yaml": text})) == []
    asks = text.replace("hostPath: {path: /dev/nvidia0}", "emptyDir: {}")
    if asks != text:
        assert found(tmp_path, project(tmp_path, {"pod.yaml": asks})) != []


def test_tensorflow_beside_the_framework_that_the_image_is_for(tmp_path: pathlib.Path) -> None:
    docker = WRONG_CUDA + "RUN pip install torch tensorflow==2.3.0\n"
    assert found(tmp_path, project(tmp_path, {"Dockerfile": docker})) == []


@pytest.mark.parametrize(
    "text",
    [
        "pytorch\npytorch-cuda==11.8\n",
        "python==3.8\npytorch\ntensorflow-gpu\n",
        "--index-url https://pypi.example.com/simple\npytorch\ntensorflow-gpu\n",
    ],
)
def test_lists_that_are_not_for_pip_and_pypi(tmp_path: pathlib.Path, text: str) -> None:
    assert found(tmp_path, project(tmp_path, {"requirements.txt": text})) == []


def test_a_copy_of_pypi_has_its_packages(tmp_path: pathlib.Path) -> None:
    text = "-i https://mirrors.aliyun.com/pypi/simple\ntensorflow-gpu\n"
    report = project(tmp_path, {"requirements.txt": text})
    assert found(tmp_path, report) == [("WG318", "requirements.txt", 2)]


def test_lists_of_ignored_files_are_no_dockerfiles(tmp_path: pathlib.Path) -> None:
    report = project(tmp_path, {"Dockerfile.gpu.dockerignore": "FROM nvidia/cuda\n"})
    assert report.files == 0


PLANTED: dict[str, tuple[str, dict[str, str]]] = {
    "a library of the driver is copied": (
        "WG813",
        {"Dockerfile": "FROM ubuntu:22.04\nCOPY libcuda.so.1 /usr/lib/\n"},
    ),
    "the runtime is told to give no GPU": (
        "WG811",
        {
            "compose.yaml": "services:\n  a:\n    image: nvcr.io/nvidia/pytorch:24.01-py3\n"
            "    runtime: nvidia\n    environment: [NVIDIA_VISIBLE_DEVICES=none]\n"
        },
    ),
    "a module that needs a GPU is started": (
        "WG811",
        {
            "compose.yaml": "services:\n  a:\n    build: .\n    command: python -m app.train\n",
            "Dockerfile": "FROM python:3.11\nCOPY . .\n",
            "app/train.py": "import torch\nmodel = torch.nn.Linear(1, 1).cuda()\n",
        },
    ),
    "the limit is on another container": (
        "WG811",
        {
            "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
            "  - {name: train, image: 'nvcr.io/nvidia/pytorch:24.01-py3'}\n"
            "  - {name: logs, image: busybox, resources: {limits: {nvidia.com/gpu: 1}}}\n"
        },
    ),
    "a directive comes after a command": (
        "WG811",
        {"a.sh": "#!/bin/bash\n#SBATCH -t 1:00\ncd work\n#SBATCH --gres=gpu:1\npython train.py\n"},
    ),
    "a container asks for GPUs on a machine of GitHub": (
        "WG811",
        {
            ".github/workflows/t.yml": "on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n"
            "    container: {image: 'nvidia/cuda:12.4.1-base-ubuntu22.04', options: --gpus all}\n"
            "    steps: [{run: make}]\n"
        },
    ),
    "uv installs the CPU build of its lock file": (
        "WG301",
        {
            "Dockerfile": "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
            "RUN --mount=type=bind,source=uv.lock,target=uv.lock uv sync --frozen\n",
            "uv.lock": 'version = 1\n[[package]]\nname = "torch"\nversion = "2.4.0+cpu"\n'
            'source = { registry = "https://download.pytorch.org/whl/cpu" }\n',
        },
    ),
    "pdm installs the CPU build of its lock file": (
        "WG301",
        {
            "Dockerfile": "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCOPY pdm.lock .\n"
            "RUN pdm sync\n",
            "pdm.lock": '[metadata]\nlock_version = "4.4"\n[[package]]\nname = "torch"\n'
            'version = "2.4.0+cpu"\n',
        },
    ),
    "conda installs the CPU build": (
        "WG301",
        {
            "Dockerfile": "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\nCOPY environment.yml .\n"
            "RUN conda env create -f environment.yml\n",
            "environment.yml": "channels: [pytorch]\ndependencies:\n  - pytorch\n  - cpuonly\n",
        },
    ),
    "a job loads another CUDA": (
        "WG812",
        {
            "a.sh": "#!/bin/bash\n#SBATCH --gres=gpu:1\nml CUDA/10.2.89\n"
            "pip install -r r.txt\npython train.py\n",
            "r.txt": "tensorflow==2.11.0\n",
        },
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_defects_are_found(tmp_path: pathlib.Path, name: str) -> None:
    code, files = PLANTED[name]
    assert [each for each, _, _ in found(tmp_path, project(tmp_path, files))] == [code]


@pytest.mark.parametrize(
    "commands",
    [
        "module load cuda/11.8 cudnn/8.6\npip install tensorflow==2.12.0",
        "module load cuda/10.2\npip install torch==2.4.0",
        "module load cuda/10.2\nmodule load cuda/11.8\npip install tensorflow==2.12.0",
        "module load cuda/10.2\npip install tensorflow==2.12.0 nvidia-cudnn-cu11",
    ],
)
def test_modules_of_a_job_that_serve(tmp_path: pathlib.Path, commands: str) -> None:
    script = f"#!/bin/bash\n#SBATCH --gres=gpu:1\n{commands}\npython train.py\n"
    assert found(tmp_path, project(tmp_path, {"a.sh": script})) == []


@pytest.mark.parametrize(
    "variable",
    [
        "NVIDIA_DRIVER_CAPABILITIES=${NVIDIA_DRIVER_CAPABILITIES:+$NVIDIA_DRIVER_CAPABILITIES,}video",
        "CUDA_VISIBLE_DEVICES=$GPUS",
    ],
)
def test_values_with_variables_are_unknown(tmp_path: pathlib.Path, variable: str) -> None:
    docker = f"FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nENV {variable}\nRUN pip install torch\n"
    assert found(tmp_path, project(tmp_path, {"Dockerfile": docker})) == []


def test_a_comment_of_a_manifest_says_that_it_is_for_the_cpu(tmp_path: pathlib.Path) -> None:
    text = (
        "# Serving without GPU\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
        "  containers: [{name: a, image: 'vllm/vllm-openai:v0.6.0'}]\n"
    )
    assert found(tmp_path, project(tmp_path, {"pod.yaml": text})) == []
    plain = text.replace("# Serving without GPU\n", "")
    report = project(tmp_path, {"pod.yaml": plain})
    assert [item.finding.severity for item in report.findings] == ["warning"]
    named = plain.replace("vllm/vllm-openai:v0.6.0", "example/worker-gpu:1")
    report = project(tmp_path, {"pod.yaml": named})
    assert [item.finding.severity for item in report.findings] == ["info"]


POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n  - {}\n{}"
SERVER = "{{name: s, image: 'vllm/vllm-openai:v0.6.6'{}}}"


@pytest.mark.parametrize(
    ("command", "is_reported"),
    [
        ("", True),
        (", args: [Qwen/Qwen2.5-0.5B]", True),
        (", command: [vllm, serve, Qwen/Qwen2.5-0.5B]", True),
        (", command: [sh, -c, 'python3 -m vllm.entrypoints.openai.api_server']", True),
        (", command: [sh, -c, 'echo train.py; python3 /mnt/run_api_benchmark.py']", False),
        (", command: [sleep, infinity]", False),
    ],
)
def test_what_a_pod_starts_decides_not_the_image_that_it_starts_it_in(
    tmp_path: pathlib.Path, command: str, is_reported: bool
) -> None:
    report = project(tmp_path, {"pod.yaml": POD.format(SERVER.format(command), "")})
    assert bool(report.findings) is is_reported
    service = f"services:\n  s: {SERVER.format(command.replace('args', 'command'))}\n"
    if "command: [s" not in command and "vllm, serve" not in command:
        report = project(tmp_path / "compose", {"compose.yaml": service})
        assert bool(report.findings) is is_reported


def test_a_toleration_alone_puts_no_pod_on_a_node_with_gpus(tmp_path: pathlib.Path) -> None:
    tolerates = "  tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
    web = "{name: web, image: 'example/web:1', command: [nginx]}"
    assert found(tmp_path, project(tmp_path, {"pod.yaml": POD.format(web, tolerates)})) == []
    report = project(tmp_path, {"pod.yaml": POD.format("{name: w, image: 'a/train:1'}", tolerates)})
    assert [item.finding.severity for item in report.findings] == ["info"]
    commented = "name: w\n    image: example/w:1\n    resources:\n      # nvidia.com/gpu: 1"
    report = project(tmp_path, {"pod.yaml": POD.format(commented, tolerates)})
    assert found(tmp_path, report) == [("WG811", "pod.yaml", 9)]


def test_a_patch_gives_the_gpu(tmp_path: pathlib.Path) -> None:
    limit = ", resources: {limits: {nvidia.com/gpu: 1}}"
    patch = POD.format("{name: s" + limit + "}", "")
    files = {"k/base/pod.yaml": POD.format(SERVER.format(""), ""), "k/base/kustomization.yaml": ""}
    assert [code for code, _, _ in found(tmp_path, project(tmp_path, files))] == ["WG811"]
    files["k/overlays/gpu/patch.yaml"] = patch
    assert found(tmp_path / "p", project(tmp_path / "p", files)) == []
    only_patch = POD.format("{name: s}", "  nodeSelector: {accelerator: nvidia-t4}\n")
    assert found(tmp_path / "o", project(tmp_path / "o", {"patch.yaml": only_patch})) == []


@pytest.mark.parametrize(
    ("directives", "beside", "severity"),
    [
        ("#PBS -l nodes=1:ppn=9 -W x=GRES:gpu@1", "", None),
        ("#PBS -l nodes=gpu04:ppn=9", "", None),
        ("#SBATCH -w gpu-node-3", "", None),
        ("#SBATCH -t 1:00", "", None),
        ("#SBATCH -t 1:00", "#SBATCH --gres=gpu:1\npython prepare.py", None),
        ("#SBATCH -t 1:00", "#SBATCH --gres=gpu:1\npython train.py", "warning"),
        ("##SBATCH --gres=gpu:1\n#SBATCH -t 1:00", "", "warning"),
        ("#SBATCH -p gpu", "", "info"),
        ("#SBATCH -p gpu", "#SBATCH --gpus=1\npython prepare.py", "warning"),
    ],
)
def test_what_shows_that_a_job_should_ask_for_a_gpu(
    tmp_path: pathlib.Path, directives: str, beside: str, severity: str | None
) -> None:
    start = "#!/bin/bash\n"
    job = f"{start}{directives}\nmodule load cuda/12.1\npython train.py\n"
    report = project(tmp_path, {"train.sh": job, "beside.sh": f"{start}{beside}\n"})
    assert [item.finding.severity for item in report.findings] == ([severity] if severity else [])


def test_a_service_that_is_only_built_here(tmp_path: pathlib.Path) -> None:
    files = {
        "compose.yaml": "services:\n  t:\n    build: .\n",
        "Dockerfile": "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n",
        "run.sh": "docker compose build\ndocker run -it --gpus all t\n",
    }
    assert found(tmp_path, project(tmp_path, files)) == []
    files["README.md"] = "Run `docker compose up`.\n"
    started = tmp_path / "started"
    assert found(started, project(started, files)) == [("WG811", "compose.yaml", 2)]


@pytest.mark.parametrize(
    ("service", "beside"),
    [
        ("build: .\n    image: a/b:gpu", {}),
        ("build: .\n    labels: {lagoon.gpu: true}", {}),
        ("build: .\n    labels: [lagoon.gpu=true]", {}),
        ("build: .\n    volumes: ['/var/run/docker.sock:/var/run/docker.sock']", {}),
        ("build: .", {"README.md": 'Set `"default-runtime": "nvidia"` in daemon.json.'}),
        (
            "build: .\n    image: a/b:1\n    tty: true",
            {
                "README.md": "docker compose up web",
                "run.sh": "docker run \\\n  --gpus all \\\n  -v x:/y \\\n  a/b:1\n",
            },
        ),
        (
            "build: .\n    tty: true",
            {
                "compose-gpu.yml": "services:\n  g:\n    extends:\n      file: compose.yml\n"
                "      service: s\n    gpus: all\n"
            },
        ),
        (
            "build: .\n    tty: true",
            {"compose.prod.yml": "services:\n  other:\n    build: .\n    gpus: all\n"},
        ),
    ],
)
def test_services_that_get_gpus_in_another_way(
    tmp_path: pathlib.Path, service: str, beside: dict[str, str]
) -> None:
    docker = "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
    files = {"compose.yml": f"services:\n  s:\n    {service}\n", "Dockerfile": docker}
    assert found(tmp_path, project(tmp_path, {**files, **beside})) == []


def test_one_of_the_services_of_an_image_has_the_gpu_in_another_file(
    tmp_path: pathlib.Path,
) -> None:
    files = {
        "compose.build.yml": "services:\n  api:\n    build: .\n  worker:\n    build: .\n",
        "compose.yml": "services:\n  worker:\n    image: a/b:1\n    gpus: all\n",
        "Dockerfile": "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n",
    }
    assert found(tmp_path, project(tmp_path, files)) == []


def test_a_variable_may_be_enough_where_the_runtime_is_the_default(tmp_path: pathlib.Path) -> None:
    service = "services:\n  s:\n    image: {}\n    environment: [NVIDIA_VISIBLE_DEVICES=all]\n"
    container = "{{name: a, image: '{}', env: [{{name: NVIDIA_VISIBLE_DEVICES, value: all}}]}}"
    for number, image in enumerate(("a/hub:1", "nvidia/cuda:12.4.1-base-ubuntu22.04")):
        pod = POD.format(container.format(image), "")
        for name, text in (("compose.yml", service.format(image)), ("pod.yaml", pod)):
            folder = tmp_path / f"{name}{number}"
            report = project(folder, {name: text})
            assert [item.finding.severity for item in report.findings] == ["info"]
            assert "default" in report.findings[0].finding.message


def test_a_stub_in_an_image_that_compiles_a_framework(tmp_path: pathlib.Path) -> None:
    stub = "RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/lib/libcuda.so.1\n"
    base = "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n"
    assert found(tmp_path, project(tmp_path, {"Dockerfile": base + stub})) == [
        ("WG813", "Dockerfile", 2)
    ]
    build = "RUN bazel build //tensorflow/tools/pip_package:build_pip_package\n"
    assert found(tmp_path, project(tmp_path, {"Dockerfile": base + stub + build})) == []


@pytest.mark.parametrize(
    ("step", "is_quiet"),
    [
        ("pip install --force-reinstall onnxruntime-gpu", True),
        ("pip uninstall --yes onnxruntime && pip install onnxruntime-gpu", True),
        ("mv /usr/lib/python3/dist-packages/a /b && pip install onnxruntime-gpu", True),
        ("pip install onnxruntime-gpu", False),
    ],
)
def test_a_package_that_is_replaced_on_purpose(
    tmp_path: pathlib.Path, step: str, is_quiet: bool
) -> None:
    docker = f"FROM ubuntu:22.04\nRUN pip install onnxruntime\nRUN {step}\n"
    assert (not project(tmp_path, {"Dockerfile": docker}).findings) is is_quiet


@pytest.mark.parametrize(
    ("base", "severity"),
    [("pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", "info"), ("nvidia/cuda:12.8.0", "warning")],
)
def test_an_image_that_is_also_the_one_for_the_cpu_is_a_weak_reason(
    tmp_path: pathlib.Path, base: str, severity: str
) -> None:
    compose = "services:\n  train:\n    build: .\n    command: python train.py\n"
    dockerfile = f"FROM {base}\nCOPY train.py .\n"
    files = {"compose.yaml": compose, "Dockerfile": dockerfile, "train.py": "print()\n"}
    report = project(tmp_path, files)
    severities = [(item.finding.code, item.finding.severity) for item in report.findings]
    assert severities == [("WG811", severity)]


@pytest.mark.parametrize(
    ("base", "is_there"),
    [
        ("tensorflow/tensorflow:latest-gpu-py3", True),
        ("tensorflow/tensorflow:2.1.0-gpu", True),
        ("tensorflow/tensorflow:latest-gpu", False),
        ("nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04", False),
    ],
)
def test_the_images_of_tensorflow_had_its_removed_package(
    tmp_path: pathlib.Path, base: str, is_there: bool
) -> None:
    docker = f"FROM {base}\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    report = project(tmp_path, {"Dockerfile": docker, "requirements.txt": "tensorflow-gpu\n"})
    codes = [code for code, _, _ in found(tmp_path, report) if code == "WG318"]
    assert codes == ([] if is_there else ["WG318"])


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("run_cpu.sbatch", "#SBATCH -t 1\nmodule load CUDA/11.7\npython main.py\n"),
        ("run.sbatch", "#SBATCH -p shared-cpu\nmodule load CUDA/11.7\npython main.py\n"),
        ("run.sbatch", "#SBATCH -t 1\nmodule load CUDA/11.7\npython main.py --device cpu\n"),
        ("run.sbatch", "#SBATCH -t 1\nmodule load CUDA/11.7\nsrun python main.py --cpu\n"),
    ],
)
def test_a_job_for_the_cpu_loads_the_modules_of_its_twin(
    tmp_path: pathlib.Path, name: str, script: str
) -> None:
    twin = "#!/bin/bash\n#SBATCH --gres=gpu:1\nmodule load CUDA/11.7\npython main.py\n"
    report = project(tmp_path, {"gpu.sbatch": twin, name: "#!/bin/bash\n" + script})
    assert found(tmp_path, report) == []
    plain = script.replace("--device cpu", "").replace("--cpu", "").replace("shared-cpu", "short")
    report = project(tmp_path, {"gpu.sbatch": twin, "plain.sbatch": "#!/bin/bash\n" + plain})
    assert "plain.sbatch" in {file for _, file, _ in found(tmp_path, report)}


@pytest.mark.parametrize(
    ("system", "severity"), [("", "info"), ("-ubuntu18.04", "error")], ids=["unknown", "3.6"]
)
def test_the_newest_release_is_a_guess_without_a_python(
    tmp_path: pathlib.Path, system: str, severity: str
) -> None:
    docker = (
        f"FROM nvidia/cuda:10.0-cudnn7-devel{system}\nRUN apt-get install -y python3-pip\n"
        "RUN pip3 install tensorflow\n"
    )
    (item,) = project(tmp_path, {"Dockerfile": docker}).findings
    assert (item.finding.code, item.finding.severity) == ("WG812", severity)
    assert ("an older Python" in item.finding.message) is (severity == "info")


def test_the_gpu_may_be_for_the_other_framework(tmp_path: pathlib.Path) -> None:
    base = "FROM nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04\n"
    install = "COPY requirements_gpu.txt .\nRUN pip install -r requirements_gpu.txt\n"
    alone = {"Dockerfile": base + install, "requirements_gpu.txt": "tensorflow==2.18.0\n"}
    assert [code for code, _, _ in found(tmp_path, project(tmp_path, alone))] == ["WG812"]
    beside = {**alone, "Dockerfile": base + "RUN pip install torch==2.2.2\n" + install}
    (item,) = project(tmp_path, beside).findings
    assert item.finding.severity == "info"
    assert "the GPU may be for torch" in item.finding.message


@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({"docker-compose.gpu.yml": "services:\n  a:\n    build: .\n"}, "info"),
        ({"compose.yaml": "services:\n  a-gpu:\n    build: .\n"}, "info"),
        (
            {"compose.yaml": "services:\n  a: {image: 'jupyter/pytorch-notebook:cuda12-latest'}\n"},
            "warning",
        ),
    ],
    ids=["the name of the file", "the name of the service", "a variant of an image"],
)
def test_a_name_alone_is_a_weak_reason(
    tmp_path: pathlib.Path, files: dict[str, str], severity: str
) -> None:
    (item,) = project(tmp_path, {**files, "Dockerfile": "FROM python:3.11\n"}).findings
    assert (item.finding.code, item.finding.severity) == ("WG811", severity)


@pytest.mark.parametrize(
    ("step", "is_known"),
    [
        ("apt-get update && apt-get install -y python3-pip", True),
        ("wget https://www.python.org/ftp/python/3.10.12/Python-3.10.12.tgz", False),
        ("tar -xf Python-3.10.12.tgz && cd Python-3.10.12 && make install", False),
        ("echo nothing installs a Python", False),
    ],
)
def test_the_python_of_a_system_is_known_if_it_is_installed(
    tmp_path: pathlib.Path, step: str, is_known: bool
) -> None:
    base = "FROM nvidia/cuda:11.8.0-cudnn8-devel-ubuntu20.04\n"
    docker = f"{base}RUN {step}\nRUN pip3 install tensorflow==2.14.0\n"
    codes = [code for code, _, _ in found(tmp_path, project(tmp_path, {"Dockerfile": docker}))]
    assert codes == (["WG318"] if is_known else [])


def test_cuda_that_is_copied_is_there(tmp_path: pathlib.Path) -> None:
    docker = "FROM nvidia/cuda:12.4.1-base-ubuntu22.04\n{}RUN pip install tensorflow==2.11.0\n"
    copy = "COPY --from=nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04 /usr/local/cuda /opt/cuda\n"
    (item,) = project(tmp_path, {"Dockerfile": docker.format("")}).findings
    assert item.finding.code == "WG812"
    assert project(tmp_path, {"Dockerfile": docker.format(copy)}).findings == ()


def test_a_comment_is_for_the_other_service(tmp_path: pathlib.Path) -> None:
    compose = "# docker compose run predict --device cpu runs on CPU\nservices:\n{}    build: "
    compose += "{{context: ., dockerfile: {}}}\n"
    docker = "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nRUN pip install torch\n"
    files = {"compose.yaml": compose.format("  predict-gpu:\n", "Dockerfile.gpu")}
    report = project(tmp_path, {**files, "Dockerfile.gpu": docker})
    assert found(tmp_path, report) == [("WG811", "compose.yaml", 3)]
    files = {"compose.yaml": compose.format("  predict:\n", "Dockerfile")}
    assert found(tmp_path, project(tmp_path, {**files, "Dockerfile": docker})) == []


@pytest.mark.parametrize(
    ("target", "is_searched"),
    [
        ("/usr/lib/x86_64-linux-gnu/", True),
        ("/usr/local/cuda/lib64/libcuda.so.1", True),
        ("/opt/driver", True),
        ("/opt/tvm/build", False),
        ("$TVM_HOME/build", False),
    ],
)
def test_a_library_of_the_driver_counts_where_programs_search(
    tmp_path: pathlib.Path, target: str, is_searched: bool
) -> None:
    docker = (
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
        f"ENV LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/opt/driver/\nCOPY libcuda.so.1 {target}\n"
    )
    codes = [code for code, _, _ in found(tmp_path, project(tmp_path, {"Dockerfile": docker}))]
    assert codes == (["WG813"] if is_searched else [])


@pytest.mark.parametrize(("step", "severity"), [("make -j8", "info"), ("true", "warning")])
def test_the_gpu_may_be_for_what_an_image_compiles(
    tmp_path: pathlib.Path, step: str, severity: str
) -> None:
    docker = (
        f"FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN cd /opt/tvm && {step}\n"
        "RUN pip install torch==2.4.0+cpu -f https://download.pytorch.org/whl/torch_stable.html\n"
    )
    (item,) = project(tmp_path, {"Dockerfile": docker}).findings
    assert (item.finding.code, item.finding.severity) == ("WG301", severity)


@pytest.mark.parametrize(("name", "is_found"), [("Dockerfile.gpu", True), ("Dockerfile", False)])
def test_a_file_for_gpus_warns_of_the_cpu(
    tmp_path: pathlib.Path, name: str, is_found: bool
) -> None:
    docker = (
        "# do not overwrite torch with CPU wheels\nFROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
    )
    install = "RUN pip install torch --index-url https://download.pytorch.org/whl/cpu\n"
    report = project(tmp_path, {name: docker + install})
    assert bool(report.findings) is is_found


@pytest.mark.parametrize(
    "commands",
    [
        'if [ -n "$CUDA" ]; then pip install onnxruntime-gpu; else pip install onnxruntime; fi',
        "if [ -n $CUDA ]; then \\\n pip install onnxruntime-gpu; fi && pip install onnxruntime",
        '[ "$GPU" = 1 ] && pip install onnxruntime-gpu || pip install onnxruntime',
        "case $X in gpu) pip install onnxruntime-gpu;; *) pip install onnxruntime;; esac",
    ],
)
def test_what_only_a_condition_installs_is_unknown(tmp_path: pathlib.Path, commands: str) -> None:
    report = project(tmp_path, {"Dockerfile": f"FROM python:3.11\nRUN {commands}\n"})
    assert report.findings == ()


@pytest.mark.parametrize(
    "commands",
    [
        "pip install onnxruntime-gpu && pip install onnxruntime",
        "if [ -f r.txt ]; then pip install onnxruntime-gpu onnxruntime; fi",
        "if [ -f r.txt ]; then ls; else ls; fi; pip install onnxruntime onnxruntime-gpu",
    ],
)
def test_what_is_always_installed_counts(tmp_path: pathlib.Path, commands: str) -> None:
    report = project(tmp_path, {"Dockerfile": f"FROM python:3.11\nRUN {commands}\n"})
    assert [item.finding.code for item in report.findings] == ["WG311"]


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ("true", ["WG812"]),
        ("sed -n 1p requirements.txt", ["WG812"]),
        ("sed -i 's/2.3.0/2.11.0/' requirements.txt", []),
        ("echo tensorflow > requirements.txt", []),
        ("cp other.txt requirements.txt", []),
    ],
)
def test_a_file_that_the_image_changes_is_unknown(
    tmp_path: pathlib.Path, changes: str, codes: list[str]
) -> None:
    docker = f"{WRONG_CUDA}COPY . .\nRUN {changes}\nRUN pip install -r requirements.txt\n"
    files = {"Dockerfile": docker, "requirements.txt": "tensorflow==2.3.0\n"}
    report = project(tmp_path, files)
    assert [item.finding.code for item in report.findings] == codes


def test_a_lock_that_the_image_makes_anew_is_unknown(tmp_path: pathlib.Path) -> None:
    lock = (
        'version = 1\nrequires-python = ">=3.11"\n\n[[package]]\nname = "torch"\n'
        'version = "2.8.0+cpu"\nsource = { registry = "https://download.pytorch.org/whl/cpu" }\n'
    )
    docker = "FROM nvidia/cuda:12.6.0-runtime-ubuntu22.04\nCOPY uv.lock .\nRUN {}uv sync\n"
    made = project(tmp_path / "a", {"Dockerfile": docker.format("uv lock && "), "uv.lock": lock})
    assert made.findings == ()
    kept = project(tmp_path / "b", {"Dockerfile": docker.format(""), "uv.lock": lock})
    assert [item.finding.code for item in kept.findings] == ["WG301"]


@pytest.mark.parametrize(
    ("base", "codes"),
    [
        ("python:3.12", ["WG812"]),
        ("nvidia/cuda:12.6.0-base-ubuntu24.04", ["WG812"]),
        ("nvidia/cuda:12.6.0-runtime-ubuntu24.04", []),
        ("nvcr.io/nvidia/pytorch:24.01-py3", []),
        ("example/unknown:1", []),
    ],
)
def test_libraries_that_a_release_does_not_find_may_be_in_the_base(
    tmp_path: pathlib.Path, base: str, codes: list[str]
) -> None:
    docker = f"FROM {base}\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    files = {"Dockerfile": docker, "requirements.txt": "tensorflow[and-cuda]==2.21.0\n"}
    report = project(tmp_path, files)
    assert [item.finding.code for item in report.findings] == codes


@pytest.mark.parametrize(
    ("folder", "speaks"),
    [
        ("docker/cpu", False),
        ("docker/image-cpu", False),
        ("cpu-project", True),
        ("docker/cpu-gpu", True),
        ("docker/cpufreq", True),
    ],
)
def test_only_a_folder_for_a_variant_says_that_an_image_is_for_the_cpu(
    tmp_path: pathlib.Path, folder: str, speaks: bool
) -> None:
    docker = WRONG_CUDA + "RUN pip install tensorflow==2.3.0\n"
    files = {f"{folder}/Dockerfile": docker, "cpu-project/README.md": "x"}
    report = project(tmp_path, files)
    assert bool(report.findings) == speaks


@pytest.mark.parametrize(
    ("again", "codes"),
    [
        ("pip install torch", []),
        ("pip install --upgrade torch", ["WG318"]),
        ("pip install torch==2.8.0", ["WG318"]),
    ],
)
def test_what_is_installed_already_stays(
    tmp_path: pathlib.Path, again: str, codes: list[str]
) -> None:
    index = "--index-url https://download.pytorch.org/whl/cu122"
    docker = (
        "FROM nvidia/cuda:12.6.0-runtime-ubuntu22.04\nRUN apt-get install -y python3-pip\n"
        f"RUN pip install torch==2.7.0\nRUN {again} {index}\n"
    )
    report = project(tmp_path, {"Dockerfile": docker})
    assert [item.finding.code for item in report.findings] == codes


@pytest.mark.parametrize(
    ("code", "fails"),
    [
        ("import torch; assert torch.cuda.is_available()", True),
        ("import torch; assert torch.cuda.is_available(), 'no GPU'", True),
        ("import torch; assert torch.cuda.is_available() or True", False),
        ("import torch; assert not torch.cuda.is_available()", False),
        ("import torch; print(torch.cuda.is_available())", False),
        ("import tensorflow as tf; assert tf.config.list_physical_devices('GPU')", True),
        ("import tensorflow as tf; assert len(tf.config.list_physical_devices('GPU')) > 0", True),
        ("import tensorflow as tf; assert tf.config.list_physical_devices()", False),
        ("import sys, torch; sys.exit(not torch.cuda.is_available())", True),
        ("import torch; exit(0 if torch.cuda.is_available() else 1)", True),
        ("import torch; raise SystemExit(not torch.cuda.is_available())", True),
        ("import torch; exit(0)", False),
    ],
)
def test_a_step_of_a_build_that_ends_without_a_gpu(
    tmp_path: pathlib.Path, code: str, fails: bool
) -> None:
    docker = f'FROM nvidia/cuda:12.6.0-runtime-ubuntu22.04\nRUN python3 -c "{code}"\n'
    report = project(tmp_path, {"Dockerfile": docker})
    assert [item.finding.code for item in report.findings] == (["WG814"] if fails else [])


def test_a_service_that_the_readme_starts_is_not_only_built(tmp_path: pathlib.Path) -> None:
    files = {
        "compose.yaml": "services:\n  app:\n    image: app\n    build: .\n",
        "Dockerfile": "FROM nvidia/cuda:12.6.0-runtime-ubuntu22.04\nCMD python3 train.py\n",
    }
    assert project(tmp_path / "a", files).findings == ()
    files["README.md"] = "Run `docker compose up --build`.\n"
    (finding,) = project(tmp_path / "b", files).findings
    assert finding.finding.code == "WG811"


@pytest.mark.parametrize(
    ("image", "codes"),
    [
        ("vllm/vllm-openai:v${VLLM_VERSION}", ["WG811"]),
        ("${REGISTRY}/vllm-openai:latest", []),
        ("nvidia/cuda:${CUDA}", []),
    ],
)
def test_some_images_are_known_whatever_their_tag(
    tmp_path: pathlib.Path, image: str, codes: list[str]
) -> None:
    report = project(tmp_path, {"compose.yaml": f"services:\n  llm:\n    image: {image}\n"})
    assert [item.finding.code for item in report.findings] == codes


@pytest.mark.parametrize(
    ("image", "code", "codes"),
    [
        ("nvcr.io/nvidia/pytorch:25.01-py3", "x = torch.ones(2, device='cuda')", ["WG811"]),
        ("nvcr.io/nvidia/pytorch:25.01-py3", "print(torch.__version__)", []),
        ("1.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2-gpu-py312-x", "x.cuda()", ["WG811"]),
        ("1.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2-cpu-py312-x", "x.cuda()", []),
    ],
)
def test_code_in_the_command_of_a_pod(
    tmp_path: pathlib.Path, image: str, code: str, codes: list[str]
) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: b\n"
        f'    image: {image}\n    command: [python3, -c, "import torch; {code}"]\n'
    )
    report = project(tmp_path, {"pod.yaml": pod})
    assert [item.finding.code for item in report.findings] == codes


@pytest.mark.parametrize("number", ["²", "9" * 5000])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "pod.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - name: a\n"
            '    image: a\n    resources: {limits: {nvidia.com/gpu: "%s"}}\n',
        ),
        (
            "compose.yaml",
            "services:\n  a:\n    image: a\n    deploy: {resources: {reservations: {devices: "
            '[{driver: nvidia, count: "%s", capabilities: [gpu]}]}}}\n',
        ),
        ("job.sh", "#!/bin/bash\n#SBATCH --gpus=%s\npython train.py\n"),
        ("requirements.txt", "tensorflow==1,==%s\n"),
        ("poetry.lock", "x = %s\n"),
        ("pyproject.toml", 'x = %s\n[tool.poetry.dependencies]\ntorch = "^2"\n'),
    ],
)
def test_a_number_that_python_does_not_convert_ends_nothing(
    tmp_path: pathlib.Path, name: str, text: str, number: str
) -> None:
    project(tmp_path, {name: text % number})
