"""Writing: pages through imageio with tifffile pinned."""

from __future__ import annotations

from math import prod

from raconvert.files.places import name_of_open
from raconvert.plugin import Array, Bundle, Fit, refused, type_name

from ..metadata import fields_of, metadata_fits, part
from .axes import imagej_images, noted_shape, page_shape, view
from .tables import KNOWN, TEXTS, TYPES, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Target

MAX_SIDE = 0xFFFFFFFF
BIG_FROM = 0xF0000000  # bytes; above it the offsets of a classic TIFF may not be enough
KEPT = frozenset({
    "resolution", "icc", "xmp", "orientation", "photometric", "extra_samples", "colormap", "tags",
    "bits", "shaped", *TEXTS.values(),
})  # fmt: skip


def array_fits(bundle: Bundle) -> list[Fit]:
    """Return what TIFF would change or cannot hold of each array."""
    found = []
    for array in bundle.arrays:
        kind = array.element.kind
        if kind not in ("bool", "uint", "int", "float", "complex"):
            reason = (
                f"TIFF holds bool, integers, floats and complex, not {type_name(array.element)}"
            )
            flag = "--dtype float32" if kind == "bfloat" else None
            found.append(refused(array.name, "type", reason, flag))
        if 0 in array.dims:
            reason = f"TIFF has no image without pixels: {array.shape}"
            found.append(refused(array.name, "shape", reason))
        elif max(page_shape(array.shape, kind)) > MAX_SIDE:
            found.append(refused(array.name, "shape", f"a side is above TIFF's {MAX_SIDE}"))
    return found + metadata_fits(bundle, "TIFF", KEPT, _common_kept)


def _common_kept(array: Array) -> frozenset[str]:
    """Return the common fields that come back: the axes only if the description tells them."""
    if 0 in array.dims or not array.meta.axes:
        return frozenset({"description"})
    page = page_shape(array.shape, array.element.kind)
    fields = fields_of(array)
    text = _description(array, page, fields).decode()
    pages = prod(array.shape) // prod(page)
    _, axes = view(text, pages, page, part(fields, "resolution", list))
    known = [axis.to_dict() for axis in axes] == [axis.to_dict() for axis in array.meta.axes]
    return frozenset({"description", "axes"} if known else {"description"})


def write_pages(array: Array, target: Target, *, compression: str) -> None:
    """Write the pages of an array; one page at a time is in memory."""
    import imageio.v3 as iio

    from raconvert.arrays.blocks import block_bytes, check_memory, runs

    from ..reader import UNLIMITED, guarded

    height, width, samples = page = page_shape(array.shape, array.element.kind)
    count = prod(page)
    check_memory(
        3 * count * array.element.nbytes, target.max_memory, f"a page of array '{array.name}'"
    )
    first = _options(array, page, compression)
    others = {name: first[name] for name in _STORAGE if name in first}
    shape = (height, width) + (samples,) * (samples > 1)
    big = array.nbytes > BIG_FROM
    pages = target.counted(runs(array, count, block_bytes(target.max_memory)))

    open_tiff: Any = iio.imopen  # whose types do not know of the options that it hands on

    def backend() -> Any:
        return guarded(target.path, "the TIFF to write", UNLIMITED, writing=True)

    name = name_of_open(target.open(), target.temp)
    with open(name, "r+b") as file:  # tifffile wants a file with a name
        with backend():
            opened = open_tiff(file, "w", plugin="tifffile", byteorder="<", bigtiff=big)
        try:
            for number, values in enumerate(pages):
                with backend():
                    opened.write(values.reshape(shape), **(others if number else first))
        finally:
            with backend():
                opened.close()


_STORAGE = (
    "metadata", "software", "photometric", "planarconfig", "extrasamples", "compression",
    "contiguous", "colormap",
)  # fmt: skip


def _options(array: Array, page: tuple[int, ...], compression: str) -> dict[str, Any]:
    """Return tifffile's arguments for the first page."""
    fields = fields_of(array)
    samples = page[2]
    options: dict[str, Any] = {
        "metadata": None,  # no description of its own
        "software": part(fields, "software", str) or False,
        "photometric": "rgb" if samples in (3, 4) else "minisblack",
        "contiguous": compression == "none" and array.element.kind != "bool",
    }
    if compression == "deflate":
        options["compression"] = "zlib"
    if samples > 1:
        options["planarconfig"] = "contig"
    _add_colors(options, array, fields, samples)
    description = _description(array, page, fields)
    if description:
        options["description"] = description
    _add_resolution(options, fields)
    if profile := part(fields, "icc", bytes):
        options["iccprofile"] = profile
    if tags := _extra_tags(fields):
        options["extratags"] = tags
    return options


