"""Xids of the kernel log: from dmesg, from the journal, or unknown with the reason."""

from __future__ import annotations

from tests.collectors.transcripts import HUNG, host, printed
from whygpu.collectors.kernel_log import DMESG, JOURNAL, MOST_KINDS, collect, not_read
from whygpu.model.driver import XidCount
from whygpu.model.observed import Absent, Known, Unknown

ASK_DMESG, ASK_JOURNAL = f"run {' '.join(DMESG)}", f"run {' '.join(JOURNAL)}"
START = "[    0.000000] Linux version 6.8.0-40-generic\n"
FAULTS = (
    "[  512.100021] NVRM: Xid (PCI:0000:3B:00): 31, pid=77, name=python3, Ch 00000008\n"
    "[ 9000.000001] NVRM: GPU at PCI:0000:3b:00: GPU-5c1f1e2a-0f6d-9f6e-3a5b-7d1f0c2b9e11\n"
    "[90061.113850] NVRM: Xid (PCI:0000:3b:00): 31, pid=78, name=python3, Ch 00000009\n"
    "[90062.113850] NVRM: Xid (0000:86:00): 79, GPU has fallen off the bus.\n"
)
COUNTED = (XidCount("0000:3b:00", 31, 2, 90061), XidCount("0000:86:00", 79, 1, 90062))
REFUSED = printed(code=1, stderr="dmesg: read kernel buffer failed: Operation not permitted\n")
HIDDEN = printed(
    "-- No entries --\n",
    code=1,
    stderr="Hint: You are currently not seeing messages from other users and the system.\n",
)
JOURNALLED = "".join(
    line.replace("] ", "] node-7 kernel: ", 1) + "\n" for line in FAULTS.split("\n")[:-1]
)


def test_a_buffer_that_reaches_back_to_the_start_is_enough() -> None:
    machine = host({ASK_DMESG: printed(START + FAULTS)})
    assert collect(machine) == Known(COUNTED, "dmesg")
    assert collect(host({ASK_DMESG: printed(START)})) == Known((), "dmesg")


def test_the_journal_has_what_the_buffer_has_lost() -> None:
    machine = host({ASK_DMESG: printed("[80000.1] eth0: up\n"), ASK_JOURNAL: printed(JOURNALLED)})
    assert collect(machine) == Known(COUNTED, "journalctl --dmesg --boot")
    machine.assert_consumed()


def test_a_buffer_without_its_start_counts_if_there_is_no_journal() -> None:
    machine = host({ASK_DMESG: printed(FAULTS), ASK_JOURNAL: Absent("journalctl")})
    assert collect(machine) == Known(COUNTED, "dmesg, whose oldest messages are gone")


def test_an_empty_journal_that_may_be_read_has_no_xid() -> None:
    nothing = printed("-- No entries --\n", code=1)
    machine = host({ASK_DMESG: REFUSED, ASK_JOURNAL: nothing})
    assert collect(machine) == Known((), "journalctl --dmesg --boot")


def test_a_log_that_this_user_may_not_read_is_unknown() -> None:
    for journal in (HIDDEN, printed(code=1, stderr="No journal files were found.\n")):
        found = collect(host({ASK_DMESG: REFUSED, ASK_JOURNAL: journal}))
        assert isinstance(found, Unknown)
        assert "Operation not permitted" in found.reason
        assert journal.stderr.strip() in found.reason


def test_a_machine_without_either_command_and_one_that_hangs_are_unknown() -> None:
    found = collect(host({ASK_DMESG: Absent("dmesg"), ASK_JOURNAL: HUNG}))
    assert isinstance(found, Unknown)
    assert "dmesg is not installed" in found.reason
    assert "did not answer within" in found.reason


def test_a_flood_of_numbers_is_bounded_and_rubbish_is_not_read() -> None:
    flood = "".join(f"[ 1.5] NVRM: Xid (PCI:0000:01:00): {n}, x\n" for n in range(1, 2000))
    rubbish = "[ 2.5] NVRM: Xid (PCI:zz): 79\n[ 2.5] NVRM: Xid (PCI:0000:02:00): \x1b[31m79\n"
    found = collect(host({ASK_DMESG: printed(START + rubbish + flood)}))
    assert isinstance(found, Known)
    assert len(found.value) == MOST_KINDS
    assert {each.address for each in found.value} == {"0000:01:00"}


def test_only_a_machine_without_a_driver_is_known_to_have_no_xids() -> None:
    none, silent = Absent("NVIDIA driver"), Unknown("it does not answer")
    assert isinstance(not_read(Known((), "the PCI bus"), none), Absent)
    assert isinstance(not_read(silent, none), Unknown)
    under_wsl = not_read(Known((), "the PCI bus"), Known(("a GPU",), "nvidia-smi"))
    assert isinstance(under_wsl, Unknown)
    assert "version of whygpu" not in under_wsl.reason
