"""RA files in imageio: import this module once, and `imageio.v3` reads and writes ``.ra``.

imageio looks its plugins up in two tables of its own and knows no entry points, so that nothing
that is merely installed can add itself. This is all that has to be typed, before or after imageio
is imported::

    import imageio.v3 as iio
    import raconvert.imageio

    x = iio.imread("x.ra")                  # an ndarray of any rank and type, not only images
    iio.imwrite("y.ra", x)                  # replaces y.ra, as imageio does with all formats
    iio.improps("x.ra").shape               # header only
    iio.immeta("x.ra")                      # what the header and the sidecar say

Without the import, and without any change to imageio's tables::

    iio.imread("x.ra", plugin=raconvert.imageio.RaPlugin)

A file is one ndarray, whatever its rank: ``index=0`` and ``index=None`` give it as it is,
``index=...`` with a new first axis of length 1, and other numbers are a `ValueError`. (For single
planes of a large stack use `raconvert.open`, which maps the file.) Shape and sidecar are treated as
by `raconvert.read`: row-major, the dims of the header reversed, unless the sidecar says otherwise.
What goes wrong raises the errors of `raconvert.errors`; a file that does not begin with
``rawarray`` is left to other plugins.

The magic of RA was once registered elsewhere with its bytes swapped in pairs (``arawrrya``, what
``od -x`` prints); here it is taken from `raconvert.catalogue`, where a test holds it against a
sample.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from imageio.config import (
    FileExtension,
    PluginConfig,
    extension_list,
    known_extensions,
    known_plugins,
)
from imageio.core.request import URI_BYTES, InitializationError, IOMode, Request
from imageio.core.v3_plugin_api import ImageProperties, PluginV3

from raconvert.arrays.dtypes import type_name
from raconvert.arrays.interop.from_libraries import refuse_inside
from raconvert.arrays.metadata import NAME as RA
from raconvert.arrays.metadata import Metadata
from raconvert.errors import UsageError
from raconvert.ra.header import MAGIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.arrays.array import Array

    Values = np.ndarray[Any, Any]

    class _Base:  # imageio's class has no types
        """The part of `PluginV3` that is used here."""

        request: Request

        def __init__(self, request: Request) -> None: ...
        def close(self) -> None: ...
else:
    _Base = PluginV3

__all__ = ["NAME", "RaPlugin", "register"]

NAME = "raconvert"  # iio.imread(file, plugin="raconvert")
SUFFIX = ".ra"


class RaPlugin(_Base):
    """The plugin that imageio calls for each RA file; see the docstring of the module."""

    def __init__(self, request: Request) -> None:
        self._array: Array | None = None
        self._written = False
        super().__init__(request)
        if request.mode.io_mode == IOMode.read:
            file = request.get_file()
            begin = file.tell()
            magic = file.read(len(MAGIC))
            file.seek(begin)
            if magic != MAGIC:
                raise InitializationError(f"{request.raw_uri!r} is not an RA file")
        elif request.extension != SUFFIX:
            raise InitializationError(f"raconvert writes {SUFFIX} files, not {request.extension}")

    def read(self, *, index: Any = None) -> Values:
        """Return the array of the file, in memory of its own."""
        from raconvert.arrays.blocks import as_ndarray

        array = self._opened(index)
        values = as_ndarray(array, 1 << 62)
        values = values.T if array.index_order == "F" else values
        return values[None] if index is Ellipsis else values

    def iter(self) -> Iterator[Values]:
        """Yield the one array of the file."""
        yield self.read()

    def write(self, ndimage: Any, **metadata: Any) -> bytes | None:
        """Write an ndarray of any type and rank that RA holds; a list of arrays is stacked.

        The file is replaced by an atomic rename, and only if everything went well. Returns the
        bytes of the file for the target ``"<bytes>"``, else None. A second array is a `ValueError`:
        an RA file holds one. `metadata` are fields of `raconvert.Metadata`
        (``description="…"``, ``attributes={…}``), kept in the sidecar.
        """
        from raconvert.api import write

        if self._written:
            raise ValueError("an RA file holds one array; stack them before writing")
        path = self.request.get_local_filename()
        write(path, _stacked(ndimage), to=RA, overwrite=True, meta=_metadata(metadata))
        self._written = True
        if self.request._uri_type != URI_BYTES:
            return None
        with open(path, "rb") as file:
            return file.read()

    def properties(self, index: Any = None) -> ImageProperties:
        """Return shape and type from the header; no data is read."""
        array = self._opened(index)
        if index is Ellipsis:
            return ImageProperties((1, *array.shape), array.dtype, n_images=1, is_batch=True)
        return ImageProperties(array.shape, array.dtype)

    def metadata(self, index: Any = None, exclude_applied: bool = True) -> dict[str, Any]:
        """Return header and sidecar of the file: everything beside the elements.

        With `exclude_applied` that is the metadata of the sidecar; without it also the fields that
        reading has applied: ``dims`` (fastest axis first), ``element``, ``index_order``.
        """
        array = self._opened(index)
        fields = array.meta.to_dict()
        if not exclude_applied:
            fields["dims"] = list(array.dims)
            fields["element"] = type_name(array.element)
            fields["index_order"] = array.index_order
        return fields

    def close(self) -> None:
        """Close the file; imageio then gets the bytes that were written."""
        array, self._array = self._array, None
        if array is not None:
            array.close()
        super().close()

    def _opened(self, index: Any) -> Array:
        """Return the array, opened once; `ValueError` for an index that the file does not have."""
        from raconvert import api

        if index not in (None, Ellipsis, 0):
            raise ValueError(f"an RA file holds one array, index 0; index {index!r} does not exist")
        if self._array is None:
            path = self.request.get_local_filename()
            opened = api.open(path, from_=RA, max_memory=1 << 62)
            self._array = cast("Array", opened)
        return self._array


def _stacked(ndimage: Any) -> Any:
    """Return an array as it is, or the arrays of a list on a new first axis."""
    if not isinstance(ndimage, list | tuple):
        return ndimage
    shapes = {np.shape(array) for array in ndimage}
    if len(shapes) != 1:
        raise UsageError(
            "a list to be stacked needs arrays of one shape", expected="one shape",
            got=sorted(shapes) or "no array",
        )  # fmt: skip
    refuse_inside(ndimage, 1)
    return np.stack(ndimage)


def _metadata(fields: dict[str, Any]) -> Metadata | None:
    """Return the metadata that keyword arguments name; raises `UsageError` for other arguments."""
    if unknown := set(fields) - set(Metadata.FIELDS):
        raise UsageError(
            f"RA files have no option or metadata field '{min(unknown)}'",
            expected=", ".join(Metadata.FIELDS),
        )
    return Metadata.from_dict(fields) if fields else None


def register() -> None:
    """Enter the plugin into imageio's tables; done when this module is imported.

    Doing it again changes nothing. Plugins that others have entered for ``.ra`` stay behind it.
    """
    known_plugins[NAME] = PluginConfig(
        name=NAME, class_name="RaPlugin", module_name="raconvert.imageio", install_name=NAME
    )
    entries = known_extensions.setdefault(SUFFIX, [])
    if any(NAME in entry.priority for entry in entries):
        return
    extension = FileExtension(
        extension=SUFFIX,
        priority=[NAME],
        name="RawArray",
        external_link="https://github.com/davidssmith/ra",
    )
    entries.insert(0, extension)
    extension_list.append(extension)


register()
