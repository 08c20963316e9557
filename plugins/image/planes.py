"""What the plain image formats have in common: one image of uint8 or bool, grey or colour."""

from __future__ import annotations

from raconvert.plugin import Fit, refused, type_name

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
    """Return why an array is no image of uint8 (bool) with two axes, or three with `channels`."""
    found = type_fits(array, title, bools=bools)
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
    elif not _is_image(shape, channels, grey):
        found.append(_no_image(array, title, channels, grey))
    return found


def type_fits(array: Array, title: str, *, bools: bool = False) -> list[Fit]:
    """Return why an array is not of uint8 (bool)."""
    kind, nbytes = array.element[:2]
    if (kind, nbytes) == ("uint", 1) or (bools and kind == "bool"):
        return []
    held = "bool and uint8" if bools else "uint8"
    reason = f"{title} holds {held}, not {type_name(array.element)}"
    if kind in ("int", "uint", "float", "bool", "bfloat"):
        flag = "--dtype uint8" if kind == "bool" else "--dtype uint8 or --scale"
        return [refused(array.name, "type", reason, flag)]
    return [refused(array.name, "type", reason + HELD_BY)]


def _is_image(shape: tuple[int, ...], channels: tuple[int, ...], grey: bool) -> bool:
    return (len(shape) == 2 and grey) or (len(shape) == 3 and shape[2] in channels)


def _no_image(array: Array, title: str, channels: tuple[int, ...], grey: bool) -> Fit:
    words = " or ".join(map(str, channels))
    held = f"(H, W) or (H, W, {words})" if grey else f"(H, W, {words})"
    reason = f"an image of {title} has the shape {held}, not {array.shape}"
    if array.ndim < 3:
        return refused(array.name, "shape", reason + HELD_BY)
    if not grey and array.shape[-1] not in channels:
        return refused(array.name, "shape", reason + HELD_BY)
    return refused(array.name, "shape", reason, "--planes")


def split(array: Array) -> int:
    """Return how many leading axes become separate files with ``--planes``.

    A last axis of 1 to 4 is the channels from four axes on; with three axes the array is a stack
    of grey planes (an image of three axes needs no ``--planes``).
    """
    with_channels = array.ndim > 3 and array.shape[-1] <= MAX_CHANNELS
    return max(0, array.ndim - (3 if with_channels else 2))
