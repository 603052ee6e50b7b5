"""Runs a probe script inside the target and reports what it sees, line by line.

Started as `python harness.py SCRIPT DESCRIPTOR SECONDS [REQUESTS]`. Each line that goes to
DESCRIPTOR is one JSON object, written as soon as it is known, so that a crash keeps everything
before it. With the descriptor REQUESTS, a finished probe waits for a line there: a JSON object
that names a second probe to run, or nothing, and then the process exits. SCRIPT defines
`probe(report, sums)`. Both run on Python 3.6 and need only the standard library.
"""

import sys

# The first entry is this folder, whose tensorflow.py would hide the framework.
if sys.path[0] == __file__.rpartition("/")[0]:
    del sys.path[0]

import faulthandler
import json
import os
import signal
import traceback
import types

try:
    import resource
except ImportError:  # not on every platform
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable

TEXT_LIMIT = 2000
TRACEBACK_LINES = 200
GPU_PREFIXES = ("gpu", "cuda", "rocm", "metal", "mps", "xpu")


class Report(object):
    """Sends what the probe finds to whygpu."""

    def __init__(self, descriptor: int) -> None:
        self._stream = os.fdopen(descriptor, "w", 1, encoding="ascii")

    def _send(self, key: str, value: object) -> None:
        self._stream.write(json.dumps({key: value}) + "\n")
        self._stream.flush()

    def stage(self, name: str) -> None:
        """Name what comes next: after a crash, the last name tells where it happened."""
        self._send("stage", name)

    def version(self, text: object) -> None:
        self._send("version", {"known": str(text)})

    def no_version(self, where: object) -> None:
        self._send("version", {"absent": bounded(where)})

    def devices(self, devices: "Iterable[tuple[str, str]]") -> None:
        """All devices of the framework, each as its name and a description."""
        found = [
            {"name": name, "kind": kind_of(name), "description": bounded(description)}
            for name, description in devices
        ]
        self._send("devices", {"known": found})

    def no_devices(self, where: object) -> None:
        self._send("devices", {"absent": bounded(where)})

    def unknown_devices(self, reason: object) -> None:
        self._send("devices", {"unknown": bounded(reason)})

    def fact(self, name: str, text: object) -> None:
        self._send("fact", [name, bounded(text)])

    def ask(self, name: str, question: "Callable[[], object]") -> None:
        """Report what a function returns unless it is None, or how it failed."""
        try:
            answer = question()
        except Exception as error:
            answer = "failed: " + summary(error)
        if answer is not None:
            self.fact(name, answer)

    def operate(
        self, operation: str, requested: str, work: "Callable[[], tuple[str, bool]]"
    ) -> None:
        """Call a function that returns the device it ran on and whether its result is right.

        An exception is a result too; only a crash of the process ends the probe.
        """
        self.stage("%s %s" % (operation, requested))
        outcome: "dict[str, Any]" = {"operation": operation, "requested": requested}
        try:
            ran_on, correct = work()
        except Exception as error:
            traceback.print_exc()
            failed = {"unknown": summary(error)}
            outcome.update(ran_on=failed, kind=kind_of(requested), correct=failed)
        else:
            outcome.update(
                ran_on={"known": ran_on}, kind=kind_of(ran_on), correct={"known": correct}
            )
        self._send("operation", outcome)

    def exception(self, error: "BaseException") -> None:
        chain = chain_of(error)
        last = chain[0]
        if words_of(last).startswith("Traceback (most recent call last)"):
            # The message only quotes another error, which is more specific.
            last = chain[-1]
        if len(chain) > 1:
            self.fact("first exception", summary(chain[-1]))
        lines = "".join(
            traceback.format_exception(type(error), error, error.__traceback__)
        ).splitlines()
        if len(lines) > TRACEBACK_LINES:
            half = TRACEBACK_LINES // 2
            left_out = "[%d lines left out]" % (len(lines) - 2 * half)
            lines = lines[:half] + [left_out] + lines[-half:]
        self._send("exception", {"last": summary(last), "lines": [bounded(line) for line in lines]})

    def finished(self) -> None:
        self._send("finished", True)


