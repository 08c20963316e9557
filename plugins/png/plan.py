"""Plan of a PNG: the fits of each array, and the writing of the image."""

from __future__ import annotations

from raconvert.arrays.dtypes import REALS
from raconvert.errors import UsageError
from raconvert.plugin import Fit, Plan, equivalent, facts_of, file_fits, refused, type_name

from .tables import CHANNELS, MAX_SIDE, NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Array, Bundle, Target

MAX_CHANNELS = max(CHANNELS.values())


def plan(bundle: Bundle, *, level: int = 6, filter: str = "auto") -> Plan:
    """One image of bool, uint8 or uint16, (H, W) or (H, W, 1 to 4); see `Plan`.

    Raises `UsageError` for a compression level outside 0 to 9.
    """
    if not 0 <= level <= 9:
        raise UsageError("is not a valid compression level", expected="0 to 9", got=level)

    def write(target: Target) -> None:
        from .writer import write_image

        write_image(bundle.arrays[0], target, level, filter)

    def whole(elements: bytes) -> bytes:
        from .writer import file_of

        return file_of(bundle.arrays[0], elements, level, filter)

    problems = []
    for array in bundle.arrays:
        problems += [*_type_fits(array), *_shape_fits(array), *_metadata_fits(array)]
    bare = not any(array.described for array in bundle.arrays)
    fits = [*problems, *file_fits(bundle, "PNG")]
    return Plan(fits, write, names=bundle.names, whole=whole if bare else None)


def _type_fits(array: Array) -> list[Fit]:
    kind, nbytes = array.element[:2]
    if (kind, nbytes) in (("uint", 1), ("uint", 2)):
        return []
    if kind == "bool":
        if len(_image_shape(array)) == 2:
            reason = "becomes 1-bit grey, which is read as uint8 of 0 and 255"
            return [equivalent(array.name, "type", reason)]
        reason = "a bool image has two axes: a 1-bit PNG has one channel"
        return [refused(array.name, "type", reason, "--dtype uint8")]
    reason = f"PNG holds bool, uint8 and uint16, not {type_name(array.element)}"
    flag = "--dtype uint8, --dtype uint16 or --scale" if kind in REALS else None
    return [refused(array.name, "type", reason, flag)]


def _shape_fits(array: Array) -> list[Fit]:
    shape = array.shape
    if 0 in shape:
        return [refused(array.name, "shape", f"PNG has no image without pixels: {shape}")]
    if max(shape, default=0) > MAX_SIDE:
        return [refused(array.name, "shape", f"a side of {max(shape)} is above {MAX_SIDE}")]
    if array.ndim == 2:
        return []
    if array.ndim == 3 and shape[2] <= MAX_CHANNELS:
        if shape[2] > 1:
            return []
        return [equivalent(array.name, "shape", f"{shape} becomes grey {shape[:2]}")]
    reason = f"an image has the shape (H, W) or (H, W, 1 to {MAX_CHANNELS}), not {shape}"
    if array.ndim < 2:
        return [refused(array.name, "shape", reason)]
    if array.ndim == 3 and shape[0] <= MAX_CHANNELS:
        reason += "; a first axis is never taken for the channels: move it with `--axes 1,2,0`"
    return [refused(array.name, "shape", reason, "--planes")]


def _image_shape(array: Array) -> tuple[int, ...]:
    """The shape of the image that is written: one channel needs no axis."""
    return array.shape[:2] if array.ndim == 3 and array.shape[2] == 1 else array.shape


def _metadata_fits(array: Array) -> list[Fit]:
    """A fit that lists the metadata that PNG cannot hold: all but its own namespace."""
    others = facts_of(array, NAME)
    if not others:
        return []
    return [equivalent(array.name, "metadata", f"PNG has no place for it: {', '.join(others)}")]
