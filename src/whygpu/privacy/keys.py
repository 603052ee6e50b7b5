"""Keys that can be recognised by themselves: by a prefix, a frame, or randomness."""

from __future__ import annotations

import re
from itertools import product
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.privacy.randomness import changes, has_every_class, is_surely_random
from whygpu.privacy.rules import BOUNDARY, REMOVED, Rule, pattern_rule

_WORD = "[A-Za-z0-9]"
_URL_SAFE = "[A-Za-z0-9_-]"
_LONGEST = 4096
_CUT = 12
"""An excerpt may end in the middle of a key: this many characters are enough to recognise it."""


class _Shape(NamedTuple):
    """The prefixes of a service's keys, and the characters that follow."""

    beginnings: str
    """Prefixes separated by spaces."""
    body: str = _URL_SAFE
    common: bool = False
    """Other words begin like this too (sk-learn, hf_config): the rest must look random."""


_SHAPES = (
    # code hosting
    _Shape("ghp_ gho_ ghu_ ghs_ ghr_", _WORD),
    _Shape("github_pat_", r"\w"),
    _Shape(
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct- GR1348941"
    ),
    _Shape("ATATT3 ATCTT3 ATBB", "[A-Za-z0-9_=-]"),
    # clouds
    _Shape("AKIA ASIA ABIA ACCA AROA AIDA", "[A-Z2-7]"),
    _Shape("AIza GOCSPX- ya29."),
    _Shape("dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]"),
    _Shape("dapi", "[0-9a-f]", common=True),
    _Shape("hvs. hvb. hvr."),
    _Shape("tskey-auth- tskey-api- tskey-client-"),
    _Shape("HRKU- sbp_ pscale_tkn_ pscale_pw_ pscale_oauth_ dckr_pat_ dckr_oat_ fm1_ fm2_ FlyV1"),
    # models and experiments
    _Shape("sk-proj- sk-ant- sk-or-v1- sk-svcacct- sk-admin- sk-lf- sk-None-"),
    _Shape("sk- hf_ api_org_ r8_ gsk_ pplx- xai- rpa_ fw_ jina_", _WORD, common=True),
    _Shape("nvapi- lsv2_pt_ lsv2_sk_ pcsk_ KGAT_ wandb_v1_ tvly-"),
    # payment, mail, chat, monitoring
    _Shape("sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", _WORD),
    _Shape("xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", "[A-Za-z0-9%-]"),
    _Shape("SG.", "[A-Za-z0-9_.-]", common=True),
    _Shape("shpat_ shpca_ shppa_ shpss_", "[0-9a-fA-F]"),
    _Shape("glsa_ glc_", r"\w", common=True),
    _Shape(
        "lin_api_ lin_oauth_ NRAK- NRRA- PMAK- sntrys_ sntryu_ ntn_ figd_ phx_ phc_", r"[\w+/=-]"
    ),
    # packages and encryption
    _Shape("npm_", _WORD, common=True),
    _Shape("pypi-AgE pypi-AgN AGE-SECRET-KEY-1"),
)


def _shape_rule(shape: _Shape) -> Rule:
    longest_first = sorted(shape.beginnings.split(), key=len, reverse=True)
    alternatives = "|".join(
        f"{re.escape(word)}(?={shape.body}{{{max(2, _CUT - len(word))}}})" for word in longest_first
    )
    pattern = f"{BOUNDARY}(?:{alternatives})(?P<body>{shape.body}{{1,{_LONGEST}}})"

    def replace(match: re.Match[str]) -> str:
        return match[0] if shape.common and not _is_random(match["body"]) else REMOVED

    return pattern_rule(shape.beginnings.lower(), pattern, replace)


_SPELT = late(r"[a-z]{1,20}(?:[_.-]?[a-z]{1,20}){0,8}[_.-]?\d{0,4}")


_UNBROKEN = late(r"[A-Za-z0-9]{22}")
"""Longer than any word. Keys in documentation are often the alphabet, which is not random."""


def _is_random(body: str) -> bool:
    """Not spelt like words, which are small letters, perhaps with a number at the end."""
    return _UNBROKEN.search(body) is not None or (
        not _SPELT.fullmatch(body) and changes(body) >= 0.25
    )


LONG_ENOUGH = 32
"""Shorter texts cannot contain a key without a name."""
_NEAR = 80


def _amazon_secret(match: re.Match[str]) -> str:
    near = match.string[max(0, match.start() - _NEAR) : match.start()].lower()
    return (
        REMOVED if ("aws" in near or "amazon" in near) and has_every_class(match[0]) else match[0]
    )


