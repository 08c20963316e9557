"""A PNG file as a lazy array."""

from __future__ import annotations

from io import BufferedReader

from raconvert.plugin import Array, Bundle, Metadata, Source, element

from . import metadata
from .header import scan
from .tables import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.alike import Alike

    from .header import Png
    from .tables import Frame


def read_image(source: Source, *, frames: str, **options: str) -> Bundle:
    """The image of a file, or with ``frames=all`` all of them; see the package's `read`."""
    with BufferedReader(source.open()) as file:
        png = scan(file, source.size, source.path)
    channels = png.array_channels(palette=options["palette"], trns=options["trns"])
    dims = (channels,) * (channels > 0) + (png.header.width, png.header.height)
    fields = {**metadata.pixel_fields(png, **options), **metadata.fields_of(png)}
    images = None
    if frames == "all":
        from .frames import animation_fields, images_of

        images = images_of(png)
        dims += (len(images),)
        fields.update(animation_fields(png, images))
    else:
        png.notes.extend(metadata.animation_notes(png))
    array = Array(
        element("uint", png.header.sample_bytes),
        dims,
        name=source.stem,
        index_order="C",
        meta=Metadata(formats={NAME: fields} if fields else None),
        data=lambda: _decoded(source, png, images, options),
    )
    alike = (lambda: _alike(source, png, options)) if images is None else None
    return Bundle([array], notes=png.notes, alike=alike)


def _alike(source: Source, png: Png, options: dict[str, str]) -> Alike | None:
    from .alike import alike_of

    return alike_of(source, png, options)


def _decoded(source: Source, png: Png, images: list[Frame] | None, options: dict[str, str]) -> Any:
    """The pixels of the default image, or of all `images` composed, as an ndarray."""
    from .pixels import Expansion, decode

    expansion = Expansion(png, **options)
    limit = source.max_memory
    with BufferedReader(source.open()) as file:
        if images is None:
            return decode(file, png.idat, png.header, expansion, png=png, max_memory=limit)
        from .frames import compose

        return compose(file, png, images, expansion, path=source.path, max_memory=limit)
