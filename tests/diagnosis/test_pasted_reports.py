"""Reports as people paste them: a few sentences of their own, and output that is cut or incomplete.

Every text here was written for this test, in several wordings for each way of reporting.
"""

from __future__ import annotations

from tests.cases import each
from whygpu import explain

SMI = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2     |
|-------------------------------+----------------------+----------------------+
|   0  NVIDIA RTX A5000    Off  | 00000000:3B:00.0 Off |                  Off |
| 30%   33C    P8    17W / 230W |      3MiB / 24564MiB |      0%      {mode} |
+-------------------------------+----------------------+----------------------+
"""


@each(
    "words",
    [
        "Everything is installed but the model only uses the processor and is slow.",
        "After the update my notebook crashes with the same error as before:",
        "There is something wrong with this server, the job never starts on the card.",
    ],
)
def test_a_gpu_that_is_only_listed_does_not_answer_a_report_of_trouble(words: str) -> None:
    answer = explain(f"{words}\n\n{SMI.format(mode='Default')}")
    assert (answer.verdict, answer.exit_code) == ("unknown", 4)
    assert "line 1" in answer.headline


@each(
    "above",
    [
        "",
        "Loading the weights of the model from the disk\n",
        "2024-05-01 10:00:00 INFO not using a checkpoint because there is none in the folder\n",
        "torch 2.3.0, not compiled with NCCL, is used on this machine\nEpoch 1/3 loss 0.51\n",
    ],
)
def test_output_without_a_report_of_trouble_stays_fine(above: str) -> None:
    assert explain(f"{above}Using device: cuda\n").verdict == "nothing-wrong"
    assert explain(SMI.format(mode="Default")).verdict == "nothing-wrong"


@each("gives", ["return False", "returns: False", "It returns False", "Output: False", "False"])
def test_a_value_may_follow_a_word_of_the_person(gives: str) -> None:
    answer = explain(
        "import torch\nprint(torch.cuda.is_available())\n\n"
        f"{gives}\n\nprint(torch.__version__)\n2.2.1+cu121\n"
    )
    assert answer.verdict == "unknown"
    assert "sees no GPU" in answer.headline


@each(
    "words",
    [
        "ollama always runs on the cpu of this rtx a5000 server",
        "why is my RTX A5000 not used by the program?",
        "torch does not find the gpu",
    ],
)
def test_a_prohibited_mode_explains_a_gpu_that_is_not_used(words: str) -> None:
    answer = explain(f"{words}\n{SMI.format(mode='Prohibited')}")
    assert [root.code for root in answer.root_causes] == ["WG109"]
    assert explain(SMI.format(mode="Prohibited")).verdict == "nothing-wrong"


CHAINED = """\
Traceback (most recent call last):
  File "/srv/app/net.py", line 10, in get
    response.raise_for_status()
{raised}

