"""What would make a finding false decides whether it is a warning, a note or nothing."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from tests.linter.test_deployment import project

CUDA = "FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04\nRUN apt-get install -y python3-pip\n"
OLD = CUDA + "RUN pip3 install tensorflow==2.9.0\n"
CPU_TORCH = "RUN pip3 install torch --index-url https://download.pytorch.org/whl/cpu\n"
VLLM = "services:\n  llm:\n    image: vllm/vllm-openai:v1\n"
GIVEN = "services:\n  llm:\n    gpus: all\n"
JOB = "#!/bin/bash\n#SBATCH -p gpu\n##SBATCH --gres=gpu:1\npython train.py\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
    - {name: main, image: "vllm/vllm-openai:v1"}
"""
TRAIN = "import torch\nfrom torch.utils.data import DataLoader\n{}\nDataLoader(d, num_workers=4)\n"
SERVICE = "services:\n  train:\n    build: .\n    gpus: all\n"


def levels(folder: pathlib.Path, files: dict[str, str]) -> list[tuple[str, str]]:
    """The code and the level of each finding."""
    report = project(folder, {"pyproject.toml": "", **files})
    return [(item.finding.code, item.finding.severity) for item in report.findings]


def messages(folder: pathlib.Path, files: dict[str, str]) -> str:
    report = project(folder, {"pyproject.toml": "", **files})
    return "\n".join(item.finding.message for item in report.findings)


@pytest.mark.parametrize(
    ("dockerfile", "others", "expected"),
    [
        (OLD, {}, "error"),
        (OLD + "RUN bash setup.sh\n", {}, "info"),
        (OLD + "COPY . .\nRUN bash setup.sh\n", {"setup.sh": "pip3 install numpy\n"}, "error"),
        (OLD + "COPY . .\nRUN ./a.sh\n", {"a.sh": "bash b.sh\n", "b.sh": "ls\n"}, "error"),
        (OLD + "RUN curl https://example.com/x | bash\n", {}, "info"),
        (OLD + "RUN curl https://sh.rustup.rs | bash\n", {}, "error"),
        (OLD + "RUN wget https://x.org/Miniconda3.sh && bash Miniconda3.sh -b\n", {}, "error"),
        (OLD + "RUN . venv/bin/activate && bash -c 'echo 1'\n", {}, "error"),
        (OLD + "RUN pip3 install -r absent.txt\n", {}, "info"),
        (OLD + "RUN pip3 install git+https://github.com/openai/whisper\n", {}, "error"),
        (OLD + "RUN if [ $A = 1 ]; then pip3 install numpy; fi\n", {}, "info"),
        (OLD + "RUN pip3 install tensorflow==2.18.0\n", {}, None),
        (OLD + "RUN pip3 uninstall -y tensorflow\n", {}, None),
        (OLD + "RUN apt-get install -y libcudnn8\n", {}, "error"),
        (OLD + "RUN apt-get install -y cuda-toolkit-11-2\n", {}, None),
    ],
)
def test_what_else_is_installed_is_looked_at(
    tmp_path: pathlib.Path, dockerfile: str, others: dict[str, str], expected: str | None
) -> None:
    found = dict(levels(tmp_path, {"Dockerfile": dockerfile, **others}))
    assert found.get("WG812") == expected


def test_a_note_says_what_could_not_be_looked_at(tmp_path: pathlib.Path) -> None:
    text = messages(tmp_path, {"Dockerfile": OLD + "RUN bash setup.sh\n"})
    assert text.endswith("; setup.sh, which it runs, was not found")


def test_a_file_that_comes_through_another_stage_is_read(tmp_path: pathlib.Path) -> None:
    dockerfile = (
        "FROM ubuntu:22.04 AS files\nCOPY . /src\n"
        + CUDA
        + "COPY --from=files /src /app\nRUN pip3 install -r /app/requirements.txt\n"
    )
    files = {"Dockerfile": dockerfile, "requirements.txt": "tensorflow==2.9.0\n"}
    assert levels(tmp_path, files) == [("WG812", "error")]


