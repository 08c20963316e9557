"""Mosaics of Siemens: all slices of a volume as tiles of one image, and their positions.

The position in the header is that of the whole image, as if it were one large slice around the same
centre. The number of tiles, and the direction in which they follow each other, are in the private
CSA header, of which the second version is read here:

    0    4s      ``SV10``
    8    uint32  number of elements, and one more number
    16   elements: 64s name, int32 number of values, 4s representation, int32 type, int32 number of
         items and one more number; items: int32 four times, of which the second is the length of
         the text that follows, padded to 4 bytes
"""

from __future__ import annotations

import struct
from math import isfinite, isqrt

from raconvert.declared import Record

from .tables import CSA, CSA_CREATOR, IMAGE_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .form import Form
    from .header import Header

    Vector = tuple[float, float, float]

MAGIC = b"SV10"
CREATOR = "SIEMENS CSA HEADER"
COUNT, NORMAL = "NumberOfImagesInMosaic", "SliceNormalVector"
ELEMENTS, ITEMS = 1000, 1000  # there are about a hundred, of a few items


class Mosaic(Record):
    """The number of tiles, of tiles in a row, and the direction from a slice to the next one."""

    tiles: int
    across: int
    normal: Vector


def mosaic_of(header: Header, form: Form) -> Mosaic | None:
    """The tiles of the image of a file; None if it is not a mosaic, or has no CSA header."""
    if not is_mosaic(header) or not header.text(CSA_CREATOR).startswith(CREATOR):
        return None
    elements = _csa(bytes(header.values.get(CSA, (b"", b""))[1]))
    try:
        (count,) = map(int, elements.get(COUNT, []))
        x, y, z = map(float, elements.get(NORMAL, []))
    except ValueError:
        return None
    across = isqrt(max(0, count - 1)) + 1
    whole = form.rows % across == 0 and form.columns % across == 0
    unit = all(map(isfinite, (x, y, z))) and abs(x * x + y * y + z * z - 1) < 1e-3
    sound = whole and unit and 0 < count <= header.source.limits.nodes
    return Mosaic(count, across, (x, y, z)) if sound else None


def is_mosaic(header: Header) -> bool:
    """True for a file whose image consists of tiles."""
    return "MOSAIC" in header.text(IMAGE_TYPE).split("\\")


def _csa(raw: bytes) -> dict[str, list[str]]:
    """The values of `COUNT` and `NORMAL`; empty for a header of another version, or damaged."""
    elements: dict[str, list[str]] = {}
    if not raw.startswith(MAGIC):
        return elements
    at = 16
    try:
        (count,) = struct.unpack_from("<I", raw, 8)
        for _ in range(min(count, ELEMENTS)):
            name = raw[at : at + 64].partition(b"\0")[0].decode("latin-1")
            values, items = struct.unpack_from("<i8xi", raw, at + 64)
            at += 84
            texts = []
            for _ in range(min(max(items, 0), ITEMS)):
                (nbytes,) = struct.unpack_from("<4xi", raw, at)
                at += 16
                if not 0 <= nbytes <= len(raw) - at:
                    return {}
                texts.append(raw[at : at + nbytes].partition(b"\0")[0].decode("latin-1").strip())
                at += nbytes + -nbytes % 4
            if name in (COUNT, NORMAL):
                elements[name] = [text for text in texts[: max(values, 1)] if text]
    except struct.error:
        return {}
    return elements


def positions_of(
    mosaic: Mosaic, form: Form, position: Vector, directions: tuple[Vector, Vector],
    spacing: tuple[float, float], between: float,
) -> list[Vector]:  # fmt: skip
    """The position of each tile from that of the whole image, whose form is `form`."""
    row, column = directions
    right = spacing[1] * (form.columns - form.columns // mosaic.across) / 2
    down = spacing[0] * (form.rows - form.rows // mosaic.across) / 2
    first = _sum(position, (row, right), (column, down))
    return [_sum(first, (mosaic.normal, n * between)) for n in range(mosaic.tiles)]


def _sum(start: Vector, *moves: tuple[Vector, float]) -> Vector:
    """The position after moves, each along a vector by a distance."""
    x, y, z = (
        coordinate + sum(vector[axis] * distance for vector, distance in moves)
        for axis, coordinate in enumerate(start)
    )
    return x, y, z
