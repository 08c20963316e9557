"""Reading: the arrays of a hierarchy as images, the lower levels of each beside them, by name."""

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
    """The bundle that `raconvert.plugins.ome.zarr.read` promises."""
    bundle = zarr.read(source, metadata=metadata)
    return _Images(source, bundle, described=metadata).bundle()


class _Images:
    """The groups of a hierarchy as OME sees them."""

    def __init__(self, source: Source, hierarchy: Bundle, *, described: bool) -> None:
        self.source = source
        self.hierarchy = hierarchy
        self.described = described
        self.arrays = {array.name: array for array in hierarchy.arrays}
        self.attributes: dict[str, Document] = {"": hierarchy.attributes, **hierarchy.groups}
        self.taken: set[str] = set()
        self.more: list[Array] = []
        self.notes: list[str] = hierarchy.notes

    def bundle(self) -> Bundle:
        """The images in order, then arrays that belong to none."""
        images: dict[str, Array] = {}
        for group, attributes in self.attributes.items():
            version, own = ome_of(attributes)
            if "multiscales" in own:
                image = self._image(group, version, own, attributes)
                images[group] = image
            if "plate" in own:
                self._plate(own)
            self._name_rest(group, own)
        arrays = [images[group] for group in sorted(images, key=self._position)]
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

    def _name_rest(self, group: str, own: Document) -> None:
        """Note what of the OME part of a group has no place here."""
        rest = [f"'{key[:80]}'" for key in own if key not in (*KEYS, "version")]
        listed = own.get("multiscales")
        if isinstance(listed, list) and len(listed) > 1:
            rest.append(f"{len(listed) - 1} further multiscales")
        well = own.get("well")
        images = well.get("images") if isinstance(well, dict) else None
        listed = images if isinstance(images, list) else []
        if any(isinstance(one, dict) and "acquisition" in one for one in listed):
            rest.append("acquisitions of the images of a well")
        if rest:
            where = f"group '{group}'" if group else "the root"
            self.notes.append(f"OME metadata of {where} that is left out: {first_of(rest)}")

    def _position(self, group: str) -> int:
        inside = f"{group}/" if group else ""
        names = enumerate(self.hierarchy.names)
        return next((at for at, name in names if name.startswith(inside)), 0)

    def _plate(self, own: Document) -> None:
        for well in check_plate(own, self.source.path, self.source.limits):
            if not any(name.startswith(f"{well}/") for name in self.arrays):
                self.notes.append(f"well '{well}' of the plate has no image")
        if self.described:
            kept = {key: own["plate"][key] for key in own["plate"] if key != "version"}
            space = self.hierarchy.formats.get(NAMESPACE, {})
            self.hierarchy.formats = {**self.hierarchy.formats, NAMESPACE: {**space, "plate": kept}}

    def _image(self, group: str, version: str, own: Document, attributes: Document) -> Array:
        """An image of a group: its first level, or an array that says why it cannot be read."""
        path = f"{self.source.path}, group '{group}'" if group else self.source.path
        try:
            image = multiscale_of(version, own, path, self.source.limits)
        except RaconvertError as error:
            error.path = error.path or path
            return self._unreadable(group, group or self._stem(), error)
        levels = [self.arrays.get(f"{group}/{one}" if group else one) for one in image.paths]
        self.taken |= {level.name for level in levels if level is not None}
        name = group or image.name or self._stem()
        if name in self.arrays and name not in self.taken:
            name = self._stem()
        first = levels[0]
        problem: RaconvertError | None = None
        if first is None:
            problem = Corrupt(
                f"has no array '{image.paths[0]}', the first level of the image", path=path
            )
        elif first.problem is not None:
            problem = first.problem
        if first is None or problem is not None:
            return self._unreadable(group, name, problem or Corrupt("is missing", path=path))
        try:
            return self._levels(image, name, levels, attributes, path)
        except RaconvertError as error:
            return self._unreadable(group, name, error)

    def _unreadable(self, group: str, name: str, error: RaconvertError) -> Array:
        """An image that cannot be read, in the place of all arrays of its group."""
        self.taken |= {one for one in self.arrays if one.rpartition("/")[0] == group}
        return Array.unreadable(name, error)

    def _levels(
        self, image: Multiscale, name: str, levels: list[Array | None], attributes: Document,
        path: str,
    ) -> Array:  # fmt: skip
        sound = [level for level in levels if level is not None and level.problem is None]
        check_shapes(image, [level.dims[::-1] for level in sound], path)
        text = attributes.get(MARK) if self.described else None
        record = record_in(text, self.source.limits, path)
        made = []
        for number, level in enumerate(levels):
            if level is None or level.problem is not None:
                why = "is missing" if level is None else f"cannot be read ({level.problem})"
                self.notes.append(f"level {number} of image '{name}' {why}")
                continue
            title = f"{name}.level{number}" if number else name
            made.append(self._described(level, image, number, title, record if not number else {}))
        self.more += made[1:]
        return made[0]

    def _described(
        self, level: Array, image: Multiscale, number: int, name: str, record: Document
    ) -> Array:
        said = image.metadata(number)
        if image.labels is not None and "c" in image.letters:
            count = level.dims[::-1][image.letters.index("c")]
            if len(image.labels) != count:
                self.notes.append(
                    f"image '{name}' has {count} channels, and names of {len(image.labels)}"
                )
                said = image._replace(labels=None, channels=[]).metadata(number)
        own = level.meta
        meta = own.replace(
            axes=said.axes, space=said.space, formats={**own.formats, **said.formats}
        )
        meta = applied(meta, said, record, self.source.path)
        array = level.replace(name=name, meta=meta)
        array.problem = level.problem
        return array

    def _stem(self) -> str:
        stem = self.source.path.rstrip("/").replace("\\", "/").rpartition("/")[2]
        for suffix in (".zarr", ".ome"):
            stem = stem.removesuffix(suffix)
        return stem or "image"
