"""CFL of BART, the toolbox for magnetic resonance: ``x.hdr`` and ``x.cfl``, read and write.

Specification: https://mrirecon.github.io/bart (``cfl.py`` and ``io.c`` of BART). Compared with: the
program ``bart`` itself, and its ``cfl.py``.

Layout: ``x.hdr`` is text: a line ``# Dimensions``, then the lengths, the fastest axis first; other
sections follow (``# Command``, ``# Files``, ``# Creator``). ``x.cfl`` holds complex numbers of two
float32, little-endian, in column-major order. Either file may be named.

BART lists 16 lengths, whatever the array has. Of such a list the last lengths of 1 are taken for
BART's filling and left out, as ``cfl.py`` does it; ``--in-opt dims=all`` keeps the 16. Shorter
lists are taken as they are.

Mapping: column-major; dims are the lengths. The other sections are kept in the namespace ``cfl``.

Writes: both files, the lengths of the array and no more (BART fills the rest), and a comment,
``# raconvert seal: …``, that ties the two together.

Refused: data that is not as long as its header says, lengths below 1. Writing: other elements than
complex64 (``--dtype complex64`` makes them of real numbers), more than 16 axes, empty ones. Other
metadata has no place (named as equivalent).
"""

from __future__ import annotations

from raconvert.errors import Corrupt
from raconvert.plugin import NO, SURE, Array, Bundle, Format, Metadata, Option, Source

from .header import ELEMENT, MAGIC, MOST_AXES, NAMESPACE, read_header
from .plan import plan

__all__ = ["FORMAT", "plan", "read", "sniff"]

FORMAT = Format(
    name="cfl",
    title="BART CFL",
    suffixes=(".cfl", ".hdr"),
    magic=((0, MAGIC),),
    index_orders="F",
    read_options=(
        Option("dims", "auto", ("auto", "all"), "all: keep lengths of 1 at the end of BART's 16"),
    ),
    samples={"two.hdr": MAGIC + b"\n2 1\n", "two.cfl": bytes(16)},
    spec="https://mrirecon.github.io/bart",
    losses="only complex64, of 1 to 16 axes; no metadata",
)


def sniff(source: Source) -> int:
    """Sure by the first line of the header; of the data nothing tells but the name."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source, *, dims: str = "auto") -> Bundle:
    """The one array of both files, named after their stem, as an extent.

    Shape in F order. Raises `Corrupt`, and `ReadFailed` or `Unsafe` for the other file.
    """
    if source.head.startswith(MAGIC) and not source.name.lower().endswith(".cfl"):
        header, data = source, source.beside(".cfl", "the data of the header")
    else:
        header, data = source.beside(".hdr", "the header of the data"), source
    found, sections = read_header(header, data)
    if dims == "auto" and len(found) == MOST_AXES:
        while len(found) > 1 and found[-1] == 1:
            found = found[:-1]
    array = Array(
        ELEMENT,
        found,
        name=source.stem,
        index_order="F",
        meta=Metadata(formats={NAMESPACE: {"sections": sections}}) if sections else None,
        extent=data.extent(0, data.size),
    )
    if array.nbytes != data.size:
        raise Corrupt(
            "data is not as long as its header says", path=data.path,
            expected=f"{array.nbytes} bytes", got=data.size,
        )  # fmt: skip
    return Bundle([array])
