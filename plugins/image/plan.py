"""The plan of formats of one picture, and of animations."""

from __future__ import annotations

from raconvert.arrays.dtypes import REALS, ml_name
from raconvert.files.limits import DEFAULT
from raconvert.plugin import (
    Fit,
    Option,
    Plan,
    element,
    equivalent,
    facts_of,
    file_fits,
    little,
    refused,
    split,
    type_name,
)

from .metadata import NAMESPACE, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.plugin import Array, Bundle, Target

RANK = 4  # axes of an animation: frames, height, width, channels
OTHERS = "; TIFF, NPY and RA hold it"
GREY, COLOR, RGBA = "(H, W)", "(H, W, 3)", "(H, W, 4)"
ALPHAS = "(H, W, 2)", RGBA  # grey and colour with transparency
DURATION = Option("duration", -1, int, "milliseconds of each frame, if no axis of time says it")
FRAMES = "--out-opt duration=100"


def image_plan(
    bundle: Bundle,
    title: str,
    options: dict[str, Any],
    *,
    max_side: int,
    types: str = "uint8",
    forms: tuple[str, ...] = (GREY, COLOR),
    lossy: bool = False,
    frames: tuple[str, ...] = (),
) -> Plan:
    """Plan one picture, which Pillow encodes with these options, in memory as a whole.

    `types` are the words for its element types, `forms` its shapes, `max_side` its longest side;
    `frames` as in `image_fits`.
    """
    array = bundle.arrays[0]

    def write(target: Target) -> None:
        from io import BytesIO

        from PIL import Image

        from raconvert.arrays.blocks import as_ndarray
        from raconvert.files.copy import write_all

        from .reader import guarded

        values, file = as_ndarray(array, target.max_memory), BytesIO()
        with guarded(None, "the image to write"):
            Image.fromarray(values).save(file, title.upper(), **options)
        write_all(target.open(), [file.getvalue()])
        if target.progress is not None:
            target.progress(array.nbytes)

    fits = image_fits(array, title, max_side, types, forms, frames)
    if lossy and not fits:
        reason = f"{title} keeps no value exactly; PNG, TIFF and WebP do"
        fits = [refused(array.name, "precision", reason, "--allow precision")]
    return Plan([*fits, *metadata_fits(bundle, title)], write, names=bundle.names)


def frames_plan(
    bundle: Bundle,
    title: str,
    write_frames: Callable[[Array, list[int], Target], None],
    *,
    channels: tuple[int, ...],
    max_side: int,
    durations: range,
    duration: int = -1,
) -> Plan | None:
    """Plan the frames along an axis of time, (T, H, W, channels); None for any other array.

    `durations` are those that the format can store, in milliseconds; `duration` is that of each
    frame if the user gives it, else -1.
    """
    array = bundle.arrays[0]
    if array.ndim != RANK or array.element != element("uint", 1):
        return None
    from .frames import LOOPS, durations_of, lost_of

    count, *sides, depth = array.shape
    times = durations_of(array) if duration < 0 else [duration] * count
    if times is None or count < 2 or depth not in channels or 0 in sides or max(sides) > max_side:
        return None
    if not all(time in durations for time in times):
        return None
    kept = {"axes"}
    if field(array, "durations", list) == times:
        kept.add("durations")
    if field(array, "loop", int) in LOOPS:
        kept.add("loop")
    fits = metadata_fits(bundle, title, kept, lost_of(array, times, DEFAULT.axis_labels))
    return Plan(fits, lambda target: write_frames(array, times, target), names=bundle.names)


def image_fits(
    array: Array, title: str, max_side: int, types: str, forms: tuple[str, ...] = (GREY, COLOR),
    frames: tuple[str, ...] = (),
) -> list[Fit]:  # fmt: skip
    """The fits for an array that is not one picture of these `types`, `forms` and sides.

    `frames` are the forms that can be frames of an animation if the user gives their duration.
    """
    name, kind, shape = type_name(little(array.element)), array.element.kind, array.shape
    forms, fits = (GREY,) if kind == "bool" else forms, []
    in_tiff = kind != "user" and ml_name(array.element) is None
    others = OTHERS if in_tiff else OTHERS.replace("TIFF, ", "")
    if name not in types.replace(",", "").split():
        reason, flag = f"{title} holds {types}, not {name}", None
        if kind in REALS:
            flags = [f"--dtype {word}" for word in ("uint8", "uint16") if word in types]
            flag = ", ".join(flags) + ("" if kind == "bool" else " or --scale")
        fits.append(refused(array.name, "type", reason + ("" if flag else others), flag))
    form, plane = _form(shape), _form(shape[split(array) :])
    flag = "--planes" if form != COLOR and plane in forms else None
    if plane in frames and len(shape) == RANK and shape[0] > 1:
        flag = f"{flag} or {FRAMES}" if flag else FRAMES
    reason = f"an image of {title} has the shape {' or '.join(forms)}, not {shape}"
    fit = refused(array.name, "shape", reason + ("" if flag else others), flag)
    if 0 in shape:
        fit = refused(array.name, "shape", f"{title} has no image without pixels: {shape}")
    elif max(shape, default=0) > max_side:
        reason = f"a side of {max(shape)} is above {title}'s {max_side}{others}"
        fit = refused(array.name, "shape", reason)
    elif form in forms:
        return fits
    return [*fits, fit]


def _form(shape: tuple[int, ...]) -> str:
    """The form of a picture of this shape; empty if it is not one picture."""
    if len(shape) == 3 and shape[2] in (2, 3, 4):
        return f"(H, W, {shape[2]})"
    return GREY if len(shape) == 2 else ""


def metadata_fits(
    bundle: Bundle, title: str, kept: set[str] | None = None, besides: Sequence[str] = ()
) -> list[Fit]:
    """The fits for lost metadata: all but the `kept` fields, such as ``icc`` or ``axes``.

    `besides` names the parts of kept fields that are lost as well.
    """
    array = bundle.arrays[0]
    kept = kept or set()
    own = array.meta.formats.get(NAMESPACE, {})
    lost = facts_of(array, NAMESPACE, *kept)
    lost += [f"{NAMESPACE}.{name}" for name in own if name not in kept]
    lost += besides
    reason = f"{title} has no place for it: {', '.join(lost)}"
    fits = [equivalent(array.name, "metadata", reason)] if lost else []
    return [*fits, *file_fits(bundle, title)]
