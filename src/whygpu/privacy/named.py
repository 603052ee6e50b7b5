"""Values that their name reveals: password=..., "api_key": "...", --token ..., USER=...

Three small patterns find a name, the separator, and the value. The kind of the name decides whether
the value is private: after `password` every value is, after `token` only a value that can be a key,
because models have tokens too.
"""

from __future__ import annotations

import errno
import os
import re
import string
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.privacy.elements import QUOTE, element_text
from whygpu.privacy.randomness import is_key_like
from whygpu.privacy.rules import CONTAINER, REMOVED, Rule

_LOOKED_AT = 128
"""A value is judged by its beginning; only a private one is read to its end."""
_LONGEST = 8192


class Mention(NamedTuple):
    """A name and its value, as found in a text or as a field of a record."""

    name: str
    """In lower case, words joined by _."""
    value: str
    between: str = "="
    """The separator without spaces and quotes; empty if there are only spaces."""
    quoted: bool = True
    is_option: bool = False
    is_spaced: bool = False
    """Whether there are spaces around the separator."""
    after: str = ""
    """The character after the value."""


class Kind(NamedTuple):
    words: str
    """A pattern for a part of the name, in its normal form."""
    is_private: Callable[[Mention], bool]
    replacement: str = REMOVED
    value: re.Pattern[str] | None = None
    """The form of an unquoted value, for kinds with a narrower form than a password."""

    def accepts(self, function: str | None) -> bool:
        """Whether the value may be in a call of this function; a password may be in any call."""
        return (
            not function or self.is_private is _is_password or _WRAPPER.search(function) is not None
        )

    def survives_a_cut(self, value: str) -> bool:
        """Whether it is still a value if its closing tag is missing; <host> is a placeholder."""
        if self.is_private is _is_password:
            return len(value) >= _SHORTEST_CUT
        return self.replacement == REMOVED and is_key_like(value)


_WRAPPER = late(r"(?i)secret|str|bytes|environ|setenv|set$|header|quote")
_HARMLESS = late(
    r"(?i)(?:none|null|nil|true|false|yes|no|on|off|auto|default|unset|unknown|undefined|empty|n/a|"
    r"required|optional|missing|invalid|incorrect|str|int|bool|bytes|string|object|any|dict|list|"
    r"removed|redacted|hidden|self|[:*]{1,80}|x{3,80}|\.{2,80}|…|-|"
    r"<[^<>\n]{0,80}>?|\[[^\]\n]{0,80}\]?|(?-i:\$[A-Z_]{1,80})|\$\{\w{1,80}\}?|\$\([^)\n]{0,80}\)?|%\w{1,40}%|"
    r"%\(\w{1,40}\)s|%s|\{[\w.!:]{0,80}\}?|\([^)\n]{0,80}\)?|"
    r"[a-z_.]{1,80}[\[(][\w.,:\[( -]{0,80}[\])]{0,4}|"
    r"(?:self|args|config|cfg|settings|os|env|process)\.[\w.]{1,80})"
)
"""Placeholders, types and code, which are not real values."""
_PLACE = late(
    r"(?:~|\.{1,2}|file:/|[A-Za-z]:)?[/\\][\w.-]{0,80}(?:[/\\]|$)|[\w-]{1,80}\.(?:json|pem|txt|ya?ml)$"
)
_ABOUT_A_KEY = late(
    r"(?:file|path|dir|name|length|len|size|count|policy|type|url|uri|timeout|ttl|fd|stdin|prompt|field|label|hint)$"
)
"""Names that mention a key but do not contain one: password_file, secret_name."""
_OF_A_MODEL = late(
    r"tokeni[sz]|tokens|(?:^|_)(?:n|num|max|min|pad|eos|bos|unk|oov|sep|cls|mask|image|audio|video|"
    r"special|stop|start|end|new|next|prev|prompt|completion|input|output|total|first|last|class|"
    r"per|each|every|unexpected|invalid)_?token|"
    r"token_?(?:type|id|ids|idx|index|count|len|length|size|emb|embed|embedding|embeddings|per|"
    r"budget|limit|level|class|classification|mixer|position|positions|logits|probs|drop|ize\w*|s)$"
)
_NUMBER = late(r"[+-]?\d{1,7}(?:\.\d{0,6})?(?:[eE][+-]?\d{1,3})?[KMGkmg]?")
_VARIABLE = late(r"[A-Za-z_]{1,80}(?:\.[A-Za-z_]{1,80}){0,8}")
_WORDS_ONLY = late(r"_{0,2}(?:[a-z]{1,15}|[A-Z][a-z]{1,14})(?:[_.-][A-Za-z]{1,20}){0,6}")
_PLAIN_WORD = late(r"[a-z]{1,15}|[A-Z][a-z]{1,14}")


