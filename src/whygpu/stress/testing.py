"""Runs the load tests in the target, one GPU after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from whygpu.model.driver import Gpu
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import StressedGpu
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import LoadFramework, StressGpu, StressRequest
from whygpu.stress.choosing import LoadPlan, plan_load
from whygpu.stress.results import stressed, was_tried

_SLOWER = 3.0
"""A GPU that takes this many times its usual time has hung."""
_COMPILING: dict[LoadFramework, float] = {"jax": 60.0}
"""Seconds for the compiler, which tries kernels for each format: it took 10 s on an H200."""
_OURS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_NOT_THEIRS = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUPY_TF32",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
)
"""Variables that change how, or how fast, a program computes. The test is about the hardware."""

OnProgress = Callable[[str], None]


def with_stress(
    machine: Snapshot,
    environ: Mapping[str, str],
    *,
    start_seconds: float,
    gpu_seconds: float,
    even_if_busy: bool,
    on_progress: OnProgress | None = None,
) -> Snapshot:
    """The snapshot with what its GPUs did under load.

    `start_seconds` is the time for the framework to start, `gpu_seconds` that for each GPU.
    """
    interpreter = machine.target.interpreter
    plan = plan_load(machine, even_if_busy=even_if_busy)
    if not isinstance(plan, Known):
        return machine._replace(stress=plan)
    if not isinstance(interpreter, Known):
        return machine._replace(stress=interpreter)
    tell = on_progress or (lambda text: None)
    compiling = _COMPILING.get(plan.value.framework, 0.0)

    def attempt(gpus: tuple[StressGpu, ...]) -> TaskEnd:
        from whygpu.work.task_process import run_task

        request = StressRequest(plan.value.framework, gpus, gpu_seconds, even_if_busy)
        return run_task(
            request,
            python=interpreter.value.path,
            environ=_environ(environ),
            timeout=start_seconds + (_SLOWER * gpu_seconds + compiling) * len(gpus),
            on_progress=tell,
        )

    return machine._replace(stress=Known(results_of_all(machine, plan.value, attempt), "--stress"))


def _environ(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name not in _NOT_THEIRS}
    return {**kept, **_OURS}


def results_of_all(
    machine: Snapshot, plan: LoadPlan, attempt: Callable[[tuple[StressGpu, ...]], TaskEnd]
) -> tuple[StressedGpu, ...]:
    """Every GPU once. If one of them ends the process, the others get another one."""
    gpus = machine.driver.gpus
    by_number: dict[int, Gpu] = {
        gpu.number: gpu for gpu in (gpus.value if isinstance(gpus, Known) else ())
    }
    waiting = list(plan.gpus)
    found = list(plan.left_alone)
    while waiting:
        end = attempt(tuple(gpu for _, gpu in waiting))
        done = [each for each in waiting if was_tried(each[1].address, end)]
        # A process that came to no GPU at all would not come further a second time.
        done = done or waiting
        found += [stressed(by_number[number], plan.framework, end) for number, _ in done]
        waiting = [each for each in waiting if each not in done]
    return tuple(sorted(found, key=lambda gpu: gpu.number))
