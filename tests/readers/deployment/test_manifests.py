"""Compose files, Kubernetes manifests, job scripts and dev containers: what they ask for."""

from __future__ import annotations

import pytest

from whygpu.readers.deployment import (
    batch_job,
    compose,
    dev_container,
    kubernetes,
    workflow,
    yaml_tree,
)


def service(text: str) -> compose.Service:
    text = f"services:\n  one:\n{text}"
    (found,) = compose.read("compose.yaml", yaml_tree.load("compose.yaml", text), text).services
    return found


def devices(lines: str) -> str:
    return f"    deploy:\n      resources:\n        reservations:\n          devices:\n{lines}"


def test_ways_to_ask_for_a_gpu_in_compose() -> None:
    wanted = devices("            - {driver: nvidia, count: 2, capabilities: [gpu]}\n")
    (grant,) = service(wanted).grants
    assert (grant.gpus, grant.refused, grant.place.line) == (2, "", 7)
    assert service("    gpus: all\n").grants
    assert service("    runtime: nvidia\n").grants
    assert service("    image: nginx\n").grants == ()
    (wrong,) = service("    device_requests: [{capabilities: [gpu]}]\n").grants
    assert "no such key" in wrong.refused
    assert service("    devices: [/dev/nvidia0]\n").gets_more == "it gets device files"


@pytest.mark.parametrize("text", ["networks: {a: {}}\n", "services:\n", "services: {}\n", "[]\n"])
def test_a_compose_file_without_services_is_empty(text: str) -> None:
    assert compose.read("c.yml", yaml_tree.load("c.yml", text), text).services == ()


def test_a_reservation_without_capabilities_is_refused() -> None:
    (grant,) = service(devices("            - {driver: nvidia, count: 1}\n")).grants
    assert "capabilities" in grant.refused
    (grant,) = service(devices("            - {capabilities: [utility]}\n")).grants
    assert "without gpu" in grant.refused


def test_a_commented_grant_of_one_service_is_not_that_of_the_next() -> None:
    text = "services:\n  a:\n    image: x\n    # runtime: nvidia\n  b:\n    image: y\n"
    read = compose.read("c.yml", yaml_tree.load("c.yml", text), text)
    assert [each.commented_grant is not None for each in read.services] == [True, False]


def test_variables_of_a_service_in_both_forms() -> None:
    listed = service("    environment: [A=1, B, 'C=${D:-2}', 'E=$F']\n").variables
    assert [(each.name, each.value) for each in listed] == [
        ("A", "1"),
        ("B", None),
        ("C", "2"),
        ("E", None),
    ]
    assert service("    environment:\n      A: x\n").variables[0].place.line == 4


def pods(text: str) -> tuple[kubernetes.Pod, ...]:
    return kubernetes.read("pod.yaml", yaml_tree.load("pod.yaml", text), text)


HEAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"


def test_limits_and_requests() -> None:
    limits = "  - name: a\n    resources: {limits: {nvidia.com/gpu: 2}}\n"
    (grant,) = pods(HEAD + limits)[0].containers[0].grants
    assert (grant.gpus, grant.refused) == (2, "")
    mig = "  - name: a\n    resources: {limits: {nvidia.com/mig-1g.5gb: 1}}\n"
    assert pods(HEAD + mig)[0].containers[0].grants
    only = "  - name: a\n    resources: {requests: {nvidia.com/gpu: 1}}\n"
    assert "limit" in pods(HEAD + only)[0].containers[0].grants[0].refused
    both = (
        "  - name: a\n    resources: {limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}\n"
    )
    assert [bool(each.refused) for each in pods(HEAD + both)[0].containers[0].grants] == [
        False,
        True,
    ]


def test_pods_inside_other_kinds() -> None:
    text = """apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: r}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: head, image: x}]}}
  workerGroupSpecs:
    - template: {spec: {containers: [{name: worker, image: y}]}}
"""
    assert [pod.containers[0].name for pod in pods(text)] == ["head", "worker"]
    listed = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- apiVersion: v1\n  kind: Pod\n  spec: {containers: [{name: a}]}\n"
    )
    assert len(pods(listed)) == 1


def test_a_limit_that_is_commented_out_belongs_to_its_container() -> None:
    text = HEAD + "  - name: a\n    # nvidia.com/gpu: 1\n  - name: b\n    image: x\n"
    one, other = pods(text)[0].containers
    assert one.commented_grant is not None
    assert one.commented_grant.line == 7
    assert other.commented_grant is None


