"""From a file to a bundle: one pass lists the features of all records, arrays read them later."""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.arrays.dtypes import MAX_SPAN, spanned
from raconvert.errors import Corrupt, RaconvertError, TooLarge, Unsupported, UsageError, listed
from raconvert.plugin import Array, Bundle, Element, Metadata, element

from .features import Feature
from .messages import BYTES, FLOATS, Malformed, features_of
from .records import Content
from .tables import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.source import Source

RECORDS = "records"
ENCODED = "image/encoded"  # the usual name of encoded images
ENTRY_BYTES = 24  # in memory, of one feature of one record
SHARE = 4  # the part of --max-memory, a quarter, for the offsets of features


def read_file(source: Source, *, flat: bool, parsed: bool, images: str) -> Bundle:
    """Read the features of the records of a file; `flat`, `parsed` and `images` are its options.

    Raises `Corrupt`, `TooLarge`, `Unsupported` and `UsageError`.
    """
    content = Content(source)
    asked = {word for word in images.split(",") if word}
    if parsed:
        features, count = _features(content, asked if flat else asked | {ENCODED})
        _check_asked(features, asked, source.path)
    else:
        features, count = _whole_records(content)
    if not count:
        raise Unsupported("holds no records", path=source.path)
    in_groups = any(feature.has_steps for feature in features)
    arrays: list[Array] = []
    empty: list[str] = []
    for feature in features:
        name = feature.key
        if in_groups:
            name = f"{'feature_lists' if feature.has_steps else 'context'}/{name}"
        if not feature.total:
            empty.append(name)
            continue
        if _decodes(feature, asked, count):
            from .images import image_array

            arrays.append(image_array(content, feature, name))
        else:
            arrays += _arrays(content, feature, name, count, flat=flat)
    if not arrays:
        raise Unsupported("holds records without any value", path=source.path)
    notes = [f"left out, without any value: {listed(empty)}"] if empty else []
    return Bundle(some_sound(arrays), notes=notes)


def _decodes(feature: Feature, asked: set[str], records: int) -> bool:
    """True for images in all records that are asked for, or are PNG, which is exact."""
    whole = feature.is_image and len(feature.records) == records
    return whole and (feature.key in asked or feature.is_png)


def _check_asked(features: list[Feature], asked: set[str], path: str) -> None:
    """Raise `UsageError` for a feature that was asked for and has no images."""
    images = {feature.key for feature in features if feature.is_image}
    if missing := sorted(asked - images):
        raise UsageError(
            f"has no feature '{missing[0][:80]}' of one value of bytes in each record", path=path,
            remedy=f"its features: {listed([feature.key for feature in features])}",
        )  # fmt: skip


def _whole_records(content: Content) -> tuple[list[Feature], int]:
    """Return the records themselves as a feature, and their number; only lengths are read."""
    feature, number = Feature(RECORDS, has_steps=False, whole=True), -1
    most = content.source.limits.memory // SHARE // ENTRY_BYTES
    for number, (begin, nbytes) in enumerate(content.extents()):
        feature.add_extent(number, begin, nbytes)
        if number >= most:
            raise _too_many(content, most)
    return [feature], number + 1


def _too_many(content: Content, most: int) -> TooLarge:
    """Return the error for more features than memory is allowed for."""
    return TooLarge(
        "has more features in all records than are read in this memory", path=content.path,
        expected=f"at most {most}", remedy="allow more with `--max-memory`",
    )  # fmt: skip


def _features(content: Content, images: set[str]) -> tuple[list[Feature], int]:
    """Return the features of all records, in the order of the file, and the number of records."""
    features: dict[tuple[str, bool], Feature] = {}
    entries = 0
    most = content.source.limits.memory // SHARE // ENTRY_BYTES
    number = -1
    for number, (begin, data) in enumerate(content.records()):
        try:
            for key, has_steps, at, end in features_of(data):
                feature = features.get((key, has_steps))
                if feature is None:
                    _check_new(content, key, len(features))
                    feature = Feature(key, has_steps=has_steps, is_image=key in images)
                    features[key, has_steps] = feature
                feature.add(number, data, begin, at, end)
                entries += 1 + feature.is_image
        except Malformed as error:
            raise Corrupt(
                f"record {number} is not an Example: {error}", path=content.path,
                where=f"byte {begin}",
                remedy="`--in-opt records=bytes` reads records as they are",
            ) from error  # fmt: skip
        if entries > most:
            raise _too_many(content, most)
    return [*features.values()], number + 1


