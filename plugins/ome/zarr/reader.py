"""The arrays of a hierarchy as images; lower levels can be named, but are left out by default."""

from __future__ import annotations

from raconvert.arrays.bundle import some_sound
from raconvert.errors import Corrupt, RaconvertError
from raconvert.plugin import Array, Bundle, first_of

from ... import zarr
from ..axes import NAMESPACE
from ..record import applied, record_in
from .metadata import (
    KEYS,
    MARK,
    check_plate,
    check_shapes,
    multiscale_of,
    ome_of,
    without_ome,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.plugin import Source

    from .metadata import Multiscale

    Document = dict[str, Any]


def read_images(source: Source, *, metadata: bool) -> Bundle:
    """The bundle of all images; see the plugin's `read`."""
    bundle = zarr.read(source, metadata=metadata)
    return _Images(source, bundle, described=metadata).bundle()


class _Images:
    """The images of a hierarchy while its bundle is made."""

    def __init__(self, source: Source, hierarchy: Bundle, *, described: bool) -> None:
        self.source = source
        self.hierarchy = hierarchy
        self.described = described
        self.arrays = {array.name: array for array in hierarchy.arrays}
        self.attributes: dict[str, Document] = {"": hierarchy.attributes, **hierarchy.groups}
        self.children: dict[str, list[str]] = {}  # names of arrays by their group
        self.positions: dict[str, int] = {"": 0}  # index of the first array in each group
        for position, name in enumerate(self.arrays):
            group = name.rpartition("/")[0]
            self.children.setdefault(group, []).append(name)
            while group not in self.positions:
                self.positions[group] = position
                group = group.rpartition("/")[0]
        self.taken: set[str] = set()
        self.more: list[Array] = []
        self.notes: list[str] = hierarchy.notes

    def bundle(self) -> Bundle:
        """The images in order, then the arrays that belong to no image."""
        images: dict[str, Array] = {}
        for group, attributes in self.attributes.items():
            version, own = ome_of(attributes)
            if "multiscales" in own:
                image = self._image(group, version, own, attributes)
                images[group] = image
            if "plate" in own:
                self._plate(own)
            self._note_rest(group, own)
        arrays = [
            images[group]
            for group in sorted(images, key=lambda group: self.positions.get(group, 0))
        ]
        names = {array.name for array in arrays}
        arrays += [
            array for array in self.hierarchy.arrays
            if array.name not in self.taken and array.name not in names
        ]  # fmt: skip
        self.hierarchy.arrays = some_sound(arrays)
        self.hierarchy.more = self.more
        if self.more:
            shown = ", ".join(array.name for array in self.more[:5])
            shown += ", ..." if len(self.more) > 5 else ""
            self.notes.append(
                f"lower levels of pyramids are left out, `--array NAME` takes them: {shown}"
            )
        self.hierarchy.attributes = without_ome(self.hierarchy.attributes)
        groups = {key: without_ome(own) for key, own in self.hierarchy.groups.items()}
        self.hierarchy.groups = groups
        self.hierarchy.groups = {
            key: own for key, own in self.hierarchy.explicit_groups().items() if key not in images
            or own
        }  # fmt: skip
        return self.hierarchy

    def _note_rest(self, group: str, own: Document) -> None:
        """Add a note on the fields of the OME part of a group that are left out."""
        rest = [f"'{key[:80]}'" for key in own if key not in (*KEYS, "version")]
        listed = own.get("multiscales")
        if isinstance(listed, list) and len(listed) > 1:
            rest.append(f"{len(listed) - 1} further multiscales")
        well = own.get("well")
        images = well.get("images") if isinstance(well, dict) else None
        listed = images if isinstance(images, list) else []
        if any(isinstance(entry, dict) and "acquisition" in entry for entry in listed):
            rest.append("acquisitions of the images of a well")
        if rest:
            where = f"group '{group}'" if group else "the root"
            self.notes.append(f"OME metadata of {where} that is left out: {first_of(rest)}")

    def _plate(self, own: Document) -> None:
        """Check a plate, and record it in the namespace of the file. Raises `Corrupt`."""
        for well in check_plate(own, self.source.path, self.source.limits):
            if well not in self.positions:
                self.notes.append(f"well '{well}' of the plate has no image")
        if self.described:
            plate = {key: own["plate"][key] for key in own["plate"] if key != "version"}
            space = self.hierarchy.formats.get(NAMESPACE, {})
            self.hierarchy.formats = {
                **self.hierarchy.formats,
                NAMESPACE: {**space, "plate": plate},
            }

    def _image(self, group: str, version: str, own: Document, attributes: Document) -> Array:
        """The first level of an image, or an array that cannot be read; the others go to `more`."""
        path = f"{self.source.path}, group '{group}'" if group else self.source.path
        try:
            image = multiscale_of(version, own, path, self.source.limits)
        except RaconvertError as error:
            error.path = error.path or path
            return self._unreadable(group, group or self._stem(), error)
        prefix = f"{group}/" if group else ""
        levels = [self.arrays.get(prefix + level_path) for level_path in image.paths]
        self.taken |= {level.name for level in levels if level is not None}
        name = group or image.name or self._stem()
        if name in self.arrays and name not in self.taken:
            name = self._stem()
        first = levels[0]
        if first is None:
            what = f"has no array '{image.paths[0]}', the first level of the image"
            return self._unreadable(group, name, Corrupt(what, path=path))
        if first.problem is not None:
            return self._unreadable(group, name, first.problem)
        try:
            return self._levels(image, name, levels, attributes, path)
        except RaconvertError as error:
            return self._unreadable(group, name, error)

    def _unreadable(self, group: str, name: str, error: RaconvertError) -> Array:
        """An image that cannot be read, instead of all arrays of its group."""
        self.taken.update(self.children.get(group, ()))
        return Array.unreadable(name, error)

    def _levels(
        self, image: Multiscale, name: str, levels: list[Array | None], attributes: Document,
        path: str,
    ) -> Array:  # fmt: skip
        """The first level of an image, with its metadata; the others go to `more`."""
        sound = [level for level in levels if level is not None and level.problem is None]
        check_shapes(image, [level.dims[::-1] for level in sound], path)
        text = attributes.get(MARK) if self.described else None
        record = record_in(text, self.source.limits, path)
        described = []
        for number, level in enumerate(levels):
            if level is None or level.problem is not None:
                why = "is missing" if level is None else f"cannot be read ({level.problem})"
                self.notes.append(f"level {number} of image '{name}' {why}")
                continue
            title = f"{name}.level{number}" if number else name
            described.append(
                self._described(level, image, number, title, record if not number else {})
            )
        self.more += described[1:]
        return described[0]

    def _described(
        self, level: Array, image: Multiscale, number: int, name: str, record: Document
    ) -> Array:
        """A level of an image as an array with its name and metadata."""
        in_file = image.metadata(number)
        if image.labels is not None and "c" in image.letters:
            count = level.dims[::-1][image.letters.index("c")]
            if len(image.labels) != count:
                self.notes.append(
                    f"image '{name}' has {count} channels, and names of {len(image.labels)}"
                )
                in_file = image._replace(labels=None, channels=[]).metadata(number)
        own = level.meta
        meta = own.replace(
            axes=in_file.axes, space=in_file.space, formats={**own.formats, **in_file.formats}
        )
        meta = applied(meta, in_file, record, self.source.path)
        array = level.replace(name=name, meta=meta)
        array.problem = level.problem
        return array

    def _stem(self) -> str:
        """The name of the folder without its suffixes."""
        stem = self.source.path.rstrip("/").replace("\\", "/").rpartition("/")[2]
        for suffix in (".zarr", ".ome"):
            stem = stem.removesuffix(suffix)
        return stem or "image"
