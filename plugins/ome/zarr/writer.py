"""Writing: the levels of each image through the writer of Zarr, then the documents of OME."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raconvert.plugin import Bundle

from ...zarr.form import keys_of
from ...zarr.plan import form_of
from ...zarr.writer import Writer
from ..axes import NAMESPACE
from ..levels import levels_of
from ..options import count_of
from .documents import documents_of, stripped
from .metadata import KEYS, MARK, OME, Level

if TYPE_CHECKING:
    from raconvert.files.folder_target import Folder

    from ...zarr.form import Options
    from .documents import Image


def write_images(
    bundle: Bundle, images: list[Image], target: Folder, options: Options, version: str,
    count: str, how: str,
) -> None:  # fmt: skip
    """Write all images; `count` is the option for the number of their levels."""
    arrays, paths = [], []
    for image in images:
        plane = len(image.letters) - 2
        wanted = count_of(count, image.array.dims[::-1], plane)
        levels = levels_of(image.array, wanted, plane, how, target.max_memory)
        if len(levels) < wanted:
            target.notes.append(
                f"image '{image.array.name}' has {len(levels)} levels: "
                "the last one is a single element wide and high"
            )
        inside = f"{image.group}/" if image.group else ""
        arrays += [
            stripped(level, f"{inside}{number}", image.letters)
            for number, level in enumerate(levels)
        ]
        paths.append([Level(str(number), 1 << number) for number in range(len(levels))])
    documents = documents_of(bundle, images, paths, version, how)
    groups = {
        path: {key: value for key, value in own.items() if key not in (OME, MARK, *KEYS)}
        for path, own in {"": bundle.attributes, **bundle.groups}.items()
    }
    for path, own in documents.items():
        groups[path] = {**groups.get(path, {}), **own}
    formats = {name: space for name, space in bundle.formats.items() if name != NAMESPACE}
    whole = Bundle(
        arrays, attributes=groups.pop("", {}), groups=groups, formats=formats,
        aliases=bundle.aliases,
    )  # fmt: skip
    keys, named = keys_of(whole)
    forms = [form_of(array, key, options) for array, key in zip(arrays, keys, strict=True)]
    Writer(whole, target, options, forms, named).run([])
