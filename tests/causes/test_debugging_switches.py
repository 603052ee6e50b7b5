"""Debugging switches: what the examples on the page do not show."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, explained, lint, machine, run

CAUSE = cause_named("debugging-switch-left-on")
ANOMALY = (
    "train.py:14: UserWarning: Anomaly Detection has been enabled. This mode will increase the "
    "runtime and should only be enabled for debugging.\n"
)


def test_each_switch_is_a_finding_of_its_own() -> None:
    outcome = run(
        CAUSE,
        machine(
            """
            [environment.variables.CUDA_LAUNCH_BLOCKING]
            value = "1"
            [environment.variables.JAX_DISABLE_JIT]
            value = "yes"
            """
        ),
    )
    assert [finding.subject for finding in outcome.findings] == ["machine", "jax"]


def test_it_is_nobodys_concern_without_a_gpu() -> None:
    text = 'start = "no-gpu"\n[environment.variables.CUDA_LAUNCH_BLOCKING]\nvalue = "1"'
    assert run(CAUSE, machine(text)).status == "not-applicable"


@each(
    "end",
    [
        "RuntimeError: CUDA error: nobody knows this one",
        "Segmentation fault (core dumped)",
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>',
    ],
)
def test_it_is_not_given_as_the_reason_why_a_program_ended(end: str) -> None:
    explanation = explained(f"{ANOMALY}{end}\n")
    assert CAUSE.slug not in [finding.cause for finding in explanation.root_causes]


@each(
    ("source", "count"),
    [
        ("import torch\ntorch.autograd.set_detect_anomaly(mode=True)\n", 1),
        ("import torch\ntorch.autograd.set_detect_anomaly(debugging)\n", 0),
        ("import os\nos.environ['JAX_DISABLE_JIT'] = 'true'\nimport jax\n", 1),
        ("import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '0'\n", 0),
        ("import jax\njax.config.update('jax_disable_jit', False)\n", 0),
        ("import jax\njax.config.update('jax_enable_x64', True)  # not jax_disable_jit\n", 0),
        (
            "import jax\njax.config.update('jax_disable_jit', True)\nlook()\n"
            "jax.config.update('jax_disable_jit', False)\n",
            0,
        ),
        (
            "import jax\njax.config.update('jax_disable_jit', True)\n"
            "jax.config.update('jax_enable_x64', True)\n",
            1,
        ),
        ("model.compile(run_eagerly=debug)\n", 0),
        ("def f(model):\n    model.compile(run_eagerly=False)\n", 0),
    ],
)
def test_only_a_switch_that_surely_stays_on_is_reported(source: str, count: int) -> None:
    assert len(lint(source, CAUSE)) == count