_PROSE = late(r"[A-Z]?[a-z]{1,30}(?:[-/.][A-Z]?[a-z]{1,30}){0,8}[.,]?")
_OTHER_P = late(
    r"(?i)\b(?:srun|sbatch|salloc|s(?:info|queue|acct|control)|docker|podman|nerdctl|mkdir|conda|mamba|"
    r"micromamba|virtualenv|tox|uv|pytest|cp|tar|ps|top|kill|lsof|ssh|scp|nvidia-smi|ninja|perf|make)"
    r"\b[^\n|;]{0,200}$"
)
"""Commands whose -p is not a password, but a partition, port, folder or process."""
_NO_PASSWORD = late(r"(?i)(?:py|python|pypy|cuda|gpu|cpu|node|rtx|port)[-_]?[\d.]{1,8}")


def _short_option(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 200) : match.start()]
    value = match[0][len(match["option"]) :]
    if _OTHER_P.search(before) or _NO_PASSWORD.fullmatch(value):
        return match[0]
    return f"{match['option']}{REMOVED}"


_TWILIO = late(r"\b(?:SK|AC)[0-9a-f]{32}\b")


def _without_twilio_ids(text: str) -> str:
    return _TWILIO.sub(REMOVED, text) if "AC" in text or "SK" in text else text


