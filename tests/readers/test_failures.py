"""What ended a program, what it survived, and whether it got any work done."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text

RAISED = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1\n'
WORK = "Epoch 1/5 - loss: 0.51\nEpoch 2/5 - loss: 0.43\n"


def kinds(text: str) -> list[str]:
    return [failure.kind for failure in read_text(text).failures]


@each(
    ("line", "kind"),
    [
        ("Killed", "killed"),
        ("run.sh: line 4:  4711 Killed                  python train.py", "killed"),
        ("[1]    4711 killed     python train.py", "killed"),
        ("Reason: OOMKilled", "killed"),
        ("Memory cgroup out of memory: Killed process 4711 (python)", "killed"),
        ("Segmentation fault (core dumped)", "signal"),
        ("[1]    4711 segmentation fault  python", "signal"),
        ("Illegal instruction (core dumped)", "signal"),
        ("Aborted (core dumped)", "signal"),
        ("Exception Type:        EXC_BAD_ACCESS (SIGSEGV)", "signal"),
        ("Process finished with exit code -1073741819 (0xC0000005)", "signal"),
        ("terminate called after throwing an instance of 'std::system_error'", "fatal"),
        ("F tensorflow/core/a.cc:9] Check failed: x", "fatal"),
        ("Fatal Python error: Aborted", "fatal"),
        ('qt.qpa.plugin: Could not load the Qt platform plugin "xcb" in "" even though', "fatal"),
        ("The kernel appears to have died. It will restart automatically.", "fatal"),
        ("CMake Error at CMakeLists.txt:4 (find_package):", "fatal"),
        ("make: *** [all] Error 2", "fatal"),
        ("kernel.cu:12:5: fatal error: cub/cub.cuh: No such file or directory", "fatal"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_30'", "fatal"),
        (
            "ERROR: Could not find a version that satisfies the requirement tensorflow==1.15",
            "fatal",
        ),
        ("E: Unable to locate package libcudnn8", "fatal"),
        ("bash: nvcc: command not found", "fatal"),
        ("python: can't open file 'train.py': [Errno 2] No such file or directory", "fatal"),
        ("/usr/bin/python3: No module named trainer", "fatal"),
        ("train.py: error: unrecognized arguments: --gpu", "fatal"),
        ("train.py: error: argument --epochs: invalid int value: 'ten'", "fatal"),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32", "fatal"),
        ("Process finished with exit code 1", "exit"),
        ("command terminated with exit code 2", "exit"),
        ("KeyError: 1", "exception"),
    ],
)
def test_ends(line: str, kind: str) -> None:
    assert kinds(f"something\n{line}\n") == [kind]


@each(
    "line",
    [
        "Process finished with exit code 0",
        "Aborted!",
        "UserWarning: something odd",
        "I tensorflow/core/a.cc:9] Aborted after 3 tries",
        "W tensorflow/core/a.cc:9] OP_REQUIRES failed : Aborted: x",
        "ERROR: pip's dependency resolver does not currently take into account all the packages",
        "error: 0.013",
        "the worker was killed by user request",
        "fatal: 0 errors",
    ],
)
def test_no_ends(line: str) -> None:
    assert kinds(f"something\n{line}\n") == []


def test_what_is_survived_is_no_end() -> None:
    assert kinds(RAISED + WORK) == []
    assert kinds(WORK + RAISED) == ["exception"]


def test_a_bar_that_is_drawn_once_more_is_no_survival() -> None:
    assert kinds(f"{RAISED}\n 10%|█    | 1/10 [00:03<00:27, 3.03s/it]\n") == ["exception"]


def test_what_the_shell_says_of_an_end_is_a_part_of_it() -> None:
    log = read_text(
        "F tensorflow/core/a.cc:9] Check failed: status\n*** stack ***\nAborted (core dumped)\n"
        "run.sh: exit code 134\n"
    )
    assert [(failure.line, failure.last) for failure in log.failures] == [(1, 4)]


def test_an_exit_code_alone_is_an_end() -> None:
    assert kinds(f"{RAISED}Process finished with exit code 1") == ["exception"]
    assert kinds("Process finished with exit code 1") == ["exit"]


def test_cpp_says_below_what_it_threw() -> None:
    (failure,) = read_text(
        "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error\n"
    ).failures
    assert (failure.line, failure.last) == (1, 2)
    assert "CUDA error" in failure.text


def test_docker_says_below_what_its_hook_printed() -> None:
    daemon = (
        "docker: Error response from daemon: OCI runtime create failed: error running hook #0: "
        "exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'"
    )
    reason = "nvidia-container-cli: initialization error: load library failed"
    (failure,) = read_text(f"{daemon}\n{reason}\n").failures
    assert (failure.line, failure.last) == (1, 2)
    assert failure.text == f"{daemon}\n{reason}"
    (alone,) = read_text(f"{daemon}\nsomething else\n").failures
    assert (alone.last, alone.text) == (1, daemon)


@each(
    "line",
    [
        "Epoch 1/10",
        "      3/100      4.2G    0.0851    0.0312        41       640",
        "    100/300      4.2G    0.0851    0.0312        41       640",
        "   100/300     4.2G    0.0851    0.0312        41       640",
        " 12%|█▏        | 120/1000 [01:20<09:40,  1.49batch/s]",
        "1563/1563 [======] - 14s 9ms/step - loss: 1.5077 - accuracy: 0.4",
        "{'loss': 0.4312, 'epoch': 1.0}",
        "step 100, loss = 2.31",
        "INFO:tensorflow:global_step/sec: 12.1",
        " 45%|████▌     | 45/100 [00:01<00:01, 40.1it/s]",
        "[09:48:09][#000002][0912ms][5.9417][4.6986]",
        ' * Serving Flask app "api"',
        "INFO:     Uvicorn running on http://0.0.0.0:8000",
        "Num GPUs Available:  2",
        "[PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]",
        "Training finished.",
        "Time elapsed: 31.4 s",
        "annotated batch 3/12 of the sample",
        "reading frame 40 of 900",
    ],
)
def test_work(line: str) -> None:
    assert read_text(line).progress == (1,)


@each(
    "line",
    [
        "Num GPUs Available:  0",
        "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]",
        "INFO:tensorflow:global_step/sec: 0",
        "    loss = 0.5",
        "0it [00:00, ?it/s]",
        "losses.py",
        "Chunk at 0x7f2c00000000 of size 1280",
        "    elapsed time 3",
        "  0%|          | 0/1000 [00:00<?, ?batch/s]",
        "    x = 3/100  4.2",
    ],
)
def test_no_work(line: str) -> None:
    assert read_text(line).progress == ()


def test_a_kernels_complaint_counts_where_no_exception_was_pasted() -> None:
    line = "W tensorflow/core/framework/op_kernel.cc:993] Invalid argument: indices[3] = 9\n"
    assert kinds(line) == ["exception"]
    assert [failure.line for failure in read_text(line + RAISED).failures] == [4]
    assert kinds(line.replace("Invalid argument", "Out of range")) == []


RECORD = "E tensorflow/core/common_runtime/direct_session.cc:170] Internal: the reason"
NO_REASON = "tensorflow.python.framework.errors_impl.InternalError: Failed to create session."


def test_a_record_of_the_call_that_failed_and_its_exception_are_one_failure() -> None:
    (failure,) = read_text(f"hello\n{RECORD}\n{NO_REASON}\n").failures
    assert (failure.line, failure.last, failure.says_why) == (2, 3, True)
    assert failure.text.startswith("Internal: the reason\n")


def test_a_record_of_an_earlier_failure_is_not_taken_for_the_reason() -> None:
    found = read_text(f"{RECORD}\n{RAISED}{NO_REASON}\n").failures
    assert [failure.text for failure in found] == ["KeyError: 1"]


def test_without_either_the_failure_does_not_say_why() -> None:
    (failure,) = read_text(NO_REASON).failures
    assert not failure.says_why


NATIVE = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    loss.backward()
  File "{}/autograd/__init__.py", line 251, in backward
    run_backward(
{}"""


