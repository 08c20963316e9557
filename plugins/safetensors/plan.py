"""Whether arrays fit a safetensors file, and the file itself."""

from __future__ import annotations

from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.files.copy import copy_extent, write_all
from raconvert.files.places import write_failed
from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    Source,
    array_exists,
    equivalent,
    facts_of,
    file_fits,
    refused,
    refused_type,
)

from .header import (
    MAX_HEADER_BYTES,
    MAX_RANK,
    METADATA,
    OWN,
    Tensor,
    dtype_of_array,
    header_bytes,
    header_with,
    read_header,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

    from raconvert.plugin import Target

__all__ = ["add", "plan"]


def plan(bundle: Bundle) -> Plan:
    """A header and the elements of all arrays; names must differ, metadata of arrays is lost."""
    found: list[Fit] = []
    names: set[str] = set()
    for array in bundle.arrays:
        reason = _name_problem(array.name, names)
        found += [refused(array.name, "names", reason)] if reason else []
        found += _fits(array)
        names.add(array.name)
    texts = {k: v for k, v in bundle.attributes.items() if isinstance(v, str) and _is_text(k + v)}
    others = {k: v for k, v in bundle.attributes.items() if k not in texts}
    rest = bundle.like(bundle.arrays)
    rest.attributes = others
    found += file_fits(rest, "safetensors")
    whole = not any(fit.outcome == "refused" for fit in found)
    if whole and len(header_bytes(bundle.arrays, texts)[0]) > MAX_HEADER_BYTES:
        found.append(refused("", "metadata", f"a header above {MAX_HEADER_BYTES} bytes"))
    return Plan(found, lambda target: _write(bundle, texts, target), names=bundle.names)


def add(bundle: Bundle, source: Source, held: Bundle, *, overwrite: bool) -> Plan:
    """The tensors of a file, copied, with the arrays among them; see `Add`."""
    tensors = read_header(source)[0]
    for name in bundle.names:
        if name in (tensor.name for tensor in tensors) and not overwrite:
            raise array_exists(source.path, name)
    alone = plan(bundle)
    if any(fit.outcome == "refused" for fit in alone.fits):
        return alone
    length = int.from_bytes(source.read_exact(0, 8, "the length of the header"), "little")
    raw = source.read_exact(8, length, "the header")
    header, order = header_with(raw, tensors, bundle.arrays)
    if len(header) > MAX_HEADER_BYTES:
        alone.fits.append(refused("", "metadata", f"a header above {MAX_HEADER_BYTES} bytes"))

    def write(target: Target) -> None:
        file = target.open()
        try:
            write_all(file, [header])
            for one in order:
                if not isinstance(one, Tensor):
                    _write_data(file, one, target)
                elif one.nbytes:
                    copy_extent(b"", source.extent(one.offset, one.nbytes), file)
        except OSError as error:
            raise write_failed(target.path, error) from error

    return Plan(alone.fits, write, names=bundle.names)


def _name_problem(name: str, before: set[str]) -> str | None:
    if not name:
        return "an empty name"
    if name == METADATA:
        return f"{METADATA} has a meaning of its own"
    if name in before:
        return "the name is used twice"
    return None if _is_text(name) else "the name is not valid text"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(array: Array) -> list[Fit]:
    name, found = array.name, []
    if dtype_of_array(array) is None:
        dtype = "complex64" if array.element.kind == "complex" else "float64"
        found.append(refused_type(array, "safetensors", dtype))
    if array.ndim > MAX_RANK or spanned(array.dims, array.element.nbytes) > MAX_SPAN:
        found.append(refused(name, "shape", "more than 64 axes, or 2**63 bytes"))
    if array.described and array.meta:
        own = array.meta.formats.get(OWN)
        lost = facts_of(array, OWN)
        lost += [OWN] if own and (own.keys() != {"dtype"} or array.element.kind != "user") else []
        if lost:
            reason = f"safetensors has no place for it: {', '.join(lost)}"
            found.append(equivalent(name, "metadata", reason))
    return found


def _write(bundle: Bundle, attributes: dict[str, str], target: Target) -> None:
    header, ordered = header_bytes(bundle.arrays, attributes)
    file = target.open()
    try:
        write_all(file, [header])
        for array in ordered:
            _write_data(file, array, target)
    except OSError as error:
        raise write_failed(target.path, error) from error


def _write_data(file: FileIO, array: Array, target: Target) -> None:
    from raconvert.arrays.blocks import block_bytes, blocks

    for block in target.counted(blocks(array, block_bytes(target.max_memory))):
        write_all(file, [block.reshape(-1).view("u1")])
