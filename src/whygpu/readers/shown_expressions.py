"""Expressions that ask for devices and builds, and the forms of their values."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.log import ShownOf

_TRUTH = r"True|False"
_VERSION = r"['\"]?(?:\d[\w.+-]{0,40}|None)['\"]?"
_COUNT = r"\d{1,4}"
_LIST = r"\[[^\]\n]{0,400}\]"
_NAME = r"['\"]?[a-z]{2,12}['\"]?"
_GPU = r"\(\s?(?:device_type ?= ?)?['\"](?:GPU|XLA_GPU)['\"]\s?\)"
_DEVICES = (
    r"(?:(?:tf|tensorflow)\.)?(?:config\.)?(?:experimental\.)?list_(?:physical|logical)_devices"
)
_JAX = r"(?:jax\.|jax\.lib\.xla_bridge\.|xla_bridge\.)"
_ROWS: tuple[tuple[ShownOf, str, str], ...] = (
    ("torch-version", r"torch\.__version__|torch\.version\.__version__", _VERSION),
    ("torch-cuda", r"torch\.version\.cuda", _VERSION),
    ("torch-hip", r"torch\.version\.hip", _VERSION),
    ("torch-built", r"torch\.backends\.cuda\.is_built(?:\(\))?", _TRUTH),
    (
        "other-gpu-there",
        r"torch\.(?:backends\.mps|mps|xpu)\.is_available(?:\(\))?",
        _TRUTH,
    ),
    ("gpu-there", r"(?:torch\.)?cuda\.is_available(?:\(\))?|is_available\(\)", _TRUTH),
    ("gpu-there", r"(?:tf|tensorflow)\.test\.is_gpu_available\([^()]{0,60}\)", _TRUTH),
    ("gpu-count", r"torch\.cuda\.device_count(?:\(\))?", _COUNT),
    ("gpu-count", rf"len\({_DEVICES}{_GPU}\)", _COUNT),
    ("gpu-list", rf"{_DEVICES}{_GPU}", _LIST),
    (
        "gpu-list",
        r"(?:K|keras\.backend|backend)\.(?:tensorflow_backend\.)?_get_available_gpus\(\)",
        _LIST,
    ),
    ("devices", rf"{_DEVICES}\(\)", _LIST),
    ("devices", rf"{_JAX}(?:local_)?devices\(\)", _LIST),
    (
        "tensorflow-version",
        r"(?:tf|tensorflow)\.(?:__version__|VERSION|version\.VERSION)",
        _VERSION,
    ),
    (
        "tensorflow-built",
        r"(?:tf|tensorflow)\.test\.is_built_with_(?:cuda|gpu_support)(?:\(\))?",
        _TRUTH,
    ),
    ("jax-backend", rf"{_JAX}default_backend\(\)|{_JAX}get_backend\(\)\.platform", _NAME),
    ("keras-backend", r"(?:tf\.)?(?:keras\.)?(?:backend|config|K)\.backend\(\)", _NAME),
)
"""What an expression asks for, the expression as a pattern, and the form of its value."""


_TYPED = {_TRUTH: r"[Tt]rue|[Ff]alse"}
"""How people type what a program prints."""


class ValueRow(NamedTuple):
    of: ShownOf
    expression: re.Pattern[str]
    form: str
    """A pattern of the value as a program prints it."""
    mention: re.Pattern[str]
    """The expression in a sentence."""
    value: re.Pattern[str]
    """The value in a sentence."""


EXPRESSIONS = tuple(
    ValueRow(
        of,
        re.compile(expression),
        form,
        re.compile(rf"(?<![\w.])(?:{expression})"),
        re.compile(rf"(?:{_TYPED.get(form, form)})(?![\w-])(?!\.\w)"),
    )
    for of, expression, form in _ROWS
)
PROMPT = re.compile(
    r"(?:>>> ?|In ?\[[\d ]{1,4}\]: ?|\.\.\. ?)|!(?=python)"
    r"|(?:[^\n$#%>]{0,80})?[$#%>] ?(?=python|py )"
)
"""Before what somebody typed into a session or a shell."""
