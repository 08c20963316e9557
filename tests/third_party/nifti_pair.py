"""NIfTI-1 as a pair: ``x.hdr`` of 348 bytes and ``x.img`` with the elements; in a few lines.

Specification: nifti.nimh.nih.gov, nifti1.h. Column-major: dim[1] is the fastest axis.
"""

import struct

from raconvert import plugin as core
from raconvert.arrays.blocks import write_raw
from raconvert.errors import Corrupt, ReadFailed
from raconvert.files.copy import write_all

LAYOUT = struct.Struct("<i36x8h14xhh2x8ff232x4s")  # size, dim, type, bits, pixdim, offset, magic
START, MAGIC = struct.pack("<i", LAYOUT.size), b"ni1\0"
TYPES = {
    2: core.element("uint", 1), 4: core.element("int", 2), 8: core.element("int", 4),
    16: core.element("float", 4), 32: core.element("complex", 8), 64: core.element("float", 8),
    256: core.element("int", 1), 512: core.element("uint", 2), 768: core.element("uint", 4),
}  # fmt: skip


def packed(dims: tuple[int, ...], code: int) -> bytes:
    dim, steps = [len(dims), *dims, *[1] * (7 - len(dims))], [1.0] * 8
    return LAYOUT.pack(LAYOUT.size, *dim, code, 8 * TYPES[code].nbytes, *steps, 0.0, MAGIC)


FORMAT = core.Format(
    name="nifti_pair",
    title="NIfTI-1 pair",
    suffixes=(".hdr", ".img"),
    index_orders="F",
    samples={"two.hdr": packed((2,), 2), "two.img": b"\1\2"},
    losses="one to seven axes, no metadata",
)


def sniff(source: core.Source) -> int:
    return core.SURE if header_of(source) is not None else core.NO


def header_of(source: core.Source) -> core.Source | None:
    if is_header(source):
        return source
    try:
        header = source.beside(".hdr", "the NIfTI header")
    except ReadFailed:
        return None
    return header if is_header(header) else None


def is_header(source: core.Source) -> bool:
    return source.head[:4] == START and source.head[344:348] == MAGIC


def read(source: core.Source) -> core.Bundle:
    header = header_of(source)
    if header is None:
        raise Corrupt("has no NIfTI header", path=source.path, where="byte 0")
    _, rank, *numbers = LAYOUT.unpack(header.head[: LAYOUT.size])
    dims, code, bits = tuple(numbers[: max(rank, 0)]), numbers[7], numbers[8]
    known = 1 <= rank <= 7 and min(dims) > 0 and code in TYPES
    if not known or bits != 8 * TYPES[code].nbytes or numbers[-2] != 0:
        raise Corrupt("has no lengths or no known type", path=header.path)
    data = header.beside(".img", "the NIfTI data") if header is source else source
    extent = data.extent(0, data.size)
    array = core.Array(TYPES[code], dims, name=source.stem, index_order="F", extent=extent)
    if array.nbytes != data.size:
        what = "data is not as long as its header says"
        raise Corrupt(what, path=data.path, expected=f"{array.nbytes} bytes", got=data.size)
    return core.Bundle([array])


def plan(bundle: core.Bundle) -> core.Plan:
    name, array = bundle.names[0], bundle.arrays[0]
    fits = [core.equivalent(name, "metadata", "it has no place here")] * bool(array.meta)
    codes = [code for code, kind in TYPES.items() if kind == core.little(array.element)]
    if not codes:
        fits.append(core.refused_type(array, "NIfTI", "float64"))
    if not 0 < array.ndim <= 7 or min(array.dims) < 1 or max(array.dims) > 32767:
        fits.append(core.refused(name, "shape", f"NIfTI has no {array.shape}"))

    def write(target: core.Target) -> None:
        by_data = target.path.endswith(".img")
        partner = target.beside(".hdr" if by_data else ".img")
        header, data = (partner, target) if by_data else (target, partner)
        write_raw(data, b"", array)
        write_all(header.open(), [packed(array.dims, codes[0])])

    return core.Plan(fits, write, names=bundle.names)
