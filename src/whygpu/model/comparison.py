"""The same work on several lanes: the results, the differences, and the verdict."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

LaneDevice = Literal["cpu", "gpu"]
LaneOption = Literal["no-cudnn", "deterministic", "no-tf32", "xla"]
KerasBackend = Literal["tensorflow", "jax", "torch"]
KERAS_BACKENDS: tuple[KerasBackend, ...] = get_args(KerasBackend)
Precision = Literal["float64", "float32", "tf32", "bfloat16", "float16"]


class Lane(NamedTuple):
    """One way of doing the work."""

    name: str
    """As the user wrote it: cpu, gpu:no-cudnn, keras:jax."""
    device: LaneDevice
    options: tuple[LaneOption, ...] = ()
    backend: KerasBackend | None = None
    """None: the one that the program uses by default."""

    def differs_only_in_options(self, other: Lane) -> bool:
        return (self.device, self.backend) == (other.device, other.backend)


LaneEnd = Literal["ran", "cannot-run", "failed", "wrong-device"]
"""`cannot-run`: this machine or target lacks something that the lane needs. `failed`: the work
itself failed. `wrong-device`: the lane asked for the GPU and used the CPU."""


class Timing(NamedTuple):
    """The measured speed of one lane. Seconds are for one call, device-synchronised."""

    first_call_seconds: float
    """Includes compilation and other work that happens once."""
    seconds: tuple[float, ...]
    """Each later call without warm-up, from input on the host to output on the host. Includes
    making the input if the program provides a function for that."""
    items: int | None = None
    """How many examples one call works on."""
    transfer_seconds: float | None = None
    """Time to copy one input to the device and its output back; None if nothing is copied."""
    compute_seconds: float | None = None
    """With the input already on the device and the output left there."""
    input_seconds: float | None = None
    """Time in which the program's own function makes one input; None if there is no function."""
    launches: int | None = None
    """Kernels that one call starts on the device."""
    busy_seconds: float | None = None
    """Total time of these kernels on the device."""
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None


class LaneRun(NamedTuple):
    """The outcome of one lane as observed, before any judgement."""

    lane: Lane
    end: LaneEnd
    reason: str = ""
    """Why it did not run, or did not run as requested; empty if it ran."""
    framework: str = ""
    """With its version and, for Keras, the backend: keras 3.15.1 on jax 0.11.0."""
    devices: tuple[str, ...] = ()
    """The device as the framework reports it: cpu, NVIDIA H200."""
    products: Precision | None = None
    """The coarsest precision that its settings allow for products of float32 numbers, such as tf32;
    None if that could not be read."""
    timing: Timing | None = None
    notes: tuple[str, ...] = ()
    missing: str = ""
    """The framework that the target lacks; empty if the lane failed for another reason."""


_TYPICAL = 0.1
"""Products of a precision differ by at least this fraction of what the precision explains."""


class Units(NamedTuple):
    """A difference in multiples of the most that rounding explains, at the place where that is
    largest: up to 1 is rounding, 50 is not."""

    own: float
    """In the precision that the work says it computes in."""
    tf32: float | None = None
    """If products were computed in TF32; None if nothing is multiplied, or not in float32."""
    bfloat16: float | None = None

    @property
    def looks_like(self) -> Precision | None:
        """The precision that typically causes such a difference, whether it is in use or not."""
        if self.tf32 is not None and _TYPICAL <= self.tf32 <= 1:
            return "tf32"
        if self.bfloat16 is not None and _TYPICAL <= self.bfloat16 <= 1:
            return "bfloat16"
        return None


TensorKind = Literal["output", "recorded", "layer", "loss", "gradient", "weight"]
HowCompared = Literal["numbers", "exactly", "not-at-all"]
"""Integers, booleans and text are compared exactly. Arrays of different shapes are not compared."""


class TensorDifference(NamedTuple):
    """How far one array is from another of the same name. Figures cover elements that are finite in
    both; None if there is no such element. Figures above 1e29 are given as 1e29."""

    name: str
    kind: TensorKind
    how: HowCompared
    dtype_a: str
    dtype_b: str
    shape_a: tuple[int, ...]
    shape_b: tuple[int, ...]
    unequal: int = 0
    """Elements whose bits differ. Two NaNs count as equal, and so do zeros of different sign."""
    max_abs: float | None = None
    max_rel: float | None = None
    """Largest |a - b| / max(|a|, |b|) of one element."""
    max_ulp: int | None = None
    """In units in the last place of the coarser type; None if not floating point."""
    rms: float | None = None
    """Root of the mean square of a - b."""
    scale: float | None = None
    """Largest |value| in either array."""
    level: float | None = None
    """Root of the mean square of b."""
    cosine: float | None = None
    where: tuple[int, ...] = ()
    """The index of the worst element: that of max_abs, or the first that is finite in only one
    array, or the first unequal one if numbers are compared exactly."""
    value_a: str = ""
    value_b: str = ""
    """The values of both arrays there."""
    nan_a: int = 0
    nan_b: int = 0
    inf_a: int = 0
    inf_b: int = 0
    not_finite_in_one: int = 0
    """Elements of which one is NaN or infinite and the other is finite, or not finite in another
    way."""
    units: Units | None = None
    """The difference relative to how far the float64 reference itself moves if rounding moves
    everything that it is computed from; None if there is no such reference."""
    follows: str = ""
    """Only if not floating point: the array from which both sides derive these values, as positions
    of its largest values or by a threshold. A difference here then says no more than the difference
    in that array."""
    margin: float | None = None
    """How close that array's values are at the worst such element."""

    @property
    def relative(self) -> float | None:
        """The largest difference divided by the largest value. A given tolerance limits this."""
        if self.max_abs is None or self.scale is None:
            return None
        return self.max_abs / self.scale if self.scale else 0.0


