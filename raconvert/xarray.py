"""Any format in xarray: ``xarray.open_dataset("x.mat", engine="raconvert")``.

xarray finds the engine by itself once raconvert is installed. Nothing but headers is read until
values are asked for::

    import xarray as xr

    ds = xr.open_dataset("x.mat", engine="raconvert")                      # every array of a file
    ds = xr.open_dataset("x.h5", engine="raconvert", group="subject")      # those of one group
    tree = xr.open_datatree("x.h5", engine="raconvert")                    # each group by itself

Packed values (``scale_factor``, ``add_offset``, ``_FillValue``), dates (``units`` such as ``hours
since 2020-01-01``) and ``coordinates`` are decoded, as by xarray's own engines; ``decode_cf=False``
leaves all as it is in the file. Characters stay characters unless ``concat_characters=True`` is
given, durations numbers unless ``decode_timedelta=True`` is.

Names, dimensions, coordinates and attributes are as `raconvert.arrays.interop.xarray_objects` says;
`Array.to_xarray` and `Bundle.to_xarray` give the same of what is open already. `raconvert.write`
takes it back.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, ClassVar

from xarray import DataTree

from raconvert.arrays.interop.xarray_objects import DECODERS, dataset_of, decoded
from raconvert.catalogue import ROWS
from raconvert.conversion.options import Opening
from raconvert.conversion.reopened import open_here
from raconvert.declared import check
from raconvert.errors import UsageError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xarray import Dataset

    from raconvert.arrays.array import Array
    from raconvert.arrays.bundle import Bundle

    class _Engine:  # xarray need not be installed for type checkers
        """Base class of engines, for type checkers."""

else:
    from xarray.backends import BackendEntrypoint as _Engine

# Suffixes that have engines of their own, which xarray takes unless this one is named.
_OTHERS = (".h5", ".hdf5", ".he5", ".nc", ".tif", ".tiff", ".png", ".jpg", ".jpeg", ".gif", ".webp")


_READING = tuple(Opening.__annotations__)


class RaconvertBackend(_Engine):
    """The engine ``raconvert`` of xarray."""

    description: ClassVar[str] = "Open any file that raconvert reads"
    url: ClassVar[str] = "https://pypi.org/project/raconvert/"
    open_dataset_parameters: ClassVar[tuple[str, ...]] = (
        "filename_or_obj", "drop_variables", "group", *_READING, *DECODERS,
    )  # fmt: skip
    supports_groups: ClassVar[bool] = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        **options: Any,
    ) -> Dataset:
        """Return the arrays of a file, or of one group of it, as a Dataset; nothing is read yet.

        ``FILE#name`` is one array. The options of decoding are those of `xarray.open_dataset`, the
        others those of `raconvert.open`. Raises what `raconvert.open` does, `UsageError` for a
        group that is not there.
        """
        reading, decoders = _split(options)
        bundle = open_here(_path(filename_or_obj), mmap=False, reading=reading)
        try:
            made = decoded(_dataset(bundle, group, drop_variables), **decoders)
        except BaseException:
            bundle.close()
            raise
        made.set_close(bundle.close)
        return made

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True for the suffixes that no other engine reads."""
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        suffix = os.path.splitext(os.fspath(filename_or_obj))[1].lower()
        readable = {own for row in ROWS for own in row.suffixes}
        return suffix in readable and suffix not in _OTHERS

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> dict[str, Dataset]:
        """Return the arrays of each group by the path of the group, as a Dataset each.

        Raises what `open_dataset` does.
        """
        reading, decoders = _split(options)
        bundle = open_here(_path(filename_or_obj), mmap=False, reading=reading)
        try:
            groups: dict[str, list[Array]] = {"": [], **{path: [] for path in bundle.groups}}
            for array in bundle.arrays:
                groups.setdefault(array.name.rpartition("/")[0], []).append(array)
            attributes = {**bundle.groups, "": bundle.attributes}
            made: dict[str, Dataset] = {}
            # By depth, the root first: a group takes dimensions from those around it.
            for path in sorted(groups, key=lambda path: path.count("/") + bool(path)):
                above = [made[group] for group in _above(path) if group in made]
                made[path] = dataset_of(
                    groups[path],
                    attributes.get(path, {}),
                    drop_variables,
                    inside=f"{path}/" if path else "",
                    formats={} if path else bundle.formats,
                    around={str(dim): n for outer in above for dim, n in outer.sizes.items()},
                )
            datasets = {f"/{path}": decoded(made[path], **decoders) for path in groups}
        except BaseException:
            bundle.close()
            raise
        datasets["/"].set_close(bundle.close)
        return datasets

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        **options: Any,
    ) -> DataTree:
        """Return each group as a node, its arrays as variables.

        Raises what `open_dataset` does.
        """
        groups = self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **options)
        return DataTree.from_dict(groups)


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into those of `raconvert.open`, checked, and those of `decoded`."""
    reading = {name: options.pop(name) for name in _READING if name in options}
    reading = {name: value for name, value in reading.items() if value is not None}
    for name, value in reading.items():
        check(name, value, Opening.__annotations__[name])
    return reading, options


def _above(path: str) -> list[str]:
    """Return the paths of the groups around a group, from the root inwards."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(len(parts))] if path else []


def _path(source: Any) -> str:
    """Return a path or URL; raises `UsageError` for any other source."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    raise UsageError(
        "the engine 'raconvert' opens files by their paths or URLs",
        expected="str or PathLike",
        got=type(source).__name__,
    )


def _dataset(bundle: Bundle, group: str | None, dropped: str | Iterable[str] | None) -> Dataset:
    """Return the arrays of a bundle, or of a group of it, as a Dataset without decoding."""
    path = (group or "").strip("/")
    if not path:
        return dataset_of(bundle.arrays, bundle.attributes, dropped, formats=bundle.formats)
    members = bundle.group(path)
    if members is None:
        raise UsageError(
            f"group '{group}' does not exist", path=bundle.path,
            remedy=f"the arrays are {listed(bundle.names)}",
        )  # fmt: skip
    arrays = [array for array in bundle.arrays if array.name.startswith(f"{members.path}/")]
    return dataset_of(arrays, members.attributes, dropped, inside=f"{members.path}/")
