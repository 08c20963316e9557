"""Writing the header and the data of a NRRD file, behind it or beside it."""

from __future__ import annotations

import os
from functools import partial

from raconvert.arrays.blocks import write_raw
from raconvert.errors import Unsupported, WouldLose
from raconvert.files.copy import write_all
from raconvert.files.pairing import seal_of
from raconvert.files.paths import write_failed
from raconvert.plugin import Source, refused

from .header import Files, Header, header_bytes
from .metadata import is_encodable
from .tables import BZIP2, GZIP, HEX, RAW, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from raconvert.plugin import Array, Target

SUFFIXES = {RAW: ".raw", GZIP: ".raw.gz", BZIP2: ".raw.bz2", TEXT: ".txt", HEX: ".hex"}


def write(array: Array, header: Header, level: int, target: Target) -> None:
    """Write one array; a target called .nhdr gets its data in a file of its own beside it."""
    if not target.path.lower().endswith(".nhdr"):
        _write_data(array, header, level, target, target, header_bytes(header))
        return
    data = target.beside(SUFFIXES[header.fields["encoding"]])
    name = _data_name(data.path)
    # File names are UTF-8, and a header is read in one encoding.
    charset = header.charset if name.isascii() else "utf-8"
    header = header._replace(files=Files([name], None, None, 0), charset=charset)
    _write_data(array, header, level, target, data, b"")
    seal = f" {seal_of(header_bytes(header), Source(data.temp))}"
    try:
        write_all(target.open(), [header_bytes(header._replace(seal=seal))])
    except OSError as error:
        raise write_failed(target.path, error) from error


def _data_name(path: str) -> str:
    """Return the name of the data file beside a detached header.

    Raises `Unsupported` for a name that no header can have.
    """
    name = os.path.basename(path)
    odd = "\r" in name or "\n" in name or "%" in name or name != name.strip(" \t")
    if odd or not is_encodable(name, "utf-8"):
        raise Unsupported(
            "a NRRD header cannot name a data file with such a name",
            path=path,
            expected="a name in UTF-8, without %, line ends, or blanks at its ends",
            got=repr(name),
            remedy="choose another name, or write an attached .nrrd",
        )
    return name


def _write_data(
    array: Array, header: Header, level: int, target: Target, data: Target, before: bytes
) -> None:
    """Write the encoded elements to `data`, behind what comes before them there."""
    encoding = header.fields["encoding"]
    if encoding == RAW:
        write_raw(data, before, array)  # which imports NumPy only if it has to
        return
    from raconvert.arrays.blocks import block_bytes, blocks

    encode = _encoder(encoding, level, array)
    file = data.open()
    write_all(file, [before])
    pieces = data.counted(blocks(array, block_bytes(target.max_memory)))
    if encoding != TEXT:
        write_all(file, encode(pieces))
        return
    odd_nans: list[int] = []
    any_nan = target.allows("precision")
    write_all(file, encode(_watched(pieces, odd_nans, array, any_nan=any_nan)))
    if odd_nans:
        reason = "the signs and payloads of NaN are lost in text"
        target.lost.append(refused(array.name, "precision", reason, "--allow precision"))


def _encoder(encoding: str, level: int, array: Array) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function that encodes the pieces of an array."""
    from . import codecs

    if encoding == HEX:
        return codecs.as_hex
    if encoding != TEXT:
        return partial(codecs.compressed, encoding=encoding, level=level)
    row = 1 if array.ndim < 2 else array.dims[0]
    return partial(codecs.as_text, row=2 if array.element.kind == "complex" else row)


def _watched(
    pieces: Iterable[Any], odd_nans: list[int], array: Array, *, any_nan: bool
) -> Iterator[Any]:
    """Yield the pieces, and record the first NaN of each that the text ``nan`` does not keep.

    Raises `WouldLose` for it, unless `any_nan` allows it.
    """
    done = 0
    from raconvert.arrays.blocks import index_of

    for piece in pieces:
        indices = _odd_nans(piece)
        if indices.size and not any_nan:
            raise WouldLose(
                f"a NaN of array '{array.name}' has a sign or a payload, which text does not keep",
                where=f"index {list(index_of(array, done + int(indices[0])))}",
                remedy="nothing was written; `--allow precision` makes it a plain nan; the other "
                "encodings hold it",
            )
        odd_nans += indices[:1].tolist()
        done += piece.size
        yield piece


def _odd_nans(piece: Any) -> Any:
    """Return the indices of elements with a NaN whose bits are not those of the usual quiet one."""
    import numpy as np

    width = piece.dtype.itemsize // (2 if piece.dtype.kind == "c" else 1)
    if piece.dtype.kind not in "fc":
        return np.empty(0, np.int64)
    bits = piece.reshape(-1).view(f"<u{width}")
    quiet = np.array(np.nan, f"<f{width}").view(bits.dtype)
    odd = np.isnan(bits.view(f"<f{width}")) & (bits != quiet)
    return np.flatnonzero(odd) // (piece.dtype.itemsize // width)
