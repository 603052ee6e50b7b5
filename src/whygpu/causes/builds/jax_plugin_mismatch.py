"""JAX's packages are from different releases.

## Why it happens

JAX consists of four packages: `jax`, `jaxlib`, and for the GPU `jax-cuda12-plugin` and
`jax-cuda12-pjrt`. All must be from the same release. They are mixed if only one of them is
upgraded, or if one has no newer wheel for this Python. pip allows this, because the plugin does not
require jaxlib.

## What it looks like

With another jaxlib the import fails: `jaxlib version 0.7.2 is newer than and incompatible with jax
version 0.7.1`. With another plugin JAX runs on the CPU and prints at most a warning: `JAX plugin
jax_cuda12_plugin version 0.7.1 is installed, but it is not compatible with the installed jaxlib
version 0.7.2, so it will not be used`.

## Fix

Install all of them together, with the extra of `jax`.

## Fires on (machine)

```toml
only = ["jax"]
probes_left_out = "--no-probe"
[target.frameworks.jax.plugins.jax-cuda12-plugin]
version = "0.7.1"
[target.packages.jax-cuda12-plugin]
version = "0.7.1"
```

```toml
[probes.jax]
ended = "exception"
stage = "import"
how = "RuntimeError: jaxlib is version 0.6.2, but this version of jax requires version >= 0.7.2."
[target.packages.jaxlib]
version = "0.6.2"
```

The import needs a name that a plugin of another release does not have.

```toml
start = "no-gpu"
only = ["jax"]
[probes.jax]
ended = "exception"
stage = "import"
how = "AttributeError: module 'jax_cuda12_plugin._triton' has no attribute 'get_arch_details'"
[target.frameworks.jax.plugins.jax-cuda12-plugin]
version = "0.7.1"
```

## Quiet on (machine)

Without a GPU, a plugin that cannot be used does no harm.

```toml
start = "no-gpu"
[target.frameworks.jax.plugins.jax-cuda12-plugin]
version = "0.7.1"
```

## Cannot tell on (machine)

```toml
only = ["jax"]
[target.packages]
unknown = "site-packages: permission denied"
```

## Fires on (log)

```
RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.26. Please update your jax and/or jaxlib packages.
```

```
WARNING:jax._src.xla_bridge:JAX plugin jax_cuda12_plugin version 0.5.1 is installed, but it is not compatible with the installed jaxlib version 0.6.0, so it will not be used.
```

A library for JAX uses a name that this JAX does not have:

```
  File "/opt/env/lib/python3.10/site-packages/flax/core/scope.py", line 900, in <module>
    KeyArray = jax.random.KeyArray
AttributeError: module 'jax.random' has no attribute 'KeyArray'
```

A library uses a JAX feature that this release does not have:

```
  File "train.py", line 3, in <module>
    import flax
  File "/opt/env/lib/python3.11/site-packages/flax/configurations.py", line 41, in bool_flag
    return jax_config.define_bool_state("flax_" + name, default, text)
AttributeError: 'Config' object has no attribute 'define_bool_state'
```

```
AttributeError: module 'flax' has no attribute 'optim'
```

## Quiet on (log)

JAX itself is not installed:

```
ModuleNotFoundError: No module named 'jax'
```

The program calls its own module incorrectly, through the library:

```
  File "train.py", line 31, in <module>
    out = net.apply(params, x, training=True)
  File "/opt/env/lib/python3.10/site-packages/flax/core/scope.py", line 980, in wrapper
    y = fn(root, *args, **kwargs)
TypeError: Net.__call__() got an unexpected keyword argument 'training'
```

## Sources

- <https://docs.jax.dev/en/latest/installation.html>
- <https://github.com/jax-ml/jax/blob/main/jaxlib/plugin_support.py>
- <https://github.com/jax-ml/jax/blob/main/jax/_src/lib/__init__.py>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_exceptions import code_of, match_at, raised_by
from whygpu.causes.evidence.log_subjects import ended_after, subject_of
from whygpu.causes.evidence.packages import (
    conflict_evidence,
    framework_name_of,
    package_named,
    required_name,
)
from whygpu.causes.evidence.probe_ends import failure_message, message_in, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import gpu_proven_by, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Absent, Known, Observed, Unknown, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import Install, InstallFramework
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package, RequirementConflict
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG310",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("framework-import-fails", "gpu-unused"),
)

IMPORT_MESSAGES = late(
    r"jaxlib version [^\n]{1,40} is newer than and incompatible with jax version"
    r"|jaxlib is version [^\n]{1,40}, but this version of jax requires version"
    r"|This version of jax requires jaxlib version"
    r"|(?:cannot import name '\w+' from|module) '(?:jaxlib|(?P<plugin>jax_cuda\d+_plugin))[\w.]*'"
)
PLUGIN_MESSAGES = late(
    r"JAX plugin \S{1,80} version \S{1,40} is installed, but it is not compatible with"
    r"|Unexpected PJRT_\w+ size"
    r"|The plugin is likely built with a (?:later|newer) version than the framework"
)
_CUDA_PLUGIN = late(r"jax-(?P<extra>cuda\d+)-(?:plugin|pjrt)")
"""AMD's plugins have their own release numbers, and jaxlib does not compare them."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    jax = need(machine.framework("jax"))
    need(machine.target.packages)
    probe = machine.probe("jax")
    broken = _broken_core(machine, jax, probe)
    if broken is not None:
        yield broken
    elif not (isinstance(probe, Known) and gpu_proven_by(probe.value)):
        yield from _unused_plugin(machine, jax, probe)