ARGUMENT = "ARG CUDA=12.4.1\n" + OLD.replace("12.4.1", "${CUDA}")
BUILDS = "services:\n  a:\n    gpus: all\n    build:\n      context: .\n      args:\n        "


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, ["error"]),
        ({"ci/Makefile": "b:\n\tdocker build --build-arg CUDA=11.2.2 .\n"}, ["info"]),
        ({"ci/Makefile": "b:\n\tdocker build --build-arg USER=me .\n"}, ["error"]),
        ({"ci/build.yml": "with:\n  build-args: |\n    CUDA=11.2.2\n"}, ["info"]),
        ({"compose.yaml": BUILDS + "CUDA: 12.4.1\n"}, ["error"]),
    ],
)
def test_arguments_of_the_build_are_looked_at(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[str]
) -> None:
    found = levels(tmp_path, {"Dockerfile": ARGUMENT, **others})
    assert found == [("WG812", level) for level in expected]


def test_the_arguments_of_a_service_choose_its_base(tmp_path: pathlib.Path) -> None:
    """The image alone may be built with them, so it is only a note there."""
    files = {"Dockerfile": ARGUMENT, "compose.yaml": BUILDS + "CUDA: 11.2.2\n"}
    assert levels(tmp_path, files) == [("WG812", "info")]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, ["warning"]),
        ({"host/daemon.json": '{"default-runtime": "nvidia"}\n'}, []),
        ({"docs/setup.md": '{"default-runtime": "nvidia"}\n'}, ["info"]),
        ({"setup.sh": "nvidia-ctk runtime configure --runtime=docker --set-as-default\n"}, []),
        ({"setup.sh": "az cloud profile --set-as-default\n"}, ["warning"]),
        ({"other/compose.yaml": GIVEN + "    image: example/other:1\n"}, ["warning"]),
        ({"deploy/gpu/compose.yaml": GIVEN}, ["info"]),
        ({"deploy/gpu/compose.yaml": GIVEN.replace("llm", "web")}, ["warning"]),
    ],
)
def test_gpus_that_another_file_gives_to_a_service(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[str]
) -> None:
    found = levels(tmp_path, {"app/compose.yaml": VLLM, **others})
    assert found == [("WG811", level) for level in expected]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, ["warning"]),
        ({"README.md": "    sbatch --gres=gpu:1 jobs/train.sbatch\n"}, []),
        ({"tools/all.py": 'run(f"sbatch --gpus=2 {script}")\n'}, ["info"]),
        ({"README.md": "    sbatch --gres=gpu:1 other.sbatch\n"}, ["warning"]),
        ({"README.md": "    sbatch --gres=gpu:1 ./train.sbatch\n"}, []),
        ({"README.md": "    sbatch --gres=gpu:1 pretrain.sbatch\n"}, ["warning"]),
        ({"README.md": "    sbatch --gres=gpu:1 old/train.sbatch\n"}, ["info"]),
        ({"README.md": "    sbatch --gres=tmp:10G jobs/train.sbatch\n"}, ["warning"]),
    ],
)
def test_gpus_that_a_job_is_submitted_with(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[str]
) -> None:
    found = levels(tmp_path, {"jobs/train.sbatch": JOB, **others})
    assert found == [("WG811", level) for level in expected]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, ["warning"]),
        ({"run.sh": "kubectl set resources pod llm --limits nvidia.com/gpu=1\n"}, ["info"]),
        ({"run.sh": "kubectl set resources pod llms --limits nvidia.com/gpu=1\n"}, ["warning"]),
        ({"x/y/z.yaml": "metadata:\n  name: llm\nlimits:\n  nvidia.com/gpu: 1\n"}, ["info"]),
        ({"x/y/z.yaml": "metadata:\n  name: web\nlimits:\n  nvidia.com/gpu: 1\n"}, ["warning"]),
    ],
)
def test_gpus_that_another_file_gives_to_a_pod(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[str]
) -> None:
    found = levels(tmp_path, {"k8s/base/pod.yaml": POD, **others})
    assert found == [("WG811", level) for level in expected]