{link}
"""


@each(
    "link",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_an_exception_counts_if_the_one_it_led_to_was_cut_off(link: str) -> None:
    raised = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    answer = explain(CHAINED.format(raised=raised, link=link))
    assert [root.code for root in answer.root_causes][:1] == ["WG504"]
    other = explain(CHAINED.format(raised="KeyError: 'weights'", link=link))
    assert other.verdict != "nothing-wrong"


@each(
    "line",
    [
        "huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo for url",
        "Error while fetching the tokenizer: You are trying to access a gated repo.",
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: "
        "https://huggingface.co/some/model/resolve/main/config.json",
        "OSError: Can't load the model for 'some/model'. If you were trying to load it",
    ],
)
def test_files_of_a_model_that_are_refused_are_not_about_the_gpu(line: str) -> None:
    answer = explain(f"$ python serve.py --device cuda\n{line}\n")
    assert answer.verdict == "not-gpu"
    assert answer.guidance is not None
    assert answer.guidance.steps


def test_an_option_of_a_command_is_no_report() -> None:
    assert explain("$ python serve.py --device cuda\n").verdict == "unknown"
    assert explain("$ python serve.py\nUsing device: cuda\n").verdict == "nothing-wrong"


@each("mark", ["!!! Exception during processing !!!", "!!! Exception during processing!!!"])
def test_a_message_above_its_traceback_is_not_missing(mark: str) -> None:
    frames = 'Traceback (most recent call last):\n  File "C:\\run.py", line 5, in go\n    do()\n'
    shapes = "mat1 and mat2 shapes cannot be multiplied (2x16 and 8x4)"
    assert explain(f"{mark} {shapes}\n{frames}").verdict == "not-gpu"


@each("name", ["ImportError", "RuntimeError", "OSError"])
def test_a_header_of_ipython_without_its_message_was_cut(name: str) -> None:
    header = f"{name}{' ' * 30}Traceback (most recent call last)\n"
    answer = explain(f"{header}<ipython-input-1-abc> in <module>\n----> 1 import fast_kernels\n")
    assert answer.verdict == "unknown"


@each("line", ["ImportError: undefined symbol", "ImportError", "OSError: undefined symbol ..."])
def test_an_import_error_without_its_reason_is_not_called_unrelated(line: str) -> None:
    assert explain(f"It stops at the import.\n{line}\n").verdict == "unknown"


@each(
    "words",
    [
        "it needs the undefined symbol _ZN3c105ErrorC1E in flash_attn_2_cuda.cpython-310.so",
        "ImportError: flash_attn_2_cuda.cpython-310.so: undefined symbol: _ZN3c105ErrorC1E",
        "undefined symbol `_ZN2at4_ops3addE` in the file `/env/flash_attn_2_cuda.cpython-312.so`",
    ],
)
def test_a_symbol_may_stand_before_its_file(words: str) -> None:
    answer = explain(f"{words}\n")
    assert [root.code for root in answer.root_causes][:1] == ["WG322"]
    assert "flash-attn" in answer.headline


@each(
    "words",
    [
        "The GPU is used by another process of a colleague.",
        "nvidia-smi shows that an old process is still there",
        "显存被其他进程占用了",
    ],
)
def test_who_says_that_others_use_the_gpu_is_believed(words: str) -> None:
    answer = explain(f"RuntimeError: CUDA error: out of memory\n{words}\n")
    assert [root.code for root in answer.root_causes][:1] == ["WG501"]
    asked = explain("RuntimeError: CUDA error: out of memory\nIs it used by another process?\n")
    assert [root.code for root in asked.root_causes][:1] == ["WG504"]


@each("free", ["0 bytes", "100.00 MiB"])
def test_memory_that_others_hold_and_that_would_be_enough_is_named_too(free: str) -> None:
    text = (
        "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. "
        "(out of memory)\nCurrently allocated     : 20.50 GiB\n"
        "Requested               : 500.00 MiB\n"
        f"Device limit            : 24.00 GiB\nFree (according to CUDA): {free}\n"
    )
    answer = explain(text)
    assert [(root.code, root.confidence) for root in answer.root_causes] == [
        ("WG504", "likely"),
        ("WG501", "possible"),
    ]


MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: {held}, other allocations: {other}, "
    "max allowed: 9.07 GB). Tried to allocate {asked} on private pool."
)


def test_a_mac_that_gives_no_memory_at_all_is_not_too_small() -> None:
    answer = explain(MPS.format(held="0 bytes", other="0 bytes", asked="1.00 KB"))
    assert [root.code for root in answer.root_causes] == ["WG803"]
    full = explain(MPS.format(held="8.50 GB", other="500.00 MB", asked="64.00 MB"))
    assert [root.code for root in full.root_causes] == ["WG504"]


@each("line", ["CUDA_ERROR_NO_DEVICE", "[100] Call to cuInit results in CUDA_ERROR_NO_DEVICE"])
def test_no_device_is_not_no_driver_if_a_gpu_is_listed(line: str) -> None:
    text = f"numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: {line}\n"
    listed = "Found 1 CUDA devices\nid 0      b'Quadro P2000'          [SUPPORTED]\n"
    assert explain(text + listed).root_causes[0].cause == "visible-devices-hides-gpu"


@each("other", ["", "torch 2.1.0 is installed as well\n"])
def test_only_numba_looks_for_nvvm(other: str) -> None:
    answer = explain(
        f"{other}numba.cuda.cudadrv.error.NvvmSupportError: libNVVM cannot be found. Do `conda "
        "install cudatoolkit`:\nCould not find module 'nvvm.dll' (or one of its dependencies).\n"
    )
    assert answer.headline.startswith("Numba cannot find")
    assert "windows-dll-load-failed" not in [root.cause for root in answer.root_causes]


@each("line", ["ptxas fatal   : Memory allocation failure", "fatal   : Memory allocation failure"])
def test_a_compiler_that_gets_no_memory_lacks_main_memory(line: str) -> None:
    assert explain(f"{line}\n").root_causes[0].cause == "host-oom"


@each("call", ["`cublasCreate(handle)`", "cublasCreate(handle)", "cublasLtMatmul"])
def test_a_message_of_pytorch_may_lose_its_marks(call: str) -> None:
    answer = explain(f"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling {call}\n")
    assert "PyTorch" in answer.headline


def test_a_card_is_named_without_the_sentence_around_it() -> None:
    answer = explain(
        "RuntimeError: Found no NVIDIA driver on your system.\n"
        "in this computer there is a Radeon RX 6700 XT from last year\n"
    )
    messages = [root.message for root in answer.root_causes]
    assert any(message.endswith("on a machine with Radeon RX 6700 XT") for message in messages)


@each(
    "words",
    [
        "my ollama 0.9 can't discover any GPU on it",
        "the program did not find the GPU of this server",
        "Training is always done on the CPU and not on the GPU:",
    ],
)
def test_a_complaint_above_a_listed_gpu_gets_no_tick(words: str) -> None:
    assert explain(f"{words}\n\n{SMI.format(mode='Default')}").verdict == "unknown"


@each("question", ["torch.xpu.is_available()", "torch.cuda.is_available()"])
def test_two_different_answers_to_one_question_get_no_tick(question: str) -> None:
    answer = explain(
        f">>> import torch\n>>> {question}\nFalse\n"
        f"With the release before it:\n>>> import torch\n>>> {question}\nTrue\n"
    )
    assert answer.verdict == "unknown"
    assert explain(f">>> import torch\n>>> {question}\nTrue\n").verdict == "nothing-wrong"


@each("lead", ["", "/env/site-packages/torch/nn/modules/conv.py:456: UserWarning: "])
def test_a_plan_that_failed_is_not_a_failure(lead: str) -> None:
    plan = (
        f"{lead}Plan failed with a cudnnException: CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: "
        "cudnnFinalize Descriptor Failed cudnn_status: CUDNN_STATUS_NOT_SUPPORTED\n"
        "  return F.conv2d(input, weight, bias, self.stride,\nEpoch 1/3 loss 0.51\n"
    )
    assert explain(plan).verdict == "nothing-wrong"


@each(
    "words",
    [
        "importerror: /flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol",
        "it says xformers/_C_flashattention.so: undefined symbol and stops",
        "`/env/bitsandbytes/libbitsandbytes_cuda121.so: undefined symbol`",
    ],
)
def test_a_file_of_an_extension_with_a_missing_symbol_needs_no_name_of_it(words: str) -> None:
    answer = explain(f"{words}\n")
    assert answer.verdict in ("found", "unknown")
    assert answer.verdict == "unknown" or answer.root_causes[0].code == "WG322"


def test_a_watchdog_that_got_stuck_waited_for_other_processes() -> None:
    answer = explain(
        "[rank3]:[E101 10:00:00.1 ProcessGroupNCCL.cpp:1700] [PG ID 0 Rank 3] ProcessGroupNCCL's "
        "watchdog got stuck for 600 seconds without making progress in monitoring enqueued "
        "collectives.\n[rank3]:[F101 10:08:00.1 ProcessGroupNCCL.cpp:1500] [PG ID 0 Rank 3] "
        "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL "
        "watchdog hang.\n"
    )
    assert answer.root_causes[0].cause == "nccl-failure"


def test_the_reasons_that_bitsandbytes_numbers_are_no_statements() -> None:
    answer = explain(
        "CUDA SETUP: Required library version not found: libbitsandbytes_cuda124.so. Maybe you "
        "need to compile it from source?\nCUDA SETUP: CUDA detection failed! Possible reasons:\n"
        "1. CUDA driver not installed\n2. CUDA not installed\n"
    )
    assert "no-nvidia-driver" not in [root.cause for root in answer.root_causes]
    assert explain("CUDA driver not installed\n").root_causes[0].cause == "no-nvidia-driver"


def _remedies(text: str) -> str:
    first = explain(text).root_causes[0]
    shown = "\n".join(f"{remedy.text} {remedy.action or ''}" for remedy in first.remedies)
    return shown.replace("', '", " ")


REFUSED = (
    'Error response from daemon: could not select device driver "nvidia" with capabilities: '
    "[[gpu]]\n"
)


@each(
    ("words", "there", "not_there"),
    [
        ("I use a MacBook Pro.\n", "A Mac has no NVIDIA GPU", "nvidia-ctk"),
        ("This is macOS 15 on an Apple M3.\n", "A Mac has no NVIDIA GPU", "nvidia-ctk"),
        ("This is Debian 12.\n", "nvidia-ctk", "A Mac has"),
    ],
)
def test_advice_for_docker_knows_what_a_mac_has(words: str, there: str, not_there: str) -> None:
    advice = _remedies(words + REFUSED)
    assert there in advice
    assert not_there not in advice


@each(
    ("command", "option"),
    [
        ("singularity exec image.sif python train.py", "--nv"),
        ("apptainer run image.sif", "--nv"),
        ("podman run image python train.py", "--device nvidia.com/gpu=all"),
        ("docker run image python train.py", "--gpus all"),
    ],
)
def test_advice_is_for_the_engine_that_ran_the_container(command: str, option: str) -> None:
    advice = _remedies(f"$ {command}\nRuntimeError: No CUDA GPUs are available\n")
    assert option in advice


def test_jax_gets_cudnn_with_its_own_extra() -> None:
    advice = _remedies(
        "CUDA backend failed to initialize: Unable to load cuDNN. Is it installed? (Set "
        "TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)\njax: 0.4.30\njaxlib: 0.4.30\n"
    )
    assert "jax" in advice


def test_a_cache_of_negative_size_is_a_share_that_is_too_small() -> None:
    answer = explain(
        "INFO 02-26 09:54:05 worker.py:267] model weights take 6.10GiB; PyTorch activation peak "
        "memory takes 1.20GiB; the rest of the memory reserved for KV Cache is -0.90GiB.\n"
    )
    assert [root.code for root in answer.root_causes] == ["WG506"]


@each(
    ("words", "option"),
    [
        (
            "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
            "cdi generate",
        ),
        (
            "$ podman run --gpus all ubuntu nvidia-smi\nError: crun: executable file `nvidia-smi` "
            "not found in $PATH: No such file or directory: OCI runtime attempted to invoke it",
            "--device nvidia.com/gpu=all",
        ),
        (
            'Error: failed to stat CDI host device "/dev/dri/renderD130": no such file or '
            "directory",
            "cdi generate",
        ),
    ],
)
def test_advice_for_podman_is_not_that_for_docker(words: str, option: str) -> None:
    advice = _remedies(f"{words}\n")
    assert option in advice
    assert "--runtime=docker" not in advice


@each("what", ["shared memory", "registers"])
def test_a_kernel_of_triton_that_is_too_large_needs_no_debugger(what: str) -> None:
    answer = explain(
        f"triton.runtime.errors.OutOfResources: out of resource: {what}, Required: 163840, "
        "Hardware limit: 101376. Reducing block sizes or `num_stages` may help.\n"
    )
    assert "163840 of at most 101376" in answer.headline
    assert "compute-sanitizer" not in str(answer.root_causes[0].remedies)


@each(
    "words",
    [
        "为什么我训练的时候GPU利用率只有3%左右\n训练速度0.5s/step",
        "Warum liegt die GPU-Auslastung nur bei 4%? GPU usage 4 %\nEpoch 1/3 loss 0.5",
        "Pourquoi mon GPU usage est 5 % ?\nEpoch 1/3 loss 0.5",
    ],
)
def test_people_write_in_other_languages(words: str) -> None:
    assert explain(f"{words}\n").verdict == "unknown"


@each(
    "by",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have "
        "been OOM Killed.",
        "slurmstepd: error: Exceeded job memory limit",
    ],
)
def test_memory_that_slurm_limits_is_asked_for_there(by: str) -> None:
    assert "#SBATCH --mem" in _remedies(f"{by}\n")
    assert "#SBATCH --mem" not in _remedies("[77.0] Out of memory: Killed process 42 (python)\n")


def test_what_does_not_work_is_answered_before_that_something_fails() -> None:
    answer = explain(
        "When I start it on the GPU nodes there is an error:\n"
        "My PyTorch cannot find the GPU on it\n"
    )
    assert "sees no GPU" in answer.headline


NO_RELEASE = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 545.29.06    Driver Version: 545.29.06    CUDA Version: {release}     |
|-------------------------------+----------------------+----------------------+
|   0  NVIDIA RTX A5000    Off  | 00000000:3B:00.0 Off |                  Off |
+-------------------------------+----------------------+----------------------+
"""


