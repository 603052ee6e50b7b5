"""Deployment files that are made to keep whygpu busy."""

from __future__ import annotations

import pathlib
import time

from tests.linter.test_deployment import POD, project

IMAGE = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
SERVICE = f"  app{{0}}:\n    image: {IMAGE}\n    command: run {{1}}\n"


def seconds_for(folder: pathlib.Path, files: dict[str, str]) -> float:
    begin = time.process_time()
    project(folder, files)
    return time.process_time() - begin


def test_a_script_of_empty_lines_beside_a_compose_file_takes_no_time(
    tmp_path: pathlib.Path,
) -> None:
    compose = "services:\n" + SERVICE.format(1, "a")
    assert seconds_for(tmp_path, {"compose.yaml": compose, "run.sh": "\n" * 60_000}) < 5


def test_thousands_of_services_are_not_compared_with_each_other(tmp_path: pathlib.Path) -> None:
    services = "".join(SERVICE.format(number, chr(97 + number % 20)) for number in range(2_000))
    assert seconds_for(tmp_path, {"compose.yaml": f"services:\n{services}"}) < 10


def test_each_manifest_is_read_once_for_all_pods_of_another(tmp_path: pathlib.Path) -> None:
    limit = "resources: {limits: {nvidia.com/gpu: 1}}"
    container = f"{{{{name: b, image: {IMAGE}, {{}}}}}}"

    def pods(inside: str) -> str:
        return "---\n".join(
            POD.replace("name: a", f"name: a{number}").format(container.format(inside), "")
            for number in range(100)
        )

    files = {f"other{number}.yaml": pods(limit) for number in range(10)}
    assert seconds_for(tmp_path, {"pods.yaml": pods("tty: true"), **files}) < 5