@pytest.mark.parametrize(
    ("file", "content"),
    [("compose.yaml", VLLM), ("jobs/train.sbatch", JOB), ("k8s/base/pod.yaml", POD)],
)
def test_a_project_that_is_too_large_to_look_through(
    tmp_path: pathlib.Path, file: str, content: str
) -> None:
    files = {f"data/{number}.json": "{}" for number in range(5001)}
    assert levels(tmp_path, {file: content, **files}) == [("WG811", "info")]


def test_a_project_with_too_much_text_to_look_through(tmp_path: pathlib.Path) -> None:
    files = {f"data/{number}.md": "x" * 500_000 for number in range(70)}
    assert levels(tmp_path, {"compose.yaml": VLLM, **files}) == [("WG811", "info")]


def test_scripts_that_start_one_another_are_not_read_without_end(tmp_path: pathlib.Path) -> None:
    files = {
        "Dockerfile": OLD + "COPY . .\nRUN bash a.sh\n" * 50,
        "a.sh": "bash b.sh\n" * 50,
        "b.sh": "bash a.sh\n" * 50,
    }
    assert levels(tmp_path, files) == [("WG812", "info")]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("setup.sh", "dockerd --default-runtime=nvidia\n", []),
        ("setup.sh", "# never set default-runtime=nvidia\n", [("WG811", "warning")]),
        ("a.json", '{"about": "do not set default-runtime: nvidia"}\n', [("WG811", "warning")]),
    ],
)
def test_a_comment_about_the_default_runtime_sets_nothing(
    tmp_path: pathlib.Path, name: str, text: str, expected: list[tuple[str, str]]
) -> None:
    assert levels(tmp_path, {"docker-compose.yml": VLLM, name: text})[:1] == expected


LONG = "9" * 6000


@pytest.mark.parametrize(
    "lines",
    [
        "tensorflow-gpu===weird\n",
        f"tensorflow-gpu\nnumpy=={LONG}\n",
        f"tensorflow-gpu\nnumpy==1.{LONG}\nh5py===abc\n",
    ],
)
def test_odd_pins_are_no_crash(tmp_path: pathlib.Path, lines: str) -> None:
    image = f"{CUDA}COPY . .\nRUN pip3 install -r requirements.txt\n"
    image += f"RUN pip3 install numpy=={LONG}\nRUN pip3 install 'numpy>=1'\n"
    report = project(tmp_path, {"Dockerfile": image, "requirements.txt": lines})
    assert [each for each in report.problems if each.kind == "crashed"] == []


def test_a_version_of_thousands_of_digits_is_no_crash(tmp_path: pathlib.Path) -> None:
    version = "2." + "9" * 6000
    levels(
        tmp_path,
        {"requirements.txt": f"tensorflow=={version}\ntensorflow-gpu=={version}\n"},
    )


GITLAB = """\
train:
  image: nvidia/cuda:12.4.1-base-ubuntu22.04
  tags: [gpu]
  script: [nvidia-smi]
"""
GITHUB = """\
on: push
jobs:
  a:
    runs-on: [self-hosted, gpu]
    container: nvidia/cuda:12.4.1-base-ubuntu22.04
    steps: []
"""
ONE_GPU = """\
services:
  train:
    image: vllm/vllm-openai:v1
    deploy: {resources: {reservations: {devices: [{count: 1, capabilities: [gpu]}]}}}
    environment: [CUDA_VISIBLE_DEVICES=4]
"""


def test_a_runner_decides_what_its_containers_get(tmp_path: pathlib.Path) -> None:
    assert levels(tmp_path / "1", {".gitlab-ci.yml": GITLAB}) == []
    assert levels(tmp_path / "2", {".github/workflows/a.yml": GITHUB}) == [("WG811", "info")]


@pytest.mark.parametrize(
    ("folder", "content", "expected"),
    [
        ("gpu", '"name": "x"', ["warning"]),
        ("cpu", '"name": "x"', []),
        ("dev", '"name": "x (CPU)"', []),
    ],
)
def test_a_dev_container_for_the_cpu(
    tmp_path: pathlib.Path, folder: str, content: str, expected: list[str]
) -> None:
    text = f'{{{content}, "build": {{"dockerfile": "../../Dockerfile"}}}}\n'
    files = {f".devcontainer/{folder}/devcontainer.json": text, "Dockerfile": CUDA}
    assert levels(tmp_path, files) == [("WG811", level) for level in expected]


