"""Choice of the engine: compiled code, or Python and Pillow if that is missing.

`fast` are the loops of `_fast.c`, built when raconvert is installed; without a compiler, on a
system other than POSIX, or in a checkout it is None, and Python and Pillow do the same more slowly.
The checksums are those of libdeflate, else of zlib.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["adler32", "crc32", "fast"]

adler32: Callable[..., int]
crc32: Callable[..., int]

try:
    from . import _fast as fast
except ImportError:
    fast = None

try:
    from deflate import adler32, crc32
except ImportError:
    from zlib import adler32, crc32
