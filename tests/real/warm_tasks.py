"""Tasks in processes that are forked from one that has imported their framework.

Each has a process to itself, as every task of whygpu has; what takes longer than most tasks, the
import, is done once for all of them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping

from tests.comparer.inside import INSIDE
from tests.patience import PATIENCE
from whygpu.model.codec import decode
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    ExceptionMessage,
    FinishedMessage,
    MessageLine,
    TaskMessage,
    TaskRequest,
)
from whygpu.work.task_process import request_file

_ANSWER = "ANSWER "
_SERVER = f"""
import importlib, json, os, sys
sys.path[0:1] = []
sys.path.append(sys.argv[1])
from whygpu_work import main
for name in sys.argv[2:]:
    importlib.import_module(name)
for line in sys.stdin:
    request, variables = json.loads(line)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.environ.update(variables)
            sys.argv = [main.__file__, request, str(writer)]
            main.main()
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader) as stream:
        messages = [json.loads(text) for text in stream]
    os.waitpid(child, 0)
    print({_ANSWER!r} + json.dumps(messages), flush=True)
"""


class WarmTasks:
    def __init__(self, python: str, modules: Iterable[str], environ: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [python, "-c", _SERVER, str(INSIDE), *modules],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, request: TaskRequest, variables: Mapping[str, str]) -> TaskEnd:
        """How the task ended, with variables that its process has beside those of the import."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with request_file(request, PATIENCE) as path:
            self._server.stdin.write(json.dumps([path, dict(variables)]) + "\n")
            self._server.stdin.flush()
            # What tasks print is in between.
            lines = (line for line in self._server.stdout if line.startswith(_ANSWER))
            answer = next(lines, None)
        assert answer is not None, "the process that imported the framework has ended"
        sent = json.loads(answer.removeprefix(_ANSWER))
        return _end([decode(MessageLine, {"message": message}).message for message in sent])

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(PATIENCE)
        self._server.stdout.close()


def _end(messages: list[TaskMessage]) -> TaskEnd:
    last = messages[-1]
    assert isinstance(last, ExceptionMessage | FinishedMessage), "it was killed"
    if isinstance(last, FinishedMessage):
        return TaskEnd("finished", "", tuple(messages[:-1]))
    return TaskEnd("exception", str(last), tuple(messages[:-1]), exception=last)
