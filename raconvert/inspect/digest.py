"""The digest of an array: SHA-256 of the canonical .ra file that it would become.

Canonical: flags 0, little-endian, uncompressed, no trailer, in the index order of the format that
the array is in, so that equal arrays of one format have equal digests. So the digest of a canonical
.ra file is what `sha256sum` prints for it, and a file in any other format can be checked against an
.ra without writing one.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack

from raconvert.conversion.options import Opening, options_of
from raconvert.declared import accepts
from raconvert.errors import Corrupt, UsageError, counted, listed
from raconvert.files.copy import SLAB_BYTES, extent_slabs
from raconvert.files.source import DEFAULT_MAX_MEMORY, path_of
from raconvert.ra.header import canonical_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from raconvert.arrays.array import Array
    from raconvert.declared import Readable
    from raconvert.files.source import Extent


@accepts(options_of(Opening))
def digest(
    path: Readable,
    array: str | None = None,
    **options: Unpack[Opening],
) -> str:
    """Return the digest of the one array of a file, or of the one called `array`, as hex digits.

    It is the SHA-256 of the canonical .ra file that the array would become, in its stored order;
    read in at most `max_memory` bytes. `path` and the options as in `raconvert.open`.

    >>> raconvert.digest("grid.ra") == hashlib.sha256(Path("grid.ra").read_bytes()).hexdigest()
    True

    Raises `UsageError` for several arrays without a choice, and lists them; `Corrupt` for elements
    that cannot be decoded; and what `open` does.
    """
    from raconvert.conversion.read import open_bundle

    arrays = () if array is None else (array,)
    with ExitStack() as stack:
        local = path_of(path, stack)
        bundle = stack.enter_context(open_bundle(local, arrays=arrays, **options))
        if len(bundle.arrays) != 1:
            raise UsageError(
                f"has {counted(len(bundle.arrays), 'array')}; a digest is of one",
                path=local,
                remedy=f"choose with FILE#NAME: {listed(bundle.names)}",
            )
        return digest_array(bundle.arrays[0], options.get("max_memory", DEFAULT_MAX_MEMORY))


def digest_array(array: Array, max_memory: int = DEFAULT_MAX_MEMORY) -> str:
    """Return the digest of an array, in bounded memory; every element is read and decoded.

    Raises `Corrupt` if there are fewer or more elements than the dimensions say.
    """
    if array.row_major:
        from raconvert.arrays.transpose import as_listed

        array = as_listed(array, max_memory)
    state = hashlib.sha256(canonical_header(array))
    if array.extent is not None:
        hash_extent(state, array.extent)
        return state.hexdigest()
    done = 0
    for block in _decoded(array, max_memory):
        state.update(block)
        done += block.nbytes
    if done != array.nbytes:
        raise Corrupt(
            f"array '{array.name}' does not hold what its header says",
            expected=f"{array.nbytes} bytes",
            got=done,
        )
    return state.hexdigest()


def hash_extent(state: Any, extent: Extent) -> None:
    """Update a hash by the bytes of an extent, little-endian, slab by slab; nothing is mapped."""
    for slab in extent_slabs(extent, SLAB_BYTES):
        state.update(slab)


def _decoded(array: Array, max_memory: int) -> Any:
    """Yield the blocks of an array as bytes (datetimes have no buffer of their own)."""
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, blocks

    for block in blocks(array, block_bytes(max_memory)):
        yield block.reshape(-1).view(np.uint8)


def manifest_line(name: str, digits: str) -> str:
    r"""Return a line as `sha256sum` prints it: ``\``, newlines and returns in names escaped."""
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if escaped != name else ""
    return f"{mark}{digits}  {escaped}"
