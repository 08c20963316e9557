"""Plan of an OME-TIFF: an image for each array, and the losses."""

from __future__ import annotations

from collections import Counter

from raconvert.arrays.dtypes import FLOATS
from raconvert.plugin import Array, Bundle, Plan, equivalent, file_fits, refused, type_name

from ...image.tiff.ome import TYPES
from ..axes import letters_of, renamed_fit
from ..options import ONE, check_levels
from .metadata import is_clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.target import Target
    from raconvert.plugin import Fit

TITLE = "OME-TIFF"
LONGEST = 0xFFFFFFFF  # a side of an image


def plan(
    bundle: Bundle, *, levels: str = "1", filter: str = "mean", compression: str = "none"
) -> Plan:
    """An image for each array; see `Plan`. Raises `UsageError` for invalid options."""
    if levels != ONE:
        check_levels(levels)
    fits, letters = [], []
    counts = Counter(bundle.names)
    for array in bundle.arrays:
        text, problems = _image_fits(array)
        letters.append(text)
        fits += problems
        if counts[array.name] > 1:
            fits.append(refused(array.name, "names", "the name is used twice"))
    fits += file_fits(bundle, TITLE)

    def write(target: Target) -> None:
        from .writer import write_images

        write_images(bundle, letters, target, levels, filter, compression)

    return Plan(fits, write, names=bundle.names)


def _image_fits(array: Array) -> tuple[str, list[Fit]]:
    """The letters of the axes of an array, and its fits."""
    name, fits, shape = array.name, [], array.dims[::-1]
    if (array.element.kind, array.element.nbytes) not in TYPES:
        reason = f"OME has no {type_name(array.element)}; its types are {_types()}"
        fits.append(refused(name, "type", reason, _dtype_flag(array.element.kind)))
    samples = array.element.kind != "bool"
    letters = letters_of(array, TITLE, samples=samples, ordered=False)
    if letters.reason:
        fits.append(refused(name, "shape", f"{letters.reason}; `--to tiff` writes any"))
    if letters.made_up:
        reason = f"OME names every axis: {', '.join(letters.made_up)}"
        fits.append(equivalent(name, "metadata", reason))
    renamed = renamed_fit(array, letters.text) if letters.text else None
    fits += [renamed] if renamed is not None else []
    if 0 in shape:
        fits.append(refused(name, "shape", f"OME has no image without pixels: {shape}"))
    elif max(shape, default=0) > LONGEST:
        fits.append(refused(name, "shape", f"a side is above TIFF's {LONGEST}"))
    if not name or not (name.isprintable() or is_clean(name)):
        fits.append(refused(name, "names", "the name has characters that XML cannot have"))
    if array.described and array.meta.items is not None:
        reason = "metadata of single items of the stack is left out"
        fits.append(equivalent(name, "metadata", reason))
    return letters.text, fits


def _dtype_flag(kind: str) -> str | None:
    """The flag that converts elements of a kind to a type of OME, or None."""
    if kind in FLOATS:
        return "--dtype float32"
    return {"int": "--dtype int32", "uint": "--dtype uint32"}.get(kind)


def _types() -> str:
    return ", ".join(TYPES.values())
