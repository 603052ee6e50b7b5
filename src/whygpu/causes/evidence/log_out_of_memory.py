"""Why GPU memory ran out, judged by the numbers of a log, for the memory family."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from whygpu.causes.evidence.log_memory_figures import Figures, figures_of, size_of_shape, text_of
from whygpu.causes.evidence.log_memory_holders import by_named_process, by_table
from whygpu.causes.evidence.watched_memory import (
    Judgement,
    Reason,
    by_watching,
    completed,
    doubted,
)
from whygpu.model.finding import Confidence, Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Log, Match
from whygpu.model.units import GIB, logged_size, size_text

_CONTEXT = GIB // 2
"""Memory of a process in addition to its tensors: context, kernels, library workspaces."""
_SMALL = 64 << 20
_SMALLEST_NOTE = 10 << 20
_MUCH_UNUSED = 0.1
_SOME_UNUSED = 0.02
_MOST_UNUSED = 0.3
"""Shares of the GPU's memory. An allocator always keeps some blocks that nothing uses at the
moment; only if they are many, a program with the same tensors in better order would fit."""
_WORKED = 2
"""This many lines of progress show that the program continued."""
_AT_ONCE = 4
_LEAST_AT_START = GIB // 2
"""TensorFlow reserves what is free; every GPU that is not in use has more than this."""
_MOST_LINES = 6
"""The most lines of one kind in the evidence; a log can have thousands."""

_CONTEXT_FAILED = late(
    r"(?:cuDevicePrimaryCtxRetain|cuCtxCreate|cuInit|[Ff]ailed to create stream executor"
    r"|[Ff]ailed initializing StreamExecutor|could not create context)[^\n]{0,160}\n?[^\n]{0,160}"
    r"CUDA_ERROR_OUT_OF_MEMORY"
    # In a Java program, stack frames follow the error.
    r"|CUDA_ERROR_OUT_OF_MEMORY[^\n]{0,80}\n[^\n]{0,160}\n?[^\n]{0,160}cu(?:CtxCreate"
    r"|DevicePrimaryCtxRetain)\b"
    # TensorFlow 2 opens the GPU with a call of the CUDA runtime.
    r"|cuda(?:SetDevice|GetDevice)\(\)[^\n]{0,40} failed\. Status: out of memory"
)
_DUMPED = late(r"\bSum Total of in-use chunks: |\d Chunks of size \d{1,15} totalling ")
"""TensorFlow lists its allocations only if it cannot fulfil a request."""
_LAZY_START = late(r"_lazy_(?:new|init)\b|torch\._C\._cuda_init|in set_device\b|THCGeneral\.cpp")
_STARTING = late(
    r"\.cuda\(|\.to\(|torch\.load|load_state_dict|from_pretrained"
    r"|\bin (?:__init__|_apply|convert)\b"
)
_SINCE_1_8 = late(r"might be asynchronously reported|CUDA_LAUNCH_BLOCKING|TORCH_USE_CUDA_DSA")
"""Text of PyTorch since 1.8. Its allocator has had its own message, with sizes, since 1.0."""
_AT_WORK = late(r"\b(?:backward|forward|optimizer\.step|generate|train_step|training_step)\b")
_GROWING = late(
    r"memory leak|memory (?:usage |consumption )?(?:keeps|is|was) (?:on |steadily |slowly )?"
    r"(?:growing|increasing|rising)|(?:growing|increasing) (?:GPU )?memory",
    re.I,
)
_EPOCH = late(r"\b[Ee]poch[ :=\[(]{0,3}(?P<number>\d{1,5})")
_MEMORY_NOTE = late(
    r"(?:allocated|reserved|memory|mem|vram)(?:_\w{1,12})?[^\w\n]{1,4}"
    r"(?P<number>\d{1,6}(?:\.\d{1,6})?) ?"
    r"(?P<unit>[GM])(?:i?B)?\b",
    re.I,
)
_BY_DRIVER = late(
    r"cudaErrorMemoryAllocation|CUDA (?:error|failure \d+): ?'?out of memory|NVML_SUCCESS == r",
    re.I,
)
_ONE_COPY = late(r"_EagerConst|from_tensor_slices|in order to run _EagerConst")
_EVALUATION = late(r"\b(?:eval|predict|test|valid|infer|accuracy)", re.I)
_ABOUT_MEMORY = late(
    r"memory|oom|resource[ _]?exhausted|alloc|cudnn|cublas|DNN library|Blas \w{1,12} launch", re.I
)
_OF_METAL = late(r"\bMPS (?:backend|allocated)\b")
_PIN = late(r"pin_memory|allocate_cpu_cache|cpu_cache\b")


class Shortage(NamedTuple):
    """What the log shows about GPU memory that was refused."""

    reason: Reason
    confidence: Confidence
    because: str
    """The evidence, as text that can end a sentence."""
    also: Reason | None
    """A second reason that the log does not exclude."""
    refused: tuple[Allocation, ...]
    lines: tuple[int, ...]
    requested: int | None
    free: int | None
    total: int | None
    severity: Severity


def shortage(log: Log) -> Shortage | None:
    """Why GPU memory ran out in this log; None if it did not."""
    if log.memory is not None and log.memory.place != "gpu":
        # XLA prints the same for main memory; a watched run shows which memory it was.
        return None
    refused = [
        a
        for a in log.allocations
        if a.place == "gpu" and a.final and not _pinned(log, a) and not metal_without_memory(log, a)
    ]
    ladder = [a for a in log.allocations if a.place == "gpu" and not a.final and _is_ladder(log, a)]
    dumps = [] if log.allocations else [match.line for match in log.find(_DUMPED)]
    ends_of_memory = any(_ABOUT_MEMORY.search(failure.text) for failure in log.failures)
    if not refused and (not (ladder or dumps) or (log.failures and not ends_of_memory)):
        # A reservation was tried again with less, and the failure has another reason.
        return None
    figures = completed(figures_of(log, refused), log.memory)
    reason, confidence, because, also = by_watching(log) or doubted(
        log, _judge(log, refused, ladder, figures)
    )
    lines = [a.line for a in refused[:_MOST_LINES] + refused[-_MOST_LINES:]]
    lines += [a.line for a in ladder[:_MOST_LINES]] + dumps[:_MOST_LINES]
    lines += [f.line for f in log.failures if _ABOUT_MEMORY.search(f.text)][:_MOST_LINES]
    lines += _aborts(log, refused)
    return Shortage(
        reason,
        confidence,
        because,
        also,
        tuple(refused),
        tuple(lines),
        figures.requested,
        figures.free,
        figures.total_most,
        _severity(log, refused),
    )


def _aborts(log: Log, refused: list[Allocation]) -> list[int]:
    """How the process ended immediately, in programs that check and abort."""
    return [
        failure.line
        for failure in log.failures
        if failure.kind in ("signal", "exit")
        and any(0 <= failure.line - a.line <= _AT_ONCE for a in refused[-_MOST_LINES:])
    ]


def _severity(log: Log, refused: list[Allocation]) -> Severity:
    """An error, unless the program continued with less memory or a smaller batch."""
    if not refused:
        return "error" if log.failures else "warning"
    last = max(allocation.line for allocation in refused)
    worked = sum(1 for line in log.progress if line > last)
    return "info" if not log.failures and worked >= _WORKED else "error"


def _pinned(log: Log, allocation: Allocation) -> bool:
    """Page-locked main memory, which CUDA refuses with the same error."""
    end = bisect_left(log.lines, allocation.line + 1, key=lambda line: line.number)
    near = log.lines[max(0, end - 8) : end]
    return allocation.requested is None and any(_PIN.search(line.text) for line in near)


def metal_without_memory(log: Log, allocation: Allocation) -> bool:
    """Metal refuses even the first small request of a process that holds nothing."""
    total, asked = allocation.total, allocation.requested
    nothing_held = allocation.of == "torch" and allocation.held == 0
    return (
        bool(nothing_held and total and asked and asked < total // 2)
        and _OF_METAL.search(text_of(log, allocation)) is not None
    )


def _is_ladder(log: Log, allocation: Allocation) -> bool:
    """A reservation that the driver refused, and not the allocator's note about performance."""
    text = text_of(log, allocation)
    return "from device" in text or "device memory of" in text


