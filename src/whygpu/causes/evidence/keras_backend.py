"""How Keras selects its backend, and how to select another."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.derived import display_name
from whygpu.model.finding import Evidence, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known
from whygpu.model.remedy import SetVariable, a_name, a_path, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

VARIABLE = "KERAS_BACKEND"
LEGACY_SWITCH = "TF_USE_LEGACY_KERAS"
BACKENDS = ("tensorflow", "jax", "torch")
"""Backends that can use a GPU; each is a separate framework."""

_CONFIG_FILE = late(r"[^;]{0,400}keras\.json")
"""A source that is the file itself, and not a note about it."""

_LEGACY_VALUES = ("1", "true", "True")
"""The spellings that TensorFlow accepts; any other value has no effect."""


_WRITTEN_BY_KERAS = "tensorflow"
"""Keras writes keras.json with this backend when it is first imported."""


class Choice(NamedTuple):
    """The setting that selected the backend of Keras."""

    backend: str
    by: Literal["variable", "file", "default"]
    where: str
    """The variable's setting, the file's path, or why nothing else applies."""

    @property
    def evidence(self) -> Evidence:
        return Evidence("machine", self.where, f"backend {self.backend}")

    @property
    def sentence(self) -> str:
        return {
            "variable": f"selected by {self.where}",
            "file": f'selected by "backend" in {self.where}',
            "default": "the default",
        }[self.by]

    @property
    def on_purpose(self) -> bool:
        """Whether somebody has chosen the backend: Keras itself writes its default into the file."""
        return self.by == "variable" or (self.by == "file" and self.backend != _WRITTEN_BY_KERAS)

    def switch_to(self, backend: str) -> tuple[Remedy, ...]:
        """How to use another backend, for this shell and, if a file selected it, permanently."""
        now = Remedy(
            f"Let Keras use {display_name(backend)}; the variable overrides keras.json.",
            SetVariable(VARIABLE, backend),
        )
        if self.by != "file":
            return (now,)
        edit = shell_script(
            """sed -i 's/"backend": *\"""",
            a_name(self.backend),
            '"/"backend": "',
            a_name(backend),
            """"/' """,
            a_path(self.where),
        )
        lasting = Remedy("Or change the file, for all programs.", edit)
        return (now, lasting)


def choice_of(machine: Snapshot, keras: Framework, backend: str) -> Choice:
    """The setting that selected the backend that Keras uses."""
    variable = machine.environment.get(VARIABLE)
    if isinstance(variable, Known) and variable.value == backend:
        return Choice(backend, "variable", f"{VARIABLE}={variable.value}")
    configured = keras.keras.backend if keras.keras is not None else None
    if isinstance(configured, Known) and _CONFIG_FILE.fullmatch(configured.source):
        return Choice(backend, "file", configured.source)
    where = configured.source if isinstance(configured, Known) else "nothing else is configured"
    return Choice(backend, "default", where)


def uses_legacy_keras(machine: Snapshot) -> bool:
    """Whether tf.keras is the package tf-keras."""
    switch = machine.environment.get(LEGACY_SWITCH)
    return isinstance(switch, Known) and switch.value in _LEGACY_VALUES
