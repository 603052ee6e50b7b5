"""Processor, C library, distribution, WSL, memory and its limits."""

from __future__ import annotations

import pytest

from tests.collectors.transcripts import file, host
from whygpu.collectors import memory, system
from whygpu.host.local import LocalHost
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.system import Libc

GIB = 1 << 30
MEMINFO = "MemTotal:       67108864 kB\nMemFree:  1024 kB\nMemAvailable:   33554432 kB\n"

X86 = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz
flags\t\t: fpu sse2 smep ssse3 fma sse4_1 sse4_2 avx f16c avx2 avx512f avx512_vnni

processor\t: 1
model name\t: another
"""
ARM = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd aes asimddp sve bf16
CPU implementer\t: 0x41
"""


def test_an_intel_processor() -> None:
    cpu = system.collect(host({"read /proc/cpuinfo": X86})).cpu
    assert cpu.model == Known("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "transcript")
    assert cpu.instruction_sets == Known(
        ("avx", "avx2", "avx512_vnni", "avx512f", "f16c", "fma", "sse4_1", "sse4_2", "ssse3"),
        "transcript",
    )
    assert (cpu.architecture, cpu.cores) == ("x86_64", 16)


def test_an_arm_processor_has_features_and_no_name() -> None:
    cpu = system.collect(host({"read /proc/cpuinfo": ARM}, machine="aarch64")).cpu
    assert cpu.instruction_sets == Known(("asimd", "asimddp", "bf16", "sve"), "transcript")
    assert isinstance(cpu.model, Absent)


def test_without_cpuinfo_the_instruction_sets_are_unknown_and_not_none() -> None:
    assert isinstance(system.collect(host()).cpu.instruction_sets, Unknown)


def test_a_mac_tells_its_chip() -> None:
    answers = {
        "run sysctl -n machdep.cpu.brand_string": {
            "code": 0,
            "stdout": "Apple M2\n",
            "stderr": "",
            "timed_out": False,
        }
    }
    mac = host(answers, system="Darwin", machine="arm64", libc="")
    facts = system.collect(mac)
    assert facts.os == "darwin"
    assert facts.cpu.model == Known("Apple M2", "sysctl")
    assert isinstance(facts.cpu.instruction_sets, Unknown)
    assert isinstance(facts.libc, Absent)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("glibc 2.17", Known(Libc("glibc", "2.17"), "the C library")),
        ("musl 1.2.4", Known(Libc("musl", "1.2.4"), "the C library")),
        ("", Unknown("the C library does not report its name")),
    ],
)
def test_the_c_library(text: str, expected: Observed[Libc]) -> None:
    assert system.collect(host(libc=text)).libc == expected


def test_musl_is_known_by_its_loader() -> None:
    loader = "/lib/ld-musl-x86_64.so.1"
    alpine = host({f"stat {loader}": file(loader)}, libc="")
    assert system.collect(alpine).libc == Known(Libc("musl", ""), loader)


@pytest.mark.parametrize(
    "line", ['PRETTY_NAME="Ubuntu 24.04.1 LTS"', "PRETTY_NAME='Ubuntu 24.04.1 LTS'"]
)
def test_the_distribution(line: str) -> None:
    facts = system.collect(host({"read /usr/lib/os-release": f"ID=ubuntu\n{line}\n"}))
    assert facts.distribution == Known("Ubuntu 24.04.1 LTS", "/usr/lib/os-release")


@pytest.mark.parametrize(
    ("kernel", "version"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", 2),
        ("4.19.104-microsoft-standard", 2),
        ("4.4.0-19041-Microsoft", 1),
    ],
)
def test_wsl(kernel: str, version: int) -> None:
    assert system.collect(host(kernel=kernel)).wsl == Known(version, "the kernel's release")


def test_an_ordinary_kernel_is_not_wsl() -> None:
    assert isinstance(system.collect(host()).wsl, Absent)


def test_memory_without_limits() -> None:
    machine = host({"read /proc/meminfo": MEMINFO, "disk /dev/shm": 32 * GIB})
    facts = memory.collect(machine)
    assert facts.total_bytes == Known(64 * GIB, "transcript")
    assert facts.available_bytes == Known(32 * GIB, "transcript")
    assert facts.shared_bytes == Known(32 * GIB, "transcript")