def claims(machine: Snapshot, conflict: RequirementConflict) -> bool:
    """Whether this cause reports a conflict between JAX's own packages."""
    if not _among_jax(conflict):
        return False
    jax = machine.framework("jax")
    if not isinstance(jax, Known):
        return False
    probe = machine.probe("jax")
    if _broken_core(machine, jax.value, probe) is not None:
        return True
    proven = isinstance(probe, Known) and gpu_proven_by(probe.value)
    return not proven and any(_unused_plugin(machine, jax.value, probe))


def _among_jax(conflict: RequirementConflict) -> bool:
    names = (conflict.package, required_name(conflict.requirement))
    return all(framework_name_of(name) == "jax" for name in names)


def _broken_core(machine: Snapshot, jax: Framework, probe: Observed[Probe]) -> Finding | None:
    """jax and jaxlib are from different releases: the import fails."""
    jaxlib = package_named(machine, "jaxlib")
    if isinstance(probe, Known):
        match = failure_message(probe.value, IMPORT_MESSAGES)
        line = quoted(probe.value, match.string) if match else None
    else:
        line = _core_suspicion(machine, jax)
    of_plugin = isinstance(probe, Known) and bool(match and match["plugin"])
    others = _other_releases(jax, jaxlib) if of_plugin else ()
    if line is None or (of_plugin and not others):
        return None
    version = f"jaxlib {jaxlib.version}" if jaxlib else "jaxlib is not installed"
    version = ", ".join((version, *others))
    return CAUSE.finding(
        subject="jax",
        message=f"jax {jax.version} cannot be imported with the installed packages: {version}",
        evidence=(line, seen(machine.target.packages, f"jax {jax.version}, {version}")),
        remedies=(_together(jax),),
        confidence="certain" if isinstance(probe, Known) else "likely",
        effect="broken",
    )


def _core_suspicion(machine: Snapshot, jax: Framework) -> Evidence | None:
    conflicts = machine.target.conflicts
    if isinstance(conflicts, Known):
        for conflict in conflicts.value:
            if conflict.package == "jax" and required_name(conflict.requirement) == "jaxlib":
                return conflict_evidence(machine, conflict)
    jaxlib = package_named(machine, "jaxlib")
    if jaxlib and release_numbers(jaxlib.version) > release_numbers(jax.version):
        text = f"jaxlib {jaxlib.version} is newer than jax {jax.version}, which jax does not accept"
        return seen(machine.target.packages, text)
    return None


