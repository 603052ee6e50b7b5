"""Values of expressions in a person's sentences."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text

NONE_THERE = [("gpu-there", "False")]
EMPTY = [("gpu-list", "[]")]


def stated(text: str) -> list[tuple[str, str]]:
    return [(shown.of, shown.value) for shown in read_text(text).shown]


@each(
    ("text", "values"),
    [
        ("torch.version.cuda is None", [("torch-cuda", "None")]),
        ("`tf.config.list_physical_devices('GPU')` returns []", EMPTY),
        ("tf.config.list_physical_devices('GPU') returns an empty list. nvidia-smi works.", EMPTY),
        (
            "I typed print(torch.cuda.is_available()) and it prints False. My driver is 5",
            NONE_THERE,
        ),
        ("But is_available() is still False on my laptop", NONE_THERE),
        ("Why is torch.cuda.is_available() False?", NONE_THERE),
        ("Why does torch.cuda.is_available() return False?", NONE_THERE),
        ("When I run torch.cuda.is_available() it returns `False`", NONE_THERE),
        ("nvidia-smi is fine but torch says False", NONE_THERE),
        ("jax.default_backend() gives 'cpu'", [("jax-backend", "cpu")]),
        ("torch.cuda.device_count() is 0 in the pod but 8 on the node.", [("gpu-count", "0")]),
        (
            "I checked: torch.version.cuda is 12.1 and torch.__version__ is 2.6.0. "
            "The rest is new.",
            [("torch-cuda", "12.1"), ("torch-version", "2.6.0")],
        ),
        # Other languages.
        ("tf.config.list_physical_devices('GPU') gibt [] zurück", EMPTY),
        ("tf.config.list_physical_devices('GPU') gibt eine leere Liste zurück", EMPTY),
        ("torch.cuda.is_available() renvoie toujours False", NONE_THERE),
        ("torch.cuda.is_available() es False en Ubuntu", NONE_THERE),
        ("为什么 torch.cuda.is_available() 返回 False？", NONE_THERE),
        ("GPUが。 tf.config.list_physical_devices('GPU') が [] を返します。", EMPTY),
    ],
)
def test_a_sentence_states_a_value(text: str, values: list[tuple[str, str]]) -> None:
    assert stated(text) == values


@each(
    "text",
    [
        "torch.cuda.is_available() returns False if there is no driver",
        "If torch.cuda.is_available() is False, reinstall.",
        "Does torch.cuda.is_available() return False?",
        # Of two places or times the sentence does not say which one counts.
        "torch.cuda.is_available() is True on my laptop but False on the server",
        "torch.cuda.is_available() is True only outside of the container",
        "torch.cuda.is_available() was False, but after a reboot it is True",
        "torch.version.cuda is None for builds without CUDA",
        "Make sure that torch.cuda.is_available() returns True.",
        "torch.cuda.is_available() should be True",
        "assert torch.cuda.is_available() == True",
        "if torch.cuda.is_available() is False:",
        "Wenn torch.cuda.is_available() False ist, fehlt der Treiber.",
        "my_torch.version.cuda is None",
    ],
)
def test_a_condition_or_a_demand_states_nothing(text: str) -> None:
    assert stated(text) == []


def test_a_sentence_of_many_expressions_takes_no_time() -> None:
    text = "torch.cuda.is_available() is the value that " * 400
    assert stated(text) == []