def _is_password(mention: Mention) -> bool:
    value = mention.value
    if _HARMLESS.fullmatch(value) or _is_variable(mention):
        return False
    if mention.between == "is":
        return _PLAIN_WORD.fullmatch(value) is None
    if _ABOUT_A_KEY.search(mention.name) or mention.name.endswith("credentials"):
        return is_key_like(value) and not _PLACE.match(value)
    if mention.name in ("pwd", "oldpwd"):
        return not _PLACE.match(value) and value[:1] not in "~/"
    return True


def _is_variable(mention: Mention) -> bool:
    """Code that passes a variable on under its own name: password=password, token=self._token."""
    if mention.quoted or not _VARIABLE.fullmatch(mention.value):
        return False
    last = mention.value.rpartition(".")[2].lower().lstrip("_")
    word = mention.name.rpartition("_")[2]
    return last == mention.name or last == word or last.endswith(f"_{word}")


def _is_token(mention: Mention) -> bool:
    value = mention.value
    if _OF_A_MODEL.search(mention.name):
        return is_key_like(value) and not _PLACE.match(value)
    if _NUMBER.fullmatch(value) or len(value) < 4 or not _is_password(mention):
        return False
    if _VARIABLE.fullmatch(value) and "token" in value.lower():
        return False
    if mention.quoted or mention.is_option:
        return True
    # Prose and code also mention tokens and passes; an environment variable does not.
    is_variable = mention.between == "=" and not mention.is_spaced
    if mention.name.endswith("pass"):
        return is_variable or not (_VARIABLE.fullmatch(value) or _WORDS_ONLY.fullmatch(value))
    return not _WORDS_ONLY.fullmatch(value)


def _is_named_key(mention: Mention) -> bool:
    """KAGGLE_KEY, encryptionKey, auth, session: names of keys and of other, not random, values."""
    return is_key_like(mention.value) and not _PLACE.match(mention.value)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_NOBODY = _words(
    "root user users ubuntu admin nobody docker jovyan vscode runner git guest default none null "
    "true false unknown me you username your_username ec2-user centos debian daemon system self "
    "str int the a postgres redis mysql"
)
_SAID = _words(
    "hi hello hey yes no ok okay thanks thank please stop help string text message assistant human "
    "content prompt bye continue go what why how who"
)
_USER_NAME = late(r"[A-Za-z_][\w.+@\\-]{1,63}")
_USER_FIELDS = late(r"(?:\w{1,80}_)?(?:username|user_name|logname|login_name)|(?:\w{1,80}_)?user")


def _is_person(mention: Mention) -> bool:
    if not _USER_FIELDS.fullmatch(mention.name) or mention.value.lower() in _NOBODY:
        return False
    # In a conversation with a model, "user" is a role; in a record it is a field with a name.
    is_field = mention.quoted and mention.value.lower() not in _SAID
    is_speaker = mention.name.endswith("user") and mention.between != "=" and not is_field
    is_code = not mention.quoted and mention.after and mention.after in "([."
    if is_speaker or is_code or mention.between in ("is", ","):
        return False
    return _USER_NAME.fullmatch(mention.value) is not None and not _is_variable(mention)