class LayerError(NamedTuple):
    """How far a lane's layer is from the same layer in float64, given the lane's own input to it.

    Earlier layers do not affect this. Figures cover finite elements only.
    """

    layer: str
    lane: str
    precision: Precision
    """The type in which the layer says that it computes."""
    max_abs: float
    units: Units
    not_finite: int = 0
    """Elements that are NaN or infinite in the lane and finite in float64."""
    finite_alone: int = 0
    """Elements that are finite in the lane and not in float64. The overflow is then in the program
    that computed the reference."""


class LocalDifference(NamedTuple):
    """How far two lanes are apart in one layer, without the difference of their inputs."""

    max_abs: float
    units: Units
    not_finite_in_one: int = 0
    """Elements at which exactly one of the two lanes disagrees with float64 of its own input about
    being finite."""
    where: tuple[int, ...] = ()
    code_before: bool = False
    """Code of the program between the layers made an input of this one: what that code does
    differently counts as the layer's."""


class SettingDifference(NamedTuple):
    """A setting of a layer that two lanes do not share."""

    setting: str
    value_a: str
    value_b: str


class LayerDifference(NamedTuple):
    layer: str
    kind: str
    """The class of the layer: Conv2D."""
    tensors: tuple[TensorDifference, ...]
    """Differences of its outputs, including the effect of all earlier layers."""
    local: LocalDifference | None = None
    """The difference of the layer alone; None if the layer could not be computed again."""
    local_unknown: str = ""
    """Why not."""
    settings: tuple[SettingDifference, ...] = ()
    weights_differ: bool = False


Verdict = Literal["equal", "rounding", "different", "undetermined"]
STANDINGS: dict[Verdict, Standing] = {
    "equal": "fine",
    "rounding": "fine",
    "different": "wrong",
    "undetermined": "unknown",
}


class PairVerdict(NamedTuple):
    a: str
    b: str
    verdict: Verdict
    level: Precision | None
    """The precision whose rounding explains the difference, if the verdict is rounding."""
    reasons: tuple[str, ...]
    """The reasons, strongest first: full sentences without a full stop."""
    first_layer: str | None = None
    """The first layer, or recorded name, at which the two lanes differ."""
    off: str | None = None
    """Which of the two lanes is wrong, if the float64 reference shows it."""
    outputs: tuple[TensorDifference, ...] = ()
    layers: tuple[LayerDifference, ...] = ()


DeterminismKind = Literal["same", "rounding", "unseeded", "different", "unknown"]


class Determinism(NamedTuple):
    """Whether a lane agrees with itself."""

    kind: DeterminismKind
    reason: str
    worst: TensorDifference | None = None


class SpeedSummary(NamedTuple):
    first_call_seconds: float
    median_seconds: float
    low_seconds: float
    high_seconds: float
    """The middle half of the calls lies between low and high."""
    calls: int
    items_per_second: float | None
    against_cpu: float | None
    """Calls per second relative to the CPU lane: above 1 is faster. None without a CPU lane."""
    slower_because: str = ""
    """Why a GPU lane is slower than the CPU lane; empty if it is not."""
    no_measurement: str = ""
    """Why the times say little about speed: too few calls, or a busy machine; empty if they do.
    Then neither `against_cpu` nor `slower_because` is given."""
    transfer_seconds: float | None = None
    compute_seconds: float | None = None
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None


class WholeOutput(NamedTuple):
    """An output of a lane, computed as the program would compute it, compared with the same output
    computed while keeping the output of every layer.

    Both are the same computation on the same device, compiled twice. If they differ by more than
    rounding, a compiler, or a library that it calls, is the cause.
    """

    output: str
    step: str
    """The name of the layer's array that is this output."""
    difference: TensorDifference


class LaneResult(NamedTuple):
    """One lane with the results that concern it alone."""

    run: LaneRun
    determinism: Determinism
    speed: SpeedSummary | None
    outputs: tuple[TensorDifference, ...] = ()
    """Its outputs (a) compared with those of the float64 reference (b)."""
    layers: tuple[LayerError, ...] = ()
    whole: tuple[WholeOutput, ...] = ()


class Reference(NamedTuple):
    """The float64 computation on the CPU that shows which lane is wrong."""

    ran: bool
    backend: str = ""
    """The framework that computed it: keras 3.15.1 on tensorflow 2.21.0."""
    reason: str = ""
    """Why there is none."""


@shows_itself
class ComparisonReport(NamedTuple):
    what: str
    inputs: str
    """Where the inputs come from: random, seed 0; FILE.npz."""
    tolerance: str
    """auto, or the number that the user gave."""
    reference: Reference
    lanes: tuple[LaneResult, ...]
    pairs: tuple[PairVerdict, ...]
    verdict: Verdict
    headline: str
    """The verdict as one sentence."""
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> Standing:
        return STANDINGS[self.verdict]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
