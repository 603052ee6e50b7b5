"""Settings of a layer that two lanes do not share."""

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_SAYS_NOTHING = {"name", "module", "registered_name", "build_config", "trainable", "seed"}
_LONGEST = 60


def differences(one: "Any", other: "Any") -> "list[dict[str, str]]":
    """[{"setting", "value_a", "value_b"}] of two configurations, by dotted names."""
    flat = [dict(_flat("", config)) for config in (one, other)]
    names = list(flat[0]) + [name for name in flat[1] if name not in flat[0]]
    return [
        {"setting": name, "value_a": _shown(flat[0], name), "value_b": _shown(flat[1], name)}
        for name in names
        if flat[0].get(name, _ABSENT) != flat[1].get(name, _ABSENT)
    ]


_ABSENT = object()


def _flat(prefix: str, value: "Any") -> "Iterator[tuple[str, Any]]":
    if not isinstance(value, dict) or (prefix and not value):
        yield prefix, value
        return
    for key, inner in value.items():
        if key not in _SAYS_NOTHING:
            for pair in _flat("{}.{}".format(prefix, key) if prefix else key, inner):
                yield pair


def _shown(flat: "dict[str, Any]", name: str) -> str:
    if name not in flat:
        return "not set"
    text = json.dumps(flat[name], sort_keys=True)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
