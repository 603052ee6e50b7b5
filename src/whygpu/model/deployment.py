"""What an image, a service, a pod or a job gives to the program in it: one type for all of them.

Readers and the linter build a `Setup` from files, and the detectors of causes query it. A `Setup`
that runs an image contains the `Setup` of that image, as far as its Dockerfile was found. A fact is
there only if a file says so: what could not be looked at is in `open_questions`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Finding
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.requirement_file import FileLine, LineEdit, PinnedRequirement, RequirementVerdict

Flavour = Literal["base", "runtime", "devel", ""]
SetupKind = Literal[
    "image", "service", "pod", "job", "workflow job", "dev container", "variables", "requirements"
]

Question = Literal[
    "purpose",
    "gpus",
    "packages",
    "arguments",
    "installer",
    "driver",
    "numbers",
    "memory",
    "names",
]
"""What a finding takes for granted, and what makes it false if it is otherwise:

- `purpose`: that it is made for a GPU at all
- `gpus`: that nothing else gives it a GPU
- `packages`: that nothing else is installed in the image
- `arguments`: that the image is built with the defaults of its Dockerfile
- `installer`: that pip installs the file of requirements, and not conda
- `driver`: that the driver of the host has another version
- `numbers`: that its GPUs are numbered from 0
- `memory`: that its data do not fit into the shared memory that it has
- `names`: that no program of the project reads a variable of this name
"""


class OpenQuestion(NamedTuple):
    """Something that may make a finding false, and that the files do not show."""

    about: Question
    reason: str
    """Why it is open, as the rest of a sentence."""


class VariableSetting(NamedTuple):
    """A variable that a file sets for the program."""

    name: str
    value: str | None
    """None if the file does not show it; with a `$` if it contains another variable."""
    place: FileLine

    @property
    def known(self) -> str | None:
        """The whole value; None if the file does not show all of it."""
        return None if self.value is None or "$" in self.value else self.value


class Reason(NamedTuple):
    """Why a setup is meant for a GPU, or for the CPU."""

    text: str
    """The rest of a sentence: "it is built from nvidia/cuda"."""
    place: FileLine
    doubt: str = ""
    """Why it may not mean that a GPU is missing, as the rest of a sentence; mostly empty."""


class Grant(NamedTuple):
    """GPUs that a file asks for."""

    text: str
    """As it is written: nvidia.com/gpu: 1, --gres=gpu:2."""
    place: FileLine
    gpus: int | None = None
    """How many; None if the file does not show it, or if it asks for all."""
    refused: str = ""
    """Why it gives no GPU although it is written, as the rest of a sentence; mostly empty."""
    edits: tuple[LineEdit, ...] = ()
    """What makes it give one, if that is a safe change of lines."""


class BaseImage(NamedTuple):
    """A published image, with what its name tells about it."""

    name: str
    """Without the registry and the tag: nvidia/cuda, python."""
    tag: str
    place: FileLine
    registry: str = ""
    """As it is written; empty for Docker's own."""
    cuda: str = ""
    """The CUDA release of its libraries; empty if it has none, or if the name does not tell."""
    cudnn: str = ""
    """The major release of cuDNN; empty if it has none, or if the name does not tell."""
    flavour: Flavour = ""
    """For images of CUDA: `base` has the CUDA runtime only, without cuBLAS and the others."""
    framework: str = ""
    version: str = ""
    """The release of the framework; empty if the name does not tell."""
    uses_gpu: bool | None = None
    """Whether what is in it can use a GPU; None if the name does not tell."""
    python: str = ""
    is_plain: bool = False
    """An operating system or a Python, without CUDA."""

    @property
    def reference(self) -> str:
        return f"{self.name}:{self.tag}" if self.tag else self.name

    @property
    def brings_python(self) -> bool:
        """Whether it has a Python; those of systems and of CUDA have none."""
        return self.name.rpartition("/")[2] == "python" or bool(self.framework)


def _is_assignment(word: str) -> bool:
    """A=1, and the program `env`, which is followed by assignments."""
    name, mark, _ = word.partition("=")
    return word.rpartition("/")[2] == "env" or (bool(mark) and name.isidentifier())


