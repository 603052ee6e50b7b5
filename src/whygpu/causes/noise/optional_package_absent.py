"""A package that only improves speed is not installed: harmless.

## Why it happens

Libraries for large models look for Triton, xFormers, FlashAttention or bitsandbytes, and work
without them if they are missing.

## What it looks like

`A matching Triton is not available, some optimizations will not be enabled`, `No module 'xformers'.
Proceeding without it.`

## Fix

None is needed. Triton has no wheels for native Windows, so the line is common there.

## Fires on (log)

```
A matching Triton is not available, some optimizations will not be enabled.
Error caught was: No module named 'triton'
```

```
No module 'xformers'. Proceeding without it.
```

## Quiet on (log)

```
ModuleNotFoundError: No module named 'triton'
```

## Sources

- <https://github.com/facebookresearch/xformers>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG919", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"A matching Triton is not available|Error caught was: No module named '|Proceeding without it\."
    r"|[Tt]riton not available|Neither flash_attn nor xformers"
)


harmless(
    CAUSE,
    MESSAGE,
    "packages that make some operations faster are not installed; they are not required",
)