_HOST_FIELDS = late(
    r"(?:\w{1,80}_)?(?:host_?name|nodename|node_?list|computer_?name|machine_?name|"
    r"master_addr|rdzv_endpoint|coordinator_addr(?:ess)?|worker_hostnames)|"
    r"(?!(?:un)?pinned_)(?:\w{1,80}_|batch|alloc|exec|submit)?host|(?:req|exc)nodelist"
)
_NO_HOST = _words(
    "localhost localhost.localdomain host hosts device devices cpu gpu cuda tpu memory platform "
    "none null true false default unknown auto str interpreter any local remote all yes no "
    "env socket not a the this is n port name hostname string bool mapping"
)
_HOST_NAME = late(r"[A-Za-z0-9](?:[\w.-]|\[[\d,-]{1,120}(?:\]|$)|,(?=[A-Za-z])){1,400}")
_NO_NAME = late(rf"[\d.:x-]{{1,60}}|{CONTAINER}")


_DOMAIN = late(
    r"(?:[a-z]{2}|com|org|net|edu|gov|mil|info|app|dev|cloud|local|internal|lan|corp|intra|intranet|"
    r"localdomain|home|cluster|hpc|example|test)"
)
_HOST_ALONE = late(r"(?:\w{1,80}_)?host|master_addr|rdzv_endpoint")
_DISTINCT = late(r"[\d-]")


def _is_host(mention: Mention) -> bool:
    value = mention.value.rstrip(".,-").lower()
    if not _HOST_FIELDS.fullmatch(mention.name) or not _HOST_NAME.fullmatch(value):
        return False
    if value in _NO_HOST or value in mention.name or _NO_NAME.fullmatch(value):
        return False
    if mention.between == "is" or (mention.between == "," and not mention.is_option):
        return False
    is_variable = "_" in value and not _DISTINCT.search(value.partition("[")[0])
    if is_variable:
        return False
    return _DISTINCT.search(value) is not None or _names_a_host(mention, value)


def _names_a_host(mention: Mention, value: str) -> bool:
    """Whether a word without digits is a host's name, not a variable or part of a sentence."""
    if mention.after and mention.after in "([" and not mention.quoted:
        return False
    if "." in value and not _DOMAIN.fullmatch(value.rpartition(".")[2]):
        return False
    is_plain = _HOST_ALONE.fullmatch(mention.name) and not mention.quoted
    return not (is_plain and (mention.between != "=" or mention.is_spaced)) or "." in value


_SERIAL_FIELDS = late(
    r"(?:\w{1,80}_)?serial(?:_(?:number|num|no))?|(?:\w{1,80}_)?asset_tag|(?:\w{1,80}_)?wwn"
)
_ID_FIELDS = late(r"(?:\w{1,80}_)?(?:uuid|guid|machine_?id|boot_?id)")
_SERIAL = late(r"(?=[A-Za-z-]{0,40}\d)[A-Za-z0-9-]{6,64}")
_HARDWARE_ID = late(r"(?:0x)?[0-9a-fA-F]{12,32}|(?:[0-9a-fA-F]{2,4}:){3,7}[0-9a-fA-F]{2,4}")
_HARDWARE_VALUE = late(r"[A-Za-z0-9][A-Za-z0-9:-]{5,64}")


def _is_hardware(mention: Mention) -> bool:
    if _SERIAL_FIELDS.fullmatch(mention.name):
        return _SERIAL.fullmatch(mention.value) is not None
    is_id = _ID_FIELDS.fullmatch(mention.name) is not None
    return is_id and _HARDWARE_ID.fullmatch(mention.value) is not None


KINDS = (
    Kind(
        r"pass(?:word|wd|phrase|code|wort)|(?:^|_)pwd$|secret|credential|"
        r"(?:api|app|access|private|account|shared|auth|signing|encryption)_?key|"
        r"shared_?access_?signature|connection_?string",
        _is_password,
    ),
    Kind("token|cookie|(?:^|_)(?:pass|pw|pat)$", _is_token),
    Kind(
        r"key(?:_?id)?$|(?:^|_)(?:auth|sig|signature|jwt|sas)$|session",
        _is_named_key,
    ),
    Kind("user|logname|login_name", _is_person, "<user>", _USER_NAME),
    Kind("host|node|name|addr|endpoint", _is_host, "<host>", _HOST_NAME),
    Kind("serial|id$|asset_tag|wwn", _is_hardware, REMOVED, _HARDWARE_VALUE),
)

