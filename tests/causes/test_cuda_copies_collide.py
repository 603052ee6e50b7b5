"""Pairs of frameworks, and which of their libraries count."""

from __future__ import annotations

from tests.kit import cause_named, examples, machine, run

CAUSE = cause_named("cuda-copies-collide")
FIRES = next(e.text for e in examples(CAUSE.page) if e.expectation == "fires")


def test_both_versions_and_both_places_are_named() -> None:
    (finding,) = run(CAUSE, machine(FIRES)).findings
    assert finding.subject == "machine"
    assert finding.severity == "warning"
    assert "TensorFlow 2.20.0 and PyTorch 2.8.0" in finding.message
    assert "9.27.0 (~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib" in finding.message
    assert "9.19.0 (/usr/lib/python3/dist-packages/nvidia/cudnn/lib" in finding.message


def test_a_second_pair_is_a_second_finding() -> None:
    text = FIRES.replace('["tensorflow", "torch"]', '["tensorflow", "jax", "torch"]') + (
        '\n[target.frameworks.jax.libraries."libcudnn.so.9"]\n'
        'path = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"\n'
    )
    findings = run(CAUSE, machine(text)).findings
    assert len(findings) == 2
    assert all("PyTorch" in finding.message for finding in findings)


def test_one_framework_alone_cannot_collide() -> None:
    text = FIRES.replace('["tensorflow", "torch"]', '["torch"]')
    assert run(CAUSE, machine(text)).status == "passed"


def test_two_copies_of_one_version_are_harmless() -> None:
    assert run(CAUSE, machine(FIRES.replace("9.19.0", "9.27.0"))).status == "passed"


def test_different_names_do_not_collide() -> None:
    text = FIRES.replace('torch.libraries."libcudnn.so.9"', 'torch.libraries."libcudnn.so.8"')
    assert run(CAUSE, machine(text)).status == "passed"


def test_the_drivers_library_is_everybodys() -> None:
    text = "".join(
        f'[target.frameworks.{name}.libraries."libcuda.so.1"]\npath = "/{name}/libcuda.so.1"\n'
        for name in ("tensorflow", "torch")
    )
    assert run(CAUSE, machine(f'only = ["tensorflow", "torch"]\n{text}')).status == "passed"