def _judge(
    log: Log, refused: list[Allocation], ladder: list[Allocation], figures: Figures
) -> Judgement:
    """The first of these judgements that applies."""
    return (
        _by_check_at_start(refused)
        or _by_size_alone(figures)
        or _by_shares_of_others(figures)
        or by_named_process(log, refused, figures)
        or by_table(log, refused, figures)
        or _by_gaps(figures)
        or _by_course(log, refused)
        or _by_own_share(figures)
        or _by_allocator(figures)
        or _by_what_was_left_at_start(figures)
        or _by_needs_of_computation(log)
        or _by_own_words(log, refused)
        or _by_place(log, refused, ladder)
        or _without_figures(log, figures)
    )


def _by_check_at_start(refused: list[Allocation]) -> Judgement | None:
    """vLLM checks before it loads anything: the used memory is that of others, and its context."""
    check = next((a for a in refused if a.of == "vllm" and a.free is not None and a.total), None)
    if check is None or check.free is None or check.total is None:
        return None
    others = max(0, check.total - check.free)
    most = others > 2 * _CONTEXT
    return (
        "other-process",
        "certain" if most else "likely",
        f"of {size_text(check.total)}, {size_text(others)} were in use before it loaded anything",
        None if most else "too-big",
    )


def _by_size_alone(figures: Figures) -> Judgement | None:
    asked, most = figures.requested, figures.total_most
    if asked and most and asked > most:
        return (
            "too-big",
            "certain",
            f"a single request of {size_text(asked)} is more than the whole GPU has ({size_text(most)})",
            None,
        )
    held = figures.held
    if held and most and held > most:
        return (
            "too-big",
            "certain",
            f"it already holds {size_text(held)} of {size_text(most)}",
            None,
        )
    return None


