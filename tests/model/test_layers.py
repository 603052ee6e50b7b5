"""The layers between a program and its GPU: where causes lie, and what is not called fine."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import machine, machine_causes, machine_examples
from whygpu import diagnose
from whygpu.model.cause import Cause
from whygpu.model.layers import Layer, layer_of, layers_of


def layers(toml: str) -> dict[str, Layer]:
    found = layers_of(diagnose(machine(toml)))
    return {f"{layer.name} {layer.title.partition(' ')[0]}": layer for layer in found}


def test_a_healthy_machine_works_from_top_to_bottom() -> None:
    found = layers("")
    states = {name: layer.state for name, layer in found.items()}
    assert states.pop("program Program") == "not-asked"
    assert set(states.values()) == {"works"}
    assert list(found) == [
        "program Program",
        "keras Keras",
        "framework TensorFlow",
        "framework JAX",
        "framework PyTorch",
        "cudnn cuDNN",
        "cuda CUDA",
        "driver Driver",
        "gpu NVIDIA",
    ]


def test_files_alone_prove_nothing() -> None:
    found = layers('probes_left_out = "not asked for"')
    assert found["cudnn cuDNN"].state == found["cuda CUDA"].state == "present"
    assert found["framework PyTorch"].state == "unknown"
    assert (found["gpu NVIDIA"].state, found["gpu NVIDIA"].text) == ("unknown", "not asked for")


def test_a_library_that_one_framework_cannot_load_is_the_broken_layer() -> None:
    found = layers(
        """
        [target.frameworks.tensorflow.libraries."libcudnn.so.9"]
        outcome = "not-found"
        [probes.tensorflow]
        operations = [{kind = "cpu"}]
        """
    )
    assert found["cudnn cuDNN"].state == "wrong"
    assert [root.code for root in found["cudnn cuDNN"].causes] == ["WG203"]
    assert found["framework TensorFlow"].state == "follows"
    # TensorFlow has used none of them.
    assert found["cuda CUDA"].state == "present"


def test_a_build_for_the_cpu_is_the_fault_of_its_own_layer() -> None:
    found = layers(
        """
        only = ["torch"]
        [target.frameworks.torch.build]
        kind = "cpu"
        [probes.torch]
        operations = [{kind = "cpu"}]
        """
    )
    assert found["framework PyTorch"].state == "wrong"
    assert found["keras Keras"].state == "absent"
    assert found["cuda CUDA"].text == "no installed framework is built for CUDA"


def test_a_machine_without_a_gpu_has_nothing_wrong() -> None:
    found = layers('start = "no-gpu"')
    assert {found["driver Driver"].state, found["gpu GPU"].state} == {"absent"}
    assert not {"works", "wrong"} & {layer.state for layer in found.values()}


def test_of_a_machine_that_was_not_seen_nothing_is_known() -> None:
    assert {layer.state for layer in layers("nothing_seen = true").values()} == {"unknown"}


def examples() -> list[tuple[Cause, str]]:
    return [
        (cause, example.text)
        for cause in machine_causes()
        for example in machine_examples(cause)
        if example.expectation == "fires"
    ]


@pytest.mark.slow
@each(("cause", "toml"), examples())
def test_every_root_cause_that_matters_lies_in_a_layer(cause: Cause, toml: str) -> None:
    report = diagnose(machine(toml))
    shown = {root.code for layer in layers_of(report) for root in layer.causes}
    serious = {root.code for root in report.root_causes if root.severity != "info"}
    assert serious <= shown
    assert layer_of(cause.code, cause.slug) is not None