_WORDS = _words(
    "pass pwd secret credential key token auth sig jwt sas _pat _pw cookie session connection "
    "user logname login_name host node computer machine addr endpoint "
    "serial uuid guid boot asset wwn"
)
"""Every name of every kind contains one of these."""

_NAME = late(
    rf"(?i)(?P<word>{'|'.join(_WORDS)})(?P<rest>[\w-]{{0,40}}(?:[ -](?:number|name|id|tag)\b)?)"
)
_TYPE = r"(?:Optional\[)?(?:str|bytes|string|Any|(?:pydantic\.)?SecretStr)\]?(?:[ ]?\|[ ]?None)?"
_BETWEEN = late(
    rf"(?:(?P<close>{QUOTE})[\])}}]{{0,2}})?"
    rf"(?:,?\s{{0,40}}(?:{QUOTE})?(?P<pair>value)(?:{QUOTE})?[ \t]{{0,4}}[:=]"
    rf"|[ \t]{{0,40}}(?P<mark>=>|:=|==?|:(?:[ \t]{{0,4}}{_TYPE}[ \t]{{0,4}}=)?|,"
    r"|is(?=[ \t])|(?<=[ \t])))"
    r"[ \t]{0,40}"
    # wrappers of a value: SecretStr('...'), b'...'
    rf"(?:(?:(?P<wrapper>[A-Za-z_.]{{1,40}})\()?[bBrRuUfF]{{0,2}}(?P<open>{QUOTE}))?"
)
_BARE = late(
    r"<[^<>\n]{0,80}>|(?:[^\s\"'`\\,;&<\x00-\x1f]|\\(?![nrt\"'`\\])|<(?!/)"
    r"|[,;&](?!\s|$|[\w.%-]{0,40}[=:]|[\"'`])){1,8192}"
)
_CLOSING = ")]}>.,;:"
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-"
_REST_OF_ESCAPE = late(r"^(?:u00|x)3[cCeE](?=[A-Za-z_])")
"""Of an escaped bracket (\\u003c) that stands directly before a name."""
_SHORTEST_CUT = 4
_NEAR = 160
_NETRC = late(r"\b(?:login|machine)[ \t]{1,8}\S{1,120}[\s\"',\\]{1,16}$")


@cache
def _quoted(quote: str) -> re.Pattern[str]:
    """The text in quotes of this kind, up to the end of the line if they are not closed."""
    return re.compile(rf"(?:(?!{re.escape(quote)})(?:\\{{1,7}}[\"'`\\]|[^\n])){{0,{_LONGEST}}}")


@lru_cache(maxsize=4096)
def _kinds_of(name: str) -> tuple[Kind, ...]:
    """The possible kinds of a name, strictest first."""
    normal = _normal(name)
    return tuple(kind for kind in KINDS if re.search(kind.words, normal))


def _normal(name: str) -> str:
    """Names are written in many ways: API_KEY, api-key, apiKey, "Serial Number"."""
    return re.sub(r"[ -]", "_", name.strip("-")).lower()


def replacement_for(field: str, value: str) -> str | None:
    """The replacement of a field's value; None for a value that may stay."""
    for kind in _kinds_of(field):
        if kind.is_private(Mention(_normal(field), value, between=":")):
            return kind.replacement
    return None


class _Place(NamedTuple):
    """Where a private value was found."""

    start: int
    end: int
    replacement: str


def _places(text: str) -> Iterator[_Place]:
    at = 0
    while name := _NAME.search(text, at):
        place = _place_after(text, name)
        if place is not None:
            yield place
        at = name.end() if place is None else place.end


