"""Logs of compiled extensions that do not fit the installed PyTorch: cause, consequence, remedy."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import command_of, explained, machine
from whygpu.causes.builds import extension_build_mismatch
from whygpu.diagnosis.engine import outcome_of
from whygpu.model.finding import Finding

SITE = "/opt/env/lib/python3.10/site-packages"
SYMBOL = "_ZN3c104cuda9SetDeviceEi"
BUILT_FOR = "xFormers was built for:\n    PyTorch 2.1.0+cu121 with CUDA 1201 "


def root(log: str) -> Finding:
    explanation = explained(log)
    assert not explanation.crashed
    assert len(explanation.root_causes) == 1, explanation
    return explanation.root_causes[0]


def commands(log: str) -> list[str | None]:
    return [command_of(remedy) for remedy in root(log).remedies]


@each(
    ("path", "name"),
    [
        (f"{SITE}/torchvision/_C.so", "torchvision"),
        (f"{SITE}/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so", "flash-attn"),
        (f"{SITE}/torch_scatter/_scatter_cuda.so", "torch-scatter"),
        (f"{SITE}/vllm/_C.abi3.so", "vllm"),
        (f"{SITE}/my_ops-0.1-py3.10-linux-x86_64.egg/my_ops/_C.so", "my_ops"),
        ("/home/me/project/build/my_ops.cpython-310-x86_64-linux-gnu.so", "my_ops"),
        ("/home/me/project/my_ops/_ext.so", "my_ops"),
    ],
)
def test_the_file_names_the_extension(path: str, name: str) -> None:
    finding = root(f"ImportError: {path}: undefined symbol: {SYMBOL}")
    assert finding.code == "WG322"
    assert finding.message.startswith(f"{name} was compiled for another PyTorch")


@each(
    "symbol",
    [
        "_ZN3c104cuda9SetDeviceEi",
        "_ZNK2at6Tensor4sizeEl",
        "_ZNR5torch7Library4_implEPKcONS_11CppFunctionE",
        "_ZTIN5torch8autograd4NodeE",
        "_Z16THPVariable_WrapN2at10TensorBaseE",
        "THPVariableClass",
        "THCudaMalloc",
    ],
)
def test_pytorch_has_several_kinds_of_symbols(symbol: str) -> None:
    assert root(f"ImportError: {SITE}/my_ops.so: undefined symbol: {symbol}").code == "WG322"


@each(
    "line",
    [
        f"ImportError: {SITE}/my_ops.so: undefined symbol: _ZN6my_ops4callERKN2at6TensorE",
        f"ImportError: {SITE}/torch/lib/libtorch_python.so: undefined symbol: {SYMBOL}",
        f"ImportError: libtorch_cuda.so: undefined symbol: {SYMBOL}",
        "ModuleNotFoundError: No module named 'torch._C'",
        "ModuleNotFoundError: No module named 'numpy._C'",
        "ModuleNotFoundError: No module named 'xformers'",
        "RuntimeError: operator aten::nms does not exist",
        "NotImplementedError: Could not run 'aten::nms' with arguments from the 'CUDA' backend",
        "RuntimeError: Not compiled with GPU support",
        "NameError: name '_C' is not defined",
    ],
)
def test_similar_messages_that_are_not_about_an_extension(line: str) -> None:
    assert "WG322" not in [finding.code for finding in explained(line).root_causes]


def test_what_pytorch_compiled_itself_is_compiled_again_without_its_cache() -> None:
    line = "/.cache/torch_extensions/py39_cu113/fused/fused.so: undefined symbol: "
    finding = root(f"ImportError: /home/me{line}{SYMBOL}")
    assert "fused was compiled" in finding.message
    assert "it was built for CUDA 11.3" in finding.message
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "rm -r ~/.cache/torch_extensions"
    ]
    elsewhere = root(
        f"ImportError: /scratch/torch_extensions/fused/fused.so: undefined symbol: {SYMBOL}"
    )
    assert [command_of(remedy) for remedy in elsewhere.remedies] == [None]


@each(
    ("frames", "message", "name"),
    [
        (
            ["torchaudio/_extension.py", "torch/_ops.py"],
            "OSError: [WinError 127] The specified procedure could not be found",
            "torchaudio",
        ),
        (
            ["torchvision/extension.py"],
            "ImportError: DLL load failed while importing _C: The specified module could not be "
            "found.",
            "torchvision",
        ),
        (
            ["flash_attn/flash_attn_interface.py"],
            "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified "
            "procedure could not be found.",
            "flash-attn",
        ),
    ],
)
def test_windows_does_not_name_the_package_but_the_traceback_does(
    frames: list[str], message: str, name: str
) -> None:
    shown = "".join(
        f'  File "C:\\env\\lib\\site-packages\\{frame}", line 9, in <module>\n    load()\n'.replace(
            "/", "\\"
        )
        for frame in frames
    )
    finding = root(f"Traceback (most recent call last):\n{shown}{message}\n")
    assert finding.code == "WG322"
    assert f"the native code of {name} was not loaded" in finding.message


def test_a_dll_of_pytorch_itself_is_not_the_extensions() -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "C:\\env\\lib\\site-packages\\torchvision\\__init__.py", line 5, in <module>\n'
        "    import torch\n"
        '  File "C:\\env\\lib\\site-packages\\torch\\__init__.py", line 127, in <module>\n'
        "    raise err\n"
        "OSError: [WinError 127] The specified procedure could not be found. Error loading "
        '"C:\\env\\lib\\site-packages\\torch\\lib\\shm.dll" or one of its dependencies.\n'
    )
    assert root(log).cause == "windows-dll-load-failed"


@each(
    ("log", "expected"),
    [
        (
            "torch==2.1.0+cu121\nRuntimeError: operator torchvision::nms does not exist",
            "python -m pip install --force-reinstall --no-deps 'torchvision==0.16.*' --index-url "
            "https://download.pytorch.org/whl/cu121",
        ),
        (
            BUILT_FOR + "(you have 2.2.0+cu121)",
            "python -m pip install --upgrade xformers torch==2.2.0 --index-url "
            "https://download.pytorch.org/whl/cu121",
        ),
        (
            "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
            "python -m pip install --no-build-isolation --force-reinstall --no-deps "
            "--no-cache-dir flash-attn",
        ),
        (
            "ImportError: cannot import name '_C' from 'detectron2' (unknown location)",
            "python -m pip install --no-build-isolation --force-reinstall --no-deps "
            "--no-cache-dir git+https://github.com/facebookresearch/detectron2.git",
        ),
        (
            "RuntimeError: nms_impl: implementation for device cuda:0 not found.",
            "export FORCE_CUDA=1 && python -m pip install --no-build-isolation "
            "--force-reinstall --no-deps --no-cache-dir mmcv",
        ),
        ("RuntimeError: apex.optimizers.FusedAdam requires cuda extensions", None),
        ("ModuleNotFoundError: No module named 'pointnet2_cuda'", None),
    ],
)
def test_the_extension_is_installed_again_and_pytorch_is_not(
    log: str, expected: str | None
) -> None:
    assert commands(log) == [expected]


def test_without_the_release_of_pytorch_there_is_a_question_first() -> None:
    assert commands("RuntimeError: operator torchvision::nms does not exist") == [
        "python -c 'import torch; print(torch.__version__)'",
        None,
    ]


@each(
    ("log", "counted", "message"),
    [
        (
            BUILT_FOR + "(you have 2.2.0+cu118)",
            "cuda-version-mismatch",
            "xformers was compiled for another CUDA than the installed PyTorch (PyTorch "
            "2.2.0+cu118): it was built for PyTorch 2.1.0+cu121 and CUDA 12.1",
        ),
        (
            BUILT_FOR + "(you have 2.2.0+cu121)",
            "cuda-version-mismatch",
            "xformers was compiled for another PyTorch than the installed one (PyTorch "
            "2.2.0+cu121): it was built for PyTorch 2.1.0+cu121 and CUDA 12.1",
        ),
        (
            "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA "
            "versions. PyTorch has CUDA version 11.8 whereas TorchAudio has CUDA version 11.7.",
            "cuda-version-mismatch",
            "torchaudio was compiled for another CUDA than the installed PyTorch (PyTorch for CUDA "
            "11.8): it was built for CUDA 11.7",
        ),
        (
            "RuntimeError: Could not find the bitsandbytes CUDA binary at "
            "PosixPath('/x/bitsandbytes/libbitsandbytes_cuda128.so')",
            "cuda-version-mismatch",
            "bitsandbytes has no library for the installed CUDA 12.8",
        ),
    ],
)
def test_the_message_says_both_builds_if_the_log_does(log: str, counted: str, message: str) -> None:
    finding = root(log)
    assert (finding.code, finding.cause, finding.confidence) == ("WG322", counted, "certain")
    assert finding.message == message


def test_an_import_that_fails_later_because_of_it_is_its_consequence() -> None:
    log = (
        "Traceback (most recent call last):\n"
        f'  File "{SITE}/flash_attn/flash_attn_interface.py", line 10, in <module>\n'
        "    import flash_attn_2_cuda as flash_attn_cuda\n"
        f"ImportError: {SITE}/flash_attn_2_cuda.so: undefined symbol: {SYMBOL}\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/run.py", line 5, in <module>\n'
        "    from transformers import LlamaForCausalLM\n"
        "RuntimeError: Failed to import transformers.models.llama.modeling_llama\n"
    )
    finding = root(log)
    assert (finding.code, finding.severity, finding.effect) == ("WG322", "error", "broken")
    assert {evidence.line for evidence in finding.evidence} == {4, 11}


IMAGE = (
    f"{SITE}/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension: "
    f"'{SITE}/torchvision/image.so: undefined symbol: {SYMBOL}'\n"
)


@each(
    ("rest", "verdict"),
    [
        ("Epoch 1/3 loss: 0.52\nEpoch 2/3 loss: 0.41\n", "nothing-wrong"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.yaml'\n", "not-gpu"),
        ("RuntimeError: operator torchvision::nms does not exist\n", "found"),
        ("", "found"),
    ],
)
def test_a_program_may_go_on_without_a_part_of_an_extension(rest: str, verdict: str) -> None:
    explanation = explained(IMAGE + rest)
    assert explanation.verdict == verdict
    assert [finding.severity for finding in explanation.root_causes] == (
        [] if verdict != "found" else ["error"] if rest else ["warning"]
    )


def test_the_import_that_failed_says_why_an_operator_is_missing() -> None:
    finding = root(
        "Failed to import from vllm._C with ImportError('libcudart.so.12: cannot open shared "
        "object file: No such file or directory')\n"
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'\n"
    )
    assert finding.message == (
        "the native code of vllm was not loaded: it needs libcudart.so.12, which is not found"
    )
    assert {evidence.line for evidence in finding.evidence} == {1, 2}


@each(
    ("torch", "library", "code"),
    [
        ("1.8.1+cu111", "libcudart.so.10.1", "WG322"),
        ("2.1.0+cu121", "libcudart.so.11.0", "WG322"),
        ("1.7.0+cu101", "libcudart.so.10.2", "WG322"),
        ("1.8.1+cu111", "libcudart.so.11.0", "WG201"),
    ],
)
def test_an_extension_needs_the_libraries_of_its_own_cuda(
    torch: str, library: str, code: str
) -> None:
    log = (
        f">>> torch.__version__\n'{torch}'\n>>> import torch_cluster\n"
        f"OSError: {library}: cannot open shared object file: No such file or directory\n"
    )
    assert explained(log).root_causes[0].code == code


def importing(*frames: str, library: str) -> str:
    """A traceback of packages that import each other, the last of which lacks a library."""
    shown = "".join(f'  File "{SITE}/{frame}", line 4, in <module>\n    x()\n' for frame in frames)
    reason = f"{library}: cannot open shared object file: No such file or directory"
    return f"Traceback (most recent call last):\n{shown}ImportError: {reason}\n"


@each(
    ("frames", "library", "message"),
    [
        (
            ["flash_attn/__init__.py", "flash_attn/flash_attn_interface.py"],
            "libcudart.so.11.0",
            "flash-attn was compiled for another CUDA than the installed PyTorch: it was built for "
            "CUDA 11.x; it needs libcudart.so.11.0, which is not found",
        ),
        (
            ["torchaudio/_extension/__init__.py", "torch/_ops.py"],
            "libcublas.so.12",
            "torchaudio was compiled for another CUDA than the installed PyTorch: it was built for "
            "CUDA 12.x; it needs libcublas.so.12, which is not found",
        ),
    ],
)
def test_pytorch_has_loaded_its_own_cuda_before_the_extension_fails(
    frames: list[str], library: str, message: str
) -> None:
    finding = root(importing(*frames, library=library))
    assert (finding.code, finding.confidence, finding.message) == ("WG322", "likely", message)
    assert "torch.version.cuda" in (finding.ask or "")


@each(
    ("frames", "library", "needed_by"),
    [
        # It loads the library for the CUDA of PyTorch, wherever that comes from.
        (["bitsandbytes/cextension.py"], "libcusparse.so.11", "bitsandbytes"),
        (["faiss/__init__.py", "faiss/loader.py"], "libcublas.so.11", "faiss"),
        (["torchvision/__init__.py", "torch/__init__.py"], "libcublas.so.11", "PyTorch"),
        # libcurand.so.10 belongs to several releases.
        (["flash_attn/__init__.py"], "libcurand.so.10", "flash-attn"),
    ],
)
def test_the_message_names_the_package_that_needs_the_library(
    frames: list[str], library: str, needed_by: str
) -> None:
    finding = explained(importing(*frames, library=library)).root_causes[0]
    assert finding.code == "WG201"
    assert finding.message.startswith(f"{needed_by} needs {library}, ")
    assert finding.message.endswith(f"importing {needed_by} fails")


@each(
    ("log", "code"),
    [
        (
            "CUDA SETUP: Required library version not found: libbitsandbytes_cuda124.so. Maybe "
            "you need to compile it from source?\n"
            "RuntimeError:\n        CUDA Setup failed despite GPU being available. Please run\n",
            "WG322",
        ),
        (
            f"AttributeError: {SITE}/bitsandbytes/libbitsandbytes_cpu.so: undefined symbol: "
            "cget_col_row_stats\n",
            "WG322",
        ),
        (
            "The installed version of bitsandbytes was compiled without GPU support.\n"
            "AttributeError: 'NoneType' object has no attribute 'cget_managed_ptr'\n",
            "WG322",
        ),
    ],
)
def test_bitsandbytes_chooses_its_library_by_what_it_finds(log: str, code: str) -> None:
    assert root(log).code == code


def test_the_library_of_bitsandbytes_for_the_cpu_may_be_right() -> None:
    finding = root(
        "UserWarning: The installed version of bitsandbytes was compiled without GPU support.\n"
    )
    assert finding.confidence == "possible"
    assert "torch.cuda.is_available()" in (finding.ask or "")


def test_bitsandbytes_lacks_gpu_code_if_pytorch_sees_the_gpu() -> None:
    warning = "UserWarning: The installed version of bitsandbytes was compiled without GPU support."
    assert root(f"{warning}\ntorch.cuda.is_available() -> True\n").confidence == "likely"
    # The program did its work without it.
    assert explained(f"{warning}\nEpoch 1/3 loss: 0.2\n").verdict == "nothing-wrong"


def test_a_package_that_was_not_compiled_is_found_by_the_traceback() -> None:
    finding = root(
        "Traceback (most recent call last):\n"
        '  File "/home/me/demo.py", line 30, in <module>\n    out = model(x)\n'
        f'  File "{SITE}/groundingdino/ms_deform_attn.py", line 53, in forward\n'
        "    output = _C.ms_deform_attn_forward(\n"
        "NameError: name '_C' is not defined\n"
    )
    assert finding.message == (
        "the native code of groundingdino was not compiled: the module groundingdino._C is missing"
    )


@each(
    ("version", "difference"),
    [
        ("2.1.2+pt28cu128", ""),
        ("2.1.2+pt21cu128", "was built for PyTorch 2.1"),
        ("2.1.2+pt113cu117", "was built for PyTorch 1.13"),
        ("2.8.3+cu12torch2.8cxx11abiFALSE", ""),
        ("2.8.3+cu12torch2.7cxx11abiFALSE", "was built for PyTorch 2.7"),
        ("0.21.0+torch280cu128", ""),
        ("0.21.0+torch260cu126", "was built for PyTorch 2.6"),
        ("2.1.2+cu92", "was built for CUDA 9.2"),
        ("2.1.2+cu102", "was built for CUDA 10.2"),
        ("2.1.2+cu130", "was built for CUDA 13.0"),
        ("2.1.2+cpu", "was built without GPU code"),
        ("2.1.2+local", ""),
        ("2.1.2", ""),
    ],
)
def test_the_label_of_a_version_says_what_it_was_built_for(version: str, difference: str) -> None:
    seen = machine(
        f'only = ["torch"]\n[[target.packages]]\nname = "flash-attn"\nversion = "{version}"\n'
    )
    outcome = outcome_of(extension_build_mismatch.CAUSE, seen)
    assert [difference in finding.message for finding in outcome.findings] == (
        [True] if difference else []
    )


def test_the_index_for_the_cuda_of_the_installed_pytorch() -> None:
    seen = machine(
        'only = ["torch"]\n[[target.packages]]\nname = "torchvision"\nversion = "0.23.0+cu118"\n'
    )
    (finding,) = outcome_of(extension_build_mismatch.CAUSE, seen).findings
    assert (finding.severity, finding.effect) == ("warning", "none")
    assert [command_of(remedy) for remedy in finding.remedies] == [
        "python -m pip install --force-reinstall --no-deps 'torchvision==0.23.*' --index-url "
        "https://download.pytorch.org/whl/cu128"
    ]


@pytest.mark.parametrize("name", ["tensorflow-text", "my-ops"])
def test_labels_of_other_packages_are_not_judged(name: str) -> None:
    seen = machine(
        f'only = ["torch"]\n[[target.packages]]\nname = "{name}"\nversion = "1.0+cu92"\n'
    )
    assert not outcome_of(extension_build_mismatch.CAUSE, seen).findings


SETUP_FAILED = "RuntimeError:\n    CUDA Setup failed despite GPU being available. Please run\n"


def test_an_old_bitsandbytes_on_windows() -> None:
    log = (
        "bin C:\\env\\lib\\site-packages\\bitsandbytes\\libbitsandbytes_cpu.so\n"
        "CUDA_SETUP: WARNING! libcudart.so not found in any environmental path.\n" + SETUP_FAILED
    )
    assert "before 0.43 have none for Windows" in root(log).message
    assert commands(log) == ["python -m pip install --upgrade bitsandbytes"]


NO_LIBRARY = (
    "Could not find the bitsandbytes CUDA binary at PosixPath('{}/libbitsandbytes_cuda124.so')"
)


def test_a_variable_that_selects_a_library_is_removed_first() -> None:
    log = (
        "WARNING: BNB_CUDA_VERSION=124 environment variable detected; loading it\n"
        f"{NO_LIBRARY.format(SITE + '/bitsandbytes')}\n{SETUP_FAILED}"
    )
    assert root(log).message.endswith("CUDA 12.4, which BNB_CUDA_VERSION selects")
    assert commands(log)[0] == "unset BNB_CUDA_VERSION"


def test_the_source_of_bitsandbytes_in_the_folder_of_the_program() -> None:
    log = (
        f"{NO_LIBRARY.format('/src/bitsandbytes/bitsandbytes')}\n"
        "OSError: /src/bitsandbytes/bitsandbytes/libbitsandbytes_cpu.so: cannot open shared object "
        f"file: No such file or directory\n{SETUP_FAILED}"
    )
    assert root(log).message == "the native code of bitsandbytes was not compiled"
    assert "another folder" in root(log).remedies[0].text
