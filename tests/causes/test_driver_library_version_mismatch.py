"""How versions are compared, and whose library it is."""

from __future__ import annotations

from tests.cases import each
from tests.kit import cause_named, machine, run

CAUSE = cause_named("driver-library-version-mismatch")


@each(
    ("library", "module", "status"),
    [
        ("580.159.04", "580.159.4", "passed"),
        ("580.159.04", "580.159.04", "passed"),
        ("580.159.04", "580.159.03", "found"),
        ("580.65.06", "575.57.08", "found"),
    ],
)
def test_a_leading_zero_is_no_difference(library: str, module: str, status: str) -> None:
    snapshot = machine(f"""
[driver]
kernel_module = "{module}"
[driver.cuda_library]
version = "{library}"
[driver.nvml_library]
version = "{module}"
""")
    assert run(CAUSE, snapshot).status == status


def test_the_message_names_both_versions_and_the_file() -> None:
    snapshot = machine("""
[driver.cuda_library]
path = "/opt/libcuda.so.1"
version = "550.54.14"
""")
    (finding,) = run(CAUSE, snapshot).findings
    for part in ("/opt/libcuda.so.1", "550.54.14", "580.65.06"):
        assert part in finding.message


def test_a_refusal_without_versions_quotes_the_driver() -> None:
    snapshot = machine("""
[driver]
state = "mismatched"
detail = "Driver/library version mismatch"
kernel_module = {unknown = "/sys is not mounted"}
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert "Driver/library version mismatch" in finding.message


def test_a_library_without_a_version_is_not_compared() -> None:
    snapshot = machine("""
[driver.cuda_library]
version = {absent = "version in the name"}
""")
    assert run(CAUSE, snapshot).status == "passed"
