"""Fixes: they do what the page says, keep everything else, parse, and leave nothing to do."""

from __future__ import annotations

import ast
import json

import pytest

from tests.cases import each
from tests.kit import examples
from whygpu.linter.fix import fixed, replaced
from whygpu.linter.lint_files import lint_causes
from whygpu.linter.one_file import lint_content
from whygpu.linter.settings import Settings
from whygpu.model.program import Edit, Place

CAUSES = lint_causes()
TF = "import tensorflow as tf\n"
BETTER = "bool(tf.config.list_physical_devices('GPU'))"


def fix(text: str, path: str = "x.py") -> str:
    return fixed(path, text.encode(), Settings(), CAUSES).content.decode()


@each(
    ("before", "after"),
    [
        (
            "for g in tf.config.list_physical_devices('GPU'):\n"
            "    tf.config.set_memory_growth(g, True)  # all\n",
            "for g in tf.config.list_physical_devices('GPU'):\n"
            "    tf.config.experimental.set_memory_growth(g, True)  # all\n",
        ),
        (
            "print( tf.config.experimental_list_physical_devices('GPU') )\n",
            "print( tf.config.list_physical_devices('GPU') )\n",
        ),
        (
            "tf.config.set_visible_devices(tf.config.list_physical_devices('CPU'), 'CPU')\n",
            "tf.config.set_visible_devices([], 'GPU')\n",
        ),
        (
            "tf.config.set_visible_devices([], 'GPU')\nprint(tf.config.list_physical_devices())\n",
            "tf.config.set_visible_devices([], 'GPU')\nprint(tf.config.get_visible_devices())\n",
        ),
        (
            "if  tf.test.is_gpu_available():\n    tf.random.set_seed(1)\n",
            "if  bool(tf.config.list_physical_devices('GPU')):\n    tf.random.set_seed(1)\n",
        ),
        (
            "gpus = tf.config.list_physical_devices('GPU')\n"
            "if gpus:\n"
            "\ttf.config.experimental.set_memory_growth(gpus[0], True)  # one\n",
            "gpus = tf.config.list_physical_devices('GPU')\n"
            "if gpus:\n"
            "\tfor gpu in gpus:\n"
            "\t    tf.config.experimental.set_memory_growth(gpu, True)  # one\n",
        ),
    ],
)
def test_each_fix(before: str, after: str) -> None:
    assert fix(TF + before) == TF + after


def test_a_discarded_move_is_kept() -> None:
    text = "import torch\nx = torch.randn(3, 4)\nx.to('cuda')\n"
    assert fix(text) == "import torch\nx = torch.randn(3, 4)\nx = x.to('cuda')\n"


def every_example() -> list[str]:
    return [
        example.text + "\n"
        for cause in CAUSES
        for example in examples(cause.page)
        if example.kind == "code"
    ]


@pytest.mark.slow
@each("text", every_example(), ids=range(len(every_example())))
def test_what_is_fixed_parses_and_stays(text: str) -> None:
    once = fix(text)
    ast.parse(once)
    assert fix(once) == once
    left = lint_content("x.py", once.encode(), Settings(), CAUSES).findings
    assert not any(found.fixable for found in left)


def test_line_ends_encoding_and_byte_order_mark_are_kept() -> None:
    text = TF + "# ä\nif tf.test.is_gpu_available():\n    pass\n"
    for encoding, newline in (("utf-8-sig", "\r\n"), ("utf-8", "\n"), ("utf-8", "\r\n")):
        content = text.replace("\n", newline).encode(encoding)
        result = fixed("x.py", content, Settings(), CAUSES)
        assert len(result.findings) == 1
        expected = text.replace(
            "tf.test.is_gpu_available()", "bool(tf.config.list_physical_devices('GPU'))"
        )
        assert result.content == expected.replace("\n", newline).encode(encoding)
    latin = ("# coding: latin-1\n" + text).encode("latin-1")
    assert "ä".encode("latin-1") in fixed("x.py", latin, Settings(), CAUSES).content


def test_what_is_ignored_is_not_fixed() -> None:
    text = TF + "tf.test.is_gpu_available()  # whygpu: ignore[WG715] old habit\n"
    assert fix(text) == text


def test_edits_of_two_findings_on_one_line_are_both_made() -> None:
    text = TF + "print(tf.test.is_gpu_available(), tf.test.is_gpu_available())\n"
    assert fix(text).count("list_physical_devices") == 2


def test_a_file_that_does_not_parse_is_left_alone() -> None:
    text = "import tensorflow as tf\nprint tf.test.is_gpu_available()\n"
    assert fix(text) == text


def notebook(indent: int | None, *cells: object) -> str:
    made = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    return json.dumps({"cells": made, "nbformat": 4}, indent=indent, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("indent", [1, 2, None])
def test_notebooks_are_fixed_in_their_own_style(indent: int | None) -> None:
    before = notebook(
        indent,
        ["import tensorflow as tf\n", "!ls"],
        ["  x = 'ä'\n", "  tf.test.is_gpu_available()"],
    )
    after = fix(before, "n.ipynb")
    assert after == before.replace("tf.test.is_gpu_available()", BETTER)
    assert fix(after, "n.ipynb") == after


def test_a_notebook_in_an_unknown_style_is_left_alone() -> None:
    text = notebook(3, ["import tensorflow as tf\n", "tf.test.is_gpu_available()"])
    assert fix(text, "n.ipynb") == text


def test_edits_over_several_lines() -> None:
    text = "one\r\ntwo\nthree\n"
    assert replaced(text, [Edit(Place((1, 2), (2, 3)), "X\nY")]) == "oX\r\nYo\nthree\n"
    assert replaced(text, [Edit(Place((3, 6), (3, 6)), "!")]) == "one\r\ntwo\nthree!\n"
