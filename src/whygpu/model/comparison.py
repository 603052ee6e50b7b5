"""The same work on several lanes: what each lane gave, how far they are apart, and the verdict."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from whygpu.model.short_repr import short_repr
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
    """None: the one that the program has anyway."""

    def differs_only_in_options(self, other: Lane) -> bool:
        return (self.device, self.backend) == (other.device, other.backend)


LaneEnd = Literal["ran", "cannot-run", "failed", "wrong-device"]
"""`cannot-run`: this machine or this target has not what the lane needs; `failed`: the work itself
ended in an error; `wrong-device`: it was to use the GPU and used the CPU."""


class Timing(NamedTuple):
    """What was measured of one lane's speed. Seconds are of one call, device-synchronised."""

    first_call_seconds: float
    """With compilation, and what else happens once."""
    seconds: tuple[float, ...]
    """Each later call, warm-up left out, from input on the host to output on the host; with the
    making of the input, where the program has given a function for that."""
    items: int | None = None
    """How many examples one call works on."""
    transfer_seconds: float | None = None
    """Input to the device and output back, of one call; none where nothing is moved."""
    compute_seconds: float | None = None
    """With the input already on the device and the output left there."""
    input_seconds: float | None = None
    """Making the input of one call by the program's own function; None where it has none."""
    launches: int | None = None
    """Kernels that one call starts on the device."""
    busy_seconds: float | None = None
    """How long these kernels take on the device, all together."""
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None


class LaneRun(NamedTuple):
    """What came of one lane, as seen: nothing is judged yet."""

    lane: Lane
    end: LaneEnd
    reason: str = ""
    """Why it did not run, or did not run as asked; empty where it ran."""
    framework: str = ""
    """With its version, and under Keras the backend: keras 3.15.1 on jax 0.11.0."""
    devices: tuple[str, ...] = ()
    """What it computed on, as it says itself: cpu, NVIDIA H200."""
    products: Precision | None = None
    """The coarsest precision that its settings allow for products of float32 numbers, such as tf32;
    None where that could not be asked."""
    timing: Timing | None = None
    notes: tuple[str, ...] = ()
    missing: str = ""
    """The framework that the lane needs and the target does not have; empty for other reasons."""


_TYPICAL = 0.1
"""Products of a precision differ by at least this part of what the precision explains."""


class Units(NamedTuple):
    """A difference in multiples of the most that rounding explains, at the place where that is
    largest: up to 1 is rounding, 50 is not."""

    own: float
    """In the precision that the work says it computes in."""
    tf32: float | None = None
    """If products were made in TF32; None where nothing is multiplied, or not in float32."""
    bfloat16: float | None = None

    @property
    def looks_like(self) -> Precision | None:
        """The precision of products that such a difference is typical of, in use or not."""
        if self.tf32 is not None and _TYPICAL <= self.tf32 <= 1:
            return "tf32"
        if self.bfloat16 is not None and _TYPICAL <= self.bfloat16 <= 1:
            return "bfloat16"
        return None


TensorKind = Literal["output", "recorded", "layer", "loss", "gradient", "weight"]
HowCompared = Literal["numbers", "exactly", "not-at-all"]
"""Integers, truth values and text are compared exactly; arrays of other shapes not at all."""


