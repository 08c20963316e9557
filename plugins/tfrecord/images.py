"""Encoded images in a feature, decoded by the plugins of their formats, record by record."""

from __future__ import annotations

from raconvert import registry
from raconvert.catalogue import ROWS
from raconvert.errors import Corrupt, RaconvertError, Unsupported, UsageError
from raconvert.files.window import Held, Window
from raconvert.plugin import SURE, Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.source import Identity
    from raconvert.plugin import Bundle, Plugin

    from .features import Feature
    from .records import Content

# Formats whose files have one array, and no partner.
_ROWS = [row for row in ROWS if row.name in ("png", "jpeg", "webp", "bmp", "gif")]


def image_array(content: Content, feature: Feature, name: str) -> Array:
    """Return the images of all records as one array; an unreadable one if they differ."""
    from raconvert.arrays.stack import stack

    values = _Values(content, feature)
    paths = {f"{content.path}: record {n}": n for n in range(len(feature.records))}
    names = [*paths]

    def open_image(path: str) -> _Item:
        return _Item(values, paths[path])

    try:
        array = stack(names, open_image(names[0]), open_image, content.source.max_memory)
    except UsageError as error:
        odd = paths.get(error.path or "", 0)
        return Array.unreadable(name, Unsupported(
            f"images of feature '{name[:80]}' differ, first in record {odd} "
            "(`--in-opt ragged=flat` reads their bytes)", path=content.path,
            expected=error.expected, got=error.got,
        ))  # fmt: skip
    except RaconvertError as error:
        return Array.unreadable(name, error)
    array.name = name
    return array


class _Values:
    """The one value that a feature has in each record, as a file of its own."""

    def __init__(self, content: Content, feature: Feature) -> None:
        source, inflated = content.source, content.inflated
        self.whole = source if inflated is None else Held(source.path, inflated, source.limits)
        self._begins, self._nbytes = feature.image_begins, feature.image_nbytes
        self._plugins: dict[str, Plugin] = {}  # loaded ones by name

    def read(self, number: int) -> Bundle:
        """Read the image of a record. Raises what its plugin raises, and `Unsupported`."""
        begin, nbytes = self._begins[number], self._nbytes[number]
        window = Window(self.whole, f"record {number}", begin, nbytes)
        for row in _ROWS:
            if registry.matches(row.magic, window.head):
                plugin = self._plugins.get(row.name) or registry.load(row)
                self._plugins[row.name] = plugin
                if plugin.sniff(window) == SURE:
                    return plugin.read(window)
        raise Unsupported("value is not an image of a known format", path=self.whole.path)


class _Item:
    """The image of one record, open as long as the context is."""

    def __init__(self, values: _Values, number: int) -> None:
        self._number = number
        try:
            self.bundle: Bundle = values.read(number)
        except RaconvertError as error:
            self._located(error)
            raise
        self.seen: dict[str, Identity] = values.whole.seen
        if len(self.bundle.arrays) != 1 or self.bundle.arrays[0].problem is not None:
            raise Corrupt("value is not one image", path=values.whole.path,
                          where=f"record {number}")  # fmt: skip
        self.array: Array = self.bundle.arrays[0]

    def _located(self, error: RaconvertError) -> None:
        """Add the record to an error."""
        error.where = f"record {self._number}" + (f", {error.where}" if error.where else "")

    def __enter__(self) -> _Item:
        return self

    def __exit__(self, *raised: object) -> None:
        self.bundle.close()
        for error in raised:
            if isinstance(error, RaconvertError):
                self._located(error)
