"""Library names and fates: every platform's spelling, every loader's words."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.libraries import identify
from whygpu.readers.log import read_text


@each(
    ("name", "component", "version"),
    [
        ("libcudnn.so.8", "cudnn", "8"),
        ("libcudart.so.11.0", "cudart", "11.0"),
        ("libcublas.so", "cublas", ""),
        ("libcudart.7.5.dylib", "cudart", "7.5"),
        ("cudart64_110.dll", "cudart", "11.0"),
        ("cudart64_101.dll", "cudart", "10.1"),
        ("cudart64_90.dll", "cudart", "9.0"),
        ("cudart64_12.dll", "cudart", "12"),
        ("cublas64_100.dll", "cublas", "10.0"),
        ("cublas64_11.dll", "cublas", "11"),
        ("cusolver64_10.dll", "cusolver", "10"),
        ("cudnn64_7.dll", "cudnn", "7"),
        ("cudnn_ops_infer64_8.dll", "cudnn_ops_infer", "8"),
        ("nvrtc64_120_0.dll", "nvrtc", "12.0"),
        ("nvcuda.dll", "cuda", ""),
    ],
)
def test_a_file_name_tells_the_library_and_its_version(
    name: str, component: str, version: str
) -> None:
    assert identify(name) == (component, version)


@each(
    ("line", "library", "outcome"),
    [
        (
            "Successfully opened dynamic library libcublas.so.10",
            "libcublas.so.10",
            "opened",
        ),
        (
            "Could not load dynamic library 'cudart64_110.dll'; dlerror: cudart64_110.dll not "
            "found",
            "cudart64_110.dll",
            "not-found",
        ),
        (
            "CuPy failed to load nvrtc64_112_0.dll",
            "nvrtc64_112_0.dll",
            "not-found",
        ),
        (
            "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
            "libcublas.so.12",
            "not-found",
        ),
        (
            'Error loading "C:\\ort\\onnxruntime_providers_cuda.dll" which depends on '
            '"cublasLt64_12.dll" which is missing.',
            "cublasLt64_12.dll",
            "not-found",
        ),
        (
            "Library not loaded: @rpath/libcudart.7.5.dylib",
            "libcudart.7.5.dylib",
            "not-found",
        ),
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}",
            "libcudnn_ops.so.9.1.0",
            "not-found",
        ),
        (
            "symbol cublasLtGetStatusString, version libcublasLt.so.11 not defined in file "
            "libcublasLt.so.11 with link time reference",
            "libcublasLt.so.11",
            "wrong-symbols",
        ),
        (
            "version `libcudart.so.9.0' not found (required by /opt/env/torch/_C.so)",
            "libcudart.so.9.0",
            "wrong-symbols",
        ),
        (
            "/usr/lib/libcudnn.so.7: file too short",
            "libcudnn.so.7",
            "broken",
        ),
    ],
)
def test_what_the_loader_says_of_a_library(line: str, library: str, outcome: str) -> None:
    told = {(event.library, event.outcome) for event in read_text(line).libraries}
    assert (library, outcome) in told


def test_a_library_stops_the_program_where_an_import_error_names_it() -> None:
    words = "libcublas.so.9.0: cannot open shared object file: No such file or directory"
    assert [event.stops for event in read_text(f"ImportError: {words}").libraries] == [True]
    assert [event.stops for event in read_text(f"warning: {words}").libraries] == [False]


def test_ordinary_lines_name_no_library() -> None:
    assert read_text("loaded model.so far\nlibrary card not found\n").libraries == ()
