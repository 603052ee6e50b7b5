"""Refuses zip archives that would unpack to far more data than their size can justify.

A .keras file and a file of numpy.savez are zip archives. Loading one unpacks its members into
memory, so the sizes that they declare are checked first.
"""

import os
import zipfile

MOST_ENTRIES = 20000
"""Members. A .keras file has three and its assets; a file of inputs has one for each array."""
LARGEST_TEXT = 64 << 20
"""Bytes of a text member such as config.json. Those of the largest models have 10 MB."""
HARMLESS = 1 << 30
"""Bytes that an archive of any size may unpack to: arrays of zeros compress well."""
LARGEST_RATIO = 100
"""Unpacked size divided by the size of the file. Weights hardly compress."""


class Bomb(Exception):
    """The archive declares more data than it can hold; the message says what."""


def check(path: str) -> None:
    """Raise Bomb for such an archive. A file that is not a zip archive is left to the loader."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return
    if len(members) > MOST_ENTRIES:
        raise Bomb("it has %d members; more than %d are not read" % (len(members), MOST_ENTRIES))
    for member in members:
        if member.filename.endswith(".json") and member.file_size > LARGEST_TEXT:
            raise Bomb(
                "its %s unpacks to %s; more than %s are not read"
                % (member.filename, _size(member.file_size), _size(LARGEST_TEXT))
            )
    size = sum(member.file_size for member in members)
    packed = os.path.getsize(path)
    if size > HARMLESS and size > LARGEST_RATIO * packed:
        raise Bomb("its %s unpack to %s, which real data never does" % (_size(packed), _size(size)))


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return "%.3g %s" % (count, unit)
        count /= 1000
    return "%.3g GB" % count