@each(
    ("frame", "error", "about_gpu"),
    [
        ("/opt/lib/python3.10/site-packages/torch", "RuntimeError: Expected x to be true", True),
        ("/opt/lib/python3.10/site-packages/mine", "RuntimeError: Expected x to be true", False),
        ("/opt/lib/python3.10/site-packages/torch", "ValueError: Expected x to be true", False),
        (
            "/opt/lib/python3.10/site-packages/torch",
            "RuntimeError: Sizes of tensors must match",
            False,
        ),
    ],
)
def test_native_code_of_a_framework_may_have_failed_on_the_gpu(
    frame: str, error: str, about_gpu: bool
) -> None:
    (failure,) = read_text(NATIVE.format(frame, error)).failures
    assert failure.about_gpu is about_gpu


@each(
    ("statement", "about_gpu"),
    [
        ("raise RuntimeError('Attempted to use a closed Session.')", False),
        ('raise RuntimeError(f"Expected {name}")', False),
        ("raise RuntimeError(", False),
        ("raise type(e)(node_def, op, message)", True),
        ("raise core._status_to_exception(e) from None", True),
        ("return fn(*args)", True),
    ],
)
def test_an_exception_that_a_frameworks_python_code_raised_is_not_of_its_native_code(
    statement: str, about_gpu: bool
) -> None:
    log = NATIVE.format("/opt/site-packages/tensorflow", "RuntimeError: Expected x to be true")
    (failure,) = read_text(log.replace("run_backward(", statement)).failures
    assert failure.about_gpu is about_gpu


