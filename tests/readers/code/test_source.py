"""Files as they are found: encodings, Python 2, notebooks, and what cannot be read."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cases import each
from whygpu.readers import limits
from whygpu.readers.code import notebook
from whygpu.readers.code.source import Source, SourceProblem, load, parse, program


def problem(path: str, content: bytes) -> SourceProblem:
    with pytest.raises(SourceProblem) as caught:
        parse(load(path, content))
    return caught.value


@each(
    "text",
    [
        "print 'hello'\n",
        "try:\n    pass\nexcept IOError, e:\n    pass\n",
        "raise ValueError, 'no'\n",
        "x = 0777\n",
        "if a <> b:\n    pass\n",
        "x = `y`\n",
        "exec 'code'\n",
        "n = 10L\n",
    ],
)
def test_python_2_is_recognised(text: str) -> None:
    assert problem("old.py", text.encode()).kind == "python2"


@pytest.mark.skipif(sys.version_info < (3, 14), reason="Python accepts it since 3.14")
@each(
    "text",
    [
        "try:\n    pass\nexcept OSError, ValueError:\n    pass\n",
        "from socket import error\ntry:\n    pass\nexcept OSError, error:\n    pass\n",
        "class e(Exception): pass\ntry:\n    pass\nexcept OSError, e:\n    pass\n",
    ],
)
def test_exceptions_without_parentheses_are_not_taken_for_python_2(text: str) -> None:
    parse(load("new.py", text.encode()))


@each("text", ["def f(:\n", "x = (\n", "  x = 1\n y = 2\n", "print(1))\n"])
def test_other_broken_code_is_not_taken_for_python_2(text: str) -> None:
    found = problem("new.py", text.encode())
    assert found.kind == "syntax"
    assert found.message


def test_encodings_are_obeyed() -> None:
    assert "ä" in load("x.py", "# coding: latin-1\nx = 'ä'\n".encode("latin-1")).text
    assert load("x.py", b"\xef\xbb\xbfx = 1\n").text == "x = 1\n"
    assert load("x.py", b"x = 1\r\ny = 2\r").text == "x = 1\ny = 2\n"
    assert problem("x.py", b"x = '\xff'\n").kind == "unreadable"
    assert problem("x.py", b"# coding: nonsense\n").kind == "unreadable"


def test_what_is_too_large_or_too_deep_is_told() -> None:
    assert problem("x.py", b"#" * (limits.SOURCE_FILE + 1)).kind == "too-large"
    assert problem("x.py", b"(" * 5000 + b")" * 5000).kind == "syntax"
    assert problem("x.py", b"x = 1\0\n").kind == "syntax"


def book(*cells: str | list[str], **more: object) -> bytes:
    made = [{"cell_type": "code", "source": source, **more} for source in cells]
    return json.dumps({"cells": made, "nbformat": 4}).encode()


def test_a_notebook_is_one_program_with_its_cells() -> None:
    content = book(["import torch\n", "x = 1"], "y = 2\nz = 3")
    source = load("n.ipynb", content)
    assert source.text == "import torch\nx = 1\ny = 2\nz = 3\n"
    assert source.notebook is not None
    assert source.notebook.position((4, 1)) == (2, (2, 1))
    assert program(source, parse(source)).imports == {"torch"}


@each(
    "cell",
    [
        "!pip install tensorflow",
        "%matplotlib inline",
        "%%bash\nls -l | grep x",
        "# set up\n%%bash\nls -l | grep x",
        "files = !ls",
        "x = %time f()",
        "torch?",
        "ls ./data",
        "if x:\n    !ls",
        "!ls \\\n  -l",
        "print(\n    '%d'\n    % 3\n)\n!ls",
        "  y = 1\n  z = 2",
    ],
)
def test_what_is_not_python_in_a_cell_is_left_out(cell: str) -> None:
    source = load("n.ipynb", book(cell, "a = 1"))
    assert source.notebook is not None
    assert source.notebook.broken == ()
    assert source.text.count("\n") == len(cell.split("\n")) + 1
    parse(source)


def test_a_division_at_the_start_of_a_line_is_no_magic() -> None:
    cell = "print(\n    'a %d'\n    % torch.one()\n)"
    source = load("n.ipynb", book("import torch", cell))
    calls = [call.path for call in program(source, parse(source)).calls()]
    assert "torch.one" in calls


def test_a_broken_cell_does_not_take_the_others_along() -> None:
    source = load("n.ipynb", book("x = (", "import torch"))
    assert source.notebook is not None
    assert [cell.number for cell, _ in source.notebook.broken] == [1]
    assert program(source, parse(source)).imports == {"torch"}


def test_an_indented_cell_keeps_its_columns() -> None:
    source = load("n.ipynb", book("  x = 1"))
    assert source.notebook is not None
    assert source.notebook.position((1, 1)) == (1, (1, 3))


@each("content", [b"", b"[]", b'{"worksheets": []}', b"{", b"\xff"])
def test_what_is_no_notebook_is_told(content: bytes) -> None:
    assert problem("n.ipynb", content).kind == "notebook"


def test_a_notebook_without_code_is_fine() -> None:
    content = json.dumps({"cells": [{"cell_type": "markdown", "source": "# x"}]}).encode()
    assert parse(load("n.ipynb", content)).body == []


def line(text: str, path: str = "x.py", magics: str = "") -> str:
    source = Source(path, text)
    if magics:
        source = load("n.ipynb", book(magics, text))
    return program(source, parse(source)).tensorflow


@each(
    ("text", "expected"),
    [
        ("import torch\n", "unknown"),
        ("import tensorflow as tf\ntf.constant(1)\n", "2"),
        ("import tensorflow as tf\ntf.Session()\n", "unknown"),
        ("import tensorflow as tf\ntf.Session()\ntf.config.list_physical_devices()\n", "2"),
        ("import tensorflow.compat.v1 as tf\ntf.Session()\n", "2"),
        ("import tensorflow as tf\ntf.compat.v1.Session()\n", "2"),
        ("import tensorflow as tf\ntf.compat.v1.Session()\ntf.placeholder(1)\n", "unknown"),
        ("# TensorFlow 1.15\nimport tensorflow as tf\ntf.Session()\n", "1"),
        ('"""For TF 1.x."""\nimport tensorflow as tf\ntf.Session()\n', "1"),
        ("import tensorflow as tf\nif tf.__version__ < '2':\n    tf.Session()\n", "either"),
        ("import tensorflow as tf\nif hasattr(tf, 'Session'):\n    tf.Session()\n", "either"),
        ("import tensorflow as tf\nprint(tf.__version__)\ntf.constant(1)\n", "2"),
        (
            "import tensorflow as tf\nif tf.__version__.startswith('2'):\n    tf.Session()\n",
            "either",
        ),
        ("import tensorflow as tf\nnew = tf.VERSION.split('.')[0]\ntf.Session()\n", "either"),
    ],
)
def test_which_tensorflow_a_file_is_for(text: str, expected: str) -> None:
    assert line(text) == expected


def test_magics_and_paths_say_which_tensorflow_too() -> None:
    text = "import tensorflow as tf\ntf.Session()\n"
    assert line(text, magics="%tensorflow_version 1.x") == "1"
    assert line(text, magics="!pip install tensorflow==1.15") == "1"
    assert line(text, "examples/tensorflow_v1/x.py") == "1"
    assert line(text, "examples/tf2/x.py") == "unknown"


def test_the_reader_of_notebooks_keeps_the_number_of_lines() -> None:
    made = notebook.parse(book("a = 1\n\n!x\n", "b = 2"))
    assert made.text.split("\n")[made.cells[1].first_line - 1] == "b = 2"
