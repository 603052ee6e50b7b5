"""Addresses of machines and services: URLs with secrets in them, IP and hardware addresses."""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.privacy.people import COMMON_FOLDERS
from whygpu.privacy.randomness import is_key_like
from whygpu.privacy.rules import REMOVED, Rule, pattern_rule

_NO_SECRET = frozenset(
    ("git", "hg", "svn", "anonymous", "user", "oauth2accesstoken", "~", "<user>")
)

_NETWORK_SCHEMES = (
    r"https?|tcp|udp|grpcs?|wss?|ssh|s?ftps?|rediss?|postgres(?:ql)?|mysql|mongodb|amqps?|nfs|smb|"
    r"ucx|ldaps?|kafka|zmq"
)
_WELL_KNOWN_HOSTS = frozenset(("localhost", "host", "hostname", "ipaddress", "address", "metadata"))


def _credentials(match: re.Match[str]) -> str:
    return match[0] if match[1] in _NO_SECRET else f"{REMOVED}@"


def _host_of_url(match: re.Match[str]) -> str:
    host = match["host"].lower()
    return match[0] if host in _WELL_KNOWN_HOSTS or host.isdecimal() else f"{match['scheme']}<host>"


_ANACONDA = late(r"(?i)(?:[\w-]{1,60}\.)?anaconda\.\w{2,10}$")


def _channel(match: re.Match[str]) -> str:
    """https://host/t/token/channel of conda. Forums use /t/ for topics."""
    is_token = is_key_like(match["token"]) or _ANACONDA.match(match["host"])
    return f"{match['before']}{REMOVED}" if is_token else match[0]


URLS = (
    # user:password@ and token@; a password may contain @ itself
    pattern_rule("://", r"(?<=://)([^\s/\"'`<>]{1,512})@", _credentials),
    # variables and options for a proxy need no scheme
    pattern_rule(
        "proxy",
        r"(?i)(\b(?:[a-z]{2,5}_?|--)?proxy\\{0,7}[\"']?"
        r"(?:[ \t]{0,4}[=:][ \t]{0,4}|[ \t]{1,4})\\{0,7}[\"']?)"
        r"[^\s/\"'`<>@:]{1,128}:[^\s/\"'`<>]{1,512}@",
        rf"\1{REMOVED}@",
    ),
    pattern_rule(
        "/t/",
        r"(?P<before>://(?P<host>[^\s/\"'`]{1,200})/t/)(?P<token>[\w-]{6,200})(?![\w-])",
        _channel,
    ),
    # signed URLs: the signature alone gives access
    pattern_rule(
        "= %3d",
        r"(?i)((?:[?&;]|\\u0026|%3F|%26)(?:amp;)?"
        r"(?:[\w.-]{0,40}(?:key|token|secret|passw(?:or)?d|signature|credential)|sig|code|auth|"
        r"policy|key-pair-id|awsaccesskeyid|googleaccessid|jwt|sas|pwd|pass)(?:=|%3D))"
        r"[^&\s\"'`<>#\\]{2,4096}",
        rf"\1{REMOVED}",
    ),
    # the host in a URL of a private network: without a domain, or with an unregistered one
    pattern_rule(
        "://",
        rf"(?i)(?P<scheme>\b(?:{_NETWORK_SCHEMES})://(?:<[a-z]{{1,10}}>@|[\w.-]{{1,40}}@)?)"
        r"(?P<host>[a-z0-9][a-z0-9_-]{0,62}"
        r"(?:(?:\.[a-z0-9_-]{1,63}){0,6}\.(?:internal|local|lan|corp|intra|intranet|localdomain|home))?)"
        r"(?=[:/\s\"'`,;)\]]|$)",
        _host_of_url,
    ),
    pattern_rule(
        ".internal .local .lan .corp .intra",
        r"(?i)(?<![\w./-])[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,6}"
        r"\.(?:internal|local|lan|corp|intra|intranet|localdomain)(?=:\d)",
        "<host>",
    ),
    # Amazon names hosts by their address; network shares contain the host
    pattern_rule(
        "ip-",
        r"\bip-\d{1,3}(?:-\d{1,3}){3}\b(?:\.[a-z0-9-]{1,63}){0,5}",
        "<host>",
    ),
)


