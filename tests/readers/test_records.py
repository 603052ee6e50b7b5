"""The log formats of all years, alone and run together."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.log import Level, Line
from whygpu.readers.records import records

SAID = "failed call to cuInit: CUDA_ERROR_NO_DEVICE"


@each(
    ("head", "level", "source"),
    [
        (
            "2019-06-05 22:47:03.956082: E tensorflow/stream/cuda_driver.cc:300] ",
            "error",
            "cuda_driver.cc",
        ),
        (
            "020-02-06 15:50:58.659955: W tensorflow/x/dso_loader.cc:55] ",
            "warning",
            "dso_loader.cc",
        ),
        ("E tensorflow/stream_executor/cuda/cuda_driver.cc:481] ", "error", "cuda_driver.cc"),
        ("E c:\\tf_jenkins\\home\\os\\windows\\cuda_driver.cc:405] ", "error", "cuda_driver.cc"),
        ("2018-01-02 03:04:05.678: I T:\\src\\github\\gpu_device.cc:1] ", "info", "gpu_device.cc"),
        ("E0000 00:00:1751022113.204518    4711 cuda_dnn.cc:8310] ", "error", "cuda_dnn.cc"),
        ("W1115 01:14:10.163226 889 bfc_allocator.cc:598] ", "warning", "bfc_allocator.cc"),
        ("[W1115 01:14:10.163226 889 Nccl.cpp:598] ", "warning", "Nccl.cpp"),
        ("F0719 14:04:18.123456  4321 syncedmem.hpp:56] ", "fatal", "syncedmem.hpp"),
        ("I0611 09:14:03.118204 139872214411072 xla_bridge.py:353] ", "info", "xla_bridge.py"),
        # Somebody cut the first digit off.
        ("E115 01:14:10.163226 889 cuda_dnn.cc:598] ", "error", "cuda_dnn.cc"),
        ("[W ProcessGroupNCCL.cpp:1569] ", "warning", "ProcessGroupNCCL.cpp"),
        (
            "2025-01-10 00:39:47.087340896 [E:onnxruntime:Default, a_b.cc:18 Load] ",
            "error",
            "a_b.cc",
        ),
        ("[11/15/2023-01:02:03] [E] [TRT] ", "error", "tensorrt"),
        ("[11/15/2023-01:02:03] [TRT] [E] ", "error", "tensorrt"),
        ("[TRT] [W] ", "warning", "tensorrt"),
        ("WARNING:tensorflow:", "warning", "tensorflow"),
        ("ERROR:root:", "error", "root"),
        (
            "WARNING:2024-06-01 10:00:00,123:jax._src.xla_bridge:987: ",
            "warning",
            "jax._src.xla_bridge",
        ),
        # Somebody shortened the time.
        ("2018-02-01 E tensorflow/core/direct_session.cc:170] ", "error", "direct_session.cc"),
        ("2024-05-12 10:03:28.1 E external/xla/cuda_dnn.cc:437] ", "error", "cuda_dnn.cc"),
        ("2022-08-31 18:07:37,964 - INFO - ", "info", ""),
        ("[2022-08-31 18:07:38,965] [44720] [ERROR] (pai) - ", "error", ""),
        ("[2021-05-05 10:00:00,123: WARNING/ForkPoolWorker-1] ", "warning", ""),
        ("05/29/2021 10:00:00 - WARNING - ", "warning", ""),
        ("2023-01-01 00:00:00.000 | ERROR    | app.main:run:12 - ", "error", ""),
        ("INFO 04-11 10:12:13 llm_engine.py:161] ", "info", "llm_engine.py"),
        ("ERROR 07-01 01:02:03 [core.py:586] ", "error", "core.py"),
        ("[INFO|trainer.py:1713] 2023-12-04 13:36:18,647 >> ", "info", "trainer.py"),
        ("10:12:13 ERROR ", "error", ""),
        ("[ERROR] ", "error", ""),
        ("[warning] ", "warning", ""),
        ("[2024-07-09 15:40:02.113] [error] ", "error", ""),
        ("ts=2024-02-03T10:20:30Z level=error msg=", "error", ""),
        ("level=warn component=loader msg=", "warning", ""),
    ],
)
def test_a_record_is_split_from_its_head(head: str, level: Level, source: str) -> None:
    assert records(7, head + SAID) == [Line(7, SAID, level, source)]


@each(
    "text",
    [
        SAID,
        "Error: nothing",
        "I am a sentence: see a.cc:12",
        "array([1, 2]) I 3]",
        "ERROR: Could not find a version",
    ],
)
def test_other_lines_stay_as_they_are(text: str) -> None:
    assert records(7, text) == [Line(7, text)]


def test_records_that_ran_together_are_parted() -> None:
    head = "2019-06-05 22:47:03.956082: I tensorflow/core/a.cc:1] "
    text = f" 10%|█   | 1/10{head}one{head}two"
    assert [line.text for line in records(1, text)] == [" 10%|█   | 1/10", "one", "two"]
    assert {line.number for line in records(1, text)} == {1}


@each("tags", ["[12] [rank0]:", "[rank3]: ", "(Worker pid=12) [1] "])
def test_tags_before_a_record_are_no_line(tags: str) -> None:
    record = "[E505 05:05:05.000000001 ProcessGroupNCCL.cpp:607] waited too long"
    (line,) = records(1, f"{tags}{record}")
    assert (line.level, line.text) == ("error", "waited too long")