class ShellCommand(NamedTuple):
    """A command of a script, as a shell splits it."""

    words: tuple[str, ...]
    place: FileLine
    may_fail: bool = False
    """Its failure does not end the script, as in `command || true`, or it may not run at all."""
    word_places: tuple[FileLine, ...] = ()
    """The line of each word; empty if all are on one line."""
    is_choice: bool = False
    """It runs only if a condition holds, and the file does not show whether it does."""

    @property
    def plain_words(self) -> tuple[str, ...]:
        """Without the assignments before the command."""
        return self.words[self.first_plain :]

    @property
    def first_plain(self) -> int:
        """The number of the first word that is no assignment."""
        return next(
            (number for number, word in enumerate(self.words) if not _is_assignment(word)),
            len(self.words),
        )

    def place_of(self, number: int) -> FileLine:
        return self.word_places[number] if self.word_places else self.place


class CudaModule(NamedTuple):
    """The CUDA and cuDNN that a job loads with `module load`."""

    cuda: str
    cudnn: str
    """The major release; empty if the job loads none."""
    place: FileLine


class CopiedFile(NamedTuple):
    """A file that an image gets from its build context or from another stage."""

    source: str
    target: str
    place: FileLine


class StartedProgram(NamedTuple):
    """The Python program that a container or a job starts."""

    path: str
    needs_gpu: FileLine | None
    """A statement that fails without a GPU; None if there is none."""
    workers: FileLine | None
    """Where it makes a data loader with worker processes, which use shared memory."""
    loads_images: bool = False
    """What the workers load is large."""


class Setup(NamedTuple):
    kind: SetupKind
    name: str
    """The stage, service, container or job; empty if the file has only one."""
    place: FileLine
    for_gpu: tuple[Reason, ...] = ()
    for_cpu: tuple[Reason, ...] = ()
    grants: tuple[Grant, ...] = ()
    grant_elsewhere: str = ""
    """Why GPUs may be granted in a way that the file does not show; mostly empty."""
    commented_grant: FileLine | None = None
    """A grant that is commented out."""
    grant_is_offered: bool = False
    """The comments around it call it an option."""
    base: BaseImage | None = None
    has_own_cuda: bool = False
    """CUDA libraries are installed beside those of the base."""
    has_own_cudnn: bool = False
    """cuDNN is installed beside what the base has."""
    python: str = ""
    """The Python of an image; empty if it is not certain."""
    requirements: tuple[PinnedRequirement, ...] = ()
    verdicts: tuple[RequirementVerdict, ...] = ()
    """What the planner says about the requirements."""
    variables: tuple[VariableSetting, ...] = ()
    commands: tuple[ShellCommand, ...] = ()
    copies: tuple[CopiedFile, ...] = ()
    cuda_module: CudaModule | None = None
    """For jobs; None if a job loads none, or several."""
    image: Setup | None = None
    """The image that it runs, if its Dockerfile is here or its name tells about it."""
    program: StartedProgram | None = None
    """What it starts, if that is a program of the project and shows what it needs."""
    has_default_memory: bool = False
    """Its shared memory is the 64 MB that containers get if nothing else is asked for."""
    several_processes: Reason | None = None
    """Why several of its processes work on one machine, each with its GPU; None if unknown."""
    open_questions: tuple[OpenQuestion, ...] = ()
    """What could not be looked at. Findings that rest on it are only notes."""
    arguments: tuple[str, ...] = ()
    """The arguments of a build whose defaults were taken."""
    machine: MachineSpec | None = None
    """The machine that it is for, if the user said it."""

    @property
    def title(self) -> str:
        """For messages: the service web, the pod trainer, this image."""
        return f"the {self.kind} {self.name}" if self.name else f"this {self.kind}"

    @property
    def given(self) -> tuple[Grant, ...]:
        """The grants that give a GPU."""
        return tuple(grant for grant in self.grants if not grant.refused)


class SetupFinding(NamedTuple):
    """A finding in a file that is not Python."""

    finding: Finding
    place: FileLine
    edits: tuple[LineEdit, ...] = ()
    """Lines of the same file; empty if there is no safe edit."""
    rests_on: tuple[Question, ...] = ()
    """What it takes for granted; if one of them is open, it is only a note."""
