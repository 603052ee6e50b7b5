"""Reads, parses and walks Python source and notebooks, and reports what could not be read."""

from __future__ import annotations

import ast
import builtins
import codecs
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from whygpu.model.program import Program, TensorFlowLine
from whygpu.model.text_lines import lines_with
from whygpu.model.units import size_text
from whygpu.readers import limits
from whygpu.readers.code import notebook
from whygpu.readers.code.tensorflow_line import line_of
from whygpu.readers.code.tokens import TooManyTokens, check_tokens
from whygpu.readers.code.walk import FindModule, walk

ProblemKind = Literal["unreadable", "syntax", "python2", "notebook", "too-large"]


class Source(NamedTuple):
    """The text of one file, ready to be parsed."""

    path: str
    text: str
    notebook: notebook.Notebook | None = None
    encoding: str = "utf-8"


class SourceProblem(Exception):
    """A file cannot be analysed. This is reported, and the other files are still checked."""

    def __init__(self, kind: ProblemKind, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.kind: ProblemKind = kind
        self.message = message
        self.line = line


_PYTHON_2 = re.compile(
    r"^[ \t]*(?:print[ \t]+[^(=\s.,:)]|raise[ \t]+\w+[ \t]*,"
    r"|except[ \t]+[\w.]+[ \t]*,[ \t]*\w+[ \t]*:)|\A#!.*python2",
    re.MULTILINE,
)
"""Statements that exist only in Python 2."""
_EXCEPT_WITHOUT_PARENTHESES = re.compile(
    r"^[ \t]{0,200}except[ \t]{1,9}[\w.]{1,200}[ \t]{0,9},[ \t]{0,9}(\w{1,200})[ \t]{0,9}:"
)
_PYTHON_2_HERE = re.compile(
    r"\b0[0-7]{1,20}\b(?![.\w])|\bur['\"]|<>|`[^`\n]{1,200}`|\b\d{1,20}L\b"
    r"|^[ \t]{0,80}exec[ \t]{1,9}[\w'\"]|^[ \t]{0,80}print[ \t]{0,9}$|>>[ \t]{0,9}sys\.",
    re.MULTILINE,
)
"""Other syntax of Python 2, in a line that does not parse."""


def load(path: str, content: bytes) -> Source:
    """The text of a file, decoded as the file declares."""
    if len(content) > limits.SOURCE_FILE:
        raise SourceProblem("too-large", f"it is larger than {size_text(limits.SOURCE_FILE)}")
    if path.endswith(".ipynb"):
        try:
            book = notebook.parse(content)
        except TooManyTokens as error:
            raise SourceProblem("too-large", str(error)) from error
        except (notebook.NotANotebook, UnicodeDecodeError) as error:
            raise SourceProblem("notebook", f"the notebook cannot be read: {error}") from error
        return Source(path, book.text, book)
    if b"\0" in content:
        # Some versions of Python find that out when they look for the encoding.
        raise SourceProblem("syntax", "it cannot be parsed: it contains null bytes")
    try:
        encoding = _encoding_of(content)
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise SourceProblem("unreadable", f"its text cannot be decoded: {error}") from error
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Source(path, text, encoding=encoding)


def _encoding_of(content: bytes) -> str:
    """As Python finds it, but much faster for the many files that declare none."""
    if not content.startswith(codecs.BOM_UTF8):
        second_line = content.find(b"\n") + 1
        end = content.find(b"\n", second_line)
        if second_line and end >= 0 and b"coding" not in content[:end] and content.isascii():
            return "utf-8"
    return tokenize.detect_encoding(io.BytesIO(content).readline)[0]


def parse(source: Source) -> ast.Module:
    if source.notebook is not None and source.notebook.tree is not None:
        _refuse_python_2(source, source.notebook.tree)
        return source.notebook.tree
    try:
        check_tokens(source.text)
        with warnings.catch_warnings():
            # Do not print a warning about an old escape sequence in the user's file.
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
    except TooManyTokens as error:
        raise SourceProblem("too-large", str(error)) from error
    except SyntaxError as error:
        raise _syntax_problem(source, error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        # The parser's own message. A MemoryError has none: the parser's stack was full.
        why = str(error) or "it is nested too deeply"
        raise SourceProblem("syntax", f"it cannot be parsed: {why}") from error
    _refuse_python_2(source, tree)
    return tree


def _refuse_python_2(source: Source, tree: ast.Module) -> None:
    """Python 3.14 accepts `except OSError, e:`, as two classes; in Python 2, `e` is the exception.

    In a program for Python 3, the second class has been imported or defined.
    """
    matches = map(_EXCEPT_WITHOUT_PARENTHESES.match, lines_with(source.text, ("except",)))
    caught = {match[1] for match in matches if match is not None}
    if not caught:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
            last = node.type.elts[-1]
            if isinstance(last, ast.Name) and last.id in caught - _bound_names(tree):
                message = f"it is written for Python 2 (line {node.lineno}: except ..., {last.id})"
                raise SourceProblem("python2", message, node.lineno)


def _bound_names(tree: ast.Module) -> set[str]:
    found = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _syntax_problem(source: Source, error: SyntaxError) -> SourceProblem:
    line = error.lineno or 1
    if is_python_2(source.text, error):
        return SourceProblem(
            "python2", f"it is written for Python 2 (line {line}: {error.msg})", line
        )
    return SourceProblem("syntax", f"it is not valid Python: {error.msg}", line)


def is_python_2(text: str, error: SyntaxError) -> bool:
    """Whether a text that does not parse looks like valid Python 2."""
    if _PYTHON_2.search(text):
        return True
    line = error.lineno or 1
    return bool(_PYTHON_2_HERE.search("\n".join(text.split("\n")[max(line - 2, 0) : line + 1])))


def program(
    source: Source,
    tree: ast.Module,
    target: TensorFlowLine | None = None,
    hint: Callable[[], TensorFlowLine | None] = lambda: None,
    words: Sequence[str] = (),
    find_module: FindModule = lambda module, level: None,
) -> Program:
    """The Program of a source file.

    `target` is the TensorFlow version that the user gave. If neither the user nor the source says
    it, `hint` returns what the project's README or requirements suggest. `words` are those that
    findings need: a function without them that nothing calls is not walked.
    """
    wanted = None
    if words and "tensorflow" not in source.text and "keras" not in source.text:
        # Every name of TensorFlow helps to recognise its version.
        wanted = _lines_with(source.text, words)
    book = source.notebook
    magics = book.magics if book is not None else ""
    walked = walk(tree, wanted, find_module)
    return Program(
        source.path,
        source.text,
        tree,
        walked.events,
        lambda made: target or line_of(made, magics, hint),
        "line {}".format if book is None else book.line_name,
        walked.followed,
        (lambda line: None) if book is None else book.run_number,
    )


def _lines_with(text: str, words: Sequence[str]) -> list[int]:
    """The numbers of the lines in which one of these words begins, in order."""
    found: set[int] = set()
    for word in words:
        line, counted, position = 1, 0, text.find(word)
        while position >= 0:
            line += text.count("\n", counted, position)
            found.add(line)
            counted = position
            end = text.find("\n", position)
            position = text.find(word, end) if end >= 0 else -1
    return sorted(found)
