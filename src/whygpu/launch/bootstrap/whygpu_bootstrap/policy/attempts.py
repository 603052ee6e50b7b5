"""The calls of the plan in this process: which were made, which failed, which were not reached."""

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_REACHED, EXECUTED, FAILED = "not-reached", "executed", "failed"
LONGEST_REASON = 300


class CannotCall(Exception):
    """The framework cannot do what the call asks for; the message says why."""


class Attempt:
    """One call. `with attempt:` around the code that makes it records the outcome.

    No error of the code reaches the program. The last outcome counts: a session that cannot be
    limited must not hide behind an earlier one that could.
    """

    def __init__(self, framework: str, name: str) -> None:
        self.entry = {"framework": framework, "name": name, "outcome": NOT_REACHED, "reason": ""}
        process_record.add_call(self.entry)

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(self, kind: "Any", error: "Any", trace: "Any") -> bool:
        if kind is None:
            self.entry.update(outcome=EXECUTED, reason="")
            return False
        if not issubclass(kind, Exception):
            return False
        reason = str(error) if kind is CannotCall else "%s: %s" % (kind.__name__, error)
        self.entry.update(outcome=FAILED, reason=reason[:LONGEST_REASON])
        return True
