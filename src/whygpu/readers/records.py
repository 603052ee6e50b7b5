"""Lines to log records: the formats of TensorFlow, XLA, glog and Python's logging."""

from __future__ import annotations

import re

from whygpu.model.log import Level, Line

_LEVELS: dict[str, Level] = {
    "F": "fatal",
    "E": "error",
    "W": "warning",
    "I": "info",
    "FATAL": "fatal",
    "CRITICAL": "fatal",
    "ERROR": "error",
    "WARNING": "warning",
    "WARN": "warning",
    "INFO": "info",
    "DEBUG": "info",
}

_NATIVE = re.compile(
    # TensorFlow 1.x to 2.20: 2019-06-05 22:47:03.956082: E tensorflow/.../cuda_driver.cc:300]
    r"(?:\d{0,4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,9}: )?(?<![A-Za-z])(?P<tf>[IWEF]) "
    r"(?P<tf_file>[\w./\\:-]{1,200}\.(?:cc|cpp|h|cu|py)):\d{1,6}\] ?"
    # glog and absl: E0000 00:00:1742459670.798156 1223555 cuda_dnn.cc:8310]
    r"|(?<![A-Za-z])(?P<g>[IWEF])\d{4} \d\d:\d\d:[\d.]{2,24} +(?:\d{1,20} +)?"
    r"(?P<g_file>[\w./\\-]{1,200}\.(?:cc|cpp|hpp|h|cu|cuh|py)):\d{1,6}\] ?"
    # ONNX Runtime: 2025-01-10 00:39:47.087340896 [E:onnxruntime:Default, provider_bridge_ort.cc:1862 F]
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,9} \[(?P<ort>[IWEFV]):onnxruntime:[^,\]\n]{0,80}, "
    r"(?P<ort_file>[\w./\\-]{1,200}):\d{1,6} [^\]\n]{0,120}\] ?"
)
_PYTHON = re.compile(
    # logging.basicConfig: WARNING:tensorflow:text
    r"(?P<a>CRITICAL|ERROR|WARNING|INFO|DEBUG):(?P<a_name>[\w./-]{1,80}):"
    # 2022-08-31 18:07:37,964 - INFO - text; [2022-08-31 18:07:38,965] [44720] [ERROR] (name) - text
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?[\s|:-]{0,6}"
    r"(?:\[[\w :.-]{1,40}\][\s|-]{0,4}){0,3}(?:[\w.]{1,60} - )?"
    r"\[?(?P<b>CRITICAL|FATAL|ERROR|WARNING|WARN|INFO|DEBUG)\]?"
    r"(?:[\s|:-]{1,4}\([\w.:-]{1,120}\))?[\s|:>-]{1,6}"
)


def records(number: int, text: str) -> list[Line]:
    """The records of one line: usually one, more where a progress bar or a paste ran them together."""
    starts = list(_NATIVE.finditer(text)) if "]" in text else []
    if not starts:
        return [_plain(number, text)]
    found: list[Line] = []
    before = text[: starts[0].start()].rstrip()
    if before:
        found.append(_plain(number, before))
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else len(text)
        letter = match["tf"] or match["g"] or match["ort"]
        file = match["tf_file"] or match["g_file"] or match["ort_file"]
        source = file.replace("\\", "/").rpartition("/")[2]
        found.append(
            Line(number, text[match.end() : end].rstrip(), _LEVELS.get(letter, "info"), source)
        )
    return found


def _plain(number: int, text: str) -> Line:
    match = _PYTHON.match(text)
    if match is None:
        return Line(number, text)
    word = match["a"] or match["b"]
    return Line(number, text[match.end() :].rstrip() or text, _LEVELS[word], match["a_name"] or "")
