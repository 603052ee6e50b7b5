"""protobuf, NumPy, glibc and AVX: the messages of real failures, and what is only noise."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose

# Raised by TensorFlow 2.21.0 with these releases of protobuf, or by older TensorFlow releases.
PROTOBUF = [
    "ImportError: cannot import name 'runtime_version' from 'google.protobuf' (__init__.py)",
    "VersionError: Detected mismatched Protobuf Gencode/Runtime major versions when loading "
    "tensorflow/core/framework/attr_value.proto: gencode 6.31.1 runtime 5.29.5. Same major",
    "VersionError: Detected incompatible Protobuf Gencode/Runtime versions when loading "
    "tensorflow/core/framework/attr_value.proto: gencode 6.31.1 runtime 6.30.2. Runtime version",
    "TypeError: Descriptors cannot not be created directly.",
    "TypeError: Descriptors cannot be created directly.",
    "ImportError: cannot import name 'builder' from 'google.protobuf.internal' (__init__.py)",
    "ModuleNotFoundError: No module named 'google.protobuf'",
    "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'",
]
NUMPY = [
    "ImportError: numpy.core.umath failed to import",
    "AttributeError: `np.complex_` was removed in the NumPy 2.0 release. Use `np.complex128`.",
    "AttributeError: _ARRAY_API not found",
    "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from "
    "C header, got 88 from PyObject",
    "RuntimeError: module compiled against API version 0xc but this version of numpy is 0xb",
    "AttributeError: module 'numpy' has no attribute 'object'.",
    "AttributeError: module 'numpy' has no attribute 'exceptions'",
    "ModuleNotFoundError: No module named 'numpy._core'",
    "TypeError: Unable to convert function return value to a Python type! The signature was\n"
    "\t() -> handle",
]


def failing(how: str, name: str = "tensorflow", more: str = "") -> str:
    return f"""
        [probes.{name}]
        ended = "exception"
        stage = "import"
        operations = []
        how = '''{how}'''
        {more}
    """


@each("how", PROTOBUF)
def test_every_wording_of_a_protobuf_conflict_is_certain(how: str) -> None:
    (found,) = run(cause_named("protobuf-conflict"), machine(failing(how))).findings
    assert (found.subject, found.confidence) == ("tensorflow", "certain")
    assert how.startswith(found.evidence[0].text[:40])


@each("how", NUMPY)
def test_every_wording_of_a_numpy_mismatch_is_certain(how: str) -> None:
    (found,) = run(cause_named("numpy-abi"), machine(failing(how))).findings
    assert (found.subject, found.confidence) == ("tensorflow", "certain")


@each("how", [*NUMPY, "ImportError: libcublas.so.9.0: cannot open"])
def test_protobuf_is_not_blamed_for_other_errors(how: str) -> None:
    assert run(cause_named("protobuf-conflict"), machine(failing(how))).status == "passed"


@each(
    "how",
    [
        *PROTOBUF,
        "ImportError: libcublas.so.9.0: cannot open",
        # Its own compiled parts are missing: it was installed for another Python.
        "ModuleNotFoundError: No module named 'numpy._core._multiarray_umath'",
    ],
)
def test_numpy_is_not_blamed_for_other_errors(how: str) -> None:
    assert run(cause_named("numpy-abi"), machine(failing(how))).status == "passed"


def test_the_real_error_is_found_beneath_the_one_that_hides_it() -> None:
    hidden = failing(
        "ImportError: Keras cannot be imported. Check that it is installed.",
        more=f"facts = [['first exception', '''{PROTOBUF[0]}''']]",
    )
    assert run(cause_named("protobuf-conflict"), machine(hidden)).status == "found"


def test_what_is_printed_and_survived_is_not_the_reason_of_a_failure() -> None:
    """TensorFlow 2.15 with protobuf 7 and NumPy 2 prints the first and fails with the second."""
    both = failing(NUMPY[1], more=f"log = ['''{PROTOBUF[-1]}''']")
    assert run(cause_named("protobuf-conflict"), machine(both)).status == "passed"
    assert run(cause_named("numpy-abi"), machine(both)).status == "found"


def test_the_log_speaks_where_native_code_ended_the_process() -> None:
    aborted = """
        [probes.torch]
        ended = "signal"
        how = "SIGABRT"
        stage = "import"
        log = ["[libprotobuf FATAL] This program requires version 3.9.0 of the Protocol Buffer"]
    """
    (found,) = run(cause_named("protobuf-conflict"), machine(aborted)).findings
    assert found.subject == "torch"


def test_a_keras_that_fails_with_its_backend_is_not_reported_twice() -> None:
    both = failing(PROTOBUF[0]) + failing(PROTOBUF[0], "keras", "facts = []")
    (found,) = run(cause_named("protobuf-conflict"), machine(both)).findings
    assert found.subject == "tensorflow"


@pytest.mark.parametrize(
    ("how", "command"),
    [
        (PROTOBUF[0], "python -m pip install 'protobuf>=5.28.0'"),
        (PROTOBUF[1], "python -m pip install 'protobuf>=6.31.1'"),
        (PROTOBUF[3], "python -m pip install 'protobuf<3.21'"),
    ],
)
def test_the_protobuf_to_install_follows_from_message_and_metadata(how: str, command: str) -> None:
    (found,) = run(cause_named("protobuf-conflict"), machine(failing(how))).findings
    assert command_of(found.remedies[0]) == command


@each(
    ("how", "installed", "wanted"),
    [
        (NUMPY[0], "2.1.3", "numpy<2"),
        (NUMPY[0], "1.16.0", "numpy>1.16.0"),
        (NUMPY[3], "2.1.3", "numpy<2"),
        (NUMPY[3].replace("96", "0").replace("88", "96").replace("Expected 0", "Expected 88"),
         "1.26.4", "numpy>=2"),
        (NUMPY[4], "1.11.0", "numpy>1.11.0"),
        (NUMPY[5], "1.26.4", "numpy<1.24"),
    ],
)  # fmt: skip
def test_the_numpy_to_install_lies_on_the_right_side(how: str, installed: str, wanted: str) -> None:
    text = f'{failing(how)}\n[target.packages.numpy]\nversion = "{installed}"'
    (found,) = run(cause_named("numpy-abi"), machine(text)).findings
    assert command_of(found.remedies[0]) == f"python -m pip install '{wanted}'"


def test_the_range_of_the_metadata_is_given_as_pip_takes_it() -> None:
    text = """
        probes_left_out = "--no-probe"
        [[target.conflicts]]
        package = "tensorflow"
        requirement = "numpy (<2.0.0,>=1.23.5)"
        found = "2.4.6"
    """
    (found,) = run(cause_named("numpy-abi"), machine(text)).findings
    assert found.confidence == "likely"
    assert command_of(found.remedies[0]) == "python -m pip install 'numpy<2.0.0,>=1.23.5'"


def test_a_pytorch_that_lost_only_its_bridge_to_numpy_is_a_warning() -> None:
    text = """
        [probes.torch]
        log = ["UserWarning: Failed to initialize NumPy: _ARRAY_API not found (Triggered ...)"]
    """
    (found,) = run(cause_named("numpy-abi"), machine(text)).findings
    assert (found.subject, found.severity) == ("torch", "warning")


def test_a_missing_package_is_not_a_wrong_one() -> None:
    text = """
        probes_left_out = "--no-probe"
        [[target.conflicts]]
        package = "tensorflow"
        requirement = "numpy>=1.26.0"
        found = {absent = "numpy in the packages"}
    """
    assert run(cause_named("numpy-abi"), machine(text)).status == "passed"


GLIBC = (
    "ImportError: /lib64/libm.so.6: version `GLIBC_2.23' not found (required by "
    "~/venv/lib/python3.7/site-packages/tensorflow/python/_pywrap_tensorflow_internal.so)"
)
GLIBCXX = "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by x.so)"


@pytest.mark.parametrize(
    ("how", "word", "remedies"),
    [
        (GLIBC, "C library", ("newest release", "container")),
        (GLIBCXX, "libstdc++", ("LD_LIBRARY_PATH", "conda")),
    ],
)
def test_the_c_and_the_c_plus_plus_library_have_different_remedies(
    how: str, word: str, remedies: tuple[str, str]
) -> None:
    (found,) = run(cause_named("glibc-too-old"), machine(failing(how))).findings
    assert found.message.startswith(f"the {word} is too old")
    for text, remedy in zip(remedies, found.remedies, strict=True):
        assert text in remedy.text
    assert found.confidence == "certain"


@each(
    ("name", "value", "command"),
    [
        ("LD_LIBRARY_PATH", "/opt/old/lib:/opt/other", 'export LD_LIBRARY_PATH="/opt/other"'),
        ("LD_PRELOAD", "/opt/old/lib/libstdc++.so.6", "unset LD_PRELOAD"),
        ("LD_LIBRARY_PATH", "/opt/other", "conda install -c conda-forge libstdcxx-ng"),
    ],
)
def test_the_setting_that_brings_an_old_library_is_dropped(
    name: str, value: str, command: str
) -> None:
    how = GLIBCXX.replace("libstdc", "/opt/old/lib/libstdc")
    text = failing(how) + f'[environment.variables.{name}]\nvalue = "{value}"\n'
    (found,) = run(cause_named("glibc-too-old"), machine(text)).findings
    assert command_of(found.remedies[0]) == command


def test_a_keras_whose_backend_cannot_compute_is_not_reported_again() -> None:
    failed = (
        'operations = [{operation = "matmul", requested = "cpu:0", kind = "cpu", '
        'ran_on = {unknown = "no reason"}, correct = {unknown = "it failed"}}]\n'
    )
    text = f"start = 'no-gpu'\n[probes.tensorflow]\n{failed}[probes.keras]\n{failed}"
    report = diagnose(machine(text), catalogue())
    assert [(root.cause, root.subject) for root in report.root_causes] == [
        ("framework-import-fails", "tensorflow")
    ]


def test_a_crash_for_lack_of_memory_leads_to_the_limits() -> None:
    text = """[probes.jax]
