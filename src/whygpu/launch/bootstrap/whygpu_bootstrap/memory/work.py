"""What a program was doing when memory ran out: its model, the batch, training or prediction.

From this, another process can estimate what would have fitted, after this one has ended. The model
is noted without its weights. None of the program's code runs for that, except what its classes
define for being saved.
"""

import os
import sys

from whygpu_bootstrap import frameworks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whygpu_bootstrap.memory.frames import Frames

LARGEST = 8 << 20
"""The most bytes of a model without weights. Anything larger contains data."""
PLAIN = (int, float, bool, str, type(None))
LONGEST_NAME = 1000
MOST_NAMES = 1000
LONGEST_WHY = 300
PARTS = ("keras", "torch")
NOT_FOLLOWED = (
    ("jax", "whygpu cannot recreate a JAX function after the program has failed"),
    ("tensorflow", "nothing shows which Keras model was running, and whygpu cannot recreate other "
    "TensorFlow code after the program has failed"),
)  # fmt: skip


class CannotNote(Exception):
    """The message says why, as a clause that can follow "because"."""


def noted_work(frames: "Frames", batch: "Any") -> "dict[str, Any] | None":
    """The work as JSON; {"why": ...} if it cannot be noted, None if no framework was working.

    `batch` is the batch size from a variable of the program, or None.
    """
    try:
        for name in PARTS:
            part = frameworks.part("memory.work_" + name) if name in sys.modules else None
            found = part.noted(frames, batch) if part is not None else None
            if found is not None:
                return dict(dict(surroundings(frames), why=""), **found)
    except CannotNote as error:
        return {"why": str(error)[:LONGEST_WHY]}
    except Exception as error:
        return {"why": ("%s: %s" % (type(error).__name__, error))[:LONGEST_WHY]}
    for name, why in NOT_FOLLOWED:
        if name in sys.modules:
            return {"why": why}
    return None


def surroundings(frames: "Frames") -> "dict[str, Any]":
    """What another process needs to find the program's own modules."""
    main = vars(sys.modules["__main__"])
    # At the end of the program, Python has deleted its __file__.
    paths = [frame.f_code.co_filename for frame, _ in frames if frame.f_globals is main]
    paths += [path for path in [main.get("__file__")] if path]
    return {
        "python": sys.executable,
        "program": os.path.abspath(paths[0]) if paths and os.path.isfile(paths[0]) else None,
        "package": main.get("__package__") or "",
        "search_path": [each for each in sys.path if isinstance(each, str)],
    }


def plain_names(kinds: "tuple[type, ...]" = PLAIN) -> "dict[str, Any]":
    """The program's constants, which its functions may refer to."""
    found = {}
    for name, value in list(vars(sys.modules["__main__"]).items()):
        short = type(value) is not str or len(value) <= LONGEST_NAME
        if not name.startswith("__") and type(value) in kinds and short:
            found[name] = value
    return dict(list(found.items())[:MOST_NAMES])