def test_cmake_says_why_below_the_place() -> None:
    log = read_text(
        "CMake Error at CMakeLists.txt:7 (project):\n"
        "  No CMAKE_CUDA_COMPILER could be found.\n"
        "\n"
        "  Tell CMake where to find the compiler.\n"
        "-- Configuring incomplete, errors occurred!\n"
    )
    (failure,) = log.failures
    assert (failure.line, failure.last, failure.about_gpu) == (1, 4, True)


def test_an_error_of_a_call_ends_a_program_whose_log_shows_nothing_else() -> None:
    error = "CUDA error: out of memory\n  current device: 0, in function alloc at x.cu:7\n"
    assert [failure.line for failure in read_text(error).failures] == [1]
    assert [failure.line for failure in read_text(error + "Aborted\n").failures] == [3]


STATEMENT = """Traceback (most recent call last):
  File "gen.py", line 9, in <module>
    model = load("my/model").to("cuda")
"""


@each(
    ("error", "about_gpu"),
    [
        ("KeyError: 'cuda'", False),
        ("NameError: name 'gpu_count' is not defined", False),
        ("AssertionError: train_batch_size is not equal to micro_batch_per_gpu * steps", False),
        ("AssertionError: the batch must be divisible by the number of GPUs", False),
        ("AttributeError: 'Net' object has no attribute 'to_gpu'", False),
        ("AttributeError: module 'torch' has no attribute 'cuda'", True),
        ("TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'", False),
        ("ConfigAttributeError: Key 'cuda' is not in struct", False),
        ("ValueError: the length is too large. This may lead to CUDA errors.", False),
        ("RuntimeError: a CUDA error that may lead to wrong results", True),
        (f"{STATEMENT}OSError: my/model is not a local folder", False),
        (f"{STATEMENT}RuntimeError: it went wrong", True),
        ("KeyError: 'sm_120'", True),
        ("KeyError: 'CUDA_PATH'", True),
        ("AssertionError: not enough GPUs", True),
    ],
)
def test_an_error_of_the_programs_own_code_may_name_the_gpu(error: str, about_gpu: bool) -> None:
    assert [failure.about_gpu for failure in read_text(error).failures] == [about_gpu]


_NATIVE = """\
Traceback (most recent call last):
  File "/env/lib/python3.12/site-packages/jax/_src/dispatch.py", line 89, in apply_primitive
    outs = fun(*args)
           ^^^^^^^^^^
AssertionError
--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception. \
Set JAX_TRACEBACK_FILTERING=off to include these.
"""


def test_an_assertion_of_native_code_does_not_say_why() -> None:
    """As JAX 0.12 without a GPU ends if JAX_PLATFORMS requires one."""
    (failure,) = read_text(_NATIVE).failures
    assert not failure.says_why
    shown = _NATIVE.replace("outs = fun(*args)", "assert outs is None")
    (failure,) = read_text(shown).failures
    assert failure.says_why


@each("name", ["'Layer'", "Layer"])
def test_an_import_that_names_no_package_gives_no_reason_without_its_frames(name: str) -> None:
    said = f"ImportError: cannot import name {name}\n"
    (bare,) = read_text(said).failures
    assert not bare.says_why
    frame = '  File "/srv/models/base.py", line 3, in <module>\n    from .layers import Layer\n'
    (whole,) = read_text(f"Traceback (most recent call last):\n{frame}{said}").failures
    assert whole.says_why
    (named,) = read_text("ImportError: cannot import name 'Layer' from 'layers'\n").failures
    assert named.says_why


def test_a_fence_ends_the_message_of_an_exception() -> None:
    (failure,) = read_text("```\nKeyError: 'a'\n````\nIt is always the same.\n").failures
    assert failure.text == "KeyError: 'a'"
