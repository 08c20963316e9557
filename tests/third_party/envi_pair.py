"""ENVI: ``x.hdr`` is text, ``x.img``, ``x.dat`` or ``x`` the elements; a pair in a few lines.

Here only interleave ``bsq``, so that elements lie in C order: bands, lines, samples.
"""

import re

from raconvert import plugin as core
from raconvert.arrays.blocks import write_raw
from raconvert.errors import Corrupt, ReadFailed
from raconvert.files.copy import write_all

TYPES = {
    b"1": core.element("uint", 1), b"2": core.element("int", 2), b"3": core.element("int", 4),
    b"4": core.element("float", 4), b"5": core.element("float", 8), b"6": core.element("complex", 8),
    b"12": core.element("uint", 2), b"13": core.element("uint", 4), b"14": core.element("int", 8),
}  # fmt: skip
LENGTHS = (b"samples", b"lines", b"bands")
SAMPLE = b"ENVI\nsamples = 2\nlines = 1\nbands = 1\ndata type = 1\ninterleave = bsq\n"

FORMAT = core.Format(
    name="envi",
    title="ENVI",
    suffixes=(".hdr", ".img", ".dat"),
    samples={"two.hdr": SAMPLE, "two.img": b"\1\2"},
    losses="three axes, no metadata",
)


def sniff(source: core.Source) -> int:
    return core.SURE if header_of(source) is not None else core.NO


def header_of(source: core.Source) -> core.Source | None:
    """The header: this file, or the one beside it, of the same stem or whole name."""
    if source.head.startswith(b"ENVI"):
        return source
    for appended in (False, True):
        try:
            header = source.beside(".hdr", "the ENVI header", appended=appended)
        except ReadFailed:
            continue
        if header.path != source.path and header.head.startswith(b"ENVI"):
            return header
    return None


def read(source: core.Source) -> core.Bundle:
    header = header_of(source)
    if header is None:
        raise Corrupt("has no ENVI header", path=source.path, where="byte 0")
    found = dict(re.findall(rb"(?m)^([a-z ]+?) *= *([a-z0-9]+)$", header.head))
    data = source if header is not source else header.beside([".img", ".dat", ""], "the data")
    element, lengths = TYPES.get(found.get(b"data type", b"")), map(found.get, LENGTHS)
    dims = tuple(int(n) for n in lengths if n and re.fullmatch(b"[1-9][0-9]{0,8}", n))
    if element is None or len(dims) != 3 or found.get(b"interleave") != b"bsq":
        raise Corrupt("has no lengths or no known type", path=header.path)
    extent = data.extent(0, data.size)
    array = core.Array(element, dims, name=source.stem, index_order="C", extent=extent)
    if array.nbytes != data.size:
        what = "data is not as long as its header says"
        raise Corrupt(what, path=data.path, expected=f"{array.nbytes} bytes", got=data.size)
    return core.Bundle([array])


def plan(bundle: core.Bundle) -> core.Plan:
    name, array = bundle.names[0], bundle.arrays[0]
    fits = [core.equivalent(name, "metadata", "ENVI has no place for it")] * bool(array.meta)
    codes = [code for code, kind in TYPES.items() if kind == core.little(array.element)]
    if not codes:
        fits.append(core.refused_type(array, "ENVI", "float64"))
    if array.ndim != 3 or 0 in array.dims or max(array.dims) >= 10**9:
        fits.append(core.refused(name, "shape", f"ENVI has no {array.shape}"))

    def write(target: core.Target) -> None:
        by_header = target.path.endswith(".hdr")
        partner = target.beside(".img" if by_header else ".hdr")
        header, data = (target, partner) if by_header else (partner, target)
        write_raw(data, b"", array)
        lengths = zip(LENGTHS, array.dims, strict=True)
        lines = [b"ENVI", *(b"%s = %d" % pair for pair in lengths), b"data type = " + codes[0]]
        write_all(
            header.open(), [b"\n".join([*lines, b"interleave = bsq", b"byte order = 0", b""])]
        )

    return core.Plan(fits, write, names=bundle.names)
