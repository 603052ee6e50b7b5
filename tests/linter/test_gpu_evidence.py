"""What shows that a service, a pod or a job is for a GPU, and how certain that is."""

from __future__ import annotations

import pathlib

import pytest

from tests.linter.test_deployment import POD, found, project

GPU = "    deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}\n"
SERVICE = "services:\n  {}:\n    image: {}\n"
TRAIN = "import torch\nprint('cuda' if torch.cuda.is_available() else 'cpu')\n"


def level(folder: pathlib.Path, files: dict[str, str]) -> list[str]:
    """The levels of all findings about a GPU that nothing asks for."""
    report = project(folder, files)
    assert {item.finding.code for item in report.findings} <= {"WG811"}
    return [str(item.finding.severity) for item in report.findings]


@pytest.mark.parametrize(
    ("command", "levels"),
    [
        ("python train.py --device cuda", ["warning"]),
        ("python -m app --whisper-device=cuda:0", ["warning"]),
        ("python train.py --num_gpus 2", ["warning"]),
        ("python train.py trainer.accelerator=gpu", ["warning"]),
        ("deepspeed --num_gpus 2 train.py", ["warning"]),
        ("vllm serve Qwen/Qwen2.5-0.5B", ["warning"]),
        ("sh -c 'nvidia-smi && python train.py'", ["warning"]),
        ("llama-server -ngl 99", ["info"]),
        ("torchrun --nproc_per_node=4 train.py", ["info"]),
        ("python train.py --gpus 0", []),
        ("python train.py --device cpu", []),
        ("vllm serve Qwen/Qwen2.5-0.5B --device cpu", []),
        ("sh -c 'nvidia-smi || true'", []),
        ("python submit.py --num_gpus 2", []),
        ("pip install deepspeed transformers", []),
    ],
)
def test_commands_that_ask_for_a_gpu(
    tmp_path: pathlib.Path, command: str, levels: list[str]
) -> None:
    text = SERVICE.format("one", "example/app:1") + f'    command: "{command}"\n'
    assert level(tmp_path / "service", {"compose.yaml": text}) == levels
    shell = command.replace("'", '"')
    pod = POD.format(f"{{name: b, image: example/app:1, command: [sh, -c, '{shell}']}}", "")
    assert level(tmp_path / "pod", {"pod.yaml": pod}) == levels


def test_code_that_has_a_choice_asks_for_no_gpu(tmp_path: pathlib.Path) -> None:
    code = "d = torch.cuda.is_available(); m.to(device='cuda' if torch.cuda.is_available() else 0)"
    pod = POD.format(f'{{name: b, image: example/app:1, command: [python, -c, "{code}"]}}', "")
    assert level(tmp_path, {"pod.yaml": pod}) == []


@pytest.mark.parametrize(
    ("variable", "levels"),
    [
        ("DEVICE=cuda", ["warning"]),
        ("WHISPER_DEVICE=cuda:0", ["warning"]),
        ("DEVICE=${DEVICE:-cuda}", ["info"]),
        ("DEVICE=cuda  # or cpu", ["info"]),
        ("USE_GPU=true", ["info"]),
        ("CUDA_VISIBLE_DEVICES=0", ["info"]),
        ("DEVICE=cpu", []),
        ("USE_GPU=false", []),
        ("INPUT_DEVICE_NAME=gpu", []),
    ],
)
def test_variables_that_ask_for_a_gpu(
    tmp_path: pathlib.Path, variable: str, levels: list[str]
) -> None:
    text = SERVICE.format("one", "example/app:1") + f"    environment:\n      - {variable}\n"
    assert level(tmp_path, {"compose.yaml": text}) == levels


def test_an_image_of_a_system_uses_no_gpu_whatever_its_variables(tmp_path: pathlib.Path) -> None:
    text = SERVICE.format("one", "python:3.11") + "    environment: [DEVICE=cuda]\n"
    assert level(tmp_path, {"compose.yaml": text}) == []


@pytest.mark.parametrize(
    ("image", "levels"),
    [
        ("ghcr.io/huggingface/text-embeddings-inference:1.8", ["warning"]),
        ("ghcr.io/huggingface/text-embeddings-inference:cpu-1.8", []),
        ("lmsysorg/sglang:v0.5.3", ["warning"]),
        ("lmsysorg/sglang:v0.5.3-rocm630", []),
        ("nvcr.io/nvidia/tritonserver:25.01-py3", ["info"]),
        ("example/app:gpu-latest", ["info"]),
        ("example/app-cuda-blackwell:latest", ["info"]),
        ("example/gpu-benchmarks:1", []),
    ],
)
def test_images_that_are_made_for_gpus(
    tmp_path: pathlib.Path, image: str, levels: list[str]
) -> None:
    assert level(tmp_path, {"compose.yaml": SERVICE.format("one", image)}) == levels


