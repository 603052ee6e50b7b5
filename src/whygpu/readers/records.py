"""Parses log records in the formats of TensorFlow, XLA, glog, ONNX Runtime and Python's logging."""

from __future__ import annotations

import re

from whygpu.model.log import Level, Line

_LEVELS: dict[str, Level] = {
    "F": "fatal",
    "E": "error",
    "W": "warning",
    "I": "info",
    "V": "info",
    "FATAL": "fatal",
    "CRITICAL": "error",
    "ERROR": "error",
    "WARNING": "warning",
    "WARN": "warning",
    "INFO": "info",
    "DEBUG": "info",
}

_FILE = r"[\w./\\:@+-]{1,200}\.(?:cc|cpp|hpp|h|cu|cuh|py|mm|inc)"
_NATIVE = re.compile(
    # TensorFlow, with or without a date: 2019-06-05 22:47:03.956082: E tensorflow/.../x.cc:300]
    r"\[?(?:(?:\d{0,4}-\d\d-\d\d )?\d{0,2}:\d\d:\d\d\.\d{1,9}: )?(?<![A-Za-z])(?P<tf>[IWEF]) {1,4}"
    rf"(?P<tf_file>{_FILE}):\d{{1,6}}\] ?"
    # glog and absl: E0000 00:00:1751022113.204518    4711 cuda_dnn.cc:8310]
    r"|\[?(?<![A-Za-z])(?P<g>[IWEF])\d{3,8} \d\d:\d\d:[\d.]{2,24} +(?:\d{1,20} +)?"
    rf"(?P<g_file>{_FILE}):\d{{1,6}}\] ?"
    # ONNX Runtime: 2025-01-10 00:39:47.087340896 [E:onnxruntime:Default, x.cc:1862 Load]
    r"|(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3,9} )?\[(?P<ort>[IWEFV]):onnxruntime:[^,\]\n]{0,80}, "
    r"(?P<ort_file>[\w./\\-]{1,200}):\d{1,6} [^\]\n]{0,120}\] ?"
    # TensorRT: [11/15/2023-01:02:03] [E] [TRT], or [TRT] [E] with or without the date
    r"|\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] (?:\[TRT\] )?\[(?P<trt>[IWEFV])\] (?:\[TRT\] )?"
    r"|\[TRT\] \[(?P<trt_name>[IWEFV])\] "
)
_ONLY_TIME = re.compile(r"\[?\d{2,4}[-/]\d\d[-/]\d{2,4}(?:[ T][\d:.,]{5,20})?\]?:?")
"""The time of the record in another form, as people shorten it."""
_ONLY_TAGS = re.compile(r"(?:[\[(][\w :.,=-]{1,60}[\])][: ]{0,3}){1,4}")
"""What launchers write before each record: [12] [rank0]:"""
_WORD = r"CRITICAL|FATAL|ERROR|WARNING|WARN|INFO|DEBUG"
_PYTHON = re.compile(
    # logging.basicConfig: WARNING:tensorflow:text
    r"(?P<a>CRITICAL|ERROR|WARNING|INFO|DEBUG):(?:(?P<a_name>[\w./-]{1,80}):"
    # JAX: WARNING:2024-06-01 10:00:00,123:jax._src.xla_bridge:987: text
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}:(?P<jax_name>[\w.]{1,80}):\d{1,6}: )"
    # 2022-08-31 18:07:37,964 - INFO - text; [2022-08-31 18:07:38] [44720] [ERROR] (name) - text
    r"|\[?\d{2,4}[-/]\d\d[-/]\d{2,4}[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [+-]\d{4})?\]?"
    r"[\s|:-]{0,6}"
    r"(?:[\[{][\w :.-]{1,60}[\]}][\s|-]{0,4}){0,3}(?:[\w.]{1,60} - )?"
    rf"\[?(?P<b>{_WORD})(?:/[\w-]{{1,40}})?\]?"
    r"(?:[\s|:-]{1,4}\([\w.:-]{1,120}\))?[\s|:>-]{1,12}(?:[\w.]{1,80}:\w{1,60}:\d{1,6} - )?"
    # INFO 04-11 10:12:13 llm_engine.py:161] text
    rf"|(?P<c>{_WORD}) \d\d-\d\d \d\d:\d\d:\d\d \[?(?P<c_name>[\w./-]{{1,120}}\.py):\d{{1,6}}\] ?"
    # 10:12:13 ERROR text
    rf"|\d\d:\d\d:\d\d(?:[.,]\d{{1,6}})? \[?(?P<d>{_WORD})\]?[\s:|-]{{1,4}}"
    # [INFO|trainer.py:1713] 2023-12-04 13:36:18,647 >> text
    rf"|\[(?P<f>{_WORD})\|(?P<f_name>[\w./-]{{1,120}}):\d{{1,6}}\] "
    r"[\d-]{8,10} [\d:,.]{8,16} >> ?"
    # [ERROR] text, [2024-07-09 15:40:02.113] [error] text, [warning] text
    rf"|(?:\[[\d:., /T-]{{8,30}}\] {{1,2}})?\[(?P<e>{_WORD}|{_WORD.lower()})\][\s:]{{1,4}}"
    # time=2024-02-03T10:20:30Z level=INFO source=gpu.go:12 msg="text"
    rf"|(?:(?:time|ts|t)=\S{{6,40}} )?level=(?P<g>{_WORD}|{_WORD.lower()})"
    r"(?: source=(?P<g_name>[\w./-]{1,120}):\d{1,6})?(?: \w{1,20}=\S{1,120})? msg="
)


def records(number: int, text: str) -> list[Line]:
    """The records of a line: usually one, more if a progress bar or a paste joined them."""
    starts = list(_NATIVE.finditer(text)) if "]" in text else []
    if not starts:
        return [_plain(number, text)]
    found: list[Line] = []
    before = text[: starts[0].start()].rstrip()
    if before and not (_ONLY_TIME.fullmatch(before) or _ONLY_TAGS.fullmatch(before)):
        found.append(_plain(number, before))
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else len(text)
        letter = match["tf"] or match["g"] or match["ort"] or match["trt"] or match["trt_name"]
        file = match["tf_file"] or match["g_file"] or match["ort_file"] or "tensorrt"
        source = file.replace("\\", "/").rpartition("/")[2]
        found.append(Line(number, text[match.end() : end].rstrip(), _LEVELS[letter], source))
    return found


def _plain(number: int, text: str) -> Line:
    match = _PYTHON.match(text)
    if match is None:
        return Line(number, text)
    word = match["a"] or match["b"] or match["c"] or match["d"] or match["e"] or match["f"]
    word = word or match["g"]
    name = match["a_name"] or match["c_name"] or match["f_name"] or match["g_name"]
    name = name or match["jax_name"] or ""
    return Line(number, text[match.end() :].rstrip() or text, _LEVELS[word.upper()], name)
