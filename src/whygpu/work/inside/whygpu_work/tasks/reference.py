"""Runs the model in float64 on the CPU, and compares every layer of every lane with it.

ReferenceRequest of whygpu.model.task_wire says what is in the request: "local" of a lane is the
folder to write to. Message: "reference"; what was written before a failure counts.
"""

from ..judging import local, reference_training
from ..judging.float64_keras import CannotLift
from ..lanes import devices, seeds, subject
from ..lanes.recording import Recording, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..main import Channel


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    given = request["subject"]
    seeds.sow_now_and_later(given["seed"])
    channel.tell("building")
    work = subject.load(given)
    try:
        lifted = work.in_float64()
    except CannotLift as error:
        channel.send("reference", ran=False, backend=work.backend, reason=str(error))
        return
    writer = Writer(request["reference"])
    channel.tell("outputs")
    if work.kind == "pair":
        _record_whole(lifted, writer, request["lanes"], channel)
        return
    for name, array, dtype in lifted.outputs(lifted.call()):
        writer.tensor(name, "output", array, dtype)
    first: "Any" = None
    for lane in request["lanes"]:
        channel.tell("layers of %s" % lane["name"])
        recording = Recording(lane["runs"][0])
        errors = local.ErrorWriter(lane["local"])
        forcing = local.Forcing(lifted.tools(), recording, errors, lifted.given(), first)
        for _ in forcing.passes():
            lifted.force(forcing)
        errors.close()
        first = first or (recording, local.Errors(lane["local"]))
    if given["train"]:
        channel.tell("training")
        reference_training.record(lifted, writer, given["train"], first[0])
    writer.close()
    backend = devices.framework_words(work.kind)
    channel.send("reference", ran=True, backend=backend, reason="")


def _record_whole(lifted: "Any", writer: "Writer", lanes: "Any", channel: "Channel") -> None:
    """A function has no layers: only its outputs are judged."""
    backend = devices.framework_words("pair")
    try:
        lifted.record(writer, Recording(lanes[0]["runs"][0]))
    except CannotLift as error:
        channel.send("reference", ran=False, backend=backend, reason=str(error))
        return
    writer.close()
    channel.send("reference", ran=True, backend=backend, reason="")
