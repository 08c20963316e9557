"""Whether arrays fit an IDX file, and the file itself."""

from __future__ import annotations

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    equivalent,
    facts_of,
    file_fits,
    refused,
    refused_type,
)

from .header import CODES, MAX_LENGTH, MAX_RANK, header_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

__all__ = ["plan"]

WIDER = {"bool": "uint8", "uint": "int32", "complex": "float64"}  # what --dtype may be, by kind


def plan(bundle: Bundle, *, gzip: str = "auto") -> Plan:
    """A header and the elements, big-endian; few types, and no metadata."""
    found = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan(
        [*found, *file_fits(bundle, "IDX")],
        lambda target: _write(bundle.arrays[0], target, gzip),
        names=bundle.names,
    )


def _fits(array: Array) -> list[Fit]:
    name, found = array.name, []
    if (array.element.kind, array.element.nbytes) not in CODES:
        wider = WIDER.get(array.element.kind, "float64")
        found.append(refused_type(array, "IDX", wider))
    if array.ndim > MAX_RANK:
        found.append(refused(name, "shape", f"{array.ndim} axes; IDX has {MAX_RANK} here"))
    elif max(array.dims, default=0) > MAX_LENGTH:
        found.append(refused(name, "shape", "an axis of 2**32 or more"))
    elif spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        found.append(refused(name, "shape", "axes span 2**63 bytes or more"))
    elif not array.dims:
        found.append(equivalent(name, "shape", "no axes become one of length 1"))
    if array.described and array.meta:
        reason = f"IDX has no place for it: {', '.join(facts_of(array))}"
        found.append(equivalent(name, "metadata", reason))
    return found


def _write(array: Array, target: Target, gzip: str) -> None:
    from raconvert.arrays.big import big_endian

    header, array = header_bytes(array), big_endian(array)
    if gzip == "yes" or (gzip == "auto" and target.path.lower().endswith(".gz")):
        from raconvert.arrays.inflated import write_deflated

        write_deflated(target, header, array)
    else:
        from raconvert.arrays.blocks import write_raw

        write_raw(target, header, array)
