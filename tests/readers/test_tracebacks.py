"""Python's exceptions in all the shapes in which logs hold them."""

from __future__ import annotations

from whygpu.model.log import Raised
from whygpu.readers.log import read_text


def raised(text: str) -> tuple[Raised, ...]:
    return read_text(text).raised


def unhandled(text: str) -> list[str]:
    return [exception.type for exception in raised(text) if not exception.handled]


PLAIN = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    main()
  File "/opt/lib/model.py", line 3, in main
    raise ValueError("shape")
ValueError: shape
"""


def test_a_traceback() -> None:
    (exception,) = raised(PLAIN)
    assert exception == Raised(6, "ValueError", "shape", ("train.py", "/opt/lib/model.py"))


def test_what_keras_puts_around_a_message_does_not_cut_it_off() -> None:
    (exception,) = raised(
        'Traceback (most recent call last):\n  File "a.py", line 7, in <module>\n    model.fit(x)\n'
        "RuntimeError: Exception encountered when calling Dense.call().\n\n"
        "\x1b[1mDefaultCPUAllocator: can't allocate memory\x1b[0m\n\n"
        "Arguments received by Dense.call():\n  \u2022 inputs=torch.Tensor(shape=(9, 9))\n"
    )
    assert "DefaultCPUAllocator: can't allocate memory" in exception.message
    assert "inputs=torch.Tensor" in exception.message


def test_a_module_is_left_off_the_name() -> None:
    assert raised("torch.cuda.OutOfMemoryError: CUDA out of memory.")[0].type == "OutOfMemoryError"


def test_an_exception_that_somebody_emphasised() -> None:
    for mark in ("**", "*", "`", "__", "**`"):
        (exception,) = raised(f"{mark}RuntimeError: CUDA error: unknown error")
        assert (exception.type, exception.message) == ("RuntimeError", "CUDA error: unknown error")


def test_a_record_of_nccl_is_no_part_of_the_message_above_it() -> None:
    record = "gpu01:4711:4790 [0] NCCL INFO comm 0x55d0 rank 0 nranks 2 - Abort COMPLETE"
    assert raised(f"KeyError: 1\nmore\n{record}\nother")[0].message == "1\nmore"
    assert record in raised(f"KeyError: 1\nmore {record}")[0].message, "but only at the start"


QUOTING = """\
ImportError: The package is not correctly installed.

Look whether its version matches:
  $ pip freeze

{}
after"""


def test_a_message_may_end_with_the_error_behind_it() -> None:
    (exception,) = raised(QUOTING.format("original error: libcuda.so.1 is missing"))
    assert exception.message.endswith("original error: libcuda.so.1 is missing\nafter")
    (alone,) = raised(QUOTING.format("another paragraph"))
    assert alone.message == "The package is not correctly installed."
    first, second = raised(QUOTING.format("KeyError: 1\nOriginal error was: x"))
    assert (first.message, second.type) == ("The package is not correctly installed.", "KeyError")


def test_an_exception_without_a_message() -> None:
    assert unhandled(PLAIN.replace("ValueError: shape", "AssertionError")) == ["AssertionError"]


def test_below_frames_any_name_is_an_exception() -> None:
    for last, name in (("toolkit.Halt: disk", "Halt"), ("queue.Empty", "Empty")):
        assert unhandled(PLAIN.replace("ValueError: shape", last)) == [name]
        assert unhandled(last) == []


def test_exceptions_of_extension_modules_are_known_by_their_own_names() -> None:
    module = "onnxruntime.capi.onnxruntime_pybind11_state"
    for last, name in (
        ("cv2.error: OpenCV(4.5)", "error"),
        (f"{module}.Fail: [ONNXRuntimeError] : 1 : FAIL : Load model failed", "Fail"),
        (f"{module}.NoSuchFile: [ONNXRuntimeError] : 3 : NO_SUCHFILE", "NoSuchFile"),
    ):
        assert unhandled(last) == [name]
        assert unhandled(PLAIN.replace("ValueError: shape", last)) == [name]


def test_source_that_a_traceback_quotes_is_no_exception() -> None:
    text = PLAIN.replace('raise ValueError("shape")', "except KeyError: raise TypeError")
    assert unhandled(text) == ["ValueError"]


def test_a_traceback_without_indentation() -> None:
    assert unhandled("\n".join(line.strip() for line in PLAIN.splitlines())) == ["ValueError"]


def test_one_that_led_to_another_is_handled() -> None:
    for words in (
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ):
        text = f"{PLAIN}\n{words}\n\n{PLAIN.replace('ValueError: shape', 'KeyError: 1')}"
        assert [(e.type, e.handled) for e in raised(text)] == [
            ("ValueError", True),
            ("KeyError", False),
        ]


def test_a_group_is_what_it_holds() -> None:
    text = """\
  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     run()
  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 5, in one
    | ValueError: one
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "a.py", line 9, in two
    | OSError: two
    +------------------------------------
