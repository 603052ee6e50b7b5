"""TensorFlow's profiler: what the GPU did, and how long compiled functions waited for their data.

A step that takes its data from tf.data inside a tf.function, as Keras does, looks like one call
from Python. The profiler shows how long that call waited for data, also on a CPU.
"""

import os
import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import recorder
from whygpu_bootstrap.profile.device_window import giving_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST_FILE = 64 << 20
MARK = "whygpu mark"


class Profiler:
    name = "TensorFlow's profiler"
    kind = "xplane"
    saves_quickly = True

    def __init__(self, tensorflow: "Any") -> None:
        self._native: "Any" = sys.modules.get("tensorflow.python.profiler.profiler_v2")
        self._public: "Any" = getattr(getattr(tensorflow, "profiler", None), "experimental", None)
        self._folder = ""
        public: "Any" = self._public
        if hasattr(public, "start") and recorder.is_new("tensorflow profiler"):
            public.start = giving_way(public.start, recorder.window, self.name)

    def ready(self) -> bool:
        """TensorFlow 1 has another one, and with it no steps that wait for their data inside."""
        return self._native is not None and self._public is not None

    def safe(self) -> bool:
        return True

    def wait(self) -> None:
        """Old releases have no function for it. A run of a session waits by itself."""
        tests: "Any" = getattr(sys.modules.get("tensorflow"), "test", None)
        sync = getattr(getattr(tests, "experimental", None), "sync_devices", None)
        if sync is not None and sys.modules["tensorflow"].executing_eagerly():
            sync()

    def start(self) -> None:
        self._folder = recorder.file_beside_record("xplane")
        self._native.start(self._folder)

    def mark(self) -> None:
        with self._public.Trace(MARK):
            pass

    def stop(self) -> None:
        self._native.stop()

    def files(self) -> "list[str]":
        found = []
        for folder, _, names in os.walk(self._folder):
            found += [os.path.join(folder, name) for name in names if name.endswith(".xplane.pb")]
        small = [path for path in found if os.path.getsize(path) <= LARGEST_FILE]
        if len(small) < len(found):
            process_record.note("the profile of TensorFlow is too large to read")
        return small[:1]