def test_the_compose_file_beside_a_dev_container_gives_the_gpu(tmp_path: pathlib.Path) -> None:
    files = {
        "docker/compose.yaml": SERVICE.format("app", "vllm/vllm-openai:v1"),
        "docker/.keep": "",
        ".devcontainer/devcontainer.json": '{"dockerComposeFile": '
        '["../docker/compose.yaml", "compose.dev.yaml"], "service": "app"}',
        ".devcontainer/compose.dev.yaml": "services:\n  app:\n    gpus: all\n",
    }
    assert level(tmp_path / "together", files) == []
    del files[".devcontainer/devcontainer.json"]
    assert level(tmp_path / "alone", files) == ["warning"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Makefile", "up:\n\tdocker compose -f a/compose.yaml -f b/compose.yaml up\n"),
        ("a/.env", "COMPOSE_FILE=compose.yaml:../b/compose.yaml\n"),
    ],
)
def test_a_command_starts_two_compose_files_together(
    tmp_path: pathlib.Path, name: str, text: str
) -> None:
    files = {
        "a/compose.yaml": SERVICE.format("app", "vllm/vllm-openai:v1"),
        "b/compose.yaml": "services:\n  app:\n    gpus: all\n",
    }
    assert level(tmp_path / "alone", files) == ["warning"]
    assert level(tmp_path / "together", {**files, name: text}) == []


def test_a_twin_with_a_gpu_makes_it_likely(tmp_path: pathlib.Path) -> None:
    one = "  worker-{}:\n    build: .\n    command: python work.py --rank {}\n"
    files = {
        "compose.yaml": "services:\n" + one.format(0, 0) + GPU + one.format(1, 1),
        "Dockerfile": "FROM python:3.11\nRUN pip install torch\n",
    }
    assert level(tmp_path / "twin", files) == ["info"]
    files["compose.yaml"] = files["compose.yaml"].replace("work.py --rank 1", "web.py")
    assert level(tmp_path / "other", files) == []


def test_a_complete_file_for_gpus_does_not_help_the_variant_for_gpus(
    tmp_path: pathlib.Path,
) -> None:
    plain = SERVICE.format("app", "example/app:1")
    files = {"compose.yaml": plain + GPU, "compose.gpu.yaml": plain}
    assert level(tmp_path / "variant", files) == ["info"]
    files["compose.yaml"] = "services:\n  app:\n" + GPU
    assert level(tmp_path / "override", files) == []


def test_a_line_that_is_offered_is_no_line_that_was_forgotten(tmp_path: pathlib.Path) -> None:
    service = SERVICE.format("app", "example/app:1") + "    environment: [USE_GPU=1]\n"
    assert level(tmp_path / "forgotten", {"compose.yaml": service + "    # gpus: all\n"}) == [
        "warning"
    ]
    offered = service + "    # Uncomment this if you have a GPU:\n    # gpus: all\n"
    assert level(tmp_path / "offered", {"compose.yaml": offered}) == ["info"]


def test_the_required_affinity_of_a_pod_chooses_its_node(tmp_path: pathlib.Path) -> None:
    rule = "{key: nvidia.com/gpu.present, operator: Exists}"
    term = f"{{nodeSelectorTerms: [{{matchExpressions: [{rule}]}}]}}"
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = f"  affinity: {{nodeAffinity: {{{required}: {term}}}}}\n"
    pod = POD.format("{name: b, image: example/app:1}", affinity)
    assert level(tmp_path / "must", {"pod.yaml": pod}) == ["info"]
    preferred = pod.replace("Exists", "DoesNotExist")
    assert level(tmp_path / "must not", {"pod.yaml": preferred}) == []


def test_the_same_pod_in_another_manifest_is_a_variant_and_a_patch_is_not(
    tmp_path: pathlib.Path,
) -> None:
    limit = ", resources: {limits: {nvidia.com/gpu: 1}}"
    container = "{{name: b, image: 'vllm/vllm-openai:v1'{}}}"
    files = {
        "pod.yaml": POD.format(container.format(""), ""),
        "other.yaml": POD.format(container.format(limit), ""),
    }
    assert level(tmp_path / "variant", files) == ["info"]
    files["other.yaml"] = POD.format("{name: b" + limit + "}", "")
    assert level(tmp_path / "patch", files) == []


