"""A strict reader of JSON that imports nothing.

The module json would import ten others before the first line of the program, and the program may
have a module of one of these names.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SPACE = " \t\n\r"
_DEEPEST = 50


def loads(text: str) -> "Any":
    """The value of a JSON text. Raises ValueError if it is not JSON."""
    value, end = _value(text, _skip(text, 0), 0)
    if _skip(text, end) != len(text):
        raise ValueError("more than one value, at character %d" % end)
    return value


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value(text: str, at: int, depth: int) -> "tuple[Any, int]":
    first = text[at : at + 1]
    if depth > _DEEPEST:
        raise ValueError("nested too deeply, at character %d" % at)
    if first == "{":
        return _object(text, at + 1, depth + 1)
    if first == "[":
        return _array(text, at + 1, depth + 1)
    if first == '"':
        return _string(text, at + 1)
    end = at
    while end < len(text) and text[end] not in ",]}" + _SPACE:
        end += 1
    word = text[at:end]
    return (_WORDS[word] if word in _WORDS else _number(word, at)), end


def _number(word: str, at: int) -> float:
    digits = word[1:] if word.startswith("-") else word
    if not digits[:1].isdecimal() or set(digits) - set("0123456789.eE+-"):
        raise ValueError("no value at character %d" % at)
    return int(word) if digits.isdecimal() else float(word)


def _object(text: str, at: int, depth: int) -> "tuple[dict[str, Any], int]":
    found: "dict[str, Any]" = {}
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError("no name at character %d" % at)
        name, at = _string(text, at + 1)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise ValueError("no colon at character %d" % at)
        found[name], at = _value(text, _skip(text, at + 1), depth)
        at, more = _comma(text, at, "}")
        if not more:
            return found, at


def _array(text: str, at: int, depth: int) -> "tuple[list[Any], int]":
    found: "list[Any]" = []
    at = _skip(text, at)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, at, depth)
        found.append(value)
        at, more = _comma(text, at, "]")
        if not more:
            return found, at


def _comma(text: str, at: int, closing: str) -> "tuple[int, bool]":
    """Where the next element begins, and whether there is one."""
    at = _skip(text, at)
    mark = text[at : at + 1]
    if mark not in (",", closing):
        raise ValueError("no comma at character %d" % at)
    return (_skip(text, at + 1), True) if mark == "," else (at + 1, False)


def _string(text: str, at: int) -> "tuple[str, int]":
    parts = []
    while True:
        end = at
        while text[end : end + 1] not in ("", '"', "\\"):
            end += 1
        parts.append(text[at:end])
        if end == len(text):
            raise ValueError("a string without an end")
        if text[end] == '"':
            return "".join(parts), end + 1
        character, at = _escape(text, end + 1)
        parts.append(character)


def _escape(text: str, at: int) -> "tuple[str, int]":
    kind = text[at : at + 1]
    if kind != "u":
        if kind not in _ESCAPES:
            raise ValueError("no escape at character %d" % at)
        return _ESCAPES[kind], at + 1
    code, at = _code_unit(text, at + 1)
    if 0xD800 <= code < 0xDC00 and text[at : at + 2] == "\\u":
        # A character above U+FFFF is written as a surrogate pair.
        low, after = _code_unit(text, at + 2)
        if 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)), after
    return chr(code), at


def _code_unit(text: str, at: int) -> "tuple[int, int]":
    digits = text[at : at + 4]
    if len(digits) < 4 or set(digits) - set("0123456789abcdefABCDEF"):
        raise ValueError("no character code at character %d" % at)
    return int(digits, 16), at + 4
