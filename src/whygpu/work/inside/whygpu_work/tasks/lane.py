"""Runs the work once in a lane: records its results, and measures how long it takes.

LaneRequest of whygpu.model.task_wire says what is in the request. Messages: "lane" when all
results are on disk, then "timing".
"""

import time

from .. import gauges
from ..lanes import compiled_once, devices, measure, seeds, subject
from ..lanes.recording import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..main import Channel


def run(request: "dict[str, Any]", channel: "Channel") -> None:
    given = request["subject"]
    seeds.sow_now_and_later(given["seed"])
    channel.tell("building")
    with compiled_once.kept_in(request["built"]):
        work = subject.load(given)
    if work.kind != "script":
        # Check early; a script has not imported anything yet.
        devices.check_backend(given["backend"])
    writer = Writer(request["record"])
    notes = []
    gauges.reset_peak()
    channel.tell("first call")
    began = time.perf_counter()
    result = work.call()
    first = work.first_seconds or time.perf_counter() - began
    kind = "recorded" if work.kind == "script" else "output"
    for name, array, dtype in work.outputs(result):
        writer.tensor(name, kind, array, dtype)
    call = work.call
    if work.model is not None:
        channel.tell("recording layers")
        notes += [note for note in [work.record_steps(writer)] if note]
        if given["train"]:
            channel.tell("training")
            first, call, more_notes = work.train(writer, given["train"])
            notes += more_notes
    devices.check_backend(given["backend"])
    devices.check_options(given["options"])
    writer.close()
    channel.send(
        "lane",
        work=work.kind,
        backend=work.backend,
        first_seconds=first,
        framework=devices.framework_words(work.kind),
        arrays_on=sorted({each for each in work.computed_on() if each is not None}),
        gpus=devices.gpu_names() if given["device"] == "gpu" else [],
        products=devices.products(given["device"], work.backend),
        weights_set=work.weights_set,
        rows=work.rows,
        items=work.items,
        notes=notes,
    )
    if request["measure"] is not None:
        channel.tell("measuring")
        channel.send("timing", timing=measure.timing_of(work, call, first, request))
