"""The metadata namespace ``image``, which all image formats of this package share.

==================  ============================================================================
``resolution``      [x, y, unit] as in the file; x and y are numbers or [numerator, denominator],
                    the unit is ``inch``, ``cm``, ``m`` or ``none`` (an aspect ratio)
``icc``             colour profile, bytes; never applied
``exif`` ``xmp``    bytes
``orientation``     the number of the TIFF or EXIF tag, 1 to 8; never applied
``palette``         bytes, three for each colour (R, G, B)
``comment``         text
==================  ============================================================================

What only one format has is described in its module. A writer puts back the fields that its format
has a place for; `metadata_fits` names the others.
"""

from __future__ import annotations

from struct import Struct

from raconvert.plugin import Array, Bundle, Fit, Metadata, element, equivalent, file_fits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Source

    from .reader import Stack

NAMESPACE = "image"
EXIF = b"Exif\0\0"  # before the EXIF data in JPEG, and often in WebP
_ENTRY = {b"II*\0": Struct("<HHIH"), b"MM\0*": Struct(">HHIH")}  # tag, type, count, value


def image_bundle(
    source: Source,
    kind: str,
    shape: tuple[int, ...],
    fields: dict[str, Any],
    images: Callable[[], Stack],
    notes: list[str] | None = None,
) -> Bundle:
    """The bundle of one array of ``bool`` or ``uint`` bytes, named after the file's stem.

    `images` gives its source when it is first needed; the bundle closes it.
    """
    closers: list[Callable[[], None]] = []
    array = Array(
        element(kind, 1),
        shape[::-1],
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAMESPACE: fields} if fields else None),
        data=lazily(images, closers),
    )
    return Bundle([array], notes=notes, closers=closers)


def lazily(images: Callable[[], Stack], closers: list[Callable[[], None]]) -> Callable[[], Stack]:
    """What opens the images, as `Array` wants it; `closers` are those of their bundle."""

    def opened() -> Stack:
        stack = images()
        closers.append(stack.close)
        return stack

    return opened


def fields_of(array: Array) -> dict[str, Any]:
    """The own namespace of an array; empty if there is none, or it is not a mapping."""
    fields = array.meta.formats.get(NAMESPACE, {})
    return fields if isinstance(fields, dict) else {}


def metadata_fits(
    bundle: Bundle,
    title: str,
    kept: frozenset[str],
    common_kept: Callable[[Array], frozenset[str]] | None = None,
) -> list[Fit]:
    """What a format leaves out that holds the fields `kept` of the namespace.

    `common_kept` gives the common fields of an array that it holds, too.
    """
    found = []
    for array in bundle.arrays:
        common = array.meta.to_dict()
        held = common_kept(array) if common_kept else frozenset[str]()
        others = [name for name in common if name != "formats" and name not in held]
        for name, space in common.get("formats", {}).items():
            if name != NAMESPACE or not isinstance(space, dict):
                others.append(name)
            else:
                others += [f"{NAMESPACE}.{field}" for field in space if field not in kept]
        if array.meta.items is not None:
            others.append("items")
        if others:
            reason = f"{title} has no place for {', '.join(others)}"
            found.append(equivalent(array.name, "metadata", reason))
    return [*found, *file_fits(bundle, title)]


def part(fields: dict[str, Any], name: str, kind: type) -> Any:
    """A field if it has the right type, else None: sidecars are written by people too."""
    value = fields.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def whole_resolution(fields: dict[str, Any], units: tuple[str, ...], most: int) -> tuple[int, ...]:
    """(index of the unit, x, y) if the resolution is in these units and whole numbers, else ()."""
    resolution = part(fields, "resolution", list)
    if not resolution or len(resolution) != 3 or resolution[2] not in units:
        return ()
    found = [units.index(resolution[2])]
    for value in resolution[:2]:
        pair = value if isinstance(value, list) and len(value) == 2 else [value, 1]
        if not all(type(n) is int and n > 0 for n in pair) or pair[0] % pair[1]:
            return ()
        found.append(pair[0] // pair[1])
    return tuple(found) if max(found[1:]) <= most else ()


def exif_orientation(exif: bytes) -> int:
    """The orientation (tag 274 of the first directory) of EXIF data; 0 if there is none."""
    layout = _ENTRY.get(exif[:4])
    if layout is None:
        return 0
    order = "little" if exif[:1] == b"I" else "big"
    at = int.from_bytes(exif[4:8], order)  # type: ignore[arg-type]
    count = int.from_bytes(exif[at : at + 2], order)  # type: ignore[arg-type]
    for entry in range(at + 2, min(at + 2 + 12 * count, len(exif) - 11), 12):
        tag, kind, _, value = layout.unpack_from(exif, entry)
        if (tag, kind) == (274, 3):
            return value if 1 <= value <= 8 else 0
    return 0
