"""Notes the model that Keras begins to train or to use, in case the process is killed.

After an abort or the kernel's out-of-memory killer, nothing can be read at the end. So each call of
`fit`, `evaluate` or `predict` writes the configuration of the model beside the record of the
process: less than 0.2 s for a ResNet, once for each model and batch size.
"""

import os
import sys

from whygpu_bootstrap import frameworks, process_record, settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any

MAKERS = ("make_train_function", "make_test_function", "make_predict_function")
"""Each method of Keras calls one of these before its first batch, and none is running when a batch
fails."""
MOST_NOTES = 20
OUTER_FRAMES = 8

# Compiled under the name of a file of Keras, whose frames Keras leaves out of tracebacks: an error
# looks as it would without us.
_SOURCE = """
def extended(make, note, caller):
    def make_function(self, *arguments, **options):
        made = make(self, *arguments, **options)
        note(self, caller(1))
        return made
    return make_function
"""

_noted: "set[Any]" = set()


def start(keras: "Any") -> None:
    """Note each model just before it gets data. A trial of `memory find` reports by itself, and
    must not take more memory than the program would."""
    if int(keras.__version__.split(".")[0]) < 3 or os.environ.get("WHYGPU_IN_TRIAL"):
        return
    for owner in keras.Model.__mro__:
        for name in MAKERS:
            make = vars(owner).get(name)
            if make is not None and hasattr(make, "__code__"):
                names: "dict[Any, Any]" = {}
                exec(compile(_SOURCE, make.__code__.co_filename, "exec"), names)
                extended = names["extended"](make, _note, sys._getframe)
                extended.__name__, extended.__qualname__ = make.__name__, make.__qualname__
                extended.__doc__ = make.__doc__
                setattr(owner, name, extended)


def _note(model: "Any", frame: "types.FrameType") -> None:
    method = frame.f_code.co_name
    with process_record.noted("the model of %s()" % method):
        part = frameworks.part("memory.work_keras")
        if method not in part.TRAINING + part.USING or _within_fit(frame.f_back):
            return
        batch = _batch(frame.f_locals)
        if (id(model), method, batch) in _noted or len(_noted) >= MOST_NOTES or batch is None:
            return
        _noted.add((id(model), method, batch))
        _leave(part.begun(model, method, batch, frame.f_locals.get("x")))


def _within_fit(frame: "types.FrameType | None") -> bool:
    """Validation is part of training, which takes more memory."""
    for _ in range(OUTER_FRAMES):
        if frame is None:
            return False
        code = frame.f_code
        # Not f_locals: that copies the variables, and what the last copy held is then freed here.
        if code.co_name == "fit" and "epoch_iterator" in code.co_varnames + code.co_cellvars:
            return True
        frame = frame.f_back
    return False


def _batch(names: "dict[str, Any]") -> "int | None":
    """Of the iterator over the data, or of the one batch that was given."""
    if "epoch_iterator" in names:
        return getattr(names["epoch_iterator"].data_adapter, "batch_size", None)
    shape = getattr(names.get("x"), "shape", None)
    return int(shape[0]) if shape else None


def left() -> "dict[str, Any] | None":
    """What this process has noted last; None if nothing."""
    import json

    path = _path()
    if path is None or not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)["work"]


def _path() -> "str | None":
    folder = settings.report_folder()
    return None if folder is None else os.path.join(folder, "%d.work" % os.getpid())


def _leave(work: "dict[str, Any]") -> None:
    import json

    path = _path()
    if path is None:
        return
    imported = frameworks.part("memory.watch").imported()
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump({"work": work, "imported": imported}, file)
    os.rename(path + ".part", path)


def at_end(keras: "Any") -> "list[dict[str, Any]]":
    """Keras itself takes no GPU memory; its backend does."""
    return []


def after_fork() -> None:
    """The models of a child are noted again, beside its own record."""
    _noted.clear()
