"""A GPU computes or copies wrongly under load.

## Why it happens

A chip that has become defective, or that runs with too little voltage, too high clocks or too much
heat, computes some results wrongly and reports nothing. Error correction protects the memory and
not the arithmetic. Memory without error correction (GeForce, or ECC switched off) can also change
what is stored in it.

## What it looks like

Training diverges, or losses are NaN, on one machine only, and not each time. Two runs with the same
seed differ on it.

`whygpu check --stress` multiplies matrices of small whole numbers. Their products are exact in
every format, in whatever order a GPU adds, so a single wrong number is a fault. The sums of all
rows and columns are compared with those that the processor has computed, and the last product with
the first.

## Fix

Do not use the GPU for work that counts. Remove overclocking and undervolting, check cooling and
power, and test again, also with another framework or another release of it: a library may be wrong
as well, and then all GPUs of the machine fail alike. If it stays, contact the vendor.

## Fires on (machine)

A product under load was wrong.

```toml
[stress.0.test.results.bfloat16]
right = false
detail = "17 of 67108864 numbers differ between two runs"
```

A copy within the memory was wrong.

```toml
[stress.0.test.results.memory]
right = false
detail = "1 of 134217728 numbers were copied wrongly"
```

## Quiet on (machine)

Everything was right under load.

```toml
[stress.0]
number = 0
```

## Cannot tell on (machine)

The test could not be made.

```toml
[stress.0]
test = {unknown = "it is in use by python (4711); to test it anyway: --stress-busy"}
```

The speed was measured, and the result could not be compared.

```toml
[stress.0.test.results.float32]
right = {unknown = "MemoryError: "}
```

## Sources

- <https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html>
- <https://engineering.fb.com/2021/02/23/data-infrastructure/silent-data-corruption/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.load_tests import by_reason, load_tests
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.driver import Gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Known, Unknown
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import COPIES, LoadTest, ResultCheck

CAUSE = cause("WG114", __name__, __doc__, severity="error", effect="none")

_AGAIN = Remedy(
    "Test again for a longer time, with overclocking and undervolting removed.",
    command_line("whygpu check --stress 60"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in load_tests(machine):
        if isinstance(item, Gap):
            yield item
            continue
        gpu, test = item
        unknown = {
            result.name: result.right.reason
            for result in test.results
            if isinstance(result.right, Unknown)
        }
        for names, reason in by_reason(unknown):
            yield Gap(f"whether {names} of GPU {gpu.number} was right: {reason}")
        wrong = _wrong(test)
        if wrong:
            yield _finding(gpu, test, wrong, alike=_wrong_everywhere(machine, wrong))


def _wrong(test: LoadTest) -> list[ResultCheck]:
    return [each for each in test.results if isinstance(each.right, Known) and not each.right.value]


def _wrong_everywhere(machine: Snapshot, wrong: list[ResultCheck]) -> bool:
    """Whether every GPU that was tested, and there are several, fails in the same operations."""
    tests = [item[1] for item in load_tests(machine) if not isinstance(item, Gap)]
    names = {result.name for result in wrong}
    return len(tests) > 1 and all(names <= {each.name for each in _wrong(test)} for test in tests)


def _finding(gpu: Gpu, test: LoadTest, wrong: list[ResultCheck], *, alike: bool) -> Finding:
    copied = all(result.name in COPIES for result in wrong)
    elsewhere = (
        "; as all GPUs that were tested fail alike, the framework, its libraries, the processor or "
        "main memory are more likely at fault than each of these GPUs"
    )
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) {'copies' if copied else 'computes'} wrongly under "
        f"load: results that were known before were different{elsewhere if alike else ''}",
        evidence=tuple(
            Evidence(
                "probe",
                f"{display_name(test.framework)} {test.version} under load, {result.name}",
                result.detail or "the result is wrong",
            )
            for result in wrong
        ),
        remedies=(
            Remedy("Use another GPU for work that counts until this is understood."),
            _AGAIN,
            Remedy(
                "Look at its temperature, its clocks and its memory errors.",
                command_line("nvidia-smi -q -d TEMPERATURE,CLOCK,ECC -i", a_number(gpu.number)),
            ),
            Remedy(
                "If it stays wrong at normal clocks and with another framework or another release, "
                "contact the vendor of the card."
            ),
        ),
        # A kernel of a library may be wrong, and not the GPU.
        confidence="likely",
    )
