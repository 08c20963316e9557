"""CFL of BART (Berkeley Advanced Reconstruction Toolbox): ``x.hdr`` and ``x.cfl``, read and write.

Specification: https://mrirecon.github.io/bart (cfl.py of the distribution). ``x.hdr`` is text: a
line ``# Dimensions``, then the lengths, fastest axis first; other sections are left alone. ``x.cfl``
holds complex numbers of two float32, little-endian, in column-major order. Either may be named.
"""

import re

from raconvert import plugin as core
from raconvert.arrays.blocks import write_raw
from raconvert.errors import Corrupt
from raconvert.files.copy import write_all
from raconvert.files.places import write_failed

ELEMENT = core.element("complex", 8)
MAGIC = b"# Dimensions\n"
MOST_AXES = 16  # BART's
HEADER = re.compile(MAGIC + rb"((?:[1-9][0-9]{0,17} ?){1,16})\n")

FORMAT = core.Format(
    name="cfl",
    title="BART CFL",
    suffixes=(".hdr", ".cfl"),
    magic=((0, MAGIC),),
    index_orders="F",
    samples={"two.hdr": MAGIC + b"2\n", "two.cfl": bytes(16)},
    spec="https://mrirecon.github.io/bart",
    losses="only complex64, of 1 to 16 axes; no metadata",
)


def sniff(source: core.Source) -> int:
    return core.SURE if source.head.startswith(MAGIC) else core.NO


def read(source: core.Source) -> core.Bundle:
    if source.head.startswith(MAGIC):
        header, data = source, source.beside(".cfl", "the data of the header")
    else:
        header, data = source.beside(".hdr", "the header of the data"), source
    found = HEADER.match(header.head)
    if found is None:
        raise Corrupt("has no lengths of axes", path=header.path, where="byte 0", expected=MAGIC)
    dims = tuple(map(int, found[1].split()))
    extent = data.extent(0, data.size)
    array = core.Array(ELEMENT, dims, name=source.stem, index_order="F", extent=extent)
    if array.nbytes != data.size:
        what = "data is not as long as its header says"
        raise Corrupt(what, path=data.path, expected=f"{array.nbytes} bytes", got=data.size)
    return core.Bundle([array])


def plan(bundle: core.Bundle) -> core.Plan:
    name, array = bundle.names[0], bundle.arrays[0]
    fits = [core.equivalent(name, "metadata", "CFL has no place for it")] * bool(array.meta)
    if core.little(array.element) != ELEMENT:
        fits.append(core.refused_type(array, "CFL", "complex64"))
    if 0 in array.dims or not 0 < array.ndim <= MOST_AXES:
        fits.append(core.refused(name, "shape", f"CFL has no {array.shape}"))

    def write(target: core.Target) -> None:
        named_by_data = target.path.lower().endswith(".cfl")
        partner = target.beside(".hdr" if named_by_data else ".cfl")
        header, data = (partner, target) if named_by_data else (target, partner)
        write_raw(data, b"", array)
        try:
            write_all(header.open(), [MAGIC + " ".join(map(str, array.dims)).encode() + b"\n"])
        except OSError as error:
            raise write_failed(header.path, error) from error

    return core.Plan(fits, write, names=bundle.names)