@each("release", ["ERR!", "N/A "])
def test_a_tool_that_cannot_ask_libcuda_gets_no_tick(release: str) -> None:
    shown = NO_RELEASE.format(release=release)
    assert explain(shown).root_causes[0].cause == "cuda-init-failed"
    under_wsl = explain(f"I use Ubuntu in WSL2.\n{shown}")
    assert under_wsl.root_causes[0].cause == "wsl-no-gpu"
    assert explain(NO_RELEASE.format(release="12.3")).verdict == "nothing-wrong"


def test_a_gpu_that_is_blocked_under_wsl_gets_no_tick() -> None:
    answer = explain(f"GPU access blocked in WSL 2 on this server\n{SMI.format(mode='Default')}")
    assert answer.root_causes[0].cause == "wsl-no-gpu"


@each("label", ["2.7.1+xpu", "2.6.0+rocm6.2"])
def test_a_build_for_another_maker_was_built_for_no_cuda(label: str) -> None:
    report = (
        "False\n\nPyTorch version: {}\nIs debug build: False\n"
        "CUDA used to build PyTorch: Could not collect\nIs CUDA available: False\n"
    )
    other = [root.code for root in explain(report.format(label)).root_causes]
    assert "WG301" not in other
    assert [root.code for root in explain(report.format("2.7.1+cpu")).root_causes] == ["WG301"]


@each(
    "line",
    [
        "docker: Error response from daemon: error gathering device information while adding "
        'custom device "/dev/kfd": no such file or directory.',
        "Unable to open /dev/kfd read-write: No such file or directory",
    ],
)
def test_a_missing_device_file_of_amd_is_no_matter_of_groups(line: str) -> None:
    answer = explain(f"{line}\n")
    assert answer.root_causes[0].cause == "non-nvidia-backend"
    advice = _remedies(f"{line}\n")
    assert "ls -l /dev/kfd" in advice
    assert "usermod" not in advice


@each(
    "words",
    [
        "I do not know how to make it use my GPU again.",
        "Now it does not use the GPU any more, the second time that I start it.",
    ],
)
def test_a_cpu_build_explains_work_on_the_cpu_that_nobody_wants(words: str) -> None:
    answer = explain(
        f"{words}\n\nSomeTrainer v8.1 Python-3.10.5 torch-2.1.2+cpu CPU (a processor)\n"
    )
    assert [root.code for root in answer.root_causes] == ["WG301"]