def _share(match: re.Match[str]) -> str:
    """\\\\host\\share: with any escaping, the first separator is twice as long as the second."""
    first, second = match["first"], match["second"]
    if len(first) != 2 * len(second):
        return match[0]
    folder = match["folder"]
    if folder is None:
        return f"{first}<host>{second}{match['share']}"
    is_somebodys = len(match["third"]) == len(second) and folder.lower() not in COMMON_FOLDERS
    owner = "<user>" if is_somebodys else folder
    return f"{first}<host>{second}{match['share']}{match['third']}{owner}"


NETWORK_SHARES = (
    pattern_rule(
        "\\\\",
        r"(?<![\w\\:])(?P<first>\\{2,16})[A-Za-z0-9][\w.-]{1,63}(?P<second>\\{1,8})"
        r"(?P<share>[A-Za-z][\w$-]{2,63})"
        r"(?:(?P<third>\\{1,8})(?P<folder>[A-Za-z_][\w-]{1,31})(?=[\\/\s'\"`,;:)]|$))?",
        _share,
    ),
)

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IPV4 = late(
    rf"(?<![\w.])(?:(?<![<>~=!]=)(?<![<>~-]))(?:{_OCTET}\.){{3}}{_OCTET}"
    r"(?:(?P<service>(?=:\d|/\d|<\d))|(?![\w-])(?!\.\w))"
)
_BEFORE_VERSION = late(
    r"(?i)(?:\b(?:known|found)[\"']?\s{0,4}[:=]|\bv|versions?|release|requires?|than|[<>=~!]=|cu\d\d|\b(?:nvidia|cu|jax|torch|"
    r"tensorflow|keras|tf|lib|numpy|protobuf|triton|python|pip|nccl|runtime|driver|plugin|pjrt|"
    r"tensorrt|trt|nvinfer|nv|onnx|rocm|hip|miopen|package|wheel)"
    r"[\w.-]{0,40})[\s:=\"'(]{0,40}$"
)
_AFTER_VERSION = late(r" (?:is|was) (?:required|installed|needed)| or (?:newer|later|older)\b")
_BEFORE_ADDRESS = late(
    r"(?i)(?:addr(?:ess)?|host|ip|inet|server|peer|master|coordinator|endpoint|bind|listen|gateway|"
    r"proxy|client|remote|node|worker|scheduler|url|socket|\b(?:eth|ib|en[ops]|bond|wl|docker|br)"
    r"[\w.-]{0,16})[\"']?[:=]$"
)
_OWN_NETWORK = late(
    r"10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\."
)
_NOBODYS = late(r"127\.|0\.|255\.|169\.254\.169\.254$")


_SOFTWARE = late(
    r"(?i)\b(?:have|has|expect(?:s|ed)?|found|got|need(?:s|ed)?|requir(?:es?|ed)|compiled|built|linked|"
    r"installed|loaded|versions?|runtime|librar(?:y|ies)|packages?|headers?|plugins?|engine|upgrade|"
    r"downgrade|mismatch|incompatible|(?:lib)?(?:cu(?:da|dnn|blas|fft|rand|sparse|solver)|"
    r"nv(?:idia|infer|rtc|jitlink|onnxparser)|tensorrt|trt|onnx|rocm|miopen|nccl)[\w.-]{0,40})\b"
)
_MACHINES = late(
    r"(?i)addr|host|\bip\b|inet|server|\bpeer|master|coordinator|endpoint|\bbind|listen|gateway|proxy|"
    r"client|remote|\bnode|worker|scheduler|socket|connect|\bping|\broute|\bport\b|\brank\b|://|@"
)
_FIRST_OF_VERSIONS = 30
"""Versions of libraries begin with a smaller number."""
_PART_OF_VERSIONS = 100