def test_the_target_of_a_dev_container_is_built(tmp_path: pathlib.Path) -> None:
    text = '{"build": {"dockerfile": "../Dockerfile", "target": "light"}}\n'
    files = {
        ".devcontainer/devcontainer.json": text,
        "Dockerfile": "FROM python:3.11 AS light\n" + CUDA,
    }
    assert levels(tmp_path, files) == []


def test_numbers_of_gpus_in_a_job_may_be_those_of_the_machine(tmp_path: pathlib.Path) -> None:
    job = "#!/bin/bash\n#SBATCH --gres=gpu:1\nexport CUDA_VISIBLE_DEVICES=4\npython train.py\n"
    assert levels(tmp_path / "1", {"a.sbatch": job}) == [("WG401", "info")]
    assert levels(tmp_path / "2", {"compose.yaml": ONE_GPU}) == [("WG401", "warning")]


def test_what_an_image_alone_leaves_open_is_certain_for_its_service(
    tmp_path: pathlib.Path,
) -> None:
    image = {"Dockerfile": CUDA + "ENV CUDA_VISIBLE_DEVICES=-1\n"}
    assert levels(tmp_path / "1", image) == [("WG401", "info")]
    with_service = {**image, "compose.yaml": SERVICE}
    assert levels(tmp_path / "2", with_service) == [("WG401", "warning")]
    overridden = SERVICE + "    environment: [CUDA_VISIBLE_DEVICES=0]\n"
    with_another = {**image, "compose.yaml": overridden}
    assert levels(tmp_path / "3", with_another) == [("WG401", "info")]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("model.cuda()", ["warning"]),
        ("def main():\n    model.cuda()", ["warning"]),
        ("if args.gpu:\n    model.cuda()", []),
        ("try:\n    model.cuda()\nexcept Exception:\n    pass", []),
        ("try:\n    model.cuda()\nfinally:\n    close()", ["warning"]),
        ("try:\n    model.cuda()\nexcept KeyboardInterrupt:\n    pass", ["warning"]),
        ("if __name__ == '__main__':\n    model.cuda()", ["warning"]),
    ],
)
def test_a_statement_under_a_condition_needs_no_gpu(
    tmp_path: pathlib.Path, program: str, expected: list[str]
) -> None:
    files = {
        "compose.yaml": "services:\n  train:\n    build: .\n",
        "Dockerfile": "FROM python:3.11\nCOPY . .\nCMD python train.py\n",
        "train.py": f"import torch\n{program}\n",
    }
    found = [each for each in levels(tmp_path, files) if each[0] == "WG811"]
    assert found == [("WG811", level) for level in expected]


@pytest.mark.parametrize(
    ("data", "others", "expected"),
    [
        ("d = ImageFolder('x', Resize(256))", {}, ["warning"]),
        ("d = load()", {}, ["info"]),
        ("d = MNIST('x', Resize(256))", {}, ["info"]),
        # Both strategies put the data into /dev/shm.
        (
            "d = ImageFolder('x', Resize(256))",
            {"a.py": "set_sharing_strategy('file_system')\n"},
            ["warning"],
        ),
        ("d = ImageFolder('x', Resize(256))", {"doc.md": '"default-shm-size": "8g"'}, ["info"]),
    ],
)
def test_small_batches_fit_into_the_shared_memory(
    tmp_path: pathlib.Path, data: str, others: dict[str, str], expected: list[str]
) -> None:
    files = {
        "compose.yaml": SERVICE,
        "Dockerfile": "FROM python:3.11\nCOPY . .\nCMD python train.py\n",
        "train.py": TRAIN.format(data),
        **others,
    }
    found = [each for each in levels(tmp_path, files) if each[0] == "WG816"]
    assert found == [("WG816", level) for level in expected]