ended = "signal"
how = "SIGABRT"
stage = "matmul cpu:0"
log = ["terminate called after throwing an instance of 'St9bad_alloc'"]
"""
    (found,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert "ulimit -v" in (command_of(found.remedies[0]) or "")


def library(detail: str, outcome: str = "version-missing") -> str:
    return f"""
        only = ["tensorflow"]
        [probes.tensorflow]
        operations = []
        [target.frameworks.tensorflow.libraries."libcudnn.so.9"]
        outcome = "{outcome}"
        detail = "{detail}"
    """


DETAIL = "libc.so.6: version `GLIBC_2.34' not found (required by libcudnn.so.9)"


def test_a_cuda_library_that_needs_a_newer_system_costs_the_gpu_and_is_named() -> None:
    (found,) = run(cause_named("glibc-too-old"), machine(library(DETAIL))).findings
    assert found.effect == "cpu"
    assert "GLIBC_2.34" in found.message
    assert "libcudnn.so.9" in found.message


def test_another_missing_version_is_not_the_c_librarys() -> None:
    detail = "libcublas.so.12: version `libcublas.so.12' not found"
    assert run(cause_named("glibc-too-old"), machine(library(detail))).status == "passed"


def test_a_cuda_library_does_not_matter_where_there_is_no_gpu() -> None:
    text = 'start = "no-gpu"\n' + library(DETAIL)
    assert run(cause_named("glibc-too-old"), machine(text)).status == "passed"


@each(
    ("glibc", "tag", "status"),
    [
        ("2.27", "manylinux_2_28_x86_64", "found"),
        ("2.28", "manylinux_2_28_x86_64", "passed"),
        ("2.9", "manylinux_2_28_x86_64", "found"),
        ("2.16", "manylinux2014_x86_64", "found"),
        ("2.17", "manylinux2014_x86_64", "passed"),
        ("2.2", "linux_x86_64", "passed"),
    ],
)
def test_the_floor_of_the_wheels_tag_itself_is_enough(glibc: str, tag: str, status: str) -> None:
    text = f"""
        only = ["torch"]
        probes_left_out = "--no-probe"
        [system.libc]
        version = "{glibc}"
        [target.packages.torch]
        wheel_tags = ["cp311-cp311-{tag}"]
    """
    assert run(cause_named("glibc-too-old"), machine(text)).status == status


def test_the_lacking_instructions_are_named() -> None:
    text = """
        [system.cpu]
        instruction_sets = ["sse4_2"]
        [probes.tensorflow]
        ended = "signal"
        how = "SIGILL"
        stage = "import"
    """
    (found,) = run(cause_named("avx-missing-sigill"), machine(text)).findings
    assert found.confidence == "certain"
    assert "uses AVX instructions, which this processor (AMD EPYC 7543) lacks" in found.message


def test_jaxlib_says_it_in_words() -> None:
    how = (
        "RuntimeError: This version of jaxlib was built using AVX instructions, which your CPU "
        "and/or operating system do not support."
    )
    (found,) = run(cause_named("avx-missing-sigill"), machine(failing(how, "jax"))).findings
    assert found.subject == "jax"


def test_a_framework_that_was_imported_has_the_instructions_it_needs() -> None:
    text = '[system.cpu]\ninstruction_sets = ["sse4_2"]'
    assert run(cause_named("avx-missing-sigill"), machine(text)).status == "passed"


def test_a_build_whose_needs_are_not_on_record_is_a_gap_beside_the_finding() -> None:
    text = """
        only = ["tensorflow", "torch"]
        probes_left_out = "--no-probe"
        [system.cpu]
        instruction_sets = ["sse4_2"]
        [target.frameworks.torch.build]
        cpu_features = {unknown = "not on record"}
    """
    outcome = run(cause_named("avx-missing-sigill"), machine(text))
    assert [finding.subject for finding in outcome.findings] == ["tensorflow"]
    assert outcome.reasons == ("not on record",)


GONE = """
[target.interpreter]
modules = [
    {{name = "torch", place = {torch}}},
    {{name = "numpy", place = {numpy}}},
]
[probes.torch]
ended = "exception"
stage = "import"
how = "{how}"
"""
OF_ITSELF = "AttributeError: module 'torch' has no attribute '__version__'"
OF_NUMPY = "AttributeError: module 'numpy' has no attribute 'ndarray'"
THERE, GONE_FILES = '"~/venv/site-packages"', '{absent = "the target"}'
FROM_NOWHERE = "ImportError: cannot import name 'a' from 'google.protobuf' (unknown location)"


@each(
    ("torch", "numpy", "how", "command"),
    [
        (
            GONE_FILES,
            THERE,
            OF_ITSELF,
            "python -m pip install --force-reinstall --no-deps torch==2.8.0",
        ),
        (
            THERE,
            GONE_FILES,
            OF_NUMPY,
            "python -m pip install --force-reinstall --no-deps numpy==2.1.3",
        ),
        # NumPy is there, and lacks something that this release of PyTorch needs.
        (THERE, THERE, OF_NUMPY, "python -m pip check"),
        # The package of a module may have another name.
        (THERE, THERE, FROM_NOWHERE, None),
    ],
)
def test_a_package_of_which_only_the_folder_is_left(
    torch: str, numpy: str, how: str, command: str | None
) -> None:
    snapshot = machine('only = ["torch"]\n' + GONE.format(torch=torch, numpy=numpy, how=how))
    (finding,) = run(cause_named("framework-import-fails"), snapshot).findings
    assert command_of(finding.remedies[0]) == command


def test_keras_fails_because_its_backend_does() -> None:
    failing_backend = GONE.format(torch=GONE_FILES, numpy=THERE, how=OF_ITSELF)
    text = f"""only = ["keras", "torch"]
{failing_backend}
[target.frameworks.keras.keras]
backend = "torch"
generation = "keras-3"
[probes.keras]
ended = "exception"
stage = "import"
how = "ModuleNotFoundError: No module named 'torch.utils'"
facts = [["backend", "torch"]]
"""
    report = diagnose(machine(text), catalogue())
    roots = [(finding.code, finding.subject) for finding in report.root_causes]
    assert roots == [("WG314", "torch")]


IN_ML_DTYPES = """traceback = ["Traceback (most recent call last):",
  'File "~/venv/lib/python3.11/site-packages/tensorflow/python/dtypes.py", line 21, in <module>',
  'File "~/venv/lib/python3.11/site-packages/ml_dtypes/__init__.py", line 32, in <module>',
  "ImportError: numpy.core.umath failed to import"]"""
OLD_ML_DTYPES = """
    [target.packages.ml-dtypes]
    version = "0.2.0"
