"""Plan of a NRRD file: its header, and what that cannot hold."""

from __future__ import annotations

from raconvert.arrays.dtypes import FLOATS, little, type_name
from raconvert.arrays.reinterpret import is_void
from raconvert.plugin import Array, Bundle, Fit, Plan, equivalent, refused

from .tables import BZIP2, GZIP, HEX, MAX_ARRAY_BYTES, MAX_BLOCK_BYTES, MAX_RANK, RAW, TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

    from .header import Header

HOLDERS = "RA, NPY and HDF5 hold it"
# name of the option -> encoding, level
ENCODINGS = {
    "raw": (RAW, 0),
    "gzip": (GZIP, 6),
    **{f"gzip:{level}": (GZIP, level) for level in range(1, 10)},
    "bzip2": (BZIP2, 9),
    "ascii": (TEXT, 0),
    "text": (TEXT, 0),
    "hex": (HEX, 0),
}


def plan(bundle: Bundle, *, encoding: str = "raw") -> Plan:
    """Plan the NRRD file of the one array of a bundle; data and most metadata come back.

    Raises `Unsupported` for a field of our namespace that has a wrong form.
    """
    how, level = ENCODINGS[encoding]
    fits: list[Fit] = []
    drafts: list[tuple[Header, list[str]]] = []  # made here only if there is metadata to judge
    fitting = True
    for array in bundle.arrays:
        form_fits = [*_shape_fits(array), *_type_fits(array, how)]
        fits += form_fits
        if any(fit.outcome == "refused" for fit in form_fits):
            fitting = False
        elif array.described or bundle.attributes or bundle.groups or bundle.formats:
            draft, lost = _drafted(bundle.like([array]), how)
            drafts.append((draft, lost))
            if lost:
                fits.append(equivalent(array.name, "metadata", f"not kept: {', '.join(lost)}"))

    def made() -> Header:
        return (drafts[0] if drafts else _drafted(bundle, how))[0]

    def write(target: Target) -> None:
        from .writer import write

        write(bundle.arrays[0], made(), level, target)

    def header() -> bytes:
        from .header import header_bytes

        return header_bytes(made())

    copied = how == RAW and fitting
    return Plan(fits, write, names=bundle.names, header=header if copied else None)


def _drafted(bundle: Bundle, encoding: str) -> tuple[Header, list[str]]:
    """Return the header of the one array, and the names of what it cannot hold."""
    from .metadata import header_of

    return header_of(bundle, encoding)


def _shape_fits(array: Array) -> list[Fit]:
    """List how the shape changes, or why it is refused."""
    name = array.name
    rank = array.ndim + (array.element.kind == "complex")
    if 0 in array.dims:
        return [refused(name, "shape", f"NRRD has no axes of length 0; {HOLDERS}")]
    if rank > MAX_RANK:
        reason = f"{rank} axes, those of complex pairs included; NRRD has 16; {HOLDERS}"
        return [refused(name, "shape", reason)]
    if array.nbytes > MAX_ARRAY_BYTES:
        return [refused(name, "shape", "2**63 bytes or more")]
    if rank == 0:
        return [equivalent(name, "shape", "no axes become one of length 1")]
    return []


def _type_fits(array: Array, encoding: str) -> list[Fit]:
    """List how the type of the elements changes, or why it is refused."""
    name, (kind, nbytes, _, _) = array.name, array.element
    if kind in FLOATS and nbytes == 2:
        reason = f"NRRD has no {type_name(little(array.element))}; float32 holds it exactly"
        return [refused(name, "type", reason, "--dtype float32")]
    if kind == "user":
        return _block_fits(array, encoding, only_bytes=is_void(array.element))
    fits = []
    if kind == "complex":
        reason = "complex numbers become pairs on a new fastest axis of kind complex"
        fits.append(equivalent(name, "type", reason))
    elif kind == "bool":
        fits.append(equivalent(name, "type", "bool becomes uint8"))
    return fits


def _block_fits(array: Array, encoding: str, *, only_bytes: bool) -> list[Fit]:
    """List the same for elements that become blocks; `only_bytes`: they mean nothing else."""
    name, nbytes = array.name, array.element.nbytes
    if not 0 < nbytes <= MAX_BLOCK_BYTES:
        return [refused(name, "type", f"elements of {nbytes} bytes; {HOLDERS}")]
    if encoding == TEXT:
        return [refused(name, "type", "blocks of bytes cannot be text; another encoding can be")]
    if only_bytes:
        return []
    reason = f"elements become blocks of {nbytes} bytes, which only raconvert understands"
    return [equivalent(name, "type", reason)]