@pytest.mark.slow
def test_yaml_that_grows_without_end_is_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for one, next_one in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{next_one}: &{next_one} [{', '.join([f'*{one}'] * 9)}]\n"
    with pytest.raises(yaml_tree.NotYaml, match="too many"):
        yaml_tree.load("x.yaml", bomb)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("#SBATCH --gres=gpu:1", 1),
        ("#SBATCH --gres gpu:a100:2", 2),
        ("#SBATCH --gres=gpu", 1),
        ("#SBATCH --gpus-per-node=4  # a comment", 4),
        ("#SBATCH -G 2", 2),
        ("#SBATCH --gres=gpu:$N", None),
        ("#PBS -l select=1:ncpus=4:ngpus=2", 2),
        ("#PBS -l nodes=1:ppn=1:gpus=1", 1),
        ('#BSUB -gpu "num=2:mode=shared"', 2),
    ],
)
def test_gpus_of_a_job(line: str, count: int | None) -> None:
    job = batch_job.read("job.sh", f"#!/bin/bash\n{line}\npython train.py\n")
    assert job is not None
    (grant,) = job.grants
    assert (grant.gpus, grant.place.line) == (count, 2)


def test_a_directive_that_is_commented_out_is_none() -> None:
    job = batch_job.read("job.sh", "#!/bin/bash\n#SBATCH -p gpu\n##SBATCH --gres=gpu:1\n")
    assert job is not None
    assert job.grants == ()
    assert job.partition == "gpu"
    assert job.commented_grant is not None
    assert batch_job.read("x.sh", "#!/bin/bash\necho hi\n") is None


def test_a_dev_container_with_comments_and_trailing_commas() -> None:
    text = (
        '{\n  // "image": "no"\n  "image": "a/b:1", /* x */\n  "runArgs": ["--gpus", "all"],\n}\n'
    )
    found = dev_container.read("devcontainer.json", text)
    assert found.image == "a/b:1"
    assert found.grants[0].place.line == 4
    assert dev_container.read("d.json", '{"build": {"dockerfile": "D"}}').dockerfile == "D"
    with pytest.raises(ValueError, match="object"):
        dev_container.read("d.json", "[]")


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        ("nvidia.com/gpu: 1", ""),
        ("nvidia.com/a100: 1", ""),
        ("nvidia.com/mig-1g.10gb: 1", ""),
        ("nvidia.com/mig-1g.10gb.me: 1", ""),
        ("nvidia.com/gpu.shared: 1", ""),
        ("nvidia.com/mig-1g10gb: 1", "MIG"),
        ("nvidia.com/gpu: 0.5", "whole GPUs"),
        ("nvidia/gpu: 1", "nvidia.com/gpu"),
        ("alpha.kubernetes.io/nvidia-gpu: 1", "nvidia.com/gpu"),
    ],
)
def test_names_and_numbers_of_resources(limit: str, refused: str) -> None:
    (pod,) = pods(f"{HEAD}  - name: a\n    resources: {{limits: {{{limit}}}}}\n")
    (grant,) = pod.containers[0].grants
    assert bool(grant.refused) is bool(refused)
    assert refused in grant.refused


def workflow_jobs(content: str) -> tuple[workflow.WorkflowJob, ...]:
    return workflow.read("w.yml", yaml_tree.load("w.yml", content))


def test_a_workflow_of_github() -> None:
    (job,) = workflow_jobs("""\
on: push
jobs:
  test:
    runs-on: [self-hosted, gpu]
    container:
      image: nvidia/cuda:12.4.1-base-ubuntu22.04
      options: --gpus all
    env: {A: 1}
    steps:
      - uses: actions/checkout@v4
      - run: |
          pip install \\
            torch==2.5.1
          nvidia-smi || true
      - if: always()
        run: nvidia-smi
""")
    assert (job.runner, job.is_hosted) == (("self-hosted", "gpu"), False)
    assert job.image == "nvidia/cuda:12.4.1-base-ubuntu22.04"
    assert [grant.text for grant in job.grants] == ["options: --gpus all"]
    assert [(c.words[0], c.place.line, c.may_fail) for c in job.commands[:2]] == [
        ("pip", 12, False),
        ("nvidia-smi", 14, True),
    ]
    assert job.commands[0].place_of(2).line == 13
    assert "nvidia-smi" not in [command.words[0] for command in job.commands[2:]]


@pytest.mark.parametrize(
    ("runner", "hosted"),
    [
        ("ubuntu-latest", True),
        ("ubuntu-24.04-arm", True),
        ("macos-14", True),
        ("gpu-t4-4-core", False),
        ("${{ matrix.os }}", False),
        ("[self-hosted, ubuntu-latest]", False),
    ],
)
def test_machines_of_github_are_known_by_their_labels(runner: str, hosted: bool) -> None:
    (job,) = workflow_jobs(f"jobs:\n  a:\n    runs-on: {runner}\n")
    assert job.is_hosted is hosted


def test_jobs_of_gitlab() -> None:
    jobs = workflow_jobs("""\
image: nvidia/cuda
variables: {CUDA_VISIBLE_DEVICES: "0"}
.hidden: {script: [a]}
train:
  tags: [gpu]
  script:
    - pip install torch
    - nvidia-smi
""")
    (job,) = jobs
    assert (job.name, job.image, job.runner) == ("train", "nvidia/cuda", ("gpu",))
    assert [command.place.line for command in job.commands] == [7, 8]
    assert job.variables[0].name == "CUDA_VISIBLE_DEVICES"
