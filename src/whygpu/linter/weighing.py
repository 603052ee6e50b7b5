"""Whether a finding stands: what would make it false was looked at, and is not there.

A detector says what its finding rests on (`Question`). This is the one place that looks at it, for
all causes: if something else is the case, there is no finding; if that cannot be seen, it is a
note that says what is open.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache

from whygpu.linter.project_files import kind_of
from whygpu.linter.project_texts import ProjectTexts
from whygpu.linter.service_setups import granted_services
from whygpu.model.deployment import Question, Setup, SetupFinding
from whygpu.model.observed import Absent, Known, Observed, Unknown

Answer = Observed[str]
"""Known: it is otherwise, so the finding is false. Unknown: why it is open."""
_STANDS = Absent("what the files show")

_SUBMITS = re.compile(
    r"^[^#\n]{0,200}\b(?:sbatch|qsub|bsub)\b(?:[^\n]|\\\n){0,400}?"
    r"(?:--gres[= ]\S{0,80}gpu(?!:0)|--gpus|ngpus|-gpu\b|-G )[^\n]{0,400}",
    re.MULTILINE,
)
_PATCHES = re.compile(r"\bkubectl\s(?:patch|set)\b(?:[^\n]|\\\n){0,400}nvidia\.com/")
_GIVES_GPUS = re.compile(r"nvidia\.com/[\w.-]{1,60}[\"']?:\s{0,5}[\"']?[1-9]")
_CONDA_INSTALLS = re.compile(r"\b(?:conda|mamba)\s(?:install|create)\s[^\n]{0,200}-c\s")
_PUT_AWAY = re.compile(
    r"(?:^|[/\\._-])(?:back-?ups?|bak|bkp|old|archived?|deprecated|obsolete|unused)(?:[/\\._-]|$)",
    re.IGNORECASE,
)
_SHARED_MEMORY = re.compile(r"default-shm-size")
_RUN_OR_READ = (".json", ".yaml", ".yml", ".sh", ".tf", ".toml", ".ps1", "Makefile")
_SERVICES = re.compile(r"^services:", re.MULTILINE)
_BY_VARIABLE = re.compile(
    r"\bdocker(?:-compose| compose)\s(?:[^\n]|\\\n){0,200}?"
    r"(?:-e|--env)[ =][\"']?NVIDIA_VISIBLE_DEVICES"
)
"""This has an effect only if the runtime of NVIDIA is the default."""
DEFAULT_RUNTIME = re.compile(
    r"default-runtime[\"']?[\s:=]{1,4}[\"']?nvidia|nvidia-docker-compose"
    r"|nvidia-ctk\b[^\n]{0,200}--(?:nvidia-)?set-as-default"
)


def weighed(item: SetupFinding, setup: Setup, project: ProjectTexts) -> SetupFinding | None:
    """The finding, a note in its place, or None if it is false."""
    for question in item.rests_on if item.finding.severity != "info" else ():
        answer = _answer(question, item, setup, project)
        if isinstance(answer, Known):
            return None
        if isinstance(answer, Unknown):
            return _as_note(item, answer.reason)
    if item.finding.severity != "info" and (put_away := _PUT_AWAY.search(item.place.file)):
        return _as_note(item, f"{put_away[0].strip('/._-')} in its name says that it is not used")
    return item


def _as_note(item: SetupFinding, reason: str) -> SetupFinding:
    finding = item.finding
    return item._replace(
        finding=finding._replace(
            severity="info", confidence="possible", message=f"{finding.message}; {reason}"
        )
    )


def _answer(question: Question, item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    for place in (setup, setup.image) if setup.image is not None else (setup,):
        for each in place.open_questions:
            if each.about == question:
                return Unknown(each.reason)
    look = _LOOKS.get(question)
    return look(item, setup, project) if look is not None else _STANDS


def _purpose(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    if setup.given or not setup.for_gpu or any(not reason.doubt for reason in setup.for_gpu):
        return _STANDS
    return Unknown(setup.for_gpu[0].doubt)


def _gpus(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    if setup.kind == "job":
        return _submitted_with_gpus(setup, project)
    if setup.kind == "pod":
        return _patched(setup, project)
    if setup.kind in ("service", "dev container", "image"):
        said = project.first(DEFAULT_RUNTIME)
        if isinstance(said, Known):
            # A page that explains it says nothing about the machine that runs this.
            is_setting = said.value.file.endswith(_RUN_OR_READ)
            reason = f"{said.source} makes NVIDIA's runtime the default"
            return Known(reason, said.source) if is_setting else Unknown(reason)
        if isinstance(said, Unknown):
            return said
        chosen = project.first(_BY_VARIABLE)
        if isinstance(chosen, Known):
            reason = f"{chosen.source} counts on NVIDIA's runtime as the default"
            return Unknown(reason)
    return _given_in_another_file(setup, project) if setup.kind == "service" else _STANDS


def _submitted_with_gpus(setup: Setup, project: ProjectTexts) -> Answer:
    """Scripts of any folder, a README or a program may submit the job with options."""
    path = os.path.normpath(setup.place.file)
    named = re.compile(
        rf"(?<![\w.-])(?:[\w.~/-]{{0,200}}/)?{re.escape(os.path.basename(path))}(?!\w)"
    )
    is_open = ""
    for other, text in project.having(_SUBMITS):
        for match in _SUBMITS.finditer(text):
            job = named.search(match[0])
            if job is not None and _is_path_of(job[0], path):
                return Known(f"{other} submits it with GPUs", other)
            if job is not None or re.search(r"[${*]", match[0]):
                is_open = is_open or f"{other} submits jobs with GPUs, perhaps this one"
    return Unknown(is_open) if is_open else project.without_match()


def _is_path_of(written: str, path: str) -> bool:
    """Whether a command means this file, and not one of the same name in another folder."""
    return f"/{path}".endswith("/" + os.path.normpath(written).lstrip("./"))


def _patched(setup: Setup, project: ProjectTexts) -> Answer:
    """Another manifest of the project, or a command, may give GPUs to the object of this name."""
    name = setup.name.partition("/")[0]
    if not name:
        return _STANDS
    mentioned = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    for path, text in project.having(_PATCHES):
        if mentioned.search(text):
            return Unknown(f"{path} changes the resources of pods, perhaps of this one")
    named = re.compile(rf"\bname:\s{{0,5}}[\"']?{re.escape(name)}[\"']?\s")
    for path, text in project.having(_GIVES_GPUS):
        if kind_of(path) == "yaml" and name in text and named.search(text):
            return Unknown(f"{path} gives GPUs to a {name}, perhaps to this one")
    return project.without_match()


def _given_in_another_file(setup: Setup, project: ProjectTexts) -> Answer:
    """A file that Docker can merge with this one; a whole service elsewhere is another one."""
    own = os.path.dirname(os.path.normpath(setup.place.file))
    for path, text in project.having(_SERVICES):
        is_compose = "compose" in os.path.basename(path).lower()
        granted = granted_services(path, text) if is_compose else ()
        is_beside = os.path.dirname(path) == own
        if any(
            each.name == setup.name and (is_beside or not (each.image or each.build_folder))
            for each in granted
        ):
            return Unknown(f"{path} gives a service of this name GPUs")
    return project.without_match()


def _arguments(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    image = setup.image or setup
    if not image.arguments:
        return _STANDS
    found = project.first(_another_value(image.arguments))
    if isinstance(found, Known):
        return Unknown(f"{found.source} may build the image with other arguments")
    return found if isinstance(found, Unknown) else _STANDS


@lru_cache(maxsize=64)
def _another_value(names: tuple[str, ...]) -> re.Pattern[str]:
    """--build-arg CUDA=12.1, and the same in the parts `args` and `build-args` of YAML."""
    listed = "|".join(map(re.escape, names))
    return re.compile(
        rf"--build-arg[ =][\"']?(?:{listed})\b"
        rf"|build-args:[^\n]{{0,9}}\n(?:[^\n]{{0,200}}\n){{0,9}}?\s{{1,40}}(?:{listed})="
        rf"|\bargs:\s{{0,9}}\n(?:\s{{1,40}}\S[^\n]{{0,200}}\n){{0,9}}?\s{{1,40}}(?:-\s)?[\"']?"
        rf"(?:{listed})[\"']?\s?[:=]"
    )


def _installer(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    """conda install --file requirements.txt: its packages have other names."""
    name = os.path.basename(item.place.file)
    if setup.kind != "requirements":
        return _STANDS
    by_conda, by_pip = _commands_with(name)
    found = project.first(by_conda)
    if isinstance(found, Known):
        return Known(f"{found.source} installs it with conda", found.source)
    other = project.first(_CONDA_INSTALLS)
    if isinstance(other, Known) and not isinstance(project.first(by_pip), Known):
        return Unknown(f"nothing shows that pip installs it, and {other.source} uses conda")
    return found if isinstance(found, Unknown) else _STANDS


@lru_cache(maxsize=64)
def _commands_with(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Those with which conda, and those with which pip installs a list.

    conda install --file NAME, and: while read x; do conda install $x; done < NAME
    """
    file = rf"(?:\S{{0,99}}/)?{re.escape(name)}\b"
    by_conda = rf"\b(?:conda|mamba)\s[^\n]{{0,200}}(?:(?:--file|-f)[= ]|\bdone\s?<\s?){file}"
    by_pip = rf"\b(?:pip[\d.]{{0,5}}|uv)\s[^\n]{{0,200}}-r\s{{0,3}}[\"']?{file}"
    return re.compile(by_conda), re.compile(by_pip)


