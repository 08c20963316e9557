r"""NRRD ("nearly raw raster data"): one array, attached to its header or beside it, read and write.

Specification: "Definition of NRRD File Format" (teem.sourceforge.net/nrrd/format.html, up to
NRRD0005); where it is silent, and for NRRD0006 and NRRD00.01, Teem's source (``src/nrrd``).
Compared with: unu of Teem, SimpleITK, pynrrd.

Layout::

    NRRD000n                      magic; the version says what a writer needed, not what may follow
    # text                        comments
    field: description            fields, in nearly any order; names without regard to case
    key:=value                    key/value pairs; \n and \\ are escapes
    (an empty line)               ends the header; data follows, unless `data file:` names it

Reads: NRRD00.01 and NRRD0001 to NRRD0006; lines ended by LF, CRLF or CR; all fields and their
aliases; all types, blocks included, in both byte orders; the encodings raw, text (with commas),
hex, gzip and bzip2 (of several members), zrl; attached data, one data file, lists, lists with
skips, numbered patterns, with any number of axes per file; line and byte skips, negative ones too.
One raw piece is an extent (a copy from file to file, or a map); several are read where they are
asked for; encoded data streams in bounded memory.

Writes: the lowest version that has the fields, at most 0005; little-endian; attached (``.nrrd``)
or detached (``.nhdr``, with the data in a file of the same name beside it); encodings raw, gzip,
bzip2, ascii (text) and hex.

Mapping: `sizes` are `dims` (fastest first); NRRD says nothing of indices, so the index order is
None. All fields become metadata and are written back: see ``plugins/nrrd/meta.py``. A key/value
pair ``raconvert`` keeps what NRRD has no field for, so that nothing is lost on the way back: see
``plugins/nrrd/pair.py``.

Numbers are NRRD's types. Bool is written as uint8, complex numbers as pairs on a new fastest axis
of kind ``complex``, elements such as texts and structures as blocks, an array without axes as one
of one sample: each comes back as it was. A file from elsewhere with such an axis of pairs stays as
it is, unless ``complex=numbers`` says otherwise.

Refused when reading: data files outside the folder of the header, and what is no regular file
(pipes, devices); the standard input as data file; compressed data that goes on for more than 64 MiB
after the array; fields repeated with another value, as readers differ in which they take; sizes of
0; more than 16 axes; text numbers that the type does not hold; data that is cut off. Data after the
array, fields repeated as they were, unknown fields and unknown kinds of axes are accepted with a
note.

Refused when writing: axes of length 0, more than 16 axes (15 for complex numbers), float16 and
bfloat16 (cast them with ``--dtype float32``, which is exact).
"""

from __future__ import annotations

from raconvert.arrays.dtypes import needs_swap
from raconvert.arrays.raw import write_raw
from raconvert.files.copy import write_all
from raconvert.files.places import write_failed
from raconvert.files.seal import check_seal, seal_of
from raconvert.plugin import (
    NO,
    SURE,
    Array,
    Bundle,
    Element,
    Fit,
    Format,
    Option,
    Source,
    element,
    equivalent,
    little,
    refused,
)