def _add_colors(
    options: dict[str, Any], array: Array, fields: dict[str, Any], samples: int
) -> None:
    """Say what the samples mean: from the metadata, where it fits the array."""
    word = part(fields, "photometric", str)
    extra = part(fields, "extra_samples", list) or []
    extra = [n for n in extra if type(n) is int and 0 <= n <= 2]
    if samples in (1, 3, 4) and word in _WORDS[samples]:
        options["photometric"] = _WORDS[samples][word]
    colors = 1 if options["photometric"] in _GREYS else samples if samples < 4 else 3
    if options["photometric"] == "separated":
        colors = 4
    if word == "palette" and samples == 1:
        _add_palette(options, array, fields)
    if samples > colors:
        kept = len(extra) == samples - colors
        default = [2] if samples in (2, 4) and colors in (1, 3) else [0]
        options["extrasamples"] = extra if kept else default * (samples - colors)
        if samples in (3, 4) and colors == 1 and not kept:
            options["extrasamples"] = [0] * (samples - 1)


_GREYS = ("minisblack", "miniswhite")
_WORDS: dict[int, dict[str, str]] = {
    1: {"miniswhite": "miniswhite"},
    3: {"minisblack": "minisblack", "cielab": "cielab", "icclab": "icclab"},
    4: {"minisblack": "minisblack", "separated": "separated"},
}


def _add_palette(options: dict[str, Any], array: Array, fields: dict[str, Any]) -> None:
    import numpy as np

    table = part(fields, "colormap", bytes)
    bits = 8 * array.element.nbytes
    if table and array.element.kind == "uint" and bits <= 16 and len(table) == 6 << bits:
        options["photometric"] = "palette"
        options["colormap"] = np.frombuffer(table, "<u2").reshape(3, -1)


def _description(array: Array, page: tuple[int, ...], fields: dict[str, Any]) -> bytes:
    """Return the description: the text of the metadata, and the shape where pages do not say it."""
    text = array.meta.description or ""
    pages = prod(array.shape) // prod(page)
    if (
        view(text, pages, page, None)[0] != array.shape
        or noted_shape(text)
        or imagej_images(text) not in (0, pages)
    ):
        import json

        shaped = part(fields, "shaped", dict) or {}
        content = {"shape": list(array.shape), **shaped}
        if text:
            content["description"] = text
        return json.dumps(content, default=str).encode()
    return text.encode()


def _add_resolution(options: dict[str, Any], fields: dict[str, Any]) -> None:
    resolution = part(fields, "resolution", list)
    if not resolution or len(resolution) != 3:
        return
    unit = next((code for code, word in UNITS.items() if word == resolution[2]), None)
    pairs = [_pair(value) for value in resolution[:2]]
    if unit is None and resolution[2] == "m":  # per metre: as per centimetre
        unit, pairs = 3, [pair and (pair[0], 100 * pair[1]) for pair in pairs]
    if unit is not None and all(pairs):
        options["resolution"] = tuple(pairs)
        options["resolutionunit"] = unit


def _pair(value: object) -> tuple[int, int] | None:
    """Return numerator and denominator if both fit a TIFF."""
    pair: list[Any] = value if isinstance(value, list) and len(value) == 2 else [value, 1]
    if all(type(n) is int and 0 <= n <= MAX_SIDE // 100 for n in pair):
        return pair[0], pair[1]
    return None


def _extra_tags(fields: dict[str, Any]) -> list[tuple[int, int, int, bytes, bool]]:
    """Return tifffile's extra tags: texts, XMP, orientation, and what was kept as it was."""
    tags = []
    for tag, name in TEXTS.items():
        text = part(fields, name, str)
        if text and name != "software":
            data = text.encode() + b"\0"
            tags.append((tag, 2, len(data), data, True))
    if xmp := part(fields, "xmp", bytes):
        tags.append((700, 1, len(xmp), xmp, True))
    orientation = part(fields, "orientation", int)
    if orientation in range(2, 9):
        tags.append((274, 3, 1, orientation.to_bytes(2, "little"), True))
    seen = {tag[0] for tag in tags}
    for item in part(fields, "tags", list) or []:
        match item:
            case [int(tag), int(kind), bytes(data)] if kind in TYPES and tag not in seen | KNOWN:
                count, odd = divmod(len(data), TYPES[kind][0])
                if 0 < tag < 65536 and count and not odd:
                    tags.append((tag, kind, count, data, True))
                    seen.add(tag)
    return tags
