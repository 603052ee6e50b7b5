"""How a step spends its time, and what the machine has: what gains are predicted from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whygpu.model.profile import Category
from whygpu.profiling.attribution import Spent
from whygpu.profiling.device_costs import DeviceCosts

SMALLEST_SHARE = 0.05
"""What takes less of a step does not matter."""


class StepCosts(NamedTuple):
    """How a step spends its time, and what the machine has."""

    step: float
    """Seconds of one step."""
    spent: Mapping[Category, Spent]
    """Seconds of one step, by category."""
    input_sources: Mapping[str, float]
    """Seconds of one step, by kind of pipeline."""
    cores: int
    workers: Sequence[float]
    """The share of a core that each worker process uses."""
    input_work: Spent
    """Seconds of one step in which the thread prepared input, also while the GPU computed."""
    free_cores: float = math.inf
    """Cores that had nothing to do; other programs use the rest. Infinite if it is not known."""
    workers_waited: float = 0.0
    """The share of the time in which a worker process was ready and waited for a core."""
    crowded: float = 0.0
    """The share of the time in which the main thread was ready and waited for a core."""
    parallel_stages: bool = False
    """The tf.data pipeline already works on several elements at a time."""
    python_stage: str = ""
    """The Python function in which TensorFlow spent the most time; empty if that does not matter
    for the input."""
    own_code: float = 0.0
    """Seconds of one step in the program's function that has most of its own code, with what that
    function calls: conversions of arrays are spared as well if the code works on whole arrays. By
    the upper end of the margin, because it is a limit."""
    compiled_calls: float = 0.0
    """Seconds of one step in calls that compiled, or in the compiler, as they were timed."""
    compilation_cure: str = "keep shapes and Python arguments the same from step to step"
    device: DeviceCosts | None = None
    """What the GPU does in a step, if that was recorded."""

    def seconds(self, category: Category) -> float:
        return self.spent[category].seconds if category in self.spent else 0.0

    @property
    def rest(self) -> float:
        """A step without its input."""
        return max(self.step - self.seconds("input"), 0.0)

    @property
    def shortest_rest(self) -> float:
        """A step without its input, if everything else overlaps with the GPU's work."""
        if self.device is None:
            return self.rest
        return max(self.device.busy, self.step - self.input_work.seconds)

    @property
    def rest_cpu(self) -> float:
        """Processor seconds of a step without its input."""
        return sum(spent.process_seconds for name, spent in self.spent.items() if name != "input")

    @property
    def usable_cores(self) -> float:
        """What the program uses of the machine, and what nobody uses.

        At least one: a program that mostly waits gets a core when it asks for it.
        """
        used = sum(spent.process_seconds for spent in self.spent.values()) / self.step
        return min(max(used + sum(self.workers) + self.free_cores, 1.0), self.cores)

    @property
    def fastest(self) -> float:
        """What a step takes at least: the work of the GPU, where that was recorded."""
        return 0.0 if self.device is None else self.device.busy

    def matters(self, seconds: float) -> bool:
        """Whether these seconds are a share of a step that is worth removing."""
        return seconds >= SMALLEST_SHARE * self.step
