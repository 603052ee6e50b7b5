"""Words to lanes: the small language, its errors, and the lanes that are taken by default."""

from __future__ import annotations

import itertools

import pytest

from tests.cases import each
from whygpu.comparer.lane_processes import environment_of, failure, unable
from whygpu.comparer.lanes import (
    DEVICES,
    OPTIONS,
    default_lanes,
    parse_lane,
    parse_lanes,
    policy_of,
)
from whygpu.errors import UsageError
from whygpu.model.comparison import KERAS_BACKENDS, Lane
from whygpu.model.policy import DeviceChoice
from whygpu.model.task_end import TaskEnd


@each(
    ("word", "lane"),
    [
        ("cpu", ("cpu", (), None)),
        ("GPU", ("gpu", (), None)),
        ("gpu:no-cudnn+no-tf32", ("gpu", ("no-cudnn", "no-tf32"), None)),
        ("cpu:deterministic", ("cpu", ("deterministic",), None)),
        ("keras:jax", ("cpu", (), "jax")),
        ("keras:pytorch", ("cpu", (), "torch")),
        ("keras:tf@gpu", ("gpu", (), "tensorflow")),
        ("keras:torch@gpu:deterministic+no-cudnn", ("gpu", ("deterministic", "no-cudnn"), "torch")),
    ],
)
def test_a_word_is_a_lane(word: str, lane: tuple[object, ...]) -> None:
    parsed = parse_lane(word)
    assert (parsed.device, parsed.options, parsed.backend) == lane
    assert parsed.name == word.lower()


def test_every_combination_can_be_said() -> None:
    options = [one for count in (0, 1, 2) for one in itertools.combinations(OPTIONS, count)]
    for device, chosen, backend in itertools.product(DEVICES, options, (None, *KERAS_BACKENDS)):
        if device == "cpu" and {"no-cudnn", "no-tf32"} & {*chosen}:
            continue
        word = device + (":" + "+".join(chosen) if chosen else "")
        word = f"keras:{backend}@{word}" if backend else word
        assert parse_lane(word) == Lane(word, device, chosen, backend)


@each(
    ("words", "message"),
    [
        ("gpu:no-cuddn", "no option 'no-cuddn'; .* did you mean no-cudnn"),
        ("gpus", "no lane 'gpus'; there are cpu, gpu, keras:jax and the like; did you mean gpu"),
        ("keras:theano", "no backend 'theano'; there are tensorflow, jax, torch"),
        ("keras:jax@tpu", "no device 'tpu'; there are cpu, gpu"),
        ("cpu:no-tf32", "no-tf32 is an option for GPUs; expected gpu:no-tf32"),
        ("gpu:xla+xla", "an option is given twice"),
        ("cpu,,gpu", "an empty lane between commas"),
        ("cpu,gpu,cpu", "'cpu': it is given twice"),
        ("keras:jax,keras:jax@cpu", "'keras:jax@cpu': it is the same lane as keras:jax"),
        ("gpu:xla+no-tf32,gpu:no-tf32+xla", "is the same lane as gpu:xla"),
    ],
)
def test_a_mistake_names_the_likely_meaning(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_lanes(words)


@each(
    ("gpu", "keras", "installed", "names"),
    [
        (True, True, ["jax", "torch"], "cpu gpu gpu:no-cudnn"),
        (False, True, ["jax", "keras", "torch"], "keras:jax keras:torch"),
        (False, True, ["keras", "torch"], "cpu gpu"),
        (False, False, ["jax", "torch"], "cpu gpu"),
    ],
)
def test_default_lanes_fit_the_machine(
    gpu: bool, keras: bool, installed: list[str], names: str
) -> None:
    lanes = default_lanes(gpu=gpu, keras=keras, installed=installed)
    assert " ".join(lane.name for lane in lanes) == names


def test_a_lane_of_the_gpu_requires_it() -> None:
    policy = policy_of(parse_lane("gpu:no-cudnn+no-tf32"))
    assert policy.device == DeviceChoice("gpu")
    assert policy.require_gpu
    assert (policy.cudnn_off, policy.tf32_off, policy.deterministic) == (True, True, False)
    policy = policy_of(parse_lane("cpu:deterministic"))
    assert (policy.require_gpu, policy.deterministic, policy.tf32_off) == (False, True, False)


def test_a_lane_has_its_backend_and_leaves_the_rest() -> None:
    given = {"KERAS_BACKEND": "torch", "TF_XLA_FLAGS": "--a=1", "HOME": "/home/me"}
    assert environment_of(parse_lane("cpu"), given) == given
    changed = environment_of(parse_lane("keras:jax@cpu:xla"), given)
    assert changed == {
        "KERAS_BACKEND": "jax",
        "TF_XLA_FLAGS": "--a=1 --tf_xla_auto_jit=2",
        "HOME": "/home/me",
    }


@each(
    ("lane", "installed", "reason"),
    [
        ("cpu", {}, ""),
        ("keras:jax", {"keras": "3.15.0", "jax": "0.10"}, ""),
        ("keras:jax", {"keras": "3.15.0"}, "JAX is not installed in this environment"),
        ("keras:jax", {"jax": "0.10"}, "Keras is not installed in this environment"),
        ("keras:jax", {"keras": "2.15.0", "jax": "0.4"}, "Keras 2.15.0 runs only on TensorFlow"),
        ("keras:tensorflow", {"keras": "2.15.0", "tensorflow": "2.15.0"}, ""),
    ],
)
def test_a_missing_framework_is_the_reason(
    lane: str, installed: dict[str, str], reason: str
) -> None:
    found = unable(parse_lane(lane), installed)
    assert (found.reason if found else "") == reason


KERAS_ERROR = """\
ValueError: Exception encountered when calling Dense.call().

Matrix size-incompatible: In[0]: [4,32], In[1]: [16,10] [Op:MatMul]

Arguments received by Dense.call():
  • inputs=tf.Tensor(shape=(4, 32), dtype=float32)
  • training=None
"""


@each(
    ("text", "told"),
    [
        (
            KERAS_ERROR,
            "ValueError: Exception encountered when calling Dense.call(). Matrix "
            "size-incompatible: In[0]: [4,32], In[1]: [16,10] [Op:MatMul]",
        ),
        ("RuntimeError: worker died\n  File x\nOSError: disk full\n", "OSError: disk full"),
        ("", "an exception without a message"),
    ],
)
def test_the_error_of_a_lane_has_its_reason(text: str, told: str) -> None:
    assert failure(TaskEnd("exception", text)) == told
