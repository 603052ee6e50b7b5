"""Keras and its backends."""

from __future__ import annotations

from tests.lab.bench import Bench
from tests.lab.driver import StubDriver
from tests.lab.machines import GPU_MACHINE, install
from tests.lab.programs import KERAS, TF_KERAS
from tests.lab.scenario import Does, Root, Scenario, info

HALF_BROKEN = {"tensorflow": "cpu", "keras": "broken"}


def _backend_in_settings(bench: Bench) -> None:
    settings = bench.folder / "home" / ".keras" / "keras.json"
    settings.parent.mkdir()
    settings.write_text('{"backend": "jax"}')


SCENARIOS = (
    Scenario(
        "keras-backend-not-installed",
        "tensorflow-2.21",
        Does(KERAS, "No module named 'jax'", exit_code=1),
        environ={"KERAS_BACKEND": "jax"},
        roots=(Root("keras-backend-missing", "keras"),),
        verdicts=HALF_BROKEN,
        verdict="broken",
    ),
    Scenario(
        "keras-backend-in-settings-not-installed",
        "tensorflow-2.21",
        Does(TF_KERAS, "Keras cannot be imported", exit_code=1),
        lay_out=(_backend_in_settings,),
        roots=(Root("keras-backend-missing", "keras"),),
        verdicts=HALF_BROKEN,
        verdict="broken",
        like=("keras-backend-not-installed",),
    ),
    Scenario(
        "keras-2-with-tensorflow-2.21",
        "tensorflow-2.21",
        Does(TF_KERAS, "register_load_context_function|RecursionError", exit_code=1),
        lay_out=(install("keras-2"),),
        roots=(Root("keras-tf-version-mismatch", "keras"),),
        verdicts=HALF_BROKEN,
        verdict="broken",
        like=("older-keras-on-pythonpath",),
    ),
    Scenario(
        "legacy-keras-not-installed",
        "tensorflow-2.21",
        Does(TF_KERAS, "Keras cannot be imported", exit_code=1),
        environ={"TF_USE_LEGACY_KERAS": "1"},
        # `import keras` works all the same.
        roots=(Root("keras-legacy-missing", "keras"),),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
    ),
    Scenario(
        "two-generations-of-keras",
        "tensorflow-2.21",
        Does(
            "import tensorflow as tf, keras\nprint(tf.keras.Model is keras.Model)",
            "False",
        ),
        environ={"TF_USE_LEGACY_KERAS": "1"},
        lay_out=(install("tf-keras"),),
        roots=(info("keras-generations-mixed", "keras"),),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
    Scenario(
        "keras-on-a-backend-without-gpu",
        "torch",
        Does(KERAS, "backend: torch"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"KERAS_BACKEND": "torch"},
        roots=(Root("cpu-only-build", "torch"),),
        verdicts={"torch": "cpu", "keras": "cpu"},
        verdict="cpu",
        like=("cpu-build-of-pytorch-on-a-gpu-machine",),
    ),
)