"""
    assert unhandled(text) == ["ValueError", "OSError"]


OLD_IPYTHON = """\
---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
<ipython-input-3-abc> in <module>()
      1 try:
----> 2     fit(x)
      3 except KeyError:

~/lib/keras.py in fit(x)
     10     raise ValueError('bad')

ValueError: bad shape
"""


def test_ipythons_traceback() -> None:
    (exception,) = raised(OLD_IPYTHON)
    assert (exception.type, exception.message) == ("ValueError", "bad shape")
    assert exception.frames == ("<ipython-input-3-abc>", "~/lib/keras.py")


def test_ipythons_newer_traceback() -> None:
    text = """\
ValueError                                Traceback (most recent call last)
Cell In[12], line 1
----> 1 history = model.fit(x)

File ~/lib/keras/traceback_utils.py:70, in filter_traceback.<locals>.error_handler(*args)
     67     filtered_tb = None
---> 70     raise e from None

ValueError: bad shape
"""
    (exception,) = raised(text)
    assert exception.frames == ("In[12]", "~/lib/keras/traceback_utils.py")


def test_ipythons_traceback_that_was_cut_still_names_its_exception() -> None:
    assert unhandled(OLD_IPYTHON.partition("ValueError: bad")[0]) == ["ValueError"]


def test_what_python_ignores_is_handled() -> None:
    text = f"Exception ignored in: <function Session.__del__ at 0x7f>\n{PLAIN}"
    assert [e.type for e in raised(text)] == ["ValueError"]
    assert unhandled(text) == []


def test_what_a_logger_warns_of_is_handled() -> None:
    assert unhandled("WARNING:root:ImportError: no module") == []
    assert unhandled("ERROR:root:ImportError: no module") == ["ImportError"]


def test_a_traceback_that_a_logger_wrote_line_by_line() -> None:
    head = "ERROR 07-01 01:02:03 [core.py:586] "
    assert unhandled("\n".join(head + line for line in PLAIN.splitlines())) == ["ValueError"]


def test_stopping_a_program_is_no_exception() -> None:
    assert raised(PLAIN.replace("ValueError: shape", "KeyboardInterrupt")) == ()


def test_a_launcher_repeats_what_its_program_raised() -> None:
    launcher = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED"
    assert unhandled(f"{PLAIN}\n{launcher}") == ["ValueError"]
    assert unhandled(launcher) == ["ChildFailedError"]


def test_a_worker_repeats_what_it_wraps() -> None:
    text = PLAIN.replace("ValueError: shape", "RuntimeError: Caught KeyError in worker process 0.")
    inner = PLAIN.replace("Traceback", "Original Traceback").replace(
        "ValueError: shape", "KeyError: 1"
    )
    assert unhandled(text + inner) == ["KeyError"]


def test_a_message_goes_on_over_lines() -> None:
    (exception,) = raised(
        "ResourceExhaustedError: OOM\n\t [[node conv (defined at a.py)]]\nHint: x"
    )
    assert exception.message.splitlines() == ["OOM", "[[node conv (defined at a.py)]]", "Hint: x"]


def test_a_message_goes_on_after_the_stack_of_its_node() -> None:
    text = """\
UnimplementedError: Graph execution error:

Detected at node 'conv' defined at (most recent call last):
    File "train.py", line 3, in <module>
      model.fit(x)
Node: 'conv'
DNN library is not found.
\t [[{{node conv}}]] [Op:__inference_train_function_1]
next thing
"""
    (exception,) = raised(text)
    assert "DNN library is not found." in exception.message


def test_a_message_ends_at_an_empty_line_and_at_a_record() -> None:
    record = "2020-01-01 00:00:00.000001: I tensorflow/a.cc:1] text"
    for end in ("", record, PLAIN.splitlines()[0]):
        assert raised(f"KeyError: 1\nmore\n{end}\nother")[0].message == "1\nmore"


def test_a_message_does_not_run_over_a_gap_in_a_long_log() -> None:
    ordinary = "\n".join(f"step {number} of many" for number in range(5_000))
    log = read_text(f"{ordinary}\nKeyError: 1\n{ordinary}")
    assert all(failure.last - failure.line < 100 for failure in log.failures)


def test_an_exception_that_python_ignores_is_handled_without_a_traceback_too() -> None:
    text = "Exception ignored in: <function Adam.__del__>\nAttributeError: no attribute 'x'\n"
    assert [exception.handled for exception in raised(text)] == [True]
