"""TensorFlow cannot read which NUMA node the GPU belongs to: harmless.

## Why it happens

TensorFlow asks the kernel which processor each GPU is connected to. Virtual machines, WSL and
machines with one processor have no answer. TensorFlow then uses node 0, the only one there.

## What it looks like

`successful NUMA node read from SysFS had negative value (-1)`, or `could not open file to read NUMA
node`, or `Could not identify NUMA node of platform GPU ID 0`. There are often a dozen of them,
because TensorFlow asks each time it lists a device. They show that a GPU was found.

## Fix

None is needed. It can cost a little speed only on a machine with several processor sockets, if the
memory of the other socket is used.

## Fires on (log)

```
2021-03-02 10:15:41.310877: I tensorflow/stream_executor/cuda/cuda_gpu_executor.cc:941] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero
```

```
2023-04-11 08:20:01.550123: I tensorflow/core/common_runtime/pluggable_device/pluggable_device_factory.cc:306] Could not identify NUMA node of platform GPU ID 0, defaulting to 0. Your kernel may not have been built with NUMA support.
```

```
I0000 00:00:1731631215.203445    1187 cuda_executor.cc:1015] could not open file to read NUMA node: /sys/bus/pci/devices/0000:01:00.0/numa_node
Your kernel may have been built without NUMA support.
```

## Quiet on (log)

```
2021-03-02 10:15:41.500000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1720] Found device 0 with properties:
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/42738>
- <https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG902", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"NUMA node read from SysFS had negative value|could not open file to read NUMA node"
    r"|Could not identify NUMA node of|kernel may (?:not )?have been built with(?:out)? NUMA"
)


harmless(
    CAUSE,
    MESSAGE,
    "the kernel does not know the NUMA node of the GPU, so TensorFlow uses node 0; the GPU is "
    "used anyway",
)
