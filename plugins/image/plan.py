"""What the plain image formats have in common: one image of uint8 or bool, grey or colour."""

from __future__ import annotations

from raconvert.plugin import Fit, little, refused, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array

MAX_CHANNELS = 4
HELD_BY = "; TIFF, NPY and RA hold it"


def image_fits(
    array: Array,
    title: str,
    *,
    channels: tuple[int, ...],
    grey: bool = True,
    bools: bool = False,
    max_side: int,
) -> list[Fit]:
    """Why an array is no image of uint8 (bool) with two axes, or three with `channels`."""
    found = type_fits(array, title, "bool and uint8" if bools else "uint8")
    shape = array.shape
    reason = ""
    if 0 in shape:
        found.append(refused(array.name, "shape", f"{title} has no image without pixels: {shape}"))
    elif max(shape, default=0) > max_side:
        reason = f"a side of {max(shape)} is above {title}'s {max_side}"
        found.append(refused(array.name, "shape", reason + HELD_BY))
    elif array.element.kind == "bool" and array.ndim == 3:
        reason = f"a bool image of {title} has two axes, not {shape}"
        found.append(refused(array.name, "shape", reason, "--planes"))
    elif not ((len(shape) == 2 and grey) or (len(shape) == 3 and shape[2] in channels)):
        words = f"(H, W, {' or '.join(map(str, channels))})"
        held = f"(H, W) or {words}" if grey else words
        reason = f"an image of {title} has the shape {held}, not {shape}"
        by_plane = array.ndim > 2 and (grey or shape[-1] in channels)
        flag = "--planes" if by_plane else None
        found.append(refused(array.name, "shape", reason + ("" if flag else HELD_BY), flag))
    return found


def type_fits(array: Array, title: str, held: str) -> list[Fit]:
    """Why an array is of none of the types that `held` lists by their names."""
    name, kind = type_name(little(array.element)), array.element.kind
    if name in held.replace(",", "").split():
        return []
    reason = f"{title} holds {held}, not {name}"
    if kind not in ("int", "uint", "float", "bool", "bfloat"):
        return [refused(array.name, "type", reason + HELD_BY)]
    types = [f"--dtype {word}" for word in ("uint8", "uint16") if word in held]
    flag = ", ".join(types) + ("" if kind == "bool" else " or --scale")
    return [refused(array.name, "type", reason, flag)]


def split(array: Array) -> int:
    """How many leading axes become separate files with ``--planes``.

    A last axis of 1 to 4 is the channels from four axes on; with three axes the array is a stack
    of grey planes (an image of three axes needs no ``--planes``).
    """
    with_channels = array.ndim > 3 and array.shape[-1] <= MAX_CHANNELS
    return max(0, array.ndim - (3 if with_channels else 2))