_PATTERNS = (
    # a JSON Web Token, or the base64 of any JSON object, whole or cut
    pattern_rule(
        "eyj",
        rf"{BOUNDARY}eyJ[A-Za-z0-9_+/-]{{9,{_LONGEST}}}={{0,2}}"
        rf"(?:\.[A-Za-z0-9_-]{{1,{_LONGEST}}}){{0,4}}\.?",
        REMOVED,
    ),
    # Amazon's secret has no beginning, but an exact length
    pattern_rule("aws amazon", r"(?<![\w/+=])[A-Za-z0-9/+]{40}(?![\w/+=])", _amazon_secret),
    # Twilio, Mailgun: two letters or a word, and exactly 32 hexadecimal digits
    Rule(
        ("sk", "ac"),
        _without_twilio_ids,
    ),
    pattern_rule("key-", r"\bkey-[0-9a-f]{32}\b", REMOVED),
    # Mailchimp, Airtable
    pattern_rule("-us", r"\b[0-9a-f]{32}-us\d{1,2}\b", REMOVED),
    pattern_rule("pat", r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{20,64}", REMOVED),
    # Azure: the third character before Q~ is a digit
    pattern_rule("q~", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{4,40}", REMOVED),
    pattern_rule(".atlasv1.", rf"\b\w{{14}}\.atlasv1\.{_URL_SAFE}{{1,100}}", REMOVED),
    # Telegram; Discord
    pattern_rule("aa", rf"(?<![\w.])\d{{8,10}}:AA{_URL_SAFE}{{8,40}}", REMOVED),
    pattern_rule(
        " ".join(map("".join, product("mno", "dtjz", "aeimquycgk"))),
        rf"{BOUNDARY}[MNO][DTjz][AEIMQUYcgk][\w-]{{20,25}}\.{_URL_SAFE}{{6}}\.{_URL_SAFE}{{4,60}}",
        REMOVED,
    ),
    # URLs that are themselves the key
    pattern_rule(
        "hooks.slack.com", r"(hooks\.slack\.com/[a-z]{1,20}/)[\w/-]{1,200}", rf"\1{REMOVED}"
    ),
    pattern_rule(
        "/webhooks/", rf"(/webhooks/)\d{{1,20}}(?:/{_URL_SAFE}{{0,200}})?", rf"\1{REMOVED}"
    ),
    pattern_rule("webhook.office.com", r"(webhook\.office\.com/)[\w@/.-]{1,400}", rf"\1{REMOVED}"),
    pattern_rule(
        "ssh- ecdsa-",
        rf"\b((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-[a-z0-9]{{1,20}})[ \t]{{1,4}})"
        rf"AAAA[A-Za-z0-9+/=]{{8,{_LONGEST}}}",
        rf"\1{REMOVED}",
    ),
    # headers of requests
    pattern_rule(
        "bearer basic",
        rf"(?i)\b(bearer|basic)[ \t]{{1,4}}(?P<body>[A-Za-z0-9._~+/=-]{{8,{_LONGEST}}})",
        lambda match: match[0] if _PROSE.fullmatch(match["body"]) else f"{match[1]} {REMOVED}",
    ),
    pattern_rule(
        "authorization",
        rf"(?i)(authorization(?:\\{{0,7}}[\"'`])?[ \t]{{0,8}}[:=,][ \t]{{0,8}}(?:\\{{0,7}}[\"'`])?"
        r"(?:[a-z][a-z0-9-]{1,20}[ \t]{1,4})?)"
        rf"(?!<removed>|\.\.\.|[a-z][a-z0-9-]{{1,20}}[ \t])[^\s\"'`\\]{{4,{_LONGEST}}}",
        rf"\1{REMOVED}",
    ),
    pattern_rule(
        "cookie",
        rf"(?i)((?<![\w-])(?:set-)?cookie(?:\\{{0,7}}[\"'`])?[ \t]{{0,4}}:[ \t]{{0,4}}"
        rf"(?:\\{{0,7}}[\"'`])?)[^\s\"'`\\=]{{1,80}}=[^\n\"'`\\]{{1,{_LONGEST}}}",
        rf"\1{REMOVED}",
    ),
    # commands that take a password without naming it
    pattern_rule(
        "redis-cli",
        r"(\bredis-cli\b[^\n|;]{0,200}?[ \t](?:-a|--pass)[ \t=]{0,4}\\{0,3}[\"']?)"
        r"(?=[^\s<-])[^\s\"'\\]{1,200}",
        rf"\1{REMOVED}",
    ),
    pattern_rule("sshpass", r"(\bsshpass[ \t]{1,4}-p[ \t]{0,4})[^\s-]\S{0,200}", rf"\1{REMOVED}"),
    pattern_rule(
        "mysql mariadb mongo",
        r"(\b(?:mysql|mariadb|mongo)\w{0,12}\b[^\n|;]{0,200}?[ \t]-p[ \t]{0,4})"
        r"(?=[^\s<-])\S{1,200}",
        rf"\1{REMOVED}",
    ),
    pattern_rule(
        ("-p ",),
        r"(?P<option>(?<![\w-])-p[ \t]{1,4})"
        r"(?=[^\s\d]{0,64}\d)(?=[^\sA-Za-z]{0,64}[A-Za-z])[\w!@#$%^&*+.-]{6,64}(?![\w:/=])",
        _short_option,
    ),
    pattern_rule(
        "login",
        r"(\blogin\b[^\n|;]{0,200}?[ \t]-p[ \t]{1,4})(?=[^\s<-])\S{1,200}",
        rf"\1{REMOVED}",
    ),
    pattern_rule(
        "curl wget http",
        r"(\b(?:curl|wget|https?)\b[^\n|;]{0,400}?[ \t](?:-u|-a|--user|--auth|--proxy-user)[ =]"
        r"\\{0,3}[\"']?)[^\s:\"'<]{1,80}:[^\s\"'\\]{1,200}",
        rf"\1{REMOVED}",
    ),
    pattern_rule(
        "login", r"(\blogin(?:[ \t]--relogin)?[ \t]{1,4})[0-9a-f]{12,64}\b", rf"\1{REMOVED}"
    ),
)

_FRAME = late(r"-----BEGIN [A-Z0-9 ]{1,40}(?:-----)?")
_FRAME_END = late(r"-----END [A-Z0-9 ]{1,40}(?:-----)?")
_FRAME_REACH = 16_384
_FRAME_PIECE = late(r"[\s\\\"'`,|>]{0,40}[A-Za-z0-9+/=]{1,8192}")
_FRAME_WIDTH = 32
"""The lines of a key are 64 or 70 characters wide; shorter ones are words."""
_FRAME_LINE = late(r"[\s\"'`,]{0,40}[A-Za-z0-9+/=]{1,100}(?:\\{1,7}[nrt]|[\s\"'`,]){0,40}")


def _without_frames(text: str) -> str:
    """Removes PEM blocks, also incomplete ones."""
    parts = []
    done = 0
    while frame := _FRAME.search(text, done):
        parts += [text[done : frame.start()], REMOVED]
        done = _end_of_frame(text, frame.end())
    return "".join((*parts, text[done:]))


def _end_of_frame(text: str, start: int) -> int:
    reach = min(len(text), start + _FRAME_REACH)
    following = text.find("-----BEGIN ", start, reach)
    end = _FRAME_END.search(text, start, reach if following < 0 else following)
    if end is not None:
        return end.end()
    at = start
    while (piece := _FRAME_PIECE.match(text, at)) and (
        len(piece[0]) >= _FRAME_WIDTH or piece.end() == len(text)
    ):
        at = piece.end()
    return at


def opens_frame(text: str) -> bool:
    """Whether a PEM block begins in this text and continues after it."""
    return text.rfind("-----BEGIN ") > text.rfind("-----END ")


def continues_frame(text: str) -> bool:
    """Whether this line can belong to a PEM block that began before it."""
    return closes_frame(text) or _FRAME_LINE.fullmatch(text) is not None


def closes_frame(text: str) -> bool:
    return "-----END " in text


_RUN = late(rf"{BOUNDARY}(?<![/.+_#-])[A-Za-z0-9+/_-]{{32,}}={{0,2}}")


_SUFFIX = late(r"\.\w")
_DIGEST = late(r"(?i)(?:sha\d{1,3}|md5|blake\w{1,4})[=:-]$")


def _random_run(match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 10) : match.start()]
    names_a_file = _SUFFIX.match(match.string, match.end())
    is_key = is_surely_random(match[0]) and not names_a_file and not _DIGEST.search(before)
    return REMOVED if is_key else match[0]


FRAMES = Rule(("-----begin",), _without_frames)
KEYS = (FRAMES, *_PATTERNS, *map(_shape_rule, _SHAPES))


def without_random_runs(text: str) -> str:
    """Removes keys of unknown kinds: long random runs of letters and digits."""
    return _RUN.sub(_random_run, text)