def _driver(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    if setup.machine is not None and isinstance(setup.machine.driver, Known):
        return _STANDS
    return Unknown("whether it does depends on the version of the host's driver")


def _memory(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    found = project.first(_SHARED_MEMORY)
    if isinstance(found, Known):
        return Unknown(f"{found.source} may give it more")
    program = setup.program
    if program is not None and program.workers is not None and not program.loads_images:
        return Unknown("small batches fit into it")
    return found if isinstance(found, Unknown) else _STANDS


def _names(item: SetupFinding, setup: Setup, project: ProjectTexts) -> Answer:
    """A program or a script of the project may read a variable that no framework reads."""
    names = [each.name for each in setup.variables if each.place == item.place]
    # A line may set several variables.
    name = next((each for each in names if f" {each};" in item.finding.message), "")
    if not name:
        return _STANDS
    read = project.first(
        re.compile(
            rf"(?:environ|getenv|env\.|Field\(|alias)[^\n]{{0,40}}[\"']{re.escape(name)}[\"']"
        )
    )
    if isinstance(read, Known):
        return Known(f"{read.source} reads it", read.source)
    # A script may give the value on, or print it.
    used = project.first(re.compile(rf"\$\{{?{re.escape(name)}\b"))
    if isinstance(used, Known):
        return Unknown(f"{used.source} uses it")
    return used if isinstance(used, Unknown) else _STANDS


_LOOKS: dict[Question, Callable[[SetupFinding, Setup, ProjectTexts], Answer]] = {
    "purpose": _purpose,
    "gpus": _gpus,
    "arguments": _arguments,
    "installer": _installer,
    "driver": _driver,
    "memory": _memory,
    "names": _names,
}