def _ipv4(match: re.Match[str]) -> str:
    """Four numbers are an address, unless they start with 0 or the context names software."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    if _NOBODYS.match(match[0]) or _BEFORE_VERSION.search(before):
        return match[0]
    if _AFTER_VERSION.match(match.string, match.end()):
        return match[0]
    is_joined = before.endswith(("=", ":"))  # as an address to its name, or a version to its
    has_service = match["service"] is not None
    if is_joined and (_OWN_NETWORK.match(match[0]) or _BEFORE_ADDRESS.search(before)):
        return "<ip removed>"
    if has_service or not (is_joined or _can_be_version(match)):
        return "<ip removed>"
    return match[0]


def _can_be_version(match: re.Match[str]) -> bool:
    """Whether the line mentions no machine, and its words or numbers suggest a version."""
    parts = [int(part) for part in match[0].split(".")]
    if parts[0] >= _FIRST_OF_VERSIONS:
        return False
    before, after = _around(match)
    if _MACHINES.search(before) or _MACHINES.search(after):
        return False
    is_small = parts[0] < 10 and max(parts) < _PART_OF_VERSIONS
    return is_small or bool(_SOFTWARE.search(before) or _SOFTWARE.search(after))


def _around(match: re.Match[str]) -> tuple[str, str]:
    """The text before and after it on the same line."""
    text = match.string
    before = text[max(0, match.start() - _NEAR) : match.start()]
    after = text[match.end() : match.end() + _NEAR]
    return re.split(_LINE_ENDS, before)[-1], re.split(_LINE_ENDS, after, maxsplit=1)[0]


_NEAR = 80
_LINE_ENDS = r"[\n\r\x1d\x1e]"


_IPV6 = late(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}(?=:)|(?=::))(?::[0-9A-Fa-f]{0,4}){2,8}"
    r"(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3}|(?:\.\d{1,3}){3})?(?:%[\w.-]{1,16})?(?![\w:])"
)
_WIDE_GROUP = late(r"[0-9A-Fa-f]{4}")
_TAIL = late(r"/\d{1,3}|\]")


def _ipv6(match: re.Match[str]) -> str:
    """Slices (1::2), times and C++ names (c10::) also contain colons."""
    import ipaddress  # takes a millisecond, and most texts have no such address

    address = match[0].partition("%")[0]
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return match[0]
    if address.count(":") < 7 and not _WIDE_GROUP.search(address):
        return match[0]
    is_open = address.endswith("::") and not _TAIL.match(match.string, match.end())
    harmless = parsed.is_loopback or parsed.is_unspecified or is_open
    return match[0] if harmless else "<ip removed>"


_LETTER = late(r"[A-Fa-f]")
_DIGIT = late(r"\d")
_BEFORE_MAC = late(r"(?i)(?:address|mac|ether|hwaddr)[\s:=\"']{0,24}$")


def _mac(match: re.Match[str]) -> str:
    """Dates have dashes and versions have dots, but neither has letters."""
    before = match.string[max(0, match.start() - 24) : match.start()]
    mixed = _LETTER.search(match[0]) and _DIGIT.search(match[0])
    return "<mac removed>" if mixed or _BEFORE_MAC.search(before) else match[0]


_MAC = late(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5,19}[0-9a-fA-F]{2}(?![\w:])")
_DASHED_MAC = late(r"(?<![\w-])(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}(?![\w-])")

NETWORK = (
    Rule((":",), lambda text: _MAC.sub("<mac removed>", text) if text.count(":") > 4 else text),
    Rule(("-",), lambda text: _DASHED_MAC.sub(_mac, text) if text.count("-") > 4 else text),
    pattern_rule(".", r"(?<![\w.])(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}(?![\w.])", _mac),
    Rule((":",), lambda text: _IPV6.sub(_ipv6, text) if text.count(":") > 1 else text),
)


def without_ipv4(text: str) -> str:
    return _IPV4.sub(_ipv4, text) if text.count(".") > 2 else text