def _held_by_others(figures: Figures) -> int | None:
    """PyTorch prints its own and the free memory; other processes hold the rest."""
    total, free = figures.total_most, figures.free
    if total is None or free is None:
        return None
    own = max(figures.reserved or 0, figures.held or 0)
    return max(0, total - free - own)


def _by_shares_of_others(figures: Figures) -> Judgement | None:
    others = _held_by_others(figures)
    total, free = figures.total_most, figures.free
    if others is None or total is None or free is None:
        return None
    if figures.reserved is None and figures.held is None:
        # Its own memory is unknown, and so is that of the others.
        return None
    own = max(figures.reserved or 0, figures.held or 0)
    needed = max(0, (figures.requested or 0) - free)
    if others <= max(own, total // 3) or others - _CONTEXT < needed:
        return None
    return (
        "other-process",
        "certain" if own < total // 4 else "likely",
        f"of {size_text(total)}, this process holds {size_text(own)} and {size_text(free)} are free, so "
        f"others hold about {size_text(others)}",
        None if own < total // 4 else "too-big",
    )


def _by_gaps(figures: Figures) -> Judgement | None:
    """More memory is reserved but unused, or even free, than was requested and refused."""
    asked, held, reserved = figures.requested, figures.held, figures.reserved
    total, free = figures.total_most, figures.free
    if not asked or held is None or total is None or free is None:
        return None
    unused = (reserved or held) - held
    if unused >= asked and unused >= _MUCH_UNUSED * total:
        return (
            "fragmentation",
            "likely",
            f"{size_text(unused)} are reserved but not in use, more than was requested, but in "
            "pieces that are too small",
            "too-big",
        )
    if unused >= asked and unused >= _SOME_UNUSED * total:
        return (
            "too-big",
            "likely",
            f"this process holds {size_text(held)} of {size_text(total)}; {size_text(unused)} more "
            "are reserved in pieces that are too small",
            "fragmentation",
        )
    if free < asked <= unused + free and unused >= _MOST_UNUSED * total and held <= unused // 10:
        return (
            "fragmentation",
            "likely",
            f"{size_text(unused)} are reserved and hardly used; with the {size_text(free)} that are "
            "free, they would be enough, but are in pieces",
            "too-big",
        )
    if asked < free // 2:
        # Pieces of that size are always there: something else limits the process.
        return (
            "fragmentation",
            "likely" if unused >= asked else "possible",
            f"{size_text(asked)} were refused although {size_text(free)} are free",
            "too-big" if unused >= asked else None,
        )
    return None


def _by_own_share(figures: Figures) -> Judgement | None:
    others = _held_by_others(figures)
    if others is None or figures.held is None or figures.total_most is None:
        return None
    needed = max(0, (figures.requested or 0) - (figures.free or 0))
    # Without what others hold, the request would have been fulfilled.
    enough = figures.requested is not None and others - 2 * _CONTEXT >= needed
    also: Reason | None = "other-process" if enough or others > figures.total_most // 4 else None
    return (
        "too-big",
        "certain" if also is None else "likely",
        f"this process holds {size_text(figures.held)} of {size_text(figures.total_most)}",
        also,
    )


def _by_allocator(figures: Figures) -> Judgement | None:
    """TensorFlow's allocator prints its limit, what the driver gave it, and what is in use."""
    limit, in_use, regions, asked = (
        figures.limit,
        figures.in_use,
        figures.regions,
        figures.requested or 0,
    )
    if not limit:
        return None
    if limit < _LEAST_AT_START:
        return (
            "other-process",
            "likely",
            f"TensorFlow got only {size_text(limit)} when it started",
            "too-big",
        )
    if in_use is None:
        return None
    if in_use + asked >= 0.95 * limit:
        return (
            "too-big",
            "certain",
            f"{size_text(in_use)} of TensorFlow's {size_text(limit)} are in use by its own tensors",
            None,
        )
    if (regions is not None and regions + asked < 0.7 * limit) or in_use < limit // 10:
        return (
            "other-process",
            "likely",
            f"TensorFlow may use {size_text(limit)} and uses {size_text(in_use)}, but the driver "
            "has no more memory",
            "too-big",
        )
    if in_use + asked < 0.8 * limit and asked > _SMALL:
        return (
            "too-big",
            "likely",
            f"{size_text(in_use)} of {size_text(limit)} are in use, and no free block has "
            f"{size_text(asked)}",
            "fragmentation",
        )
    return "too-big", "likely", f"{size_text(in_use)} of {size_text(limit)} are in use", None


def _by_what_was_left_at_start(figures: Figures) -> Judgement | None:
    left, least = figures.free_at_start, figures.total_least
    if left is None or least is None or left > least // 2:
        return None
    return (
        "other-process",
        "likely",
        f"at its start only {size_text(left)} of the GPU's {size_text(least)} were free",
        "too-big",
    )


_XLA_NEEDS = late(
    r"^\s{0,40}total allocation:\s{1,12}(?P<number>[\d.]{1,12})(?P<unit>[KMG]i?)?B$", re.M
)
"""What one computation of XLA needs, inputs and outputs included."""


def _by_needs_of_computation(log: Log) -> Judgement | None:
    match = log.first(_XLA_NEEDS)
    if match is None:
        return None
    needed = logged_size(match.groups["number"] or "", f"{match.groups['unit'] or ''}B")
    if needed is None or needed > 4 * _SMALL:
        return None
    return (
        "other-process",
        "possible",
        f"this computation needs only {size_text(needed)}: other processes, or other arrays of the "
        "program, hold the rest",
        "leak",
    )


_OTHERS_USE_IT = late(
    r"\b(?:used|held|taken|occupied|blocked) by (?:an?)?other (?:process|program|user|job|person)"
    r"|\b(?:an?other|other) (?:process|program|user|job|person|people)(?:es|s)? (?:is |are |was |were )?"
    r"(?:already )?(?:us(?:e|es|ing)|hold(?:s|ing)?|occup(?:y|ies|ying)|running on)\b"
    r"|\b(?:colleague|someone|somebody) (?:else )?(?:is |was )?(?:us(?:es|ing)|occup)"
    r"|\b(?:old|previous|zombie|killed) process(?:es)? (?:is |are )?still\b"
    r"|被(?:其他|别的|另一个)(?:进程|程序|用户)占",
    re.I,
)


def _by_own_words(log: Log, refused: list[Allocation]) -> Judgement | None:
    """Somebody who has looked writes that others use the GPU; the message itself is no person's."""
    messages = {allocation.line for allocation in refused}
    said = next(
        (
            match
            for match in log.find(_OTHERS_USE_IT)
            if match.line not in messages and "?" not in log.line(match.line).text
        ),
        None,
    )
    if said is None:
        return None
    return (
        "other-process",
        "likely",
        f"line {said.line} says that others use it",
        "too-big",
    )


def _by_place(log: Log, refused: list[Allocation], ladder: list[Allocation]) -> Judgement | None:
    """The operation whose request was refused."""
    if log.says(_CONTEXT_FAILED):
        return "other-process", "likely", "even the CUDA context could not be created", None
    if any(_ONE_COPY.search(text_of(log, a)) for a in refused):
        return "too-big", "likely", "a whole data set was copied to the GPU at once", None
    asked = max((a.requested or size_of_shape(log, a) or 0 for a in refused), default=0)
    reserving = max((a.requested or 0 for a in ladder if _at_start(log, a)), default=0)
    if ladder and (asked <= _SMALL or asked <= reserving):
        return (
            "other-process",
            "likely",
            "the driver refused memory that should have been free at the start",
            "too-big" if refused else None,
        )
    return _by_bare_refusal(log, refused)


def _at_start(log: Log, allocation: Allocation) -> bool:
    """JAX reserves most of the GPU at its start; TensorFlow may also do it step by step."""
    return "device memory of" in text_of(log, allocation)


def _by_bare_refusal(log: Log, refused: list[Allocation]) -> Judgement | None:
    """The driver's own error without a size, before the program can have used much itself."""
    if not refused or log.progress or any(a.requested is not None or a.shape for a in refused):
        return None
    gpu = next((d for d in log.devices if d.total and d.memory is not None), None)
    if gpu and gpu.total and gpu.memory is not None and gpu.memory < gpu.total // 10:
        left = f"only {size_text(gpu.memory)} of the GPU's {size_text(gpu.total)} were free"
        return "other-process", "likely", left, "too-big"
    raw = any(_BY_DRIVER.search(text_of(log, a)) for a in refused) and log.framework == "torch"
    starting = log.says(_STARTING) or log.says(_SINCE_1_8)
    if log.says(_LAZY_START) or (raw and starting and not log.says(_AT_WORK)):
        return (
            "other-process",
            "likely",
            "the driver itself refused, before the program used much memory",
            "too-big",
        )
    return None


def _by_course(log: Log, refused: list[Allocation]) -> Judgement | None:
    """Work that succeeded for a while needs more memory only if something is kept."""
    first = min((a.line for a in refused), default=0)
    if log.says(_GROWING):
        return "leak", "likely", "the log reports that the memory in use grows", "too-big"
    figures = [_noted(match) for match in log.find(_MEMORY_NOTE) if match.line < first]
    if (
        len(figures) >= 4
        and figures == sorted(figures)
        and figures[-1] >= 2 * max(figures[0], _SMALLEST_NOTE)
    ):
        return (
            "leak",
            "likely",
            f"the memory in use grew from {size_text(figures[0])} to {size_text(figures[-1])} while it "
            "ran",
            "too-big",
        )
    epochs = {
        match.groups["number"]: match.line for match in log.find(_EPOCH) if match.line < first
    }
    if len(epochs) >= 4 and not _evaluates(log, max(epochs.values()), first):
        return (
            "leak",
            "likely",
            f"it came to epoch {max(map(int, filter(None, epochs)))}, and then needed more memory "
            "than before",
            "too-big",
        )
    return None


def _noted(match: Match) -> int:
    """The amount in a line of progress."""
    return logged_size(match.groups["number"] or "", match.groups["unit"]) or 0


def _evaluates(log: Log, start: int, end: int) -> bool:
    """Evaluation after training may need more memory: all test data in one batch."""
    return any(start < line.number <= end and _EVALUATION.search(line.text) for line in log.lines)


def _without_figures(log: Log, figures: Figures) -> Judgement:
    asked = figures.requested
    small = (asked is None or asked <= _SMALL) and not log.progress
    because = "the log does not show how much was free, or which process holds the rest"
    if figures.free is not None:
        because = "the log does not show which process holds the rest"
    if figures.held:
        because = f"it already holds {size_text(figures.held)}"
    return "too-big", "likely", because, "other-process" if small else None


_SERVERS = frozenset(("vllm", "serving"))
"""Sources of messages about a server's own share of the memory, not about an allocation."""


def server_share(log: Log) -> Shortage | None:
    """The shortage, if all that was refused is a part of a server's share."""
    found = shortage(log)
    if found is None or not found.refused:
        return None
    return found if all(a.of in _SERVERS for a in found.refused) else None


def seen_in(log: Log, reason: Reason) -> Shortage | None:
    """The shortage, if it has this reason or does not exclude it."""
    found = None if server_share(log) else shortage(log)
    if found is None:
        return None
    if found.reason == reason:
        return found
    if found.also == reason:
        return found._replace(confidence="possible")
    return None


def how_far(found: Shortage) -> str:
    """Requested and free memory, if the log shows it: requested 7.02 GiB with 6.07 GiB free."""
    if found.requested is None:
        return ""
    if found.free is None:
        return f"requested {size_text(found.requested)}"
    asked, free = told_apart(found.requested, found.free)
    return f"requested {asked} with {free} free"


def told_apart(asked: int, free: int) -> tuple[str, str]:
    """Both sizes as text, with more digits if rounding hides the difference."""
    texts = size_text(asked), size_text(free)
    return (
        texts if texts[0] != texts[1] else (size_text(asked, digits=5), size_text(free, digits=5))
    )
