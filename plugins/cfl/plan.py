"""Whether arrays fit the two files of CFL, and the files themselves."""

from __future__ import annotations

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.files.copy import write_all
from raconvert.files.limits import DEFAULT
from raconvert.files.places import write_failed
from raconvert.files.seal import seal_of
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    Source,
    equivalent,
    facts_of,
    file_fits,
    little,
    refused,
    refused_type,
)

from .header import ELEMENT, MOST_AXES, NAMESPACE, header_bytes, sealed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

__all__ = ["plan"]


def plan(bundle: Bundle) -> Plan:
    """A header of lengths, and complex64 beside it; no other type, and no metadata."""
    found = [fit for array in bundle.arrays for fit in _fits(array)]
    return Plan(
        [*found, *file_fits(bundle, "CFL")],
        lambda target: _write(bundle.arrays[0], target),
        names=bundle.names,
    )


def _sections(array: Array) -> str:
    """Other sections of the header that the array comes from."""
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    text = own.get("sections") if isinstance(own, dict) else None
    fine = isinstance(text, str) and len(text) < DEFAULT.window // 8
    fine = fine and text.startswith("#") and "# Dimensions" not in text
    try:
        text.encode("utf-8", "surrogateescape") if fine else None
    except UnicodeEncodeError:
        return ""
    return text if fine else ""


def _fits(array: Array) -> list[Fit]:
    name, found = array.name, []
    if little(array.element) != ELEMENT:
        found.append(refused_type(array, "CFL", "complex64"))
    if 0 in array.dims or array.ndim > MOST_AXES:
        found.append(refused(name, "shape", f"CFL has 1 to {MOST_AXES} axes, none of length 0"))
    elif spanned(array.dims, ELEMENT.nbytes) > MAX_SPAN:
        found.append(refused(name, "shape", "2**63 bytes or more"))
    elif not array.dims:
        found.append(equivalent(name, "shape", "no axes become one of length 1"))
    elif array.ndim == MOST_AXES and array.dims[-1] == 1:
        reason = "lengths of 1 at the end of 16 are read as filling"
        found.append(equivalent(name, "shape", reason))
    if array.described and array.meta:
        own = array.meta.formats.get(NAMESPACE, {})
        lost = facts_of(array, NAMESPACE)
        lost += [NAMESPACE] if own.keys() - {"sections"} else []
        lost += [NAMESPACE] if own and not _sections(array) else []
        if lost:
            reason = f"CFL has no place for it: {', '.join(lost)}"
            found.append(equivalent(name, "metadata", reason))
    return found


def _write(array: Array, target: Target) -> None:
    from raconvert.arrays.blocks import write_raw

    named_by_data = target.path.lower().endswith(".cfl")
    partner = target.beside(".hdr" if named_by_data else ".cfl")
    header, data = (partner, target) if named_by_data else (target, partner)
    write_raw(data, b"", array)
    text = header_bytes(array, _sections(array))
    try:
        write_all(header.open(), [sealed(text, seal_of(text, Source(data.temp)))])
    except OSError as error:
        raise write_failed(header.path, error) from error
