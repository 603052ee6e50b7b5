"""The table of tools: the arguments of each, the verb behind it, and what is kept of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from whygpu.agent.answers import Shape

LONGEST_WORD = 4096
LONGEST_TEXT = 4_000_000
"""Characters of a log or program that is passed as text; a longer one can be passed by its path."""
_MINUTE = 60.0

_PYTHON_HELP = (
    "interpreter or virtual environment to examine, such as /home/me/project/.venv. Without it: "
    "the environment that is active where this server was started, else python on PATH, which is "
    "often not the one of the project"
)


class Argument(NamedTuple):
    """One argument of a tool, and how the command line takes it."""

    schema: Mapping[str, Any]
    option: str = ""
    """Empty: a word without an option."""
    given_if: bool = True
    """For true or false: the value for which the option is given."""
    joined: bool = False
    """Several values become one word, with commas."""
    is_input: bool = False
    """It is the text of standard input."""


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    arguments: Mapping[str, Argument]
    shape: Shape
    verb: tuple[str, ...]
    limit: float
    """Seconds."""
    one_of: tuple[str, ...] = ()
    """Exactly one of these arguments must be given."""
    changes: bool = False
    """Whether it can change anything."""

    @property
    def json_schema(self) -> dict[str, Any]:
        properties = {name: dict(each.schema) for name, each in self.arguments.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return schema if len(self.one_of) != 1 else {**schema, "required": list(self.one_of)}


def _text(description: str) -> dict[str, Any]:
    return {
        "type": "string",
        "description": description,
        "minLength": 1,
        "maxLength": LONGEST_WORD,
        # No word of a command line can hold this character.
        "pattern": "^[^\\x00]*$",
    }


def _texts(description: str) -> dict[str, Any]:
    item = {key: value for key, value in _text("").items() if key != "description"}
    return {"type": "array", "items": item, "maxItems": 100, "description": description}


def _flag(description: str, default: bool) -> dict[str, Any]:
    return {"type": "boolean", "description": description, "default": default}


def _whole_text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description, "maxLength": LONGEST_TEXT}


_PYTHON = Argument(_text(_PYTHON_HELP), "--python")
_SNAPSHOT = Argument(
    _text("path of a snapshot of another machine (`whygpu snapshot -o FILE`), to judge instead"),
    "--snapshot",
)
_MACHINE = {
    "python": Argument(_text("a Python version such as 3.11, or an environment"), "--python"),
    "driver": Argument(_text("version of the NVIDIA driver, such as 535.54.03"), "--driver"),
    "gpu": Argument(
        _text("model of the GPU, such as RTX 4090, or its capability: 8.9; several: T4, L4"),
        "--gpu",
    ),
    "platform": Argument(
        _text("linux_x86_64, linux_aarch64, win_amd64, macosx_arm64 or macosx_x86_64"), "--platform"
    ),
    "snapshot": _SNAPSHOT,
}

TOOLS = (
    Tool(
        "check",
        "Does each framework use the GPU?",
        "Find out whether TensorFlow, Keras, JAX and PyTorch of one Python environment on this "
        "machine use the GPU, and if not, the root causes with evidence and the commands that fix "
        "them. Runs each framework for some seconds; changes nothing.",
        {
            "python": _PYTHON,
            "probe": Argument(
                _flag("run the frameworks; false reads files only, which is faster", True),
                "--no-probe",
                given_if=False,
            ),
            "snapshot": _SNAPSHOT,
        },
        Shape(
            "check",
            ("verdict", "headline", "examined", "frameworks", "root_causes", "undetermined"),
            {"undetermined": 20},
        ),
        ("check",),
        10 * _MINUTE,
    ),
    Tool(
        "explain",
        "What does this log mean?",
        "Explain a log, a traceback or other output of a deep-learning program: the root cause, "
        "the lines that prove it, the fix. Give `path` or `text`.",
        {
            "path": Argument(_text("a log, also compressed, or a notebook with its output")),
            "text": Argument(_whole_text("the log itself"), is_input=True),
            "here": Argument(
                _flag("the log was written on this machine: compare it with its facts", False),
                "--here",
            ),
            "python": Argument(
                _text("with `here`: the interpreter or environment that wrote the log"), "--python"
            ),
        },
        Shape(
            "explain",
            (
                "verdict",
                "headline",
                "root_causes",
                "symptoms",
                "unexplained",
                "guidance",
                "lines_read",
                "unread",
            ),
            {"symptoms": 5, "unexplained": 10},
        ),
        ("explain",),
        2 * _MINUTE,
        one_of=("path", "text"),
    ),
    Tool(
        "lint",
        "Which lines mishandle devices?",
        "Find lines of Python source, notebooks, Dockerfiles, compose files, Kubernetes manifests, "
        "job scripts and requirement files that keep a program off the GPU or misuse it. Runs "
        "nothing. Give `paths` or `text`.",
        {
            "paths": Argument(_texts("files or folders")),
            "text": Argument(_whole_text("Python source"), is_input=True),
            "select": Argument(
                _texts("codes of causes to look for, and no others"), "--select", joined=True
            ),
            "ignore": Argument(_texts("codes of causes not to look for"), "--ignore", joined=True),
            "tensorflow": Argument(
                _text("the TensorFlow version that the code is for: 1.15"), "--tensorflow"
            ),
        },
        Shape(
            "lint",
            ("findings", "problems", "files", "left_out"),
            {"findings": 40, "problems": 20},
        ),
        ("lint",),
        5 * _MINUTE,
        one_of=("paths", "text"),
    ),
    Tool(
        "plan",
        "Which releases fit?",
        "Choose releases of TensorFlow, Keras, JAX, PyTorch, CuPy and ONNX Runtime that can use "
        "the GPU of this machine, or of the one that the arguments describe, and the commands that "
        "install them. If none fits: why not, and the smallest change that helps.",
        {
            "frameworks": Argument(_texts("such as tensorflow==2.15 or torch; default tensorflow")),
            **_MACHINE,
        },
        Shape(
            "plan",
            ("table", "machine", "plan", "changes", "candidates", "unchecked"),
            {"candidates": 12},
        ),
        ("plan",),
        2 * _MINUTE,
    ),
    Tool(
        "plan_file",
        "Can what this file installs use the GPU?",
        "Judge each requirement of a requirements.txt, pyproject.toml, environment.yml, uv.lock, "
        "poetry.lock, pdm.lock, pixi.lock or conda-lock.yml: can what it installs use the GPU of "
        "the machine?",
        {"file": Argument(_text("path of the file"), "--from"), **_MACHINE},
        Shape(
            "plan-from",
            ("machine", "file", "format", "requirements", "unread", "unchecked"),
            {"requirements": 60},
        ),
        ("plan",),
        2 * _MINUTE,
        one_of=("file",),
    ),
    Tool(
        "memory",
        "Who holds GPU memory?",
        "List who holds the memory of each GPU, what is free, and what a new process of each "
        "framework would take at its start.",
        {
            "gpu": Argument(_text("only this GPU: 0, several (0,2), or a name"), "--gpu"),
            "python": _PYTHON,
            "snapshot": _SNAPSHOT,
        },
        Shape("memory", ("gpus", "settings", "defaults", "causes")),
        ("memory",),
        2 * _MINUTE,
    ),
    Tool(
        "memory_estimate",
        "Does this model fit?",
        "Estimate without a GPU how much GPU memory a model takes, whether it fits, and the "
        "largest batch that would. Loads and runs the named code of the user.",
        {
            "model": Argument(
                _text("model.keras, or file.py:function that returns a model or a module")
            ),
            "batch": Argument(
                {"type": "integer", "minimum": 1, "description": "examples; default 32"}, "--batch"
            ),
            "infer": Argument(_flag("inference instead of training", False), "--infer"),
            "mixed_precision": Argument(_flag("compute in 16 bits", False), "--mixed-precision"),
            "input": Argument(
                _text("shape of one example, such as 3x224x224 or 256:int64"), "--input"
            ),
            "optimizer": Argument(_text("adam, sgd, ..."), "--optimizer"),
            "gpu": Argument(_text("model of the GPU, such as RTX 4090"), "--gpu"),
            "limit": Argument(_text("memory it may take, such as 8GiB"), "--limit"),
            "backend": Argument(_text("Keras's: torch, jax or tensorflow"), "--backend"),
            "python": Argument(
                _text("interpreter or virtual environment that has the framework"), "--python"
            ),
        },
        Shape(
            "memory-estimate",
            (
                "what",
                "framework",
                "mode",
                "verdict",
                "why",
                "at",
                "total_bytes",
                "overhead_bytes",
                "room",
                "largest",
                "next_batch",
                "notes",
                "source",
                "traceback",
            ),
        ),
        ("memory", "estimate"),
        15 * _MINUTE,
        one_of=("model",),
    ),
    Tool(
        "fix",
        "Which steps repair the environment?",
        "List the steps that repair a Python environment, and those that only a person can do. "
        "With `prove`, each step is tried in a throwaway copy (minutes, disk space, the network). "
        "With `apply`, the proven steps are applied; that works only if the server was started "
        "with --allow-fix, and the user should have agreed to it.",
        {
            "python": Argument(_text("interpreter or virtual environment to repair"), "--python"),
            "only": Argument(_texts("codes of causes to repair, and no others"), "--only"),
            "prove": Argument(_flag("try the steps in a copy", False), "--dry-run", given_if=False),
            "apply": Argument(_flag("prove the steps, then apply them", False), "--apply"),
        },
        Shape(
            "fix",
            (
                "environment",
                "refused",
                "proven",
                "applied",
                "before",
                "after",
                "steps",
                "by_hand",
                "attempts",
            ),
        ),
        ("fix",),
        60 * _MINUTE,
        changes=True,
    ),
)