class Sums(object):
    """Small calculations whose results plain Python computes, so that no framework checks itself.

    All numbers are small integers, which float32 and TF32 represent exactly. So a result that is
    off by more than the rounding of a transformed convolution is wrong.
    """

    def __init__(self) -> None:
        self.left = grid((32, 48), 7)
        self.right = grid((48, 40), 11)
        self.image = grid((1, 10, 10, 8), 5)  # batch, height, width, channels
        self.kernel = grid((3, 3, 8, 8), 3)  # height, width, channels in, channels out
        self._expected = {
            "matmul": flat(product(self.left, self.right)),
            "convolution": flat(convolution(self.image[0], self.kernel)),
        }

    def expected(self, operation: str) -> "list[float]":
        """The correct result as one flat list."""
        return self._expected[operation]

    def agrees(self, operation: str, result: "Any") -> bool:
        """Whether nested lists of numbers hold the correct result of an operation."""
        expected, received = self._expected[operation], flat(result)
        tolerance = 0.01 * max(abs(number) for number in expected)
        # Written so that a NaN disagrees.
        return len(expected) == len(received) and all(
            abs(one - other) <= tolerance for one, other in zip(expected, received)
        )


def grid(shape: "tuple[int, ...]", step: int) -> "list[Any]":
    """Nested lists of integers from -2 to 2, without a symmetry that could hide a mistake."""
    count = 1
    for size in shape:
        count *= size
    numbers: "list[Any]" = [float((i * step + i * i // 3) % 5 - 2) for i in range(count)]
    for size in reversed(shape[1:]):
        numbers = [numbers[i : i + size] for i in range(0, len(numbers), size)]
    return numbers


def product(left: "list[list[float]]", right: "list[list[float]]") -> "list[list[float]]":
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]


def convolution(image: "list[Any]", kernel: "list[Any]") -> "list[list[float]]":
    """A 3x3 convolution of height x width x channels, padded with zeros."""
    height, width = len(image), len(image[0])
    outputs = range(len(kernel[0][0][0]))
    result = []
    for y in range(height):
        for x in range(width):
            pixel = [0.0 for _ in outputs]
            for dy in range(3):
                for dx in range(3):
                    row, column = y + dy - 1, x + dx - 1
                    if 0 <= row < height and 0 <= column < width:
                        for value, weights in zip(image[row][column], kernel[dy][dx]):
                            for i in outputs:
                                pixel[i] += value * weights[i]
            result.append(pixel)
    return result


def flat(numbers: "Any") -> "list[float]":
    if not isinstance(numbers, (list, tuple)):
        return [float(numbers)]
    return [number for part in numbers for number in flat(part)]


def kind_of(device: str) -> str:
    """cpu, gpu or other, from a name such as GPU:0, cuda:1, cpu."""
    prefix = device.partition(":")[0].lower()
    return "cpu" if prefix == "cpu" else "gpu" if prefix in GPU_PREFIXES else "other"


def bounded(text: object) -> str:
    text = str(text)
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 3] + "..."


def words_of(error: "BaseException") -> str:
    """The message of an exception; its __str__ is the program's code and may itself fail."""
    try:
        return str(error)
    except Exception as failure:
        return "its message cannot be shown (%s)" % type(failure).__name__


def summary(error: "BaseException") -> str:
    """An exception in one line; if it has no message, with the line of code that raised it."""
    text = " ".join(words_of(error).split())
    if not text:
        frames = traceback.extract_tb(error.__traceback__)
        text = "%s (%s, line %s)" % (frames[-1][3], frames[-1][0], frames[-1][1]) if frames else ""
    return bounded("%s: %s" % (type(error).__name__, text))


def chain_of(error: "BaseException | None") -> "list[BaseException]":
    """The exception and those that led to it (causes and contexts), latest first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def load(path: str) -> "Callable[[Report, Sums], None]":
    module = types.ModuleType("whygpu_probe")
    with open(path, "rb") as stream:
        exec(compile(stream.read(), path, "exec"), module.__dict__)
    return module.probe


def run(script: str, seconds: float, report: "Report", sums: "Sums") -> bool:
    """Run one probe; True if it has finished."""
    # If whygpu itself is gone by then, a hung probe still ends.
    signal.alarm(int(seconds) + 30)
    sys.argv = [script]
    try:
        load(script)(report, sums)
    except SystemExit:
        raise
    except BaseException as error:
        report.exception(error)
        return False
    report.finished()
    return True


def main() -> None:
    script, descriptor, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    requests = [int(text) for text in sys.argv[4:]]
    for each in [descriptor] + requests:
        os.set_inheritable(each, False)
    report = Report(descriptor)
    report.stage("start")
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    faulthandler.enable()
    sums = Sums()
    if run(script, seconds, report, sums) and requests:
        with os.fdopen(requests[0], encoding="ascii") as stream:
            line = stream.readline()
        if line:
            request = json.loads(line)
            os.environ.update(request["environ"])
            report.stage("start")
            run(request["script"], request["seconds"], report, sums)


if __name__ == "__main__":
    main()
