"""A Dockerfile is read as BuildKit reads it, with its lines."""

from __future__ import annotations

import pytest

from whygpu.readers.deployment.dockerfile import Stage, read
from whygpu.readers.deployment.package_installs import package_installs, system_packages


def stage(text: str) -> Stage:
    return read("Dockerfile", text).stages[-1]


def commands(text: str) -> list[tuple[tuple[str, ...], int]]:
    found = stage(f"FROM x\n{text}")
    return [(command.words, command.place.line) for run in found.runs for command in run.commands]


def test_variables_in_from_are_replaced() -> None:
    text = "ARG CUDA=11.8.0\nARG OS\nFROM nvidia/cuda:${CUDA}-base-${OS:-ubuntu22.04} AS base\n"
    assert stage(text).base == "nvidia/cuda:11.8.0-base-ubuntu22.04"
    assert stage("ARG TAG\nFROM nvidia/cuda:$TAG\n").base is None


def test_a_stage_continues_another_one() -> None:
    found = read("Dockerfile", "FROM a AS one\nENV X=1\nFROM one\nRUN echo $X\n")
    assert [each.base for each in found.stages] == ["a", "one"]
    assert found.stages[1].runs[0].commands[0].words == ("echo", "1")
    assert found.stage("0") is found.stages[0]


def test_commands_and_words_keep_their_lines() -> None:
    text = "RUN a one && \\\n    # a comment\n\n    b two \\\n      three || true\n"
    assert commands(text) == [(("a", "one"), 2), (("b", "two", "three"), 5), (("true",), 6)]
    (run,) = stage(f"FROM x\n{text}").runs
    assert [place.line for place in run.commands[1].word_places] == [5, 5, 6]
    assert [command.may_fail for command in run.commands] == [True, True, False]


@pytest.mark.parametrize(
    ("script", "may_fail"),
    [
        ("a && b", [False, False]),
        ("a && b || c", [True, True, False]),
        ("a || b; c", [True, True, False]),
        ("a; b", [True, False]),
        ("set -eu; a; b", [False, False, False]),
        ("a | b", [True, False]),
        ("if a; then b; fi; c", [True, True, False]),
        ("! a", [True]),
        ("for x in 1 2; do a; done && b", [True, True, False]),
    ],
)
def test_whose_failure_ends_the_build(script: str, may_fail: list[bool]) -> None:
    (run,) = stage(f"FROM x\nRUN {script}\n").runs
    assert [command.may_fail for command in run.commands] == may_fail


def test_here_documents_are_scripts() -> None:
    text = "RUN <<EOF\nset -e\npip install torch\nEOF\nRUN last\n"
    assert commands(text) == [(("set", "-e"), 3), (("pip", "install", "torch"), 4), (("last",), 6)]


@pytest.mark.parametrize(
    "text",
    [
        'RUN bash -c "source activate x && pip install torch"\n',
        "RUN /bin/bash -o pipefail -ec 'source activate x && pip install torch'\n",
        'RUN ["/bin/sh", "-c", "source activate x && pip install torch"]\n',
    ],
)
def test_the_text_that_a_shell_runs_has_commands(text: str) -> None:
    words = [("source", "activate", "x"), ("pip", "install", "torch")]
    assert commands("\n" + text) == [(each, 3) for each in words]


def test_a_shell_that_runs_a_file_is_one_command() -> None:
    for script in ("bash install.sh -c x", "bash -c", "sh", "echo -c x"):
        assert commands(f"RUN {script}\n") == [(tuple(script.split()), 2)]


def test_a_text_may_fail_where_its_shell_may() -> None:
    (run,) = stage("FROM x\nRUN bash -c 'a && b' || true\n").runs
    assert [command.may_fail for command in run.commands] == [True, True, False]


def test_flags_of_run_are_no_words() -> None:
    text = "RUN --mount=type=cache,target=/root/.cache --network=host pip install x\n"
    assert commands(text) == [(("pip", "install", "x"), 2)]


def test_another_escape_character() -> None:
    text = "# escape=`\nFROM x\nRUN a `\n  b C:\\dir\n"
    assert stage(text).runs[0].commands[0].words[:2] == ("a", "b")


def test_both_forms_of_env_and_their_lines() -> None:
    found = stage('FROM x\nENV OLD a value\nENV A="1 2" \\\n    B=$A:3\n')
    assert [(each.name, each.value, each.place.line) for each in found.variables] == [
        ("OLD", "a value", 2),
        ("A", "1 2", 3),
        ("B", "1 2:3", 4),
    ]
    assert found.variables[1].place.text == 'ENV A="1 2" \\'


def test_copies_know_their_folder_and_their_stage() -> None:
    text = (
        "FROM x\nWORKDIR /app\nWORKDIR sub\n"
        'COPY --chown=a req.txt .\nCOPY --from=b ["/v e", "/v"]\n'
    )
    one, other = stage(text).copies
    assert (one.sources, one.target, one.workdir, one.from_stage) == (
        ("req.txt",),
        ".",
        "/app/sub",
        "",
    )
    assert (other.sources, other.from_stage) == (("/v e",), "b")


def installs(line: str) -> list[str]:
    found = stage(f"FROM x\nRUN {line}\n")
    return [
        f"{each.manager} {each.name}{each.specifier}"
        for install in package_installs(found.runs[0].commands)
        for each in install.requirements
    ]


def test_packages_of_pip_uv_and_conda() -> None:
    assert installs("pip3 install -U --no-cache-dir 'torch>=2' numpy==1.0") == [
        "pip torch>=2",
        "pip numpy==1.0",
    ]
    assert installs("PIP_X=1 python3.9 -m pip install torch") == ["pip torch"]
    assert installs("uv pip install --system torch") == ["pip torch"]
    assert installs("conda install -y -c pytorch pytorch=1.4 cudatoolkit=10.1") == [
        "conda pytorch==1.4.*",
        "conda cudatoolkit==10.1.*",
    ]
    assert installs("conda run -n env pip install jax") == ["pip jax"]
    assert installs("pip download torch && echo pip install jax") == []


def test_files_projects_and_sources_of_an_install() -> None:
    found = stage(
        "FROM x\nRUN python3.8 -m pip install -r a.txt -rb.txt -e ./app "
        "--index-url https://i torch $X\n"
    )
    (install,) = package_installs(found.runs[0].commands)
    assert install.files == ("a.txt", "b.txt")
    assert install.projects == ("./app",)
    assert install.python == "3.8"
    assert [source.url for source in install.requirements[0].sources] == ["https://i"]
    assert "$X" in install.unread[0].reason


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("conda env create -f a.yml", ("a.yml",)),
        ("conda env create -f=a.yml --name b", ("a.yml",)),
        ("mamba env update --file=a.yml", ("a.yml",)),
        ("conda env create", ("environment.yml",)),
        ("micromamba create -y -f a.yaml", ("a.yaml",)),
        ("conda install -y --file a.txt", ()),
    ],
)
def test_files_of_conda(line: str, files: tuple[str, ...]) -> None:
    (install,) = package_installs(stage(f"FROM x\nRUN {line}\n").runs[0].commands)
    assert (install.files, install.requirements) == (files, ())


def test_packages_of_the_system() -> None:
    found = stage("FROM x\nRUN apt-get update && apt-get install -y --no-x cuda=12.1 git\n")
    assert [system_packages(each) for each in found.runs[0].commands] == [(), ("cuda", "git")]
