"""Memory of tensors that is used again, so that the kernel clears its pages once and not each time.

A batch's rows are tens of megabytes, which malloc by default takes from the kernel and gives back
for every batch: 4 KiB at a time, each page cleared first.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import weakref
from contextlib import suppress
from typing import Any

from gnnd.geometric import torch_of

#: Smaller tensors are malloc's, which keeps their memory.
_LEAST_BYTES = 1 << 20
#: Mappings are larger than what was asked for by this part of it, so that they fit other batches.
_SLACK = 8
_HUGE_PAGE_BYTES = 2 << 20
#: What is kept beside what tensors have: a loop holds few batches at a time.
_MOST_FREE = 6


class Buffers:
    """Makes tensors whose memory comes back when nobody has them, or parts of them, any longer."""

    def __init__(self) -> None:
        self._torch = torch_of("gnnd.loader()")
        self._free: list[mmap.mmap] = []

    def empty(self, shape: tuple[int, ...], kind: Any) -> Any:
        """A tensor of that shape and type, of any values."""
        count = math.prod(shape)
        size = count * kind.itemsize
        if size < _LEAST_BYTES:
            return self._torch.empty(shape, dtype=kind)
        memory = self._taken(size)
        # The tensor holds the array, whose end is that of the tensor and of all views of it.
        array = (ctypes.c_ubyte * size).from_buffer(memory)
        weakref.finalize(array, _give_back, self._free, memory).atexit = False
        return self._torch.frombuffer(array, dtype=kind, count=count).view(shape)

    def _taken(self, size: int) -> mmap.mmap:
        fitting = [each for each in self._free if size <= len(each) <= 2 * size]
        for memory in sorted(fitting, key=len):
            with suppress(ValueError):  # Another thread was faster.
                self._free.remove(memory)
                return memory
        wanted = -(-(size + size // _SLACK) // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
        memory = mmap.mmap(-1, wanted, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # A kernel without large pages.
            memory.madvise(mmap.MADV_HUGEPAGE)
        return memory


def _give_back(free: list[mmap.mmap], memory: mmap.mmap) -> None:
    """The oldest go first: batches of a loop are about as large as those before."""
    free.append(memory)
    del free[:-_MOST_FREE]
