"""Values of expressions in the sentences of a person: "torch.version.cuda is None".

People describe what they tried instead of pasting it, in any language. An expression, a verb of
saying or being, and a value of its form are a statement. A sentence of a manual ("returns False if
there is no driver") has the same words, so a condition before or behind them ends the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.lazy_regex import late
from whygpu.model.log import Line, Shown
from whygpu.readers.shown_expressions import EXPRESSIONS, PROMPT, ValueRow
from whygpu.readers.words_in import words_in

_MARKS = r"[`'\"“”‘’«»*)]{0,4}"
_FILLER = (
    r"(?:(?:still|just|only|always|also|now|simply|again|and|which|that|this|it|value|the|me|us|an?"
    r"|immer|noch|nur|mir|toujours|siempre|me|一直|总是|都|的|值)[ ,]{0,2}){0,4}"
)
_VERB = (
    r"(?:is|was|gives?|gave|returns?|returned|prints?|printed|shows?|showed|says?|said|tells|outputs?"
    r"|yields?|reports?|equals|results in"
    r"|gibt|ergibt|liefert|ist|zeigt|sagt|renvoie|retourne|est|donne|affiche|devuelve|es|da|muestra"
    r"|retorna|é|restituisce|возвращает|выда[её]т|показывает|zwraca"
    r"|返回(?:的是|为|了)?|输出(?:的是|为|了)?|显示(?:的是|为|了)?|是|为|結果は|结果是|[がはも는은이가])"
)
_SIGN = r"(?:-{1,3}>|={1,2}>|=(?!=)|:|→|：|＝)"
_BETWEEN = re.compile(
    rf"{_MARKS}(?: {{1,2}}(?:call|function|command|check|output))?[ ,，]{{0,3}}{_FILLER}"
    rf"(?:{_VERB}|{_SIGN})[ :：]{{0,2}}{_FILLER}[`'\"“‘«*(]{{0,3}}"
)
_DIRECTLY = re.compile(r"[`'\"*]{0,2} {1,2}[`'\"*]{0,2}(?=[Tt]rue\b|[Ff]alse\b|None\b|\[\])")
"""Why is torch.cuda.is_available() False?"""
_CONDITION = late(
    r"(?:\b(?:(?:if|when|whenever|once|wenn|quand|cuando|если)(?!,? (?:I|we|ich|je|yo|\w+ing)\b)"
    r"|whether|unless|until|in case|make sure|ensure|expect\w{0,3}|should|must|assert|while|used to"
    r"|falls|ob|si)\b|如果|是否|若|(?:\A|[.?!] )\W{0,3}(?:does|do|did|can|could|would) )"
    r"[^.;\n。；]{0,120}\Z",
    re.IGNORECASE,
)
"""Before the expression, in the same sentence."""
_WHY = late(r"\b(?:why|because|warum|wieso|pourquoi|por ?qu[eé]|почему)\b|为什么|为何|なぜ", re.I)
_CONDITION_BEHIND = re.compile(
    r"[`'\"“”*)]{0,3},? {1,2}(?:if|when|whenever|unless|for|in case|on (?:a|any|machines|systems)"
    r"|means|indicates|then|or|wenn|falls|si|cuando|если)\b"
)
_OPPOSITE = {
    "True": re.compile(r"[^.;\n(]{0,120}\b(?:False|but not|only)\b"),
    "False": re.compile(r"[^.;\n(]{0,120}\bTrue\b"),
}
"""Behind a value: "True on my laptop but False here", "False until I rebooted, now True"."""
_EMPTY = re.compile(
    r"(?:(?:an |eine |une |una )?(?:empty|leere|liste vide|lista vac[ií]a)"
    r"(?: (?:list|tuple|Liste))?|nothing|no GPUs?|空列表|空)(?!\w)"
)
"""What people write instead of []."""
_LONGEST = 2_000
_MOST_VALUES = 12
_WORDS = (
    *("__version__", "version.cuda", "version.hip", "is_built", "is_available"),
    *("is_gpu_available", "device_count", "_devices(", "default_backend", ".backend()"),
    *("jax.devices", "torch"),
)
"""In lower case. A line without one of these states nothing."""
_TORCH_SAYS = late(
    r"(?<![\w.])(?:py)?torch (?:\d[\w.+]{0,20} )?(?:still |only |just |always |now )?"
    r"(?:says|reports|prints|shows|returns) (?:cuda |gpu )?(?:is )?(?:available )?"
    r"[`'\"]?(?P<value>False)\b",
    re.IGNORECASE,
)


def stated_values(lines: Sequence[Line]) -> list[Shown]:
    """What the sentences say, each expression once in a line."""
    if not words_in(lines, _WORDS):
        return []
    return [
        shown
        for line in lines
        if line.level != "fatal" and len(line.text) <= _LONGEST and not PROMPT.match(line.text)
        for shown in _of_line(line)
    ]


def _of_line(line: Line) -> Iterator[Shown]:
    found: dict[int, Shown] = {}
    for row in EXPRESSIONS:
        for match in row.mention.finditer(line.text):
            if len(found) < _MOST_VALUES and not any(at in found for at in range(*match.span())):
                value = _value(line.text, match, row)
                if value is not None:
                    found[match.start()] = Shown(line.number, line.number, row.of, value)
    says = _TORCH_SAYS.search(line.text)
    if says is not None and not found and not _conditional(line.text, says):
        found[says.start()] = Shown(line.number, line.number, "gpu-there", says["value"])
    yield from (found[place] for place in sorted(found))


def _value(text: str, expression: re.Match[str], row: ValueRow) -> str | None:
    if _conditional(text, expression):
        return None
    for between in (_BETWEEN, _DIRECTLY):
        gap = between.match(text, expression.end())
        if gap is None:
            continue
        value = row.value.match(text, gap.end())
        if value is None and row.of in ("gpu-list", "devices"):
            value = _EMPTY.match(text, gap.end())
        if value is not None and not _CONDITION_BEHIND.match(text, value.end()):
            opposite = _OPPOSITE.get(value[0].capitalize())
            return None if opposite and opposite.match(text, value.end()) else _written(value)
    return None


def _written(value: re.Match[str]) -> str:
    if value.re is _EMPTY:
        return "[]"
    written = value[0].strip("'\"").rstrip(".")
    return written.capitalize() if written in ("true", "false") else written


def _conditional(text: str, match: re.Match[str]) -> bool:
    before = text[: match.start()]
    return _CONDITION.search(before) is not None and _WHY.search(before) is None
