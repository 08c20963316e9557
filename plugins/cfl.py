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

import re
from math import prod

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.errors import Corrupt
from raconvert.files.copy import write_all
from raconvert.files.limits import DEFAULT
from raconvert.files.pairing import MARK, check_seal, seal_of
from raconvert.files.paths import write_failed
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Fit,
    Format,
    Metadata,
    Option,
    Plan,
    Source,
    element,
    equivalent,
    facts_of,
    file_fits,
    little,
    refused,
    refused_type,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target


# The header of a CFL file: text to lengths of axes, and back -------------------------------------


ELEMENT = element("complex", 8)
MAGIC = b"# Dimensions"
MOST_AXES = 16  # BART's
NAMESPACE = "cfl"
_SEAL = re.compile(f"^# {MARK}.*\n".encode(), re.MULTILINE)
_LENGTHS = re.compile(rb"^# Dimensions[ \t\r]*\n([0-9 \t]+)\r?(?:\n|\Z)", re.MULTILINE)


def read_header(source: Source, data: Source) -> tuple[tuple[int, ...], str]:
    """Return the lengths, the fastest axis first, and the text of the other sections.

    Raises `Corrupt`, also for data other than that which the header was written with.
    """
    most = source.limits.short_header_bytes
    text = source.read_exact(0, source.size, "the header") if source.size <= most else b""
    match = _LENGTHS.search(text)
    if match is None:
        raise Corrupt(
            "has no lengths of axes", path=source.path, where="byte 0",
            expected=f"a line '# Dimensions' and numbers, in at most {most} bytes",
            got=source.head[:40],
        )  # fmt: skip
    words = match[1].split()
    dims = tuple(int(word) for word in words if len(word) < 20)
    if not 1 <= len(words) <= MOST_AXES or len(dims) != len(words) or 0 in dims:
        raise Corrupt("wrong lengths of axes", path=source.path, where="# Dimensions",
                      expected="1 to 16 lengths of 1 or more", got=match[1][:80])  # fmt: skip
    if prod(dims) * ELEMENT.nbytes > MAX_SPAN:
        raise Corrupt("array is too large", path=source.path, expected="fewer than 2**63 bytes")
    rest = text[: match.start()] + text[match.end() :]
    if seal := _SEAL.search(text):
        line = seal[0].decode("utf-8", "replace")[2:]
        check_seal(line, text.replace(seal[0], b"", 1), data, source.path)
        rest = rest.replace(seal[0], b"", 1)
    return dims, rest.decode("utf-8", "surrogateescape")


def header_bytes(array: Array, sections: str) -> bytes:
    """Return the text of a header without its seal."""
    lengths = " ".join(map(str, array.dims or (1,)))
    return MAGIC + f"\n{lengths}\n".encode() + sections.encode("utf-8", "surrogateescape")


def sealed(text: bytes, seal: str) -> bytes:
    """Return the text of a header with the comment of a seal behind the lengths."""
    first, second, *rest = text.splitlines(keepends=True)
    return b"".join([first, second, f"# {seal}\n".encode(), *rest])


# Whether arrays fit the two files of CFL, and the files themselves -------------------------------


def plan(bundle: Bundle) -> Plan:
    """Plan a header of lengths, and complex64 beside it; no other type, and no metadata."""
    fits = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan(
        [*fits, *file_fits(bundle, "CFL")],
        lambda target: _write(bundle.arrays[0], target),
        names=bundle.names,
    )


def _sections(array: Array) -> str:
    """Return the other sections of the header that the array comes from; "" if none can stand."""
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    text = own.get("sections") if isinstance(own, dict) else None
    if not isinstance(text, str) or len(text) >= DEFAULT.short_header_bytes // 8:
        return ""
    if not text.startswith("#") or "# Dimensions" in text:
        return ""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return ""
    return text


def _fits(array: Array) -> list[Fit]:
    """List what of an array CFL changes, loses or refuses."""
    name, fits = array.name, []
    if little(array.element) != ELEMENT:
        fits.append(refused_type(array, "CFL", "complex64"))
    if 0 in array.dims or array.ndim > MOST_AXES:
        fits.append(refused(name, "shape", f"CFL has 1 to {MOST_AXES} axes, none of length 0"))
    elif spanned(array.dims, ELEMENT.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "2**63 bytes or more"))
    elif not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    elif array.ndim == MOST_AXES and array.dims[-1] == 1:
        reason = "lengths of 1 at the end of 16 are read as filling"
        fits.append(equivalent(name, "shape", reason))
    if array.described and array.meta:
        own = array.meta.formats.get(NAMESPACE, {})
        lost = facts_of(array, NAMESPACE)
        if own and (own.keys() != {"sections"} or not _sections(array)):
            lost += [NAMESPACE]
        if lost:
            reason = f"CFL has no place for it: {', '.join(lost)}"
            fits.append(equivalent(name, "metadata", reason))
    return fits


def _write(array: Array, target: Target) -> None:
    from raconvert.arrays.blocks import write_raw

    named_by_data = target.path.lower().endswith(".cfl")
    partner = target.beside(".hdr" if named_by_data else ".cfl")
    header, data = (partner, target) if named_by_data else (target, partner)
    write_raw(data, b"", array)
    text = header_bytes(array, _sections(array))
    try:
        write_all(header.open(), [sealed(text, seal_of(text, Source(data.temp)))])
    except OSError as error:
        raise write_failed(header.path, error) from error


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
    """Return SURE for the first line of a header; a data file is recognised by its name only."""
    return SURE if source.head.startswith(MAGIC) else NO


def read(source: Source, *, dims: str = "auto") -> Bundle:
    """Read the one array of both files, named after their stem, as an extent.

    Its shape is in F order. Raises `Corrupt`, and `ReadFailed` or `Unsafe` for the other file.
    """
    if source.head.startswith(MAGIC) and not source.name.lower().endswith(".cfl"):
        header, data = source, source.beside(".cfl", "the data of the header")
    else:
        header, data = source.beside(".hdr", "the header of the data"), source
    lengths, sections = read_header(header, data)
    if dims == "auto" and len(lengths) == MOST_AXES:
        while len(lengths) > 1 and lengths[-1] == 1:
            lengths = lengths[:-1]
    array = Array(
        ELEMENT,
        lengths,
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