def _unused_plugin(
    machine: Snapshot, jax: Framework, probe: Observed[Probe]
) -> Iterator[Finding | Gap]:
    """The CUDA plugin and jaxlib are from different releases: the GPU is not used."""
    jaxlib = package_named(machine, "jaxlib")
    if jaxlib is None:
        return
    others = _other_releases(jax, jaxlib)
    gpu = nvidia_gpu(machine)
    if not others or isinstance(gpu, Absent):
        return
    names = ", ".join(others)
    if isinstance(gpu, Unknown):
        yield Gap(f"whether {names} with jaxlib {jaxlib.version} matters: {gpu.reason}")
        return
    match = message_in(probe.value, PLUGIN_MESSAGES) if isinstance(probe, Known) else None
    lines = (quoted(probe.value, match.string),) if isinstance(probe, Known) and match else ()
    yield CAUSE.finding(
        subject="jax",
        message=(
            f"JAX's GPU plugin is from another release than jaxlib {jaxlib.version}: {names}; JAX "
            "does not use such a plugin and runs on the CPU"
        ),
        evidence=(*lines, seen(machine.target.packages, f"jaxlib {jaxlib.version}, {names}")),
        remedies=(_together(jax),),
        confidence="certain" if match else "likely",
    )


def _other_releases(jax: Framework, jaxlib: Package | None) -> tuple[str, ...]:
    """The CUDA plugins that are from another release than jaxlib."""
    here = release_numbers(jaxlib.version) if jaxlib else ()
    return tuple(
        f"{plugin.name} {plugin.version}"
        for plugin in jax.plugins
        if _CUDA_PLUGIN.fullmatch(plugin.name) and release_numbers(plugin.version) != here
    )


def _together(jax: Framework) -> Remedy:
    extras = [match["extra"] for p in jax.plugins if (match := _CUDA_PLUGIN.fullmatch(p.name))]
    extra = f"[{extras[0]}]" if extras else ""
    return Remedy(
        "Install all of JAX's packages from one release.",
        Install((f"jax{extra}=={jax.version}",), options=("upgrade",)),
    )