def test_the_tightest_group_around_the_process_limits_its_memory() -> None:
    group = "/sys/fs/cgroup/user.slice"
    machine = host(
        {
            "read /proc/meminfo": MEMINFO,
            "read /proc/self/cgroup": "0::/user.slice/job.scope\n",
            f"read {group}/job.scope/memory.max": "max\n",
            f"read {group}/memory.max": f"{8 * GIB}\n",
            f"read {group}/memory.current": f"{6 * GIB}\n",
            f"read {group}/memory.stat": f"anon 1\ninactive_file {GIB}\n",
        }
    )
    facts = memory.collect(machine)
    assert facts.total_bytes == Known(8 * GIB, f"{group}/memory.max")
    assert facts.available_bytes == Known(3 * GIB, "transcript")
    machine.assert_consumed()


def test_a_larger_group_that_others_have_nearly_filled_leaves_less() -> None:
    group = "/sys/fs/cgroup/team"
    machine = host(
        {
            "read /proc/meminfo": MEMINFO,
            "read /proc/self/cgroup": "0::/team/mine\n",
            f"read {group}/mine/memory.max": f"{8 * GIB}\n",
            f"read {group}/mine/memory.current": f"{GIB}\n",
            f"read {group}/memory.max": f"{16 * GIB}\n",
            f"read {group}/memory.current": f"{14 * GIB}\n",
        }
    )
    facts = memory.collect(machine)
    assert facts.total_bytes == Known(8 * GIB, f"{group}/mine/memory.max")
    assert facts.available_bytes == Known(2 * GIB, "transcript")
    assert memory.spare_bytes(machine) == 2 * GIB - (512 << 20)


def test_a_container_of_the_first_version_of_control_groups() -> None:
    root = "/sys/fs/cgroup/memory"
    machine = host(
        {
            "read /proc/meminfo": MEMINFO,
            # The path is the host's; inside, only the root is there.
            "read /proc/self/cgroup": "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n",
            f"read {root}/memory.limit_in_bytes": f"{2 * GIB}\n",
            f"read {root}/memory.usage_in_bytes": f"{GIB}\n",
            f"read {root}/memory.stat": "total_inactive_file 0\n",
        }
    )
    facts = memory.collect(machine)
    assert facts.total_bytes == Known(2 * GIB, f"{root}/memory.limit_in_bytes")
    assert facts.available_bytes == Known(GIB, "transcript")


def test_a_limit_above_the_machine_is_none() -> None:
    machine = host(
        {
            "read /proc/meminfo": MEMINFO,
            "read /proc/self/cgroup": "4:memory:/\n",
            "read /sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    assert memory.collect(machine).total_bytes == Known(64 * GIB, "transcript")


def test_the_kernels_count_of_what_it_has_killed_is_the_groups_own() -> None:
    machine = host(
        {
            "read /proc/self/cgroup": "0::/job.scope\n",
            "read /sys/fs/cgroup/job.scope/memory.events": "low 0\noom 4\noom_kill 3\n",
        }
    )
    assert memory.oom_kills(machine) == Known(3, "transcript")


def test_a_group_without_a_count_leaves_it_to_the_machine() -> None:
    machine = host({"read /proc/self/cgroup": "0::/\n", "read /proc/vmstat": "x 1\noom_kill 7\n"})
    assert memory.oom_kills(machine) == Known(7, "transcript")
    assert isinstance(memory.oom_kills(host({"read /proc/vmstat": "oom_killer 7\n"})), Unknown)


def test_a_limited_group_that_hides_its_usage_leaves_the_rest_unknown() -> None:
    machine = host(
        {
            "read /proc/meminfo": MEMINFO,
            "read /proc/self/cgroup": "0::/\n",
            "read /sys/fs/cgroup/memory.max": f"{GIB}\n",
        }
    )
    assert isinstance(memory.collect(machine).available_bytes, Unknown)


def test_this_machine() -> None:
    facts = system.collect(LocalHost())
    assert facts.cpu.cores >= 1
    assert isinstance(facts.memory.total_bytes, Known)
    assert isinstance(facts.memory.available_bytes, Known)
    assert 0 < facts.memory.available_bytes.value <= facts.memory.total_bytes.value
    if facts.os == "linux" and facts.cpu.architecture == "x86_64":
        assert isinstance(facts.cpu.instruction_sets, Known)
        assert "sse4_2" in facts.cpu.instruction_sets.value
