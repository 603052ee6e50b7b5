"""An illegal instruction, judged by what the processor lists and what was executed."""

from __future__ import annotations

import pytest

from tests.kit import cause_named, command_of, explained, machine, run
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose

REFUSED = '[probes.torch]\nended = "signal"\nhow = "SIGILL"\nstage = "convolution cpu"'
LISTED = '[system.cpu]\ninstruction_sets = ["amx_bf16", "amx_tile", "avx", "avx512f"]'


def tried(**outcomes: str) -> str:
    rows = (f'{{feature = "{name}", outcome = "{how}"}}' for name, how in outcomes.items())
    return f"{LISTED}\ntrials = [{', '.join(rows)}]\n"


def roots(text: str) -> list[tuple[str, str, str]]:
    report = diagnose(machine(text), catalogue())
    return [(f.cause, f.subject, f.confidence) for f in report.root_causes if f.severity != "info"]


def test_an_illegal_instruction_without_a_known_lack_is_likely_on_a_processor_without_avx() -> None:
    text = f'{REFUSED}\n[system.cpu]\ninstruction_sets = ["sse4_2"]'
    (found,) = run(cause_named("avx-missing-sigill"), machine(text)).findings
    assert (found.subject, found.confidence) == ("torch", "likely")


def test_an_illegal_instruction_on_a_processor_with_avx_is_not_for_lack_of_avx() -> None:
    outcome = run(cause_named("avx-missing-sigill"), machine(REFUSED))
    assert (outcome.status, outcome.findings) == ("undetermined", ())
    assert "the processor lists avx and avx2; no instruction was executed" in outcome.reasons[0]


@pytest.mark.parametrize(
    ("outcomes", "cause"),
    [
        ({"amx_tile": "traps"}, "listed-instruction-traps"),
        ({"avx512f": "traps", "amx_tile": "not-permitted"}, "listed-instruction-traps"),
        ({"amx_tile": "runs", "avx512f": "runs"}, "framework-crashes"),
        ({"amx_tile": "unclear"}, "framework-crashes"),
        # It traps, but the processor does not list it, so that nobody uses it.
        ({"avx512_fp16": "traps"}, "framework-crashes"),
    ],
    ids=str,
)
def test_an_illegal_instruction_is_explained_by_what_was_executed(
    outcomes: dict[str, str], cause: str
) -> None:
    found = roots(f"{tried(**outcomes)}\n{REFUSED}")
    assert [root for root, subject, _ in found if subject == "torch"] == [cause]


def test_a_crash_that_no_instruction_explains_says_what_was_looked_at() -> None:
    text = f"{tried(amx_tile='runs', avx512f='runs')}\n{REFUSED}"
    (found,) = run(cause_named("framework-crashes"), machine(text)).findings
    assert "of what the processor lists, amx_tile and avx512f can be executed" in found.message


def test_tiles_that_trap_are_a_warning_for_those_who_use_them_while_nothing_has_died() -> None:
    (found,) = diagnose(machine(tried(amx_tile="traps")), catalogue()).root_causes
    assert (found.cause, found.severity) == ("listed-instruction-traps", "warning")
    assert "crash a program with TensorFlow 2.20.0 and PyTorch 2.8.0" in found.message


def test_another_crash_is_not_blamed_on_tiles_that_trap() -> None:
    crash = REFUSED.replace("SIGILL", "SIGSEGV")
    found = roots(f"{tried(amx_tile='traps')}\n{crash}")
    assert ("framework-crashes", "torch", "certain") in found


@pytest.mark.parametrize(
    ("name", "value", "avoided"),
    [
        ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16", True),
        ("ONEDNN_MAX_CPU_ISA", "avx2", True),
        ("DNNL_MAX_CPU_ISA", "AVX512_CORE", True),
        ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_AMX", False),
        ("ONEDNN_MAX_CPU_ISA", "ALL", False),
        ("ONEDNN_MAX_CPU_ISA", "no such word", False),
    ],
)
def test_a_variable_that_keeps_from_the_instructions_ends_the_warning(
    name: str, value: str, avoided: bool
) -> None:
    text = f'{tried(amx_tile="traps")}\n[environment.variables.{name}]\nvalue = "{value}"'
    assert (roots(text) == []) is avoided


def test_the_variable_has_the_highest_value_without_what_traps() -> None:
    (found,) = run(
        cause_named("listed-instruction-traps"), machine(tried(amx_tile="traps"))
    ).findings
    assert [command_of(remedy) for remedy in found.remedies[:2]] == [
        "whygpu run -- python PROGRAM.py",
        "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16",
    ]


AVX_AND_MORE = """\
I tensorflow/core/platform/cpu_feature_guard.cc:227] To enable the following instructions: AVX2 \
AVX512F{more} FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
"""
DIED = "Illegal instruction (core dumped)\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (DIED, [("avx-missing-sigill", "likely")]),
        # Both are possible, and the question that decides is asked.
        (
            f"Epoch 1/5\n10/10 - 1s - loss: 0.5\nEpoch 2/5\n{DIED}",
            [("avx-missing-sigill", "possible"), ("listed-instruction-traps", "possible")],
        ),
        (
            f"model in torch.bfloat16\n{DIED}",
            [("avx-missing-sigill", "likely"), ("listed-instruction-traps", "possible")],
        ),
        (
            AVX_AND_MORE.format(more=" AMX_TILE AMX_BF16") + DIED,
            [("listed-instruction-traps", "possible")],
        ),
        (
            f"{AVX_AND_MORE.format(more=' AMX_TILE AMX_BF16')}policy mixed_bfloat16\n{DIED}",
            [("listed-instruction-traps", "likely")],
        ),
        (AVX_AND_MORE.format(more="") + DIED, []),
    ],
    ids=["alone", "after work", "bfloat16", "AMX", "AMX in bfloat16", "AVX-512"],
)
def test_a_log_with_the_signal_alone_is_no_proof_of_a_lack_of_avx(
    log: str, expected: list[tuple[str, str]]
) -> None:
    found = explained(log)
    assert [(root.cause, root.confidence) for root in found.root_causes] == expected
    assert all(root.ask for root in found.root_causes)
    assert found.verdict == ("found" if expected else "unknown")
