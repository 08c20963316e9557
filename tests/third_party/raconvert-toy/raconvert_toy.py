"""TOY: one line of text and the bytes of one array; a whole plugin.

Layout: ``TOY1 TYPE LENGTH...`` and a newline, lengths slowest axis first, then the elements in C
order, little-endian. TYPE is ``u1``, ``i4`` or ``f8``; there are no empty axes.
"""

import re

from raconvert import plugin as core
from raconvert.arrays.blocks import write_raw
from raconvert.errors import Corrupt

_TYPES = (("u1", "uint", 1), ("i4", "int", 4), ("f8", "float", 8))
TYPES = {code: core.element(kind, nbytes) for code, kind, nbytes in _TYPES}
HEADER = re.compile(rb"TOY1 (u1|i4|f8)((?: [1-9][0-9]{0,17}){0,32})\n")

FORMAT = core.Format(
    name="toy",
    title="TOY example",
    suffixes=(".toy",),
    magic=((0, b"TOY1 "),),
    stream=True,
    samples={"two_by_three.toy": b"TOY1 u1 2 3\n\x01\x02\x03\x04\x05\x06"},
    losses="no metadata; other types than uint8, int32 and float64 are refused",
)


def sniff(source: core.Source) -> int:
    return core.SURE if source.head.startswith(b"TOY1 ") else core.NO


def read(source: core.Source) -> core.Bundle:
    header = HEADER.match(source.head)
    if header is None:
        raise Corrupt("has no TOY header", path=source.path, where="byte 0")
    kind, dims = TYPES[header[1].decode()], tuple(map(int, header[2].split()))[::-1]
    extent = core.Extent(source.path, header.end(), source.size - header.end())
    array = core.Array(kind, dims, name=source.stem, index_order="C", extent=extent)
    if array.nbytes != extent.nbytes:
        what = "data is not a whole array"
        raise Corrupt(what, path=source.path, expected=array.nbytes, got=extent.nbytes)
    return core.Bundle([array])


def plan(bundle: core.Bundle) -> core.Plan:
    name, array = bundle.names[0], bundle.arrays[0]
    lost = ", ".join(core.facts_of(array))
    fits = [core.equivalent(name, "metadata", f"TOY has no place for it: {lost}")] * bool(lost)
    codes = [code for code, kind in TYPES.items() if kind == core.little(array.element)]
    if not codes:
        fits.append(core.refused_type(array, "TOY", "float64"))
    if 0 in array.dims or array.ndim > 32:
        fits.append(core.refused(name, "shape", f"TOY has no {array.shape}"))

    def write(target: core.Target) -> None:
        header = " ".join(["TOY1", *codes, *map(str, array.shape)]) + "\n"
        write_raw(target, header.encode(), array)

    return core.Plan(fits, write, names=bundle.names)
