"""Steps of Keras: the end of each training batch, which Keras reports to its callbacks.

And where the batches come from: Keras has an adapter for each kind of data.
"""

import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

PLACES = (
    "keras.src.callbacks.callback_list",
    "keras.src.callbacks",
    "tf_keras.src.callbacks",
    "keras.callbacks",
)


def start(keras: "Any") -> None:
    recorder.prepare("keras", start, keras)
    if not recorder.is_new("keras"):
        return
    _watch_input(sys.modules.get("keras.src.trainers.epoch_iterator"))
    for name in PLACES:
        if watch(sys.modules.get(name)):
            return
    process_record.note("this release of Keras has no list of callbacks where whygpu looks")


def watch(module: "Any") -> bool:
    """Mark the steps of the list of callbacks in a module, if it has one."""
    kind = getattr(module, "CallbackList", None)
    if kind is None:
        return False
    if hasattr(kind, "on_train_batch_end"):
        kind.on_train_batch_end = _marking(kind.on_train_batch_end)
    else:
        return False
    return True


def _watch_input(module: "Any") -> None:
    """Keras 3 makes an iterator for each kind of data that fit, evaluate or predict are given."""
    kind = getattr(module, "EpochIterator", None)
    if kind is None:
        return
    make = kind.__init__

    def make_and_note(instance: "Any", *arguments: "Any", **named: "Any") -> None:
        make(instance, *arguments, **named)
        recorder.takes_data_from(type(getattr(instance, "data_adapter", None)).__name__)

    make_and_note.__doc__ = make.__doc__
    kind.__init__ = make_and_note


def _marking(report: "Callable[..., Any]") -> "Callable[..., Any]":
    def on_train_batch_end(
        instance: "Any", batch: "Any", *arguments: "Any", **named: "Any"
    ) -> "Any":
        recorder.mark("keras fit")
        return report(instance, batch, *arguments, **named)

    on_train_batch_end.__doc__ = report.__doc__
    return on_train_batch_end