def _check_new(content: Content, key: str, count: int) -> None:
    """Check the name of a feature that is new, behind `count` others."""
    limits = content.source.limits
    if count >= limits.nodes:
        raise TooLarge(
            "has very many features", path=content.path, expected=f"at most {limits.nodes}",
            remedy="`--in-opt records=bytes` reads records as they are",
        )  # fmt: skip
    if not key or len(key) > limits.name_bytes:
        raise Malformed(f"the name of a feature has {len(key)} characters")


# Arrays ------------------------------------------------------------------------------------------


def _arrays(
    content: Content, feature: Feature, name: str, records: int, *, flat: bool
) -> Iterator[Array]:
    """Yield the array of a feature, or its parts if records differ."""
    if feature.mixed:
        what = f"feature '{name[:80]}' has values of several kinds"
        remedy = "`--in-opt records=bytes` reads records as they are"
        yield Array.unreadable(name, Unsupported(what, path=content.path, remedy=remedy))
        return
    why = _why_ragged(feature, records)
    if why and not flat:
        yield Array.unreadable(name, _ragged(content, name, why))
    elif why:
        yield from _flat(content, feature, name, records)
    else:
        yield _regular(content, feature, name, records)


def _why_ragged(feature: Feature, records: int) -> str:
    """Return the reason why a feature makes no array of its own; empty if it makes one."""
    if len(feature.records) < records:
        return f"is in {len(feature.records)} of {records} records"
    if not feature.steps.is_one:
        return f"has {feature.steps.low} to {feature.steps.high} steps in a record"
    if not feature.count.is_one:
        return f"has {feature.count.low} to {feature.count.high} values in a record"
    if feature.kind == BYTES and not feature.width.is_one and not feature.is_padded:
        return f"has values of {feature.width.low} to {feature.width.high} bytes"
    return ""


def _ragged(content: Content, name: str, why: str) -> RaconvertError:
    """Return the error for a feature whose records differ."""
    return Unsupported(
        f"feature '{name[:80]}' {why} (`--in-opt ragged=flat` reads it)", path=content.path,
        remedy="all values are then one array, and another says how many each record has",
    )  # fmt: skip


def _regular(content: Content, feature: Feature, name: str, records: int) -> Array:
    """Return the array of a feature whose records have the same number of values."""
    shape: tuple[int, ...] = (records,)
    if feature.has_steps:
        shape += (feature.steps.high,)
    if feature.count.high != 1:
        shape += (feature.count.high,)
    kind, encoding = _element(feature), None
    if feature.kind == BYTES and feature.is_padded:
        width = max(1, feature.width.high)
        kind, encoding = Element("user", width, "|", f"|S{width}"), "utf-8"
    elif feature.kind == BYTES:
        shape += (feature.width.high,)
    if spanned(shape, kind.nbytes) > MAX_SPAN:
        raise TooLarge(f"feature '{name[:80]}' is too large", path=content.path)

    def data() -> Any:
        from .values import Rows

        return Rows(content, feature, name, shape, kind.nbytes)

    return Array(
        kind, shape[::-1], name=name, index_order="C", data=data,
        meta=Metadata(encoding=encoding),
    )  # fmt: skip


def _element(feature: Feature) -> Element:
    """Return the element type of values; that of a byte for bytes."""
    if feature.kind == BYTES:
        return element("uint", 1)
    return element("float", 4) if feature.kind == FLOATS else element("int", 8)


def _flat(content: Content, feature: Feature, name: str, records: int) -> Iterator[Array]:
    """Yield all values of a feature one after the other, and the numbers that tell them apart."""
    lengths: dict[str, int] = {}
    values = feature.total
    if feature.kind == BYTES:
        values = feature.stored
        lengths["lengths"] = feature.total
    if feature.has_steps:
        lengths["counts" if lengths else "lengths"] = feature.all_steps
        lengths["steps"] = records
    else:
        lengths["counts" if lengths else "lengths"] = records
    needed = {f"{name}/{part}": "elements" for part in lengths}
    yield _part(content, feature, f"{name}/values", "values", _element(feature), values, records,
                needed)  # fmt: skip
    for part, count in lengths.items():
        level = KINDS[feature.kind == BYTES, feature.has_steps][part]
        yield _part(content, feature, f"{name}/{part}", level, element("int", 8), count, records)


def _part(
    content: Content, feature: Feature, name: str, level: str, kind: Element, count: int,
    records: int, needed: dict[str, str] | None = None,
) -> Array:  # fmt: skip
    """Return one part of a ragged feature; `needed` are the parts without which it is unclear."""

    def data() -> Any:
        from .values import Flat

        return Flat(content, feature, level, (count,), name, records)

    meta = Metadata(formats={"tfrecord": {"companions": needed}} if needed else None)
    return Array(kind, (count,), name=name, index_order="C", data=data, meta=meta)