from .tables import (
    BLOCK,
    ELEMENTS,
    MAX_ARRAY_BYTES,
    MAX_BLOCK_BYTES,
    MAX_RANK,
    RAW,
    TEXT,
    VERSIONS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

    from .header import Header

__all__ = ["FORMAT", "fits", "read", "sniff", "write"]

HOLDERS = "RA, NPY and HDF5 hold it"

# name of the option -> encoding, level
_ENCODINGS = {
    "raw": (RAW, 0),
    "gzip": ("gzip", 6),
    **{f"gzip:{level}": ("gzip", level) for level in range(1, 10)},
    "bzip2": ("bzip2", 9),
    "ascii": (TEXT, 0),
    "text": (TEXT, 0),
    "hex": ("hex", 0),
}
_SUFFIXES = {RAW: ".raw", "gzip": ".raw.gz", "bzip2": ".raw.bz2", TEXT: ".txt", "hex": ".hex"}

SAMPLES = {
    "raw.nrrd": b"NRRD0001\ntype: uint8\ndimension: 1\nsizes: 3\nencoding: raw\n\n\x01\x02\x03",
    "text.nrrd": (
        b"NRRD0005\r\n# a comment\r\ntype: short\r\ndimension: 2\r\nspace dimension: 1\r\n"
        b"sizes: 2 3\r\nspace directions: none (0.5)\r\nkinds: 2-vector space\r\n"
        b'labels: "v" "x"\r\nencoding: ascii\r\nspace origin: (-1)\r\nby:=hand\\n\r\n\r\n'
        b"1 2\r\n3 4\r\n-5 6\r\n"
    ),
    "gzip.nrrd": (
        b"NRRD0004\ntype: uint8\ndimension: 1\nsizes: 4\nencoding: gz\nthicknesses: 1\n\n"
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x04\0\xfb\xff\x01\x02\x03\x04\xcd\xfb\x3c\xb6\x04\0\0\0"
    ),
}

FORMAT = Format(
    name="nrrd",
    title="NRRD",
    suffixes=(".nrrd", ".nhdr"),
    magic=tuple((0, b"NRRD" + version.encode("ascii")) for version in VERSIONS),
    proof=False,
    stream=True,
    meta="all",
    index_orders="",
    read_options=(
        Option(
            "complex",
            "auto",
            ("auto", "pairs", "numbers"),
            "a fastest axis of kind complex: a plain axis of two, or the parts of numbers "
            "(auto: numbers where raconvert wrote them)",
        ),
        Option(
            "restore",
            True,
            bool,
            "make bools, complex numbers, texts and axes of what raconvert's own pair says "
            "that they were",
        ),
    ),
    write_options=(
        Option("encoding", "raw", tuple(_ENCODINGS), "how the data is written; gzip:N is level N"),
    ),
    samples=SAMPLES,
    spec="https://teem.sourceforge.net/nrrd/format.html",
    losses="bool, complex and texts come back only through raconvert; no axes of length 0, at most "
    "16 axes; float16 and bfloat16 only with --dtype float32",
)


def sniff(source: Source) -> int:
    """Sure by one of the seven magics on a line of its own."""
    line, end, _ = source.head[:10].replace(b"\r", b"\n").partition(b"\n")
    known = line.startswith(b"NRRD") and line[4:].decode("latin-1") in VERSIONS
    return SURE if known and end else NO


# --- reading --------------------------------------------------------------------------------------


def read(source: Source, *, complex: str = "auto", restore: bool = True) -> Bundle:
    """Return the one array of a NRRD file, named after the file's stem.

    `dims` are the `sizes` of the header, index order None; elements of one raw piece keep their
    byte order, others are little-endian. Nothing of the data is decoded here, but files, places and
    lengths are checked. Raises `Corrupt`, `Unsupported` and `Unsafe`.
    """
    from . import pair
    from .data import Bools, Late, extent_of, parts_of
    from .header import MAX_HEADER_BYTES, read_header
    from .meta import metadata_of

    header = read_header(source)
    fields, notes = header.fields, header.notes
    stored = _stored_element(fields)
    parts = parts_of(source, header, stored, notes)
    if header.seal and header.files and len(parts) == 1:
        text = source.read_at(0, min(source.size, MAX_HEADER_BYTES))
        line = f"#{header.seal}\n".encode()
        check_seal(header.seal, text.replace(line, b"", 1), parts[0].source, source.path)
    bundle = Bundle([], notes=notes)
    meta = metadata_of(header)
    extras = pair.taken(header, meta, notes, restore=restore)
    array = Array(stored, fields["sizes"], name=source.stem, meta=meta)
    pair.restore(array, extras, bundle, complex)
    swap = needs_swap(array.element)
    if len(parts) == 1 and fields["encoding"] == RAW:
        array.extent = extent_of(parts[0], swap)
    else:
        array._data = Late(source.path, array, parts, fields["encoding"], swap, notes)
        array.element = little(array.element)
    array.storage = _storage(header, parts)
    if extras.get("element") == "bool" and array.element == element("uint", 1):
        data = Bools(array, source.path)
        array = array.replace(element=element("bool", 1), extent=None, data=data)
    bundle.arrays.append(array)
    return bundle


def _stored_element(fields: dict[str, Any]) -> Element:
    """Return the elements as they lie in the file."""
    if fields["type"] == BLOCK:
        return Element("user", fields["block size"], "|")
    plain = ELEMENTS[fields["type"]]
    big = fields.get("endian") == "big" and fields["encoding"] != TEXT
    return element(plain.kind, plain.nbytes, ">" if big else "<")


def _storage(header: Header, parts: list[Any]) -> dict[str, Any]:
    storage = {
        "version": f"NRRD{header.version}",
        "type": header.fields["type"],
        "encoding": header.fields["encoding"],
    }
    if "endian" in header.fields:
        storage["endian"] = header.fields["endian"]
    if header.files is not None:
        storage["data_files"] = len(parts)
    return storage


# --- writing --------------------------------------------------------------------------------------


def fits(bundle: Bundle, options: dict[str, Any]) -> list[Fit]:
    """Return what NRRD cannot hold, or holds in another form; data and most metadata come back."""
    from raconvert.errors import Unsupported

    from .encode import header_of

    encoding, _ = _ENCODINGS[options.get("encoding", "raw")]
    found = []
    for array in bundle.arrays:
        of_form = [*_shape_fits(array), *_type_fits(array, encoding)]
        found += of_form
        if any(fit.outcome == "refused" for fit in of_form):
            continue
        try:
            _, lost = header_of(bundle.like([array]), encoding)
        except Unsupported:  # a field of the wrong form: `write` says which
            continue
        if lost:
            found.append(equivalent(array.name, "metadata", f"not kept: {', '.join(lost)}"))
    return found


def _shape_fits(array: Array) -> list[Fit]:
    name = array.name
    rank = array.ndim + (array.element.kind == "complex")
    if 0 in array.dims:
        return [refused(name, "shape", f"NRRD has no axes of length 0; {HOLDERS}")]
    if rank > MAX_RANK:
        reason = f"{rank} axes, those of complex pairs included; NRRD has 16; {HOLDERS}"
        return [refused(name, "shape", reason)]
    if array.nbytes > MAX_ARRAY_BYTES:
        return [refused(name, "shape", "2**63 bytes or more")]
    if rank == 0:
        return [equivalent(name, "shape", "no axes become one of length 1")]
    return []


def _type_fits(array: Array, encoding: str) -> list[Fit]:
    from .encode import is_void

    name, (kind, nbytes, _, _) = array.name, array.element
    if kind == "bfloat" or (kind, nbytes) == ("float", 2):
        reason = f"NRRD has no {'b' if kind == 'bfloat' else ''}float16; float32 holds it exactly"
        return [refused(name, "type", reason, "--dtype float32")]
    if kind == "user":
        return _block_fits(array, encoding, is_void(array))
    found = []
    if kind == "complex":
        reason = "complex numbers become pairs on a new fastest axis of kind complex"
        found.append(equivalent(name, "type", reason))
    elif kind == "bool":
        found.append(equivalent(name, "type", "bool becomes uint8"))
    return found


def _block_fits(array: Array, encoding: str, is_void: bool) -> list[Fit]:
    name, nbytes = array.name, array.element.nbytes
    if not 0 < nbytes <= MAX_BLOCK_BYTES:
        return [refused(name, "type", f"elements of {nbytes} bytes; {HOLDERS}")]
    if encoding == TEXT:
        return [refused(name, "type", "blocks of bytes cannot be text; another encoding can be")]
    if is_void:
        return []
    reason = f"elements become blocks of {nbytes} bytes, which only raconvert understands"
    return [equivalent(name, "type", reason)]


def write(bundle: Bundle, target: Target, *, encoding: str = "raw") -> None:
    """Write the one array; a target called .nhdr gets its data in a file of its own beside it."""
    from .encode import companion_name, header_of, write_data

    array = bundle.arrays[0]
    how, level = _ENCODINGS[encoding]
    data, name = target, None
    if target.path.lower().endswith(".nhdr"):
        import os

        name = companion_name(target.place, _SUFFIXES[how])
        data = target.companion(os.path.join(os.path.dirname(target.place), name))
    header, _ = header_of(bundle, how, name)
    before = header if name is None else b""
    if how == RAW:
        write_raw(data, before, array)
    elif write_data(array, data, before, how, level, any_nan=bundle.allows("precision")):
        reason = "the signs and payloads of NaN are lost in text"
        bundle.lost.append(refused(array.name, "precision", reason, "--allow precision"))
    if name is not None:
        magic, _, rest = header.partition(b"\n")
        line = b"# " + seal_of(header, Source(data.temp)).encode()
        try:
            write_all(target.open(), [b"\n".join((magic, line, rest))])
        except OSError as error:
            raise write_failed(target.path, error) from error
