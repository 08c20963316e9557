"""What the formats of one picture have in common when they are written."""

from __future__ import annotations

from raconvert.plugin import Fit, Plan, little, refused, type_name

from .metadata import fields_of, metadata_fits, resolution_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target

MAX_CHANNELS = 4
HELD_BY = "; TIFF, NPY and RA hold it"


def image_plan(
    bundle: Bundle,
    title: str,
    encode: Callable[[Any, Target], bytes],
    *,
    kept: set[str],
    unit: str | None = None,
    lossy: bool = False,
    **held: Any,
) -> Plan:
    """The plan of one picture, which is in memory as a whole when `encode` makes a file of it.

    `kept` are fields of the metadata, `unit` that of a resolution that is kept; the others are
    those of `image_fits`.
    """

    def write(target: Target) -> None:
        from .writer import write_image

        write_image(bundle.arrays[0], target, encode)

    def kept_of(array: Array) -> set[str]:
        fields = fields_of(array)
        resolution = {"resolution"} if unit and resolution_in(fields, unit) else set()
        return (kept if "exif" in fields else kept - {"orientation"}) | resolution

    found = []
    for array in bundle.arrays:
        own = image_fits(array, title, **held)
        if lossy and not own:
            reason = f"{title} keeps no value exactly; PNG, TIFF and WebP do"
            own = [refused(array.name, "precision", reason, "--allow precision")]
        found += own
    return Plan([*found, *metadata_fits(bundle, title, kept_of)], write, names=bundle.names)


def image_fits(
    array: Array,
    title: str,
    *,
    channels: tuple[int, ...],
    max_side: int,
    held: str = "uint8",
    grey: bool = True,
) -> list[Fit]:
    """Why an array is not one picture of the types `held`: (H, W), or (H, W, one of `channels`)."""
    name, kind, shape = type_name(little(array.element)), array.element.kind, array.shape
    found = []
    if name not in held.replace(",", "").split():
        reason, flag = f"{title} holds {held}, not {name}", None
        if kind in ("int", "uint", "float", "bool", "bfloat"):
            types = [f"--dtype {word}" for word in ("uint8", "uint16") if word in held]
            flag = ", ".join(types) + ("" if kind == "bool" else " or --scale")
        found.append(refused(array.name, "type", reason + ("" if flag else HELD_BY), flag))
    by_plane = array.ndim > 2 and (grey or shape[-1] in channels)
    words = f"(H, W, {' or '.join(map(str, channels))})"
    words = f"(H, W) or {words}" if grey else words
    if 0 in shape:
        found.append(refused(array.name, "shape", f"{title} has no image without pixels: {shape}"))
    elif max(shape, default=0) > max_side:
        reason = f"a side of {max(shape)} is above {title}'s {max_side}"
        found.append(refused(array.name, "shape", reason + HELD_BY))
    elif kind == "bool" and array.ndim == 3:
        reason = f"a bool image of {title} has two axes, not {shape}"
        found.append(refused(array.name, "shape", reason, "--planes"))
    elif not ((len(shape) == 2 and grey) or (len(shape) == 3 and shape[2] in channels)):
        reason = f"an image of {title} has the shape {words}, not {shape}"
        flag = "--planes" if by_plane else None
        found.append(refused(array.name, "shape", reason + ("" if flag else HELD_BY), flag))
    return found


def split(array: Array) -> int:
    """How many leading axes become separate files with ``--planes``.

    A last axis of 1 to 4 is the channels from four axes on; with three axes the array is a stack
    of grey planes (an image of three axes needs no ``--planes``).
    """
    with_channels = array.ndim > 3 and array.shape[-1] <= MAX_CHANNELS
    return max(0, array.ndim - (3 if with_channels else 2))
