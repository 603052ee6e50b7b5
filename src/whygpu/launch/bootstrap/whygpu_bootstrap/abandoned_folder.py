"""Removes the folder of a run whose launcher was killed.

The launcher holds a lock on a file in the folder as long as it runs (launch/run_folder.py).
"""

import os

LOCK = "lock"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def remove_if_abandoned(folder: str) -> None:
    """Remove a run's folder if its launcher is certainly gone."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(BOOT_ID, "rb") as file:
            boot_id = file.read(64)
        descriptor = os.open(os.path.join(folder, LOCK), flags)
    except OSError:
        # No lock, or no way to know which machine holds it: the folder may be in use.
        return
    try:
        # On a shared file system, the locks of another machine may not be visible here.
        if boot_id and os.read(descriptor, 64) == boot_id and _can_lock(descriptor):
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def _can_lock(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
