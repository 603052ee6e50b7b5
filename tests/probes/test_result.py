"""Messages of a probe, whole and otherwise."""

from __future__ import annotations

import json
from typing import Any

from tests.cases import each
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.probe import Probe, ProbeDevice, ProbeEnd, ProbeOperation
from whygpu.probes.result import LINE_LIMIT, TOTAL_LIMIT, LineSplitter, Result

OPERATION = {
    "operation": "matmul",
    "requested": "GPU:0",
    "ran_on": {"known": "GPU:0"},
    "kind": "gpu",
    "correct": {"known": True},
}


def probe_of(*messages: Any, ended: ProbeEnd = "finished", how: str = "") -> Probe:
    result = Result("tensorflow")
    for message in messages:
        result.take(message if isinstance(message, bytes) else json.dumps(message).encode())
    return result.probe(ended, how, 1.0, (), False)


def test_messages_become_observations_with_their_source() -> None:
    device = {"name": "GPU:0", "kind": "gpu", "description": "H200"}
    probe = probe_of(
        {"stage": "devices"},
        {"version": {"known": "2.21.0"}},
        {"devices": {"known": [device]}},
        {"operation": OPERATION},
        {"fact": ["backend", "jax"]},
    )
    source = "tensorflow probe"
    assert probe.stage == "devices"
    assert probe.version == Known("2.21.0", source)
    assert probe.devices == Known((ProbeDevice("GPU:0", "gpu", "H200"),), source)
    assert probe.operations == (
        ProbeOperation("matmul", "GPU:0", Known("GPU:0", source), "gpu", Known(True, source)),
    )
    assert probe.fact("backend") == "jax"


def test_what_a_finished_probe_does_not_mention_is_absent() -> None:
    assert probe_of().version == Absent("tensorflow probe")


def test_what_a_crashed_probe_did_not_get_to_say_is_unknown() -> None:
    probe = probe_of({"stage": "import"}, ended="signal", how="SIGILL")
    reason = "the tensorflow probe ended in stage 'import': SIGILL"
    assert (probe.version, probe.devices) == (Unknown(reason), Unknown(reason))


@each(
    "line",
    [
        b"",
        b"\xff\xfe\x00",
        b"[1, 2]",
        b'{"stage": 3}',
        b'{"stage": "a", "version": "b"}',
        b'{"version": "2.21.0"}',
        b'{"devices": {"known": [{"name": "GPU:0"}]}}',
        b'{"devices": {"known": null}}',
        b'{"operation": {"operation": "divination"}}',
        b'{"operation": 7}',
        b'{"fact": ["one"]}',
        b'{"exception": "oops"}',
        b'{"exception": {"last": 1, "lines": []}}',
        b'{"finished": "yes"}',
        b'{"finished"',
        b"[" * 100_000,
    ],
)
def test_garbage_changes_nothing(line: bytes) -> None:
    result = Result("tensorflow")
    result.take(b'{"stage": "devices"}')
    before = result.probe("exit", "", 1.0, (), False)
    result.take(line)
    assert result.probe("exit", "", 1.0, (), False) == before
    assert not result.finished
    assert result.exception is None


def test_lines_come_out_whole_however_they_were_sent() -> None:
    text = b"one\ntwo\n\nthree\nunfinished"
    for size in range(1, len(text) + 1):
        splitter = LineSplitter()
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        lines = [line for chunk in chunks for line in splitter.feed(chunk)]
        assert lines == [b"one", b"two", b"", b"three"]


def test_an_endless_line_is_left_out_and_the_next_is_not() -> None:
    splitter = LineSplitter()
    chunks = [b"x" * (LINE_LIMIT // 2)] * 5 + [b"\nshort\n"]
    assert [line for chunk in chunks for line in splitter.feed(chunk)] == [b"short"]


def test_an_endless_number_of_lines_comes_to_an_end() -> None:
    splitter = LineSplitter()
    line = b"x" * 1023 + b"\n"
    taken = sum(1 for _ in range(10_000) for _ in splitter.feed(line))
    assert TOTAL_LIMIT // 1024 <= taken <= TOTAL_LIMIT // 1024 + 8
