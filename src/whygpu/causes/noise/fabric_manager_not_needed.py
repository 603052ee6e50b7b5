"""The fabric manager ends because the machine has no NVSwitch: harmless.

## Why it happens

The fabric manager connects the GPUs of machines with NVSwitches (HGX and DGX with SXM modules).
Some instructions install it everywhere. On a machine with other cards it finds nothing to do and
ends, which systemd reports as a failure of the service.

## What it looks like

`request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing
to do [NV_WARN_NOTHING_TO_DO]`, and `nvidia-fabricmanager.service: Failed`.

## Fix

None is needed. To get rid of the message, disable the service.

## Fires on (log)

```
Sep 18 03:19:01 box nvidia-fabricmanager-start.sh[4756]: request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]
Sep 18 03:19:01 box systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
```

## Quiet on (log)

On a machine with NVSwitches, the service has failed for another reason.

```
RuntimeError: CUDA error: system not yet initialized
nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
```

## Sources

- <https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG929", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"NV_WARN_NOTHING_TO_DO[^\n]{0,20}(?:\n[^\n]{0,200}nvidia-fabricmanager\.service[^\n]{0,200})?"
)


harmless(
    CAUSE,
    MESSAGE,
    "the machine has no NVSwitch, so the fabric manager has nothing to do and ends",
)
