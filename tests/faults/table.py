"""The table of attacks: every kind, what its inputs are, and how many of a hundred are of it."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.faults.attacks import logs, programs, snapshots, sources, surroundings, targets, words
from tests.faults.case import Attack, Case

ATTACKS = (
    Attack("logs", "real lines with hostile words, damaged bytes, archives", logs.logs, 16),
    Attack("log commands", "words that a shell acts on, in a log", logs.hijacks, 8),
    Attack("log secrets", "keys and names in lines that are quoted", logs.secrets, 10),
    Attack("snapshots", "facts that lie, other types, torn JSON", snapshots.snapshots, 12),
    Attack("snapshot commands", "the same in the facts of a machine", snapshots.hijacks, 8),
    Attack("snapshot secrets", "keys and names in any field", snapshots.secrets, 7),
    Attack("programs", "sources, notebooks and settings for lint", sources.sources, 12),
    Attack("program secrets", "keys on the lines that lint quotes", sources.secrets, 5),
    Attack("words", "arguments that no verb expects", words.words, 10),
    Attack("interpreters", "a python that lies, floods or dies", targets.lying_pythons, 3),
    Attack("packages", "metadata, variables and libraries", targets.hostile_packages, 3),
    Attack("runs", "programs that damage the record of their run", programs.programs, 2),
    Attack("surroundings", "variables and folders", surroundings.surroundings, 2),
    Attack("outputs", "places that cannot be written", surroundings.outputs, 2),
)
KINDS = frozenset(attack.kind for attack in ATTACKS)


def cases(count: int, seed: int, kinds: frozenset[str] = KINDS) -> Iterator[tuple[Attack, Case]]:
    """So many inputs, each kind with its share, the same for the same seed; those of some kinds."""
    for attack in ATTACKS:
        supply = attack.cases(random.Random(f"{seed} {attack.kind}"))
        for _ in range(max(1, count * attack.share // 100) if attack.kind in kinds else 0):
            yield attack, next(supply)