def _place_after(text: str, name: re.Match[str]) -> _Place | None:
    before = text[max(0, name.start() - 40) : name.start()]
    written = before[len(before.rstrip(_NAME_CHARACTERS)) :] + name[0]
    written = _REST_OF_ESCAPE.sub("", written)
    kinds = _kinds_of(written)
    if not kinds:
        return None
    return _in_element(text, written, name.end(), kinds) or _after(text, written, name, kinds)


def _in_element(text: str, written: str, end: int, kinds: tuple[Kind, ...]) -> _Place | None:
    """The name is in a tag, and the value is the text of the element."""
    element = element_text(text, end - len(written), end, _LOOKED_AT)
    if element is None:
        return None
    mention = Mention(_normal(written), element.text, between=">", quoted=False)
    for kind in kinds:
        if (element.is_closed or kind.survives_a_cut(element.text)) and kind.is_private(mention):
            whole = element_text(text, end - len(written), end, _LONGEST) or element
            return _Place(whole.start, whole.start + len(whole.text), kind.replacement)
    return None


def _after(text: str, written: str, name: re.Match[str], kinds: tuple[Kind, ...]) -> _Place | None:
    before = text[max(0, name.start() - _NEAR) : name.start()]
    between = _BETWEEN.match(text, name.end())
    if between is None:
        return None
    for kind in kinds:
        value = _value(kind, text, between, _LOOKED_AT)
        mention = Mention(
            _normal(written),
            value,
            "=" if between["pair"] else between["mark"],
            between["open"] is not None,
            written.startswith("-"),
            between[0][:1].isspace(),
            text[between.end() + len(value) : between.end() + len(value) + 1],
        )
        if (
            value
            and not (mention.between == ":" and _is_about_a_file(text, between.end()))
            and kind.accepts(between["wrapper"])
            and _belongs(mention, between, before)
            and kind.is_private(mention)
        ):
            whole = _value(kind, text, between, _LONGEST)
            return _Place(between.end(), between.end() + len(whole), kind.replacement)
    return None


@cache
def _complaints() -> tuple[str, ...]:
    """The system's error messages about files."""
    return tuple(
        message for code in errno.errorcode if " " in (message := os.strerror(code).lower())
    )


def _is_about_a_file(text: str, start: int) -> bool:
    """ "/etc/passwd: Permission denied" names a file, and no password follows."""
    return text[start : start + 60].lower().startswith(_complaints())


def _value(kind: Kind, text: str, between: re.Match[str], longest: int) -> str:
    start = between.end()
    if between["open"]:
        found = _quoted(between["open"]).match(text, start, start + longest)
        return found[0] if found else ""
    found = (kind.value or _BARE).match(text, start, start + longest)
    if found is None:
        return ""
    # The bracket in node[01-04] belongs to the value.
    return found[0].rstrip(_CLOSING if "[" not in found[0] else _CLOSING.replace("]", ""))


def _belongs(mention: Mention, between: re.Match[str], before: str) -> bool:
    """Whether it is the value of this name, and not just the next word."""
    if mention.between == ",":
        names_follow = _PLAIN_WORD.fullmatch(mention.value) and not mention.is_option
        return bool(between["close"] and mention.quoted and not names_follow)
    if mention.between == "is":
        return not mention.is_option
    if mention.between == "":
        return _follows_directly(mention, before)
    return True


def _follows_directly(mention: Mention, before: str) -> bool:
    """Whether the value belongs to the name although only spaces are between them."""
    if mention.is_option:
        return not mention.value.startswith("-")
    if mention.name == "password" and _NETRC.search(before):
        return True
    if mention.name == "key" and not before.lower().endswith(("api ", "access ", "secret ")):
        return False
    is_number = len(mention.value) > 9 and mention.name.endswith(("serial", "number", "id"))
    return is_number or is_key_like(mention.value)


def _clean(text: str) -> str:
    parts = []
    done = 0
    for place in _places(text):
        parts += [text[done : place.start], place.replacement]
        done = place.end
    return "".join((*parts, text[done:])) if parts else text


NAMED = Rule(_WORDS, _clean)