def test_a_variable_that_the_project_reads_itself_is_not_misspelt(tmp_path: pathlib.Path) -> None:
    files = {"Dockerfile": "FROM python:3.11\nENV CUDA_VISIBLE_DEVICE=0\n"}
    assert levels(tmp_path / "1", files) == [("WG405", "warning")]
    reads = 'import os\nprint(os.environ.get("CUDA_VISIBLE_DEVICE"))\n'
    assert levels(tmp_path / "2", {**files, "src/a.py": reads}) == []
    comments = '# os.environ["CUDA_VISIBLE_DEVICE"] would be misspelt\n'
    assert levels(tmp_path / "4", {**files, "a.py": comments}) == [("WG405", "warning")]
    assert levels(tmp_path / "5", {**files, "a.py": comments + reads}) == []
    prints = {**files, "start.sh": "echo $CUDA_VISIBLE_DEVICE\n"}
    assert levels(tmp_path / "3", prints) == [("WG405", "info")]


@pytest.mark.parametrize(
    "part",
    [
        'healthcheck: {test: ["CMD", "nvidia-smi"]}',
        "command: python -m app --device cuda",
    ],
)
def test_a_service_whose_health_check_needs_a_gpu(tmp_path: pathlib.Path, part: str) -> None:
    text = f"services:\n  a:\n    image: example/a:1\n    {part}\n"
    assert levels(tmp_path, {"compose.yaml": text}) == [("WG811", "warning")]


def test_the_stage_for_gpus_of_a_file_for_both(tmp_path: pathlib.Path) -> None:
    dockerfile = "# CPU only\nFROM python:3.11 AS cpu\n" + CUDA.replace(
        "22.04\n", "22.04 AS cuda\n", 1
    )
    compose = "services:\n  a:\n    build: {context: ., target: cuda}\n"
    found = levels(tmp_path, {"Dockerfile": dockerfile, "compose.yaml": compose})
    assert found == [("WG811", "warning")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("tensorflow==1.12.0\ntensorflow-gpu==1.12.0\n", ["Remove tensorflow."]),
        ("tensorflow-gpu==1.12.0\ntensorflow==1.12.0\n", ["Remove tensorflow."]),
        ("tensorflow~=2.5.0\ntensorflow-gpu~=2.5.0\n", []),
        ("tensorflow==2.5.0\ntensorflow-gpu==2.5.0\n", []),
        ("tensorflow~=2.5.0\ntensorflow-gpu~=2.6.0\n", ["Remove tensorflow-gpu."]),
    ],
)
def test_the_package_with_the_gpu_build_stays(
    tmp_path: pathlib.Path, lines: str, expected: list[str]
) -> None:
    report = project(tmp_path, {"requirements.txt": lines})
    fixes = [i.finding.remedies[0].text for i in report.findings if i.finding.code == "WG311"]
    assert fixes == expected