"""
UNMET = """
    [[target.conflicts]]
    package = "tensorflow"
    requirement = "ml_dtypes>=0.5.1"
    found = "0.2.0"
"""


def test_a_package_whose_own_binaries_do_not_fit_numpy_is_what_has_to_change() -> None:
    """Not NumPy: the framework's binaries fit it."""
    text = failing("ImportError: numpy.core.umath failed to import", more=IN_ML_DTYPES)
    report = diagnose(machine(text + OLD_ML_DTYPES + UNMET), catalogue())
    (finding,) = [found for found in report.findings if found.code in ("WG309", "WG313")]
    assert (finding.code, finding.confidence) == ("WG309", "certain")
    assert "ml-dtypes 0.2.0" in finding.message
    assert command_of(finding.remedies[0]) == "python -m pip install 'ml_dtypes>=0.5.1'"
    (finding,) = run(cause_named("numpy-abi"), machine(text + OLD_ML_DTYPES)).findings
    assert finding.confidence == "likely"
    assert command_of(finding.remedies[0]) == "python -m pip install --upgrade ml-dtypes"


@each(
    ("how", "installed", "command"),
    [
        (
            "ImportError: cannot import name 'Self' from 'typing_extensions' "
            "(~/venv/lib/python3.11/site-packages/typing_extensions.py)",
            "typing-extensions",
            "python -m pip install --upgrade typing-extensions",
        ),
        (
            "ImportError: /opt/lib/python3.11/site-packages/h5py/_errors.so: file too short",
            "h5py",
            "python -m pip install --force-reinstall --no-deps h5py==3.7.4",
        ),
        (
            "ImportError: you need to have `optree` installed: `pip install optree`",
            "optree",
            "python -c 'import optree'",
        ),
        (
            "ImportError: you need to have `optree` installed: `pip install optree`",
            "another",
            "python -m pip check",
        ),
        (
            "ImportError: cannot import name 'ops' from 'tensorflow' "
            "(~/venv/lib/python3.11/site-packages/tensorflow/__init__.py)",
            "another",
            "python -m pip check",
        ),
    ],
)
def test_an_error_about_another_package_is_mended_there(
    how: str, installed: str, command: str
) -> None:
    there = f'\n[target.packages.{installed}]\nversion = "3.7.4"\n'
    found = run(cause_named("framework-import-fails"), machine(failing(how) + there)).findings
    assert command_of(found[0].remedies[0]) == command


