"""A model of PyTorch's caching allocator for CUDA: the peak of a list of allocations and frees.

PyTorch cuts blocks from larger segments and counts whole blocks: the peak that
it reports (`torch.cuda.max_memory_allocated`) and the memory that it holds (`max_memory_reserved`)
are both more than the sum of the tensors. No PyTorch is needed here.
"""

import bisect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

BLOCK = 512
"""Every size is rounded up to a multiple of it."""
SMALL = 1 << 20
"""Blocks up to this size come from small segments."""
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
LEAST_OWN_SEGMENT = 10 << 20
"""A block of this size or more gets its own segment."""
SEGMENT_STEP = 2 << 20


def rounded(size: int) -> int:
    return max(-(-size // BLOCK), 1) * BLOCK


class _Block:
    __slots__ = ("after", "before", "free", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = True
        self.before: "_Block | None" = None
        self.after: "_Block | None" = None


class _Pool:
    """Free blocks, small or large; take() returns the smallest one that is large enough."""

    def __init__(self, least_rest: int) -> None:
        self._least_rest = least_rest
        self._sizes: "list[int]" = []
        self._blocks: "list[_Block]" = []

    def put(self, block: "_Block") -> None:
        place = bisect.bisect_right(self._sizes, block.size)
        self._sizes.insert(place, block.size)
        self._blocks.insert(place, block)

    def take(self, size: int) -> "_Block | None":
        place = bisect.bisect_left(self._sizes, size)
        if place == len(self._sizes):
            return None
        del self._sizes[place]
        return self._blocks.pop(place)

    def remove(self, block: "_Block") -> None:
        place = bisect.bisect_left(self._sizes, block.size)
        while self._blocks[place] is not block:
            place += 1
        del self._sizes[place], self._blocks[place]

    def drop_unused(self) -> int:
        """Drop the segments that are completely free; return their bytes."""
        whole = [each for each in self._blocks if each.before is None and each.after is None]
        for block in whole:
            self.remove(block)
        return sum(block.size for block in whole)

    def cut(self, block: "_Block", size: int) -> None:
        """Shrink the block to `size` bytes, and put the rest back if it is large enough."""
        rest = block.size - size
        if rest < self._least_rest:
            return
        other = _Block(rest)
        other.before, other.after = block, block.after
        if block.after is not None:
            block.after.before = other
        block.after, block.size = other, size
        self.put(other)


class DoesNotFit(Exception):
    """There is not enough memory, even after the allocator released every unused segment."""


class Allocator:
    """Counts as PyTorch's allocator does, on a GPU with `limit` bytes; None for no limit."""

    def __init__(self, limit: "int | None" = None) -> None:
        self._limit = limit
        self._small = _Pool(BLOCK)
        self._large = _Pool(SMALL + 1)
        self.allocated = 0
        self.reserved = 0

    def allocate(self, size: int) -> "tuple[_Pool, _Block]":
        """A block for `size` bytes, to be passed to release()."""
        size = rounded(size)
        pool = self._small if size <= SMALL else self._large
        block = pool.take(size)
        if block is None:
            block = self._new_segment(_segment(size))
        pool.cut(block, size)
        block.free = False
        self.allocated += block.size
        return pool, block

    def _new_segment(self, size: int) -> "_Block":
        if self._limit is not None and self.reserved + size > self._limit:
            # PyTorch returns unused segments to the driver, too.
            self.reserved -= self._small.drop_unused() + self._large.drop_unused()
            if self.reserved + size > self._limit:
                raise DoesNotFit()
        self.reserved += size
        return _Block(size)

    def release(self, held: "tuple[_Pool, _Block]") -> None:
        pool, block = held
        self.allocated -= block.size
        block.free = True
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                pool.remove(neighbour)
                block = _joined(neighbour, block)
        pool.put(block)


def _segment(size: int) -> int:
    if size <= SMALL:
        return SMALL_SEGMENT
    if size < LEAST_OWN_SEGMENT:
        return LARGE_SEGMENT
    return -(-size // SEGMENT_STEP) * SEGMENT_STEP


def _joined(one: "_Block", other: "_Block") -> "_Block":
    first, second = (one, other) if one.after is other else (other, one)
    first.size += second.size
    first.after = second.after
    if second.after is not None:
        second.after.before = first
    first.free = True
    return first


class Peak:
    """The peak: how much was allocated, and by which allocations."""

    def __init__(self, allocated: int, reserved: int, live: "dict[int, int]") -> None:
        self.allocated = allocated
        self.reserved = reserved
        self.live = live
        """The size of the block of each allocation, by its key."""


def replay(events: "Sequence[tuple[int, int | None]]", limit: "int | None" = None) -> "Peak":
    """The peak of a list of (key, size); a size of None frees the key's allocation."""
    allocator = Allocator(limit)
    held: "dict[int, tuple[_Pool, _Block]]" = {}
    most, moment = 0, -1
    for place, (key, size) in enumerate(events):
        if size is None:
            allocator.release(held.pop(key))
            continue
        held[key] = allocator.allocate(size)
        if allocator.allocated > most:
            most, moment = allocator.allocated, place
    return Peak(most, allocator.reserved, _live_at(events, moment))


def _live_at(events: "Sequence[tuple[int, int | None]]", moment: int) -> "dict[int, int]":
    allocator = Allocator()
    held: "dict[int, tuple[_Pool, _Block]]" = {}
    for key, size in events[: moment + 1]:
        if size is None:
            allocator.release(held.pop(key))
        else:
            held[key] = allocator.allocate(size)
    return {key: block.size for key, (_pool, block) in held.items()}


def least(events: "Sequence[tuple[int, int | None]]", peak: "Peak") -> int:
    """The least memory with which the allocator can handle the events, to within one step.

    It lies between the peak, which would be enough without fragmentation, and what the allocator
    holds if nothing forces it to release anything.
    """
    low, high = peak.allocated, peak.reserved
    while high - low > SEGMENT_STEP:
        middle = (low + high) // 2
        try:
            replay(events, middle)
            high = middle
        except DoesNotFit:
            low = middle
    return high