@pytest.mark.parametrize(
    ("package", "expected"),
    [("protobuf", [("WG311", "info")]), ("tensorflow", [])],
)
def test_a_package_that_is_uninstalled_on_purpose(
    tmp_path: pathlib.Path, package: str, expected: list[tuple[str, str]]
) -> None:
    dockerfile = (
        "FROM python:3.6\nRUN pip install tensorflow==1.12.0 tensorflow-gpu==1.12.0\n"
        f"RUN pip uninstall -y {package}\nRUN pip install six\n"
    )
    assert levels(tmp_path, {"Dockerfile": dockerfile}) == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, [("WG318", "error")]),
        ({"README.md": "conda install --file requirements.txt\n"}, []),
        ({"README.md": "conda install --file conda-requirements.txt\n"}, [("WG318", "error")]),
        (
            {"README.md": "Do not use conda install --file requirements.txt here.\n"},
            [("WG318", "error")],
        ),
        ({"a.sh": "# conda install --file requirements.txt\n"}, [("WG318", "error")]),
    ],
)
def test_a_list_that_conda_installs_has_the_names_of_conda(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert levels(tmp_path, {"requirements.txt": "tensorflow-gpu\n", **others}) == expected


OLD_CUDA = "FROM nvidia/cuda:{}\nRUN apt-get install -y python3-pip\nRUN pip3 install {}\n"


@pytest.mark.parametrize(
    ("files", "part"),
    [
        (
            {"requirements.txt": "tensorflow-gpu\n"},
            "Pin the release that the program was made for: up to 2.0, tensorflow-gpu has the GPU",
        ),
        (
            {"requirements.txt": "numpy==1.12.1\ntensorflow-gpu\n"},
            "go with numpy==1.12.1: tensorflow-gpu 0.12 to 1.5.",
        ),
        (
            {"requirements.txt": "Keras==2.2.4\ntensorflow-gpu\n"},
            "go with keras==2.2.4: tensorflow-gpu 0.12 to 1.15.",
        ),
        (
            {"requirements.txt": "tensorboard==1.13.1\ntensorflow-gpu\n"},
            "go with tensorboard==1.13.1: tensorflow-gpu 1.13.",
        ),
        (
            {"Dockerfile": OLD_CUDA.format("9.0-cudnn7-runtime-ubuntu16.04", "tensorflow-gpu")},
            "runtime-ubuntu16.04: tensorflow-gpu 1.5 to 1.12.",
        ),
        (
            {"Dockerfile": OLD_CUDA.format("10.0-cudnn7-runtime-ubuntu18.04", "tensorflow-gpu")},
            "ubuntu18.04: tensorflow-gpu 1.13 to 2.0.",
        ),
        (
            {"Dockerfile": "FROM tensorflow/tensorflow:2.15.0-gpu\nRUN pip install tensorflow-gpu"},
            "Remove tensorflow-gpu: tensorflow/tensorflow:2.15.0-gpu has TensorFlow.",
        ),
    ],
)
def test_a_removed_package_is_replaced_by_what_goes_with_the_rest(
    tmp_path: pathlib.Path, files: dict[str, str], part: str
) -> None:
    report = project(tmp_path, files)
    (fix,) = [i.finding.remedies[0].text for i in report.findings if i.finding.code == "WG318"]
    assert part in fix


@pytest.mark.parametrize(
    ("tag", "begins"),
    [
        ("8.0-cudnn5-devel-ubuntu16.04", "Write tensorflow-gpu==1.2.1."),
        (
            "8.0-cudnn6-devel-ubuntu16.04",
            "To keep TensorFlow 1.2.1, use a base image with CUDA 8.0 and cuDNN 5. Or take one",
        ),
    ],
)
def test_the_gpu_build_that_is_advised_finds_the_cuda_of_the_image(
    tmp_path: pathlib.Path, tag: str, begins: str
) -> None:
    report = project(tmp_path, {"Dockerfile": OLD_CUDA.format(tag, "tensorflow==1.2.1")})
    (fix,) = [i.finding.remedies[0].text for i in report.findings if i.finding.code == "WG301"]
    assert fix.startswith(begins)
    assert fix.endswith("tensorflow-gpu==1.2.1.")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("RUN wget -O /w/a.whl https://example.com/a\n", [("WG812", "error")]),
        ("RUN pip3 install /w/tensorflow-2.18.0-cp310-cp310-linux_x86_64.whl\n", []),
        ("RUN pip3 install ./w/six-1.16.0-py2.py3-none-any.whl\n", [("WG812", "error")]),
    ],
)
def test_a_wheel_replaces_the_release_of_a_list(
    tmp_path: pathlib.Path, after: str, expected: list[tuple[str, str]]
) -> None:
    assert levels(tmp_path, {"Dockerfile": OLD + after}) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("while read x; do conda install $x; done < list/requirements.txt", []),
        ("conda install -c pytorch numpy", [("WG318", "info")]),
        ("conda install -c x numpy\npip install -r requirements.txt", [("WG318", "error")]),
        ("conda create -n env python=3.6", [("WG318", "error")]),
    ],
)
def test_who_installs_a_list_decides_about_its_names(
    tmp_path: pathlib.Path, script: str, expected: list[tuple[str, str]]
) -> None:
    files = {"requirements.txt": "pytorch\n", "setup.sh": script + "\n"}
    assert levels(tmp_path, files) == expected


