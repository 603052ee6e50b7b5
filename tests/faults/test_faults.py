"""A campaign of hostile inputs against every verb: nothing lost, nothing leaked, no crash.

`python -m tools.fuzz --inputs 10000` does the same for longer.
"""

from __future__ import annotations

import pytest

from tests.faults.campaign import campaign
from tests.faults.table import ATTACKS

INPUTS = 600
SEED = 1


@pytest.mark.timeout(1800)
def test_every_promise_is_kept_whatever_the_input() -> None:
    result = campaign(INPUTS, SEED)
    assert result.inputs >= 500
    assert all(held.inputs for held in result.kinds.values()), result.kinds
    shown = "\n\n".join(map(str, result.failures[:10]))
    assert not result.failures, f"{len(result.failures)} of {result.inputs} failed:\n{shown}"


def test_the_shares_of_the_table_make_a_hundred() -> None:
    assert sum(attack.share for attack in ATTACKS) == 100