def test_the_workers_of_a_job_that_start_the_same_program(tmp_path: pathlib.Path) -> None:
    one = "{{containers: [{{name: a, image: x/y:1, command: [python, {}]{}}}]}}"
    limit = ", resources: {limits: {nvidia.com/gpu: 1}}"
    job = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: t}}\nspec:\n"
        "  Master: {{template: {{spec: {}}}}}\n  Worker: {{template: {{spec: {}}}}}\n"
    )
    same = job.format(one.format("train.py", limit), one.format("train.py", ""))
    assert level(tmp_path / "same", {"job.yaml": same}) == ["info"]
    other = job.format(one.format("train.py", limit), one.format("launch.py", ""))
    assert level(tmp_path / "other", {"job.yaml": other}) == []


JOB = "#!/bin/bash\n#SBATCH {}\n{}\n"


@pytest.mark.parametrize(
    ("directive", "command", "levels"),
    [
        ("-A abc@v100", "python train.py", ["info"]),
        ("-C v100-32g", "python train.py", ["info"]),
        ("-p gpu -x node1", "python train.py", ["info"]),
        ("-p gpu --exclusive", "python train.py", []),
        ("-t 60", "module load tensorflow-gpu/2.9\npython train.py", ["info"]),
        ("-t 60", "singularity exec --nv a.sif python train.py", ["info"]),
        ("-t 60", "python $HOME_OF_IT/src/likely.py", ["info"]),
        ("-t 60", "python -m likely", ["info"]),
        ("-t 60", "python -m likely --device cpu", []),
        ("-t 60", "python train.py", []),
    ],
)
def test_what_shows_that_a_job_is_for_a_gpu(
    tmp_path: pathlib.Path, directive: str, command: str, levels: list[str]
) -> None:
    files = {"train.sbatch": JOB.format(directive, command), "src/likely.py": TRAIN}
    assert level(tmp_path, files) == levels


def test_a_job_that_starts_the_same_program_as_one_with_a_gpu(tmp_path: pathlib.Path) -> None:
    files = {
        "a.sbatch": JOB.format("--gres=gpu:1", "python -m pkg.train --seed 1"),
        "b.sbatch": JOB.format("-t 60", "python -m pkg.train --seed 2"),
        "c.sbatch": JOB.format("-t 60", "python -m pkg.pretrain"),
    }
    report = project(tmp_path, files)
    assert found(tmp_path, report) == [("WG811", "b.sbatch", 2)]
    assert [item.finding.severity for item in report.findings] == ["info"]


def test_a_step_without_gpus_beside_the_one_that_has_them(tmp_path: pathlib.Path) -> None:
    served = "srun --gres=gpu:0 python serve.py &\n"
    files = {"a.sbatch": JOB.format("--gres=gpu:8", served + "mpirun python train.py")}
    assert level(tmp_path / "beside", files) == []
    files["a.sbatch"] = JOB.format("--gres=gpu:8", "srun --gres=gpu:0 python train.py")
    assert level(tmp_path / "alone", files) == ["error"]


def test_a_cpu_build_stays_if_a_later_file_accepts_its_release(tmp_path: pathlib.Path) -> None:
    index = "https://download.pytorch.org/whl/cpu"
    docker = (
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
        f"RUN pip install torch==2.2.2 --index-url {index}\n"
        "COPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    )
    for number, (wanted, codes) in enumerate(
        [("torch==2.2.2", ["WG301"]), ("torch>=2.0", ["WG301"]), ("torch==2.4.0", [])]
    ):
        files = {"Dockerfile": docker, "requirements.txt": f"{wanted}\n"}
        report = project(tmp_path / str(number), files)
        assert [item.finding.code for item in report.findings] == codes


def test_packages_of_a_poetry_lock_that_are_for_different_systems(tmp_path: pathlib.Path) -> None:
    entry = (
        '[[package]]\nname = "{}"\nversion = "1.18.0"\noptional = false\n'
        'python-versions = "*"\nfiles = []\n{}\n'
    )
    edge = '{} = {{markers = "platform_system {} \\"Darwin\\" and extra == \\"all\\""}}\n'
    edges = edge.format("onnxruntime", "==") + edge.format("onnxruntime-gpu", "!=")
    lock = (
        entry.format("tool", f"\n[package.dependencies]\n{edges}")
        + entry.format("onnxruntime", "")
        + entry.format("onnxruntime-gpu", "")
        + '[metadata]\nlock-version = "2.0"\npython-versions = "^3.10"\ncontent-hash = "x"\n'
    )
    project_file = '[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\ntool = "1.0"\n'
    files = {"poetry.lock": lock, "pyproject.toml": project_file}
    assert found(tmp_path / "a", project(tmp_path / "a", files)) == []
    files["pyproject.toml"] += 'onnxruntime = "1.18"\nonnxruntime-gpu = "1.18"\n'
    codes = {item.finding.code for item in project(tmp_path / "b", files).findings}
    assert codes == {"WG311"}
