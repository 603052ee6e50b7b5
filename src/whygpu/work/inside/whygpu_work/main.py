"""Does one task: started as `python main.py REQUEST_FILE DESCRIPTOR`.

The request is a JSON object that names the task; `tasks/<name>.py` has `run(request, channel)`.
"""

import faulthandler
import importlib
import json
import os
import signal
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
if sys.path and sys.path[0] == HERE:
    # The first entry is this folder, whose modules are meant to be found in their package only.
    del sys.path[0]


class Channel(object):
    """What the task has to say, on its way to whygpu: one JSON object a line."""

    def __init__(self, descriptor):
        self._stream = os.fdopen(descriptor, "w", 1, encoding="ascii")

    def send(self, kind, **fields):
        fields["kind"] = kind
        self._stream.write(json.dumps(fields) + "\n")
        self._stream.flush()

    def tell(self, text):
        """What goes on, for somebody who waits."""
        self.send("progress", text=text)


def words_of(error):
    """An exception in a line or two; its own text may fail in its turn."""
    try:
        text = str(error)
    except Exception as failure:
        text = "its message cannot be shown (%s)" % type(failure).__name__
    return "%s: %s" % (type(error).__name__, text[:4000])


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        request = json.load(stream)
    descriptor = int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    channel = Channel(descriptor)
    # Should whygpu itself be gone by then, a hung task still comes to an end.
    signal.alarm(int(request["seconds"]) + 30)
    faulthandler.enable()
    sys.argv = sys.argv[:1]
    # The package's folder comes last: whatever the user's environment has goes before it.
    sys.path.append(os.path.dirname(HERE))
    try:
        task = importlib.import_module("whygpu_work.tasks." + request["task"])
        task.run(request, channel)
    except SystemExit:
        raise
    except BaseException as error:
        traceback.print_exc()
        channel.send(
            "exception",
            words=words_of(error),
            type=type(error).__name__,
            traceback=traceback.format_exc()[-20000:],
        )
        sys.exit(1)
    channel.send("finished")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
