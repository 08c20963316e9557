"""Plan of a NIfTI file: whether the arrays fit, and the file itself."""

from __future__ import annotations

import zlib

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.files.copy import write_all
from raconvert.files.pairing import seal_of
from raconvert.files.paths import write_failed
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    Source,
    equivalent,
    file_fits,
    refused,
    refused_type,
)

from .header import COMMENT, SEAL_BYTES, datatype_of, header_bytes, version_of
from .metadata import NAMESPACE, fields_of
from .space import NOT_FIRST, with_three_axes
from .tables import DATA, GZ, GZIP_WBITS, HEADER, LAYOUTS, MAX_LENGTH_1, MAX_RANK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

__all__ = ["plan"]


def plan(bundle: Bundle, *, version: str = "auto") -> Plan:
    """Plan a header with the metadata that it can hold, and the elements, little-endian."""
    array = bundle.arrays[0]
    wide = with_three_axes(array) if array.described else array
    fits = _fits(array, version)
    if wide is not array and any(NOT_FIRST in fit.reason for fit in fits):
        fits = _fits(wide, version, array)
        array = wide
        reason = "axes of length 1 are added, so that the first three are those of space"
        fits.append(equivalent(array.name, "shape", reason))
    return Plan(
        [*fits, *file_fits(bundle, "NIfTI")],
        lambda target: _write(array, target, version),
        names=bundle.names,
    )


def _version(array: Array, asked: str) -> int:
    """Return the version in which an array is written; `asked` is the option."""
    own = array.meta.formats.get(NAMESPACE) if array.described else None
    return version_of(array, asked, own if isinstance(own, dict) else {})


def _fits(array: Array, asked: str, given: Array | None = None) -> list[Fit]:
    """List what of an array NIfTI changes, loses or refuses; `given`: see `fields_of`."""
    name, fits = array.name, []
    version = _version(array, asked)
    if datatype_of(array.element) is None:
        fits.append(refused_type(array, "NIfTI", "float32"))
    elif array.element.kind == "bool":
        fits.append(equivalent(name, "type", "bool becomes uint8"))
    if 0 in array.dims or array.ndim > MAX_RANK:
        fits.append(refused(name, "shape", f"NIfTI has 1 to {MAX_RANK} axes, none of length 0"))
    elif version == 1 and max(array.dims, default=0) > MAX_LENGTH_1:
        reason = f"NIfTI-1 has lengths up to {MAX_LENGTH_1}"
        fits.append(refused(name, "shape", reason, "--out-opt version=2"))
    elif spanned(array.dims, 16) > MAX_SPAN:
        fits.append(refused(name, "shape", "2**63 bytes or more"))
    elif not array.dims:
        fits.append(equivalent(name, "shape", "no axes become one of length 1"))
    lost = fields_of(array, LAYOUTS[version], given)[2] if array.described else []
    if lost:
        fits.append(equivalent(name, "metadata", f"not kept: {', '.join(dict.fromkeys(lost))}"))
    return fits


def _write(array: Array, target: Target, asked: str) -> None:
    version = _version(array, asked)
    fields, extensions, _ = fields_of(array, LAYOUTS[version])
    if target.path.lower().removesuffix(GZ).endswith((HEADER, DATA)):
        _write_pair(array, target, version, fields, extensions)
    else:
        _write_data(target, header_bytes(array, version, fields, extensions), array)


def _write_data(target: Target, header: bytes, array: Array) -> None:
    """Write a header and the elements behind it, inside gzip if the name says so."""
    if target.path.lower().endswith(GZ):
        from raconvert.arrays.sources import write_deflated

        write_deflated(target, header, array)
    else:
        from raconvert.arrays.blocks import write_raw

        write_raw(target, header, array)


def _write_pair(
    array: Array, target: Target, version: int, fields: dict[str, Any], extensions: list[Any]
) -> None:
    """Write both files, the header with an extension that ties it to the data."""
    name = target.path.lower()
    end = GZ if name.endswith(GZ) else ""
    own, other = (DATA, HEADER) if name.endswith(DATA + end) else (HEADER, DATA)
    partner = target.beside(other + end, ending=own + end)
    header, data = (partner, target) if own == DATA else (target, partner)
    _write_data(data, b"", array)
    blank = {"code": COMMENT, "data": bytes(SEAL_BYTES).hex()}
    text = header_bytes(array, version, fields, [*extensions, blank], pair=True)
    seal = seal_of(text, Source(data.temp)).encode()
    text = text[:-SEAL_BYTES] + seal.ljust(SEAL_BYTES, b"\0")
    try:
        write_all(header.open(), [zlib.compress(text, wbits=GZIP_WBITS) if end else text])
    except OSError as error:
        raise write_failed(header.path, error) from error