_ON_JAX = (
    r"(?:flax|haiku|optax|chex|orbax|numpyro|distrax|rlax|equinox|diffrax|optimistix|jaxopt|blackjax"
    r"|brax|objax|trax|dm_aux|jraph|clu|t5x|tensorflow_probability[./\\]substrates)"
)
"""Libraries that are built on JAX and use its internals."""
LOG_MESSAGES = late(
    r"jaxlib version \S{1,24} is newer than and incompatible with jax version"
    r"|jaxlib is version \S{1,24}, but this version of jax requires version"
    r"|[Tt]his version of jax requires jaxlib version|jaxlib version \S{1,24} is too old"
    r"|[Tt]his version of jaxlib requires jax version|jax requires jaxlib to be installed"
    r"|jax_?\S{0,30}plugin\S{0,20} version \S{1,24} is installed,\s{1,4}but it is not compatible"
    r"|Unexpected PJRT_\w{1,60} size|plugin is likely built with a (?:later|newer) version than"
    rf"|(?<!initialized )module '(?:jax(?:lib)?|{_ON_JAX})(?:\.[\w.]{{1,60}})?' has no attribute"
    rf"|cannot import name '?\w{{1,60}}'? from '?(?:jax(?:lib)?|{_ON_JAX})(?:\.[\w.]{{1,80}})?'? ?\("
    rf"|cannot import name '\w{{1,60}}' from '(?:jax(?:lib)?|{_ON_JAX})(?:\.[\w.]{{1,80}})?'"
    rf"|No module named '?(?:jax(?:lib)?|{_ON_JAX})\.[\w.]{{1,80}}'?"
    r"|jax\.\w[\w.]{1,60} (?:was|has been) removed"
    r"|AttributeError: jax\.\w[\w.]{1,60} is deprecated"
    r"|TypeError: (?:jit|pjit|pmap|_cpp_jit)\(\): incompatible function arguments"
    r"|jaxlib\.xla_extension[^\n]{0,80}(?:incompatible (?:function|constructor) arguments|has no attribute)"
    r"|jax(?:lib)? \S{1,20} requires jax(?:lib)?\S{1,20}, but you have jax"
    r"|PJRT C API (?:version )?mismatch|Mismatched PJRT plugin"
    r"|'(?:EvalTrace|MainTrace|DynamicJaxprTrace|TraceStack|ShapedArray|ClosedJaxpr)' object has no"
    r" attribute"
    r"|'Config' object has no attribute '(?:jax_\w{1,60}|define_\w{1,30}_state)'"
)
_FILES = late(rf"[/\\\\](?:site|dist)-packages[/\\\\](?:jax|jaxlib|jax_plugins|{_ON_JAX})[/\\\\]")
_INTERNALS = late(
    r"cannot import name '?\w{1,60}'?$|'\w{1,60}' object has no attribute '\w{1,60}'$"
    r"|\w\(\): incompatible (?:function|constructor) arguments"
    r"|got (?:an unexpected keyword|multiple values for) argument '|No module named '?jax"
)
_OF_THE_PROGRAM = late(
    r"'(?:NoneType|str|int|float|bool|list|tuple|dict|set|function|ndarray|DataFrame|ArrayImpl"
    r"|DynamicJaxprTracer|\w{0,40}Tracer)' object|[\w.]{0,60}(?:__call__|<lambda>|loss\w{0,20}|_fn)\(\)"
)
_OTHER_BACKEND = late(r"Unable to initialize backend '(?:tpu|rocm|interpreter|plugin)")
"""JAX tries every backend that it supports, and reports that most of them are missing."""
_VERSIONS = late(
    r"jaxlib version (?P<jaxlib>[\d.]+\d)\S{0,20} is newer than and incompatible with jax version "
    r"(?P<jax>[\d.]+\d)"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = next((m for m in log.find(LOG_MESSAGES) if not _OTHER_BACKEND.search(m.text)), None)
    statement = statement or _between_libraries(log)
    if statement is None:
        return
    versions = log.first(_VERSIONS)
    exact = versions.groups["jaxlib"] if versions else None
    yield CAUSE.finding(
        subject="jax" if subject_of(log) != "jax" else subject_of(log),
        effect="broken" if ended_after(log, statement.line) else None,
        message="jax, jaxlib, a plugin or a library for JAX are from releases that do not match: "
        f"{statement.text.strip()[:180]}",
        evidence=log.evidence(
            statement.line,
            *(match.line for match in log.find(LOG_MESSAGES)),
            *ended_after(log, statement.line),
        ),
        remedies=(
            Remedy(
                "Install jax, jaxlib and the CUDA plugin of one release together.",
                InstallFramework("jax", exact or "", options=("upgrade",)),
            ),
            Remedy(
                "If a library (flax, haiku, optax, chex) raised the error, install a release of "
                "it from the same time as JAX.",
                _libraries(log),
            ),
        ),
    )


_PACKAGE_OF = {"flax": "flax", "haiku": "dm-haiku", "optax": "optax", "chex": "chex"}
"""Libraries that use the internals of JAX: module and package."""
_LIBRARY_FILE = late(r"[/\\](?P<module>flax|haiku|optax|chex)[/\\]")


def _libraries(log: Log) -> Install | None:
    """Those whose files the log shows."""
    found = (match.groups["module"] or "" for match in log.find(_LIBRARY_FILE))
    names = tuple(dict.fromkeys(_PACKAGE_OF[module] for module in found))
    return Install(names, options=("upgrade",)) if names else None


def _between_libraries(log: Log) -> Match | None:
    """A library built on JAX, or JAX itself, uses something that the other does not have.

    The innermost frame belongs to the caller: after a mistake in the program, to the program.
    """
    for raised in log.raised:
        if (
            raised.type in ("ImportError", "ModuleNotFoundError", "AttributeError", "TypeError")
            and len(raised.frames) > 1
            and raised_by(raised, _FILES)
            and _INTERNALS.search(raised.message)
            and not _OF_THE_PROGRAM.match(raised.message)
            and "**" not in code_of(log, raised)
        ):
            return match_at(log, raised)
    return None
