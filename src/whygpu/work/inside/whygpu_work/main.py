"""Runs one task: started as `python main.py REQUEST_FILE DESCRIPTOR`.

The request is a JSON object that names the task; `tasks/<name>.py` has `run(request, channel)`.
"""

import faulthandler
import importlib
import json
import os
import re
import signal
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and sys.path[0] == HERE:
    # The first entry is this folder, whose modules must be imported from their package only.
    del sys.path[0]


_COLOR = re.compile("\x1b\\[[0-9;]{0,20}m")
"""Keras writes its messages for a terminal, wherever they go."""


class Channel(object):
    """Sends messages to whygpu, one JSON object a line: those of whygpu.model.task_wire."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", 1, encoding="ascii")

    def send(self, kind: str, **fields: "Any") -> None:
        fields["kind"] = kind
        self._stream.write(json.dumps(fields) + "\n")
        self._stream.flush()

    def tell(self, text: str) -> None:
        """Report progress to the user."""
        self.send("progress", text=text)

    def send_exception(self, error: "BaseException") -> None:
        """Report the exception that is being handled."""
        self.send(
            "exception",
            failure=failure_of(error),
            type=type(error).__name__,
            text=text_of(error),
            traceback=traceback.format_exc()[-20000:],
        )


def text_of(error: "BaseException") -> str:
    """The message of an exception; its __str__ may itself fail."""
    try:
        return _COLOR.sub("", str(error)[:4000])
    except Exception as failure:
        return "its message cannot be shown (%s)" % type(failure).__name__


def failure_of(error: "BaseException") -> str:
    """Which TaskFailure of whygpu.model.task_wire an exception is."""
    if type(error).__module__.startswith("whygpu."):
        # The user's file called whygpu, which refuses to work inside a task.
        return "unusable"
    return getattr(error, "task_failure", "error")


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as stream:
        request = json.load(stream)
    descriptor = int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    channel = Channel(descriptor)
    # If whygpu itself is gone by then, a hung task still ends.
    signal.alarm(int(request["seconds"]) + 30)
    faulthandler.enable()
    sys.argv = sys.argv[:1]
    # The folder of the package comes last: modules of the user's environment take precedence.
    sys.path.append(os.path.dirname(HERE))
    try:
        task = importlib.import_module("whygpu_work.tasks." + request["task"])
        task.run(request, channel)
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exc()
        channel.send_exception(error)
        sys.exit(1)
    channel.send("finished")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
