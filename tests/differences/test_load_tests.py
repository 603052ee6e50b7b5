"""What a test under load shows is no difference between machines, unless both were tested."""

from __future__ import annotations

from tests.kit import machine
from whygpu import diff

PLAIN = machine()
FAST = machine("[stress.0]\nnumber = 0")
SLOW = machine("""
[stress.0.test.rates.memory]
speeds = {lowest = 1e11, median = 1e11, highest = 1e11, repetitions = 3}
""")
NOTE = "only the {} snapshot was put under load (--stress); what that showed is not compared"


def test_other_speeds_are_no_difference() -> None:
    faster = machine("""
        [stress.0.test.rates.memory]
        speeds = {lowest = 7e11, median = 7e11, highest = 7e11, repetitions = 3}
    """)
    answer = diff(FAST, faster)
    assert answer.differences == ()
    assert answer.exit_code == 0
    assert answer.notes == ()


def test_a_gpu_that_became_slow_is_a_new_problem_that_files_do_not_explain() -> None:
    answer = diff(FAST, SLOW)
    (reason,) = answer.reasons
    assert reason.finding is not None
    assert reason.finding.code == "WG115"
    assert reason.sets == ()
    assert reason.unexplained


def test_a_machine_that_was_not_tested_is_not_called_faster() -> None:
    for before, after, tested in ((PLAIN, SLOW, "second"), (SLOW, PLAIN, "first")):
        answer = diff(before, after)
        assert answer.reasons == ()
        assert answer.notes == (NOTE.format(tested),)