def bus_error(path: str, stage: str = "import") -> str:
    return f"""
        [probes.tensorflow]
        ended = "signal"
        how = "SIGBUS"
        stage = "{stage}"
        operations = []
        log = ["Fatal Python error: Bus error",
          'File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed',
          'File "{path}", line 10 in <module>',
          'File "~/harness.py", line 279 in <module>']
    """


@each(
    ("place", "command"),
    [
        ("numpy/_core/multiarray.py", "--force-reinstall --no-deps numpy==2.1.3"),
        ("tensorflow/python/pywrap.py", "--force-reinstall --no-deps tensorflow==2.20.0"),
        ("unknown/__init__.py", None),
    ],
)
def test_a_bus_error_at_an_import_is_a_damaged_file_of_what_was_being_loaded(
    place: str, command: str | None
) -> None:
    crashes = cause_named("framework-crashes")
    path = f"~/venv/lib/python3.11/site-packages/{place}"
    (finding,) = run(crashes, machine(bus_error(path))).findings
    first = command_of(finding.remedies[0]) or ""
    assert (f"python -m pip install {command}" == first) is (command is not None)
    assert any(place in item.text for item in finding.evidence)
    # Later, shared memory may be full: that is no damaged file.
    (finding,) = run(crashes, machine(bus_error(path, "matmul CPU:0"))).findings
    assert "reinstall" not in (command_of(finding.remedies[0]) or "")