class TensorDifference(NamedTuple):
    """How far one array is from another of the same name. Figures are over places where both are
    finite; None where there is no such place. Figures above 1e29 are given as 1e29."""

    name: str
    kind: TensorKind
    how: HowCompared
    dtype_a: str
    dtype_b: str
    shape_a: tuple[int, ...]
    shape_b: tuple[int, ...]
    unequal: int = 0
    """Places where the two do not hold the same bits (two NaNs are the same, and so are two zeros
    of either sign)."""
    max_abs: float | None = None
    max_rel: float | None = None
    """Largest |a - b| / max(|a|, |b|) of one place."""
    max_ulp: int | None = None
    """In steps of the coarser of the two types; None for other than floating point."""
    rms: float | None = None
    """Root of the mean square of a - b."""
    scale: float | None = None
    """Largest |value| of the two."""
    level: float | None = None
    """Root of the mean square of b."""
    cosine: float | None = None
    where: tuple[int, ...] = ()
    """The index of the worst place: of max_abs, or the first place that is not finite in one only,
    or the first that is unequal where numbers are compared exactly."""
    value_a: str = ""
    value_b: str = ""
    """What the two hold there."""
    nan_a: int = 0
    nan_b: int = 0
    inf_a: int = 0
    inf_b: int = 0
    not_finite_in_one: int = 0
    """Places where one is NaN or infinite and the other is not, or is so otherwise."""
    units: Units | None = None
    """Against how far the float64 reference itself moves when all it is made from is moved by
    rounding; None where there is no such reference."""
    follows: str = ""
    """For other than floating point: the array that these are taken from on both sides, as the
    positions of its largest values or as what lies above a threshold. Then a difference here says
    no more than the difference there."""
    margin: float | None = None
    """How close that array's values lie at the worst such place."""

    @property
    def relative(self) -> float | None:
        """The largest difference against the largest value: what a given tolerance is held to."""
        if self.max_abs is None or self.scale is None:
            return None
        return self.max_abs / self.scale if self.scale else 0.0


class LayerError(NamedTuple):
    """How far a lane's layer is from the same layer in float64, given the lane's own input to it.

    What went before the layer has no part in this. Figures are over places that are finite.
    """

    layer: str
    lane: str
    precision: Precision
    """What the layer says that it computes in."""
    max_abs: float
    units: Units
    not_finite: int = 0
    """Places that are NaN or infinite in the lane and finite in float64."""
    finite_alone: int = 0
    """Places that are finite in the lane and not so in float64: what overflows there is in the
    program that the reference was computed by."""


class LocalDifference(NamedTuple):
    """How far two lanes are apart in one layer, its inputs' own difference taken out of it."""

    max_abs: float
    units: Units
    not_finite_in_one: int = 0
    """Places where one lane and float64 of its own input are not both finite or both not, and the
    other lane and its float64 are; or the other way about."""
    where: tuple[int, ...] = ()


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
    """Its outputs, with all that came before in them."""
    local: LocalDifference | None = None
    """The layer alone; None where it could not be computed again."""
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
    """The precision whose rounding it is, where the verdict is rounding."""
    reasons: tuple[str, ...]
    """Why, most telling first; full sentences without a stop."""
    first_layer: str | None = None
    """The first layer, or recorded name, at which the two part."""
    off: str | None = None
    """The lane that is wrong of the two, where the float64 reference says so."""
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
    """Calls per second against the CPU lane's: above 1 is faster. None without such a lane."""
    slower_because: str = ""
    """Why a GPU lane is slower than the CPU lane; empty where it is not."""
    transfer_seconds: float | None = None
    compute_seconds: float | None = None
    peak_device_bytes: int | None = None
    peak_host_bytes: int | None = None


class WholeOutput(NamedTuple):
    """An output of a lane, computed as the program would do it, against the same output computed
    with what every layer gives kept.

    It is one computation on one device, compiled twice: more than rounding between the two is the
    doing of a compiler, or of a library that it calls.
    """

    output: str
    step: str
    """What a layer gave that is this output: the name of an array of that layer."""
    difference: TensorDifference


class LaneResult(NamedTuple):
    """One lane with what is to be said of it by itself."""

    run: LaneRun
    determinism: Determinism
    speed: SpeedSummary | None
    outputs: tuple[TensorDifference, ...] = ()
    """Its outputs (a) against the float64 reference's (b)."""
    layers: tuple[LayerError, ...] = ()
    whole: tuple[WholeOutput, ...] = ()


class Reference(NamedTuple):
    """The float64 computation on the CPU that says which lane is off."""

    ran: bool
    backend: str = ""
    """What it was computed by, in words: keras 3.15.1 on tensorflow 2.21.0."""
    reason: str = ""
    """Why there is none."""


class ComparisonReport(NamedTuple):
    what: str
    inputs: str
    """Where the inputs come from: random, seed 0; FILE.npz."""
    tolerance: str
    """auto, or the number that was given."""
    reference: Reference
    lanes: tuple[LaneResult, ...]
    pairs: tuple[PairVerdict, ...]
    verdict: Verdict
    headline: str
    """The verdict as one sentence."""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def standing(self) -> Standing:
        return STANDINGS[self.verdict]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
