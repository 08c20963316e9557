"""Plan of an NPY file: whether the array fits, and the file itself."""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOATS, MAX_SPAN, ml_name, spanned
from raconvert.files.limits import DEFAULT
from raconvert.plugin import Array, Bundle, Fit, Plan, equivalent, facts_of, file_fits, refused

from .header import MAX_ITEM_BYTES, MAX_RANK, header_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

__all__ = ["array_fits", "plan"]


def plan(bundle: Bundle) -> Plan:
    """Plan header and elements in stored order; metadata, bfloat16 and axes above 64 do not fit."""
    fits = [fit for array in bundle.arrays for fit in array_fits(array)]
    return Plan(
        [*fits, *file_fits(bundle, "NPY")],
        lambda target: _write(bundle.arrays[0], target),
        names=bundle.names,
        header=lambda: header_of(bundle.arrays[0]),
    )


def array_fits(array: Array) -> list[Fit]:
    """List what NPY cannot hold of one array."""
    fits = []
    name, element = array.name, array.element
    if element.kind in FLOATS and (foreign := ml_name(element)) is not None:
        what = f"V{element.nbytes}, bytes without meaning"
        reason = f"NPY has no {foreign}; its type would be lost ({what})"
        fits.append(refused(name, "type", reason, "--allow dtype"))
    if not 0 < element.nbytes <= MAX_ITEM_BYTES:
        reason = f"elements of {element.nbytes} bytes; NumPy takes 1 to {MAX_ITEM_BYTES}"
        fits.append(refused(name, "type", reason))
    elif isinstance(element.descr, tuple) and len(header_of(array)) > DEFAULT.header_bytes:
        reason = f"{len(element.descr)} fields need a header above {DEFAULT.header_bytes} bytes"
        fits.append(refused(name, "type", reason))
    if array.ndim > MAX_RANK:
        reason = f"{array.ndim} axes; NumPy takes at most {MAX_RANK}"
        fits.append(refused(name, "shape", reason))
    if spanned(array.dims, element.nbytes) > MAX_SPAN:
        fits.append(refused(name, "shape", "axes span 2**63 bytes or more, beyond NumPy"))
    if array.described and array.meta:
        reason = f"NPY has no place for it: {', '.join(facts_of(array))}"
        fits.append(equivalent(name, "metadata", reason))
    return fits


def _write(array: Array, target: Target) -> None:
    if array.extent is not None:
        target.copied(header_of(array), array.extent)
        return
    from raconvert.arrays.blocks import write_raw

    write_raw(target, header_of(array), array)
