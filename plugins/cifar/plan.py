"""Whether arrays are the labels and images of CIFAR, and the file itself."""

from __future__ import annotations

from raconvert.plugin import (
    Array,
    Bundle,
    Fit,
    Plan,
    equivalent,
    facts_of,
    file_fits,
    refused,
    type_name,
)

from .tables import BYTE, IMAGE, IMAGE_BYTES, LAYOUTS, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.plugin import Target

__all__ = ["plan"]

RECORDS_AT_ONCE = 256


def plan(bundle: Bundle) -> Plan:
    """Records of the labels and images; nothing but these arrays."""
    layout = _layout(bundle)
    found: list[Fit] = []
    for array in bundle.arrays:
        if layout is None:
            wanted = " or ".join(", ".join([*one.labels, "images"]) for one in LAYOUTS.values())
            found.append(refused(array.name, "names", f"CIFAR has the arrays {wanted}, no others"))
        else:
            found += _fits(array, bundle.arrays[0])
        if array.described and array.meta:
            reason = f"CIFAR has no place for it: {', '.join(facts_of(array))}"
            found.append(equivalent(array.name, "metadata", reason))
    found += file_fits(bundle, "CIFAR")
    return Plan(found, lambda target: _write(bundle, layout, target), names=bundle.names)


def _layout(bundle: Bundle) -> Layout | None:
    names = sorted(bundle.names)
    return next((one for one in LAYOUTS.values() if names == sorted((*one.labels, "images"))), None)


def _fits(array: Array, first: Array) -> list[Fit]:
    found = []
    inner = IMAGE if array.name == "images" else ()
    if array.element != BYTE:
        reason = f"CIFAR has no {type_name(array.element)}"
        flag = None if array.element.kind == "user" else "--dtype uint8"
        found.append(refused(array.name, "type", reason, flag))
    count = first.dims[-1] if first.dims else 0
    if not count or array.dims != (*inner[::-1], count):
        wanted = ("N", *map(str, inner))
        reason = f"CIFAR has {array.name} of shape ({', '.join(wanted)}), the same N for all"
        found.append(refused(array.name, "shape", reason))
    return found


def _write(bundle: Bundle, layout: Layout | None, target: Target) -> None:
    import numpy as np

    from raconvert.arrays.blocks import block_bytes, runs
    from raconvert.files.copy import write_all
    from raconvert.files.places import write_failed

    if layout is None:
        return
    most = block_bytes(target.max_memory)
    columns = [runs(bundle.get(name), RECORDS_AT_ONCE, most) for name in layout.labels]
    images = runs(bundle.get("images"), RECORDS_AT_ONCE * IMAGE_BYTES, most)
    file = target.open()
    try:
        for pixels, *labels in zip(images, *columns, strict=True):
            count = pixels.size // IMAGE_BYTES
            records = np.empty((count, layout.nbytes), np.uint8)
            for place, column in enumerate(labels):
                records[:, place] = column
            records[:, len(labels) :] = pixels.reshape(count, IMAGE_BYTES)
            write_all(file, [records.reshape(-1)])
    except OSError as error:
        raise write_failed(target.path, error) from error