def test_a_cpu_build_with_a_cut_file_is_installed_again_from_its_own_index() -> None:
    path = "~/venv/lib/python3.11/site-packages/torch/__init__.py"
    text = bus_error(path).replace("probes.tensorflow", "probes.torch")
    text += '[target.frameworks.torch]\nversion = "2.8.0+cpu"\n'
    (finding,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert (command_of(finding.remedies[0]) or "").endswith(
        "--no-deps torch==2.8.0 --index-url https://download.pytorch.org/whl/cpu"
    )


MAPPED = "failed to map segment from shared object"


@each(
    ("how", "command"),
    [
        (f"ImportError: /data/my venv/lib/a.so: {MAPPED}", "findmnt -T '/data/my venv/lib/a.so'"),
        (f"ImportError: {350 * 'x'}: /data/a.so: {MAPPED}", "findmnt -T /data/a.so; ulimit -v"),
        ("RuntimeError: DefaultCPUAllocator: not enough memory", "ulimit -v; free -h"),
        ("ImportError: a.so: cannot allocate memory in static TLS block", "python -m pip check"),
    ],
)
def test_what_the_system_refuses_is_looked_at_before_anything_is_installed(
    how: str, command: str
) -> None:
    (finding,) = run(cause_named("framework-import-fails"), machine(failing(how))).findings
    assert (command_of(finding.remedies[0]) or "").startswith(command)


def test_a_preloaded_library_is_taken_out_and_the_others_stay() -> None:
    how = "ImportError: /opt/o/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /a)"
    more = '[environment.variables.LD_PRELOAD]\nvalue = "/opt/a.so  /opt/o/libstdc++.so.6"\n'
    (finding,) = run(cause_named("glibc-too-old"), machine(more + failing(how))).findings
    assert command_of(finding.remedies[0]) == 'export LD_PRELOAD="/opt/a.so"'