@pytest.mark.parametrize(
    ("base", "package", "part"),
    [
        # Such a program does not run with the newest release.
        ("python:3.10", "tensorflow==1.15", "To keep TensorFlow 1.15, use Python 2.7 to 3.7"),
        ("python:3.10", "torch==1.4.0", "Use a Python that it has wheels for. Or, if the program"),
        (
            "nvidia/cuda:10.1-cudnn7-runtime-ubuntu18.04",
            "tensorflow-gpu==1.15",
            "To keep TensorFlow 1.15, use a base image with CUDA 10.0 and cuDNN 7. Or take one",
        ),
        (
            "python:3.10",
            "tensorflow==2.3.0 keras==2.2.4 numpy==1.17.0",
            "use Python 3.5 to 3.8 and another release of keras.",
        ),
        (
            "nvidia/cuda:12.1.0-cudnn8-runtime-ubuntu22.04",
            "tensorflow==2.14.0",
            "and cuDNN 8 (or write tensorflow[and-cuda]==2.14.0, which brings them).",
        ),
    ],
)
def test_advice_keeps_the_release_or_names_all_that_agree(
    tmp_path: pathlib.Path, base: str, package: str, part: str
) -> None:
    report = project(tmp_path, {"Dockerfile": f"FROM {base}\nRUN pip3 install {package}\n"})
    (found,) = report.findings
    assert part in found.finding.remedies[0].text


def test_a_library_of_nvidia_does_not_keep_the_release_of_another_package(
    tmp_path: pathlib.Path,
) -> None:
    report = project(tmp_path, {"requirements.txt": "cudatoolkit==9.2\ntorch\n"})
    assert report.findings[0].finding.remedies[0].text.startswith("Remove it if pip installs")


@pytest.mark.parametrize(
    ("value", "service", "expected"),
    [
        ('""', "", []),
        ("none", "", []),
        ('""', "    gpus: all\n", [("WG405", "warning")]),
        ("all", "", [("WG405", "warning")]),
    ],
)
def test_a_value_that_hides_all_gpus_where_none_is_asked_for(
    tmp_path: pathlib.Path, value: str, service: str, expected: list[tuple[str, str]]
) -> None:
    text = "services:\n  a:\n    image: example/a:1\n    environment:\n"
    files = {"compose.yaml": f"{text}      - CUDA_VISIBLE_DEVICES={value}\n{service}"}
    assert levels(tmp_path, files) == expected


def test_a_reservation_that_docker_refuses_is_wrong_whatever_another_file_gives(
    tmp_path: pathlib.Path,
) -> None:
    reserved = "    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}\n"
    files = {"compose.yaml": VLLM + reserved, "compose-dev.yaml": VLLM + "    gpus: all\n"}
    assert levels(tmp_path, files) == [("WG811", "error")]


def test_the_image_of_cuda_is_that_of_its_tensorflow(tmp_path: pathlib.Path) -> None:
    dockerfile = "FROM nvidia/cuda\nRUN pip3 install tensorflow-gpu==1.10.1\n"
    report = project(tmp_path, {"Dockerfile": dockerfile})
    (fix,) = [i.finding.remedies[0].text for i in report.findings if i.finding.code == "WG815"]
    assert fix.startswith("Name a release with CUDA 9.0 and cuDNN 7, for TensorFlow 1.10.1")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({}, [("WG811", "warning")]),
        ({"nvidia-docker-compose.yml": VLLM + "    devices: [/dev/nvidia0]\n"}, []),
        ({"compose.web.yml": VLLM + "    extends: {service: a}\n"}, [("WG811", "warning")]),
    ],
)
def test_the_file_of_nvidia_docker_compose_gives_gpus(
    tmp_path: pathlib.Path, others: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    found = levels(tmp_path, {"docker-compose.yml": VLLM, **others})
    assert found[:1] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu/Dockerfile", "info"),
        ("Dockerfile.gpu", "info"),
        ("Dockerfile.dev", "warning"),
        ("web/gpu/Dockerfile", "warning"),
    ],
)
def test_beside_the_variant_for_gpus_an_image_may_be_for_the_cpu(
    tmp_path: pathlib.Path, name: str, expected: str
) -> None:
    files = {"Dockerfile": CUDA + CPU_TORCH, name: CUDA + "RUN pip3 install torch\n"}
    assert levels(tmp_path, files) == [("WG301", expected)]


