"""Kubernetes has no GPU to give to the pod: no node offers one, or all are taken.

## Why it happens

A node offers its GPUs through NVIDIA's device plugin, as the resource `nvidia.com/gpu`. The plugin
finds them with the driver's libraries, so its own container must run with NVIDIA's container
runtime. If it does not, the plugin sees no GPU and the node offers none. Pods that ask for one then
wait, and pods that ask for none start without one.

- The node has no driver, or the plugin does not run on it.
- The plugin runs, but the node's container runtime (containerd, CRI-O, Docker) does not use
  NVIDIA's: the runtime is not configured, is not the default, or no RuntimeClass names it.
- All GPUs are taken by other pods. A GPU belongs to one pod at a time, unless it is shared by
  time slices or MIG.

## What it looks like

- `0/3 nodes are available: 3 Insufficient nvidia.com/gpu`
- The plugin's log: `No devices found. Waiting indefinitely.`, `Incompatible platform detected`,
  `If this is a GPU node, did you configure the NVIDIA Container Toolkit?`
- `Allocate failed due to requested number of devices unavailable for nvidia.com/gpu`
- `no runtime for "nvidia" is configured`

## Fix

`kubectl describe nodes` shows what each node offers (Allocatable) and what is taken (Allocated
resources). If no node offers a GPU, look at the plugin's log, configure the runtime of the node
(`nvidia-ctk runtime configure --runtime=containerd --set-as-default`) and restart it. The pod needs
`resources: {limits: {nvidia.com/gpu: 1}}`.

## Fires on (log)

```
  Warning  FailedScheduling  35s   default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.
```

```
I1018 08:11:27.332101       1 factory.go:107] Detected non-NVML platform: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file: No such file or directory
E1018 08:11:27.332140       1 factory.go:112] Incompatible platform detected
E1018 08:11:27.332150       1 factory.go:113] If this is a GPU node, did you configure the NVIDIA Container Toolkit?
I1018 08:11:27.332166       1 main.go:346] No devices found. Waiting indefinitely.
```

```
  Warning  FailedCreatePodSandBox  4s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured
```

## Quiet on (log)

Docker, not a cluster.

```
docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].
```

```
I1018 08:11:27.332101       1 main.go:279] Retrieving plugins.
I1018 08:11:27.332104       1 factory.go:104] Detected NVML platform: found NVML library
I1018 08:11:27.332107       1 factory.go:104] Detected non-Tegra platform: /sys/devices/soc0/family file not found
I1018 08:11:27.389100       1 server.go:117] Registered device plugin for 'nvidia.com/gpu' with Kubelet
```

## Sources

- <https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/>
- <https://github.com/NVIDIA/k8s-device-plugin>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.container_advice import (
    NVIDIA_RUNTIME_OF_DOCKER,
    NVIDIA_RUNTIME_ON_NODE,
)
from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line, shell_script

CAUSE = cause(
    "WG804",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=(
        *CONSEQUENCES,
        "no-nvidia-driver",
        "docker-no-gpu-runtime",
        "nvml-library-missing",
    ),
)

_OFFERED = Remedy(
    "Check what the nodes offer (Allocatable) and what is taken (Allocated resources).",
    shell_script("kubectl describe nodes | grep -E '^Name:|nvidia.com/gpu'"),
)
_PLUGIN_LOG = Remedy(
    "If no node offers a GPU, read why in the log of the device plugin.",
    shell_script("kubectl get pods -A | grep nvidia-device-plugin"),
)
_DRIVER = Remedy("Check that the driver works on the node itself.", command_line("nvidia-smi"))
_ASK_FOR_IT = Remedy("The pod asks for a GPU with resources: {limits: {nvidia.com/gpu: 1}}.")
_MIXED = Remedy("A node without a GPU may ignore this: keep the plugin off it by a node selector.")


class _Reason(NamedTuple):
    words: re.Pattern[str]
    message: str
    remedies: tuple[Remedy, ...]


_REASONS = (
    _Reason(
        late(r"no runtime for \"?nvidia\"? is configured"),
        "the node's container runtime does not know NVIDIA's runtime, which the pod names",
        (NVIDIA_RUNTIME_ON_NODE, _DRIVER),
    ),
    _Reason(
        late(
            r"No devices found\. Waiting indefinitely|Incompatible (?:platform|strategy) detected"
            r"|If this is a GPU node, did you"
        ),
        "NVIDIA's device plugin finds no GPU on this node, so the node offers none to pods",
        (_DRIVER, NVIDIA_RUNTIME_ON_NODE, _MIXED),
    ),
    _Reason(
        late(
            r"requested number of devices unavailable for nvidia\.com/\S{3,40}"
            r"|Allocate failed due to[^\n]{0,80}nvidia\.com/"
        ),
        "the node has fewer GPUs free than the pod was promised: the plugin restarted, or a GPU "
        "was found to be faulty",
        (_OFFERED, _PLUGIN_LOG),
    ),
    _Reason(
        late(
            r"(?:[Ii]nsufficient|didn't have enough resource) nvidia\.com/"
            r"|nvidia\.com/(?:gpu|mig)[^\n]{0,60}(?:cannot be scheduled|Insufficient)"
        ),
        "the cluster has no free GPU for this pod: no node offers one, or all are taken",
        (_OFFERED, _PLUGIN_LOG, _ASK_FOR_IT),
    ),
)
_MOST_LINES = 4
_DOCKERS_DEFAULT = late(r"did you set the docker default runtime|unix:///var/run/docker")
"""Older plug-ins and nodes run their containers with Docker."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    of_docker = log.says(_DOCKERS_DEFAULT)
    for reason in _REASONS:
        lines = [match.line for match in log.find(reason.words)][:_MOST_LINES]
        if lines:
            yield CAUSE.finding(
                subject=MACHINE,
                message=reason.message,
                evidence=log.evidence(*lines),
                remedies=tuple(
                    NVIDIA_RUNTIME_OF_DOCKER
                    if of_docker and remedy is NVIDIA_RUNTIME_ON_NODE
                    else remedy
                    for remedy in reason.remedies
                ),
                kind_of="docker-no-gpu-runtime",
            )
            return
