"""A PNG file as a lazy array."""

from __future__ import annotations

from io import BufferedReader

from raconvert.plugin import Array, Bundle, Metadata, Source, element

from . import metadata
from .header import scan
from .tables import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from raconvert.arrays.alike import Alike

    from .header import Png
    from .tables import Frame


def read_image(source: Source, *, frames: str, **options: str) -> Bundle:
    """The image of a file, or with ``frames=all`` all of them; see the package's `read`."""
    with BufferedReader(source.open()) as file:
        png = scan(file, source.size, source.path, source.limits)
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
        data=_Pixels(source, png, images, options),
    )
    alike = (lambda: _alike(source, png, options)) if images is None else None
    return Bundle([array], notes=png.notes, alike=alike)


def _alike(source: Source, png: Png, options: dict[str, str]) -> Alike | None:
    from .alike import alike_of

    return alike_of(source, png, options)


class _Pixels:
    """What decodes the pixels of the default image, or of all `images` composed, as an ndarray."""

    def __init__(
        self, source: Source, png: Png, images: list[Frame] | None, options: dict[str, str]
    ) -> None:
        self._source = source
        self._png = png
        self._images = images
        self._options = options

    def __call__(self) -> Any:
        return self._decoded(None)

    @property
    def some_rows(self) -> Callable[[Sequence[int]], Any] | None:
        """What decodes an image and keeps only some of its rows; None where they are not in order.

        All of it is decoded and checked nevertheless.
        """
        one = self._images is None and not self._png.header.interlace
        return self._decoded if one else None

    def _decoded(self, rows: Sequence[int] | None) -> Any:
        from .pixels import Expansion, decode

        source, png = self._source, self._png
        expansion = Expansion(png, **self._options)
        limit = source.max_memory
        with BufferedReader(source.open()) as file:
            if self._images is None:
                return decode(
                    file, png.idat, png.header, expansion, png=png, max_memory=limit, rows=rows
                )
            from .frames import compose

            return compose(file, png, self._images, expansion, path=source.path, max_memory=limit)
