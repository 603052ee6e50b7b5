"""Distinguishes keys from words: a key often changes between lower case, upper case and digits."""

from __future__ import annotations

import string

from whygpu.model.lazy_regex import late

_CLASSES = {
    **dict.fromkeys(map(ord, string.ascii_lowercase), "a"),
    **dict.fromkeys(map(ord, string.ascii_uppercase), "A"),
    **dict.fromkeys(map(ord, string.digits), "0"),
    **dict.fromkeys(map(ord, "+/_-.=~"), " "),
}
_CHANGES = {"aA": 1, "Aa": 1, "a0": 2, "0a": 2, "A0": 2, "0A": 2}
"""Names in camel case have many capitals, but few digits between letters."""
_LOOKED_AT = 256
_SPELT = late(r"[a-z]{4,64}")
_UNSPEAKABLE = late(r"[bcdfghjklmnpqrstvwxz]{4}")

_HEX_KEY = late(r"(?=[0-9]{0,128}[a-f])(?=[a-f]{0,128}[0-9])[0-9a-f]{32,128}")
_CAPITALS = late(r"(?=[A-Z]{0,128}[0-9])(?=[0-9]{0,128}[A-Z])[A-Z0-9]{20,128}")
_SYMBOL = late(r"_{1,3}Z")
_LENGTH = late(r"(?:St|[PKRNS]){0,4}(\d{1,3})(?=[A-Za-z_])")
_LETTERS = late(r"[a-z]{3}")
_ENOUGH_WORDS = 2
_TILE = late(r"\dx\d")
_ENOUGH_TILES = 3
"""Names of GPU kernels contain the sizes of their tiles: MT128x128x32."""


def changes(text: str) -> float:
    """About 0.9 for random letters and digits, below 0.4 for names."""
    classes = text[:_LOOKED_AT].translate(_CLASSES)
    found = sum(weight * classes.count(pair) for pair, weight in _CHANGES.items())
    return found / max(1, len(classes))


def is_software(text: str, spelt: float) -> bool:
    """Names of functions, symbols, types and kernels look random but are not.

    In names, more than the given fraction consists of pronounceable runs of small letters. In a key
    it is less than a tenth.
    """
    head = text[:_LOOKED_AT]
    words = (word for word in _SPELT.findall(head) if not _UNSPEAKABLE.search(word))
    if sum(map(len, words)) > spelt * len(head):
        return True
    if _SYMBOL.match(text) or len(_TILE.findall(head)) >= _ENOUGH_TILES:
        return True
    return _is_mangled(text)


def _is_mangled(text: str) -> bool:
    """C++ writes the length of each word before it: N5torch8autograd6EngineE."""
    at = words = 0
    while words < _ENOUGH_WORDS and (length := _LENGTH.match(text, at)):
        at = length.end() + int(length[1])
        word = text[length.end() : at]
        if at > len(text) or changes(word) > 0.3 or not _LETTERS.search(word):
            return False
        words += 1
    return words == _ENOUGH_WORDS


def is_key_like(text: str) -> bool:
    """For a value whose name already suggests a key."""
    if len(text) < 16:
        return False
    if _HEX_KEY.match(text) or _CAPITALS.match(text):
        return True
    return changes(text) >= 0.4 and not is_software(text, spelt=0.5)


def has_every_class(text: str) -> bool:
    """Whether there are small letters, capitals and digits."""
    head = set(text[:_LOOKED_AT])
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
    return all(not head.isdisjoint(kind) for kind in kinds)


_SECRET = late(r"(?=[A-Za-z0-9]{0,44}[+/])[A-Za-z0-9+/]{38,44}")
"""Secrets of cloud services are forty characters of base64; paths also contain _, - and dots."""


def is_surely_random(text: str) -> bool:
    """For a run of letters and digits without a name: only a key looks like this."""
    if _SECRET.fullmatch(text) and _is_random(text, enough=0.3, spelt=0.15):
        return True
    shortest = 40 if "/" in text else 32
    return len(text) >= shortest and _is_random(text, enough=0.45, spelt=0.4)


def _is_random(text: str, *, enough: float, spelt: float) -> bool:
    return has_every_class(text) and changes(text) >= enough and not is_software(text, spelt)