def test_an_image_with_a_name_of_its_own_is_no_variant_for_the_cpu(tmp_path: pathlib.Path) -> None:
    files = {"Dockerfile.jupyter": CUDA + CPU_TORCH, "Dockerfile.gpu": CUDA}
    assert levels(tmp_path, files) == [("WG301", "warning")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("backups/requirements.txt", "info"),
        ("requirements_old.txt", "info"),
        ("scaffold/requirements.txt", "error"),
        ("requirements-goldfish.txt", "error"),
    ],
)
def test_a_file_that_was_put_away_has_notes_only(
    tmp_path: pathlib.Path, name: str, expected: str
) -> None:
    assert levels(tmp_path, {name: "tensorflow-gpu\n"}) == [("WG318", expected)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [("docker-compose run -e NVIDIA_VISIBLE_DEVICES a", "info"), ("docker-compose up", "warning")],
)
def test_a_variable_for_the_runtime_counts_on_the_default_runtime(
    tmp_path: pathlib.Path, script: str, expected: str
) -> None:
    files = {"compose.yaml": VLLM, "run.sh": f"#!/bin/sh\n{script}\n"}
    assert levels(tmp_path, files) == [("WG811", expected)]


@pytest.mark.parametrize(
    ("image", "service", "expected"),
    [
        ("none", "", [("WG811", "error")]),
        ("all", "", []),
        ("none", "    environment: [NVIDIA_VISIBLE_DEVICES=all]\n", []),
    ],
)
def test_the_variable_of_the_image_decides_which_gpus_the_runtime_gives(
    tmp_path: pathlib.Path, image: str, service: str, expected: list[tuple[str, str]]
) -> None:
    files = {
        "compose.yaml": f"services:\n  train:\n    build: .\n    runtime: nvidia\n{service}",
        "Dockerfile": f"FROM ubuntu:22.04\nENV NVIDIA_VISIBLE_DEVICES={image}\n",
    }
    assert levels(tmp_path, files) == expected


@pytest.mark.parametrize(("other", "expected"), [("six", "warning"), ("faster-whisper", "info")])
def test_a_gpu_may_be_for_another_package_than_the_cpu_build(
    tmp_path: pathlib.Path, other: str, expected: str
) -> None:
    dockerfile = f"{CUDA}{CPU_TORCH}RUN pip3 install {other}\n"
    assert levels(tmp_path, {"Dockerfile": dockerfile}) == [("WG301", expected)]


def test_files_of_a_driver_matter_if_the_host_has_another_one(tmp_path: pathlib.Path) -> None:
    dockerfile = CUDA + "RUN apt-get install -y nvidia-driver-550\nENV NVIDIA_VISIBLE_DEVICES=all\n"
    (tmp_path / "Dockerfile").write_text(dockerfile)
    found = whygpu.lint(tmp_path).findings
    assert [(each.finding.code, each.finding.severity) for each in found] == [("WG813", "info")]
    known = whygpu.lint(tmp_path, driver="535.54").findings
    assert ("WG813", "warning") in [(each.finding.code, each.finding.severity) for each in known]


def test_parts_of_a_lock_that_nobody_installs_together(tmp_path: pathlib.Path) -> None:
    registry = 'source = { registry = "https://pypi.org/simple" }\n'
    lock = "version = 1\n"
    for name in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        lock += f'[[package]]\nname = "{name}"\nversion = "9.5.0"\n{registry}'
    project_of = '[[package]]\nname = "x"\nversion = "1"\nsource = { virtual = "." }\n'
    apart = (
        "[package.optional-dependencies]\n"
        'a = [{ name = "nvidia-cudnn-cu12" }]\nb = [{ name = "nvidia-cudnn-cu13" }]\n'
    )
    both = 'dependencies = [{ name = "nvidia-cudnn-cu12" }, { name = "nvidia-cudnn-cu13" }]\n'
    assert levels(tmp_path / "apart", {"uv.lock": lock + project_of + apart}) == []
    assert levels(tmp_path / "both", {"uv.lock": lock + project_of + both}) == [
        ("WG209", "warning")
    ]
