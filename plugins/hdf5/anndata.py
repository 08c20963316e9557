"""AnnData in HDF5 and Zarr: facts of arrays from the groups of its on-disk format.

Source: anndata 0.12, "On-disk format"; versions 0.7 for categories that an attribute points to.
The attribute ``encoding-type`` of a group is its kind::

    categorical      codes (-1: missing) and categories; attribute ``ordered``
    nullable-...     values, and mask (true: missing)
    csr_matrix, csc_matrix  data, indices, indptr; attribute ``shape``
    dataframe        columns; attribute ``_index`` names the one with the names of the rows
    anndata          X, layers/..., obsm/..., varm/... along the dataframes obs and var

In files of 0.7 the codes are the column itself; its attribute ``categories`` is a reference to, or
the path of, ``__categories/NAME``, which has ``ordered``.

All of that stays as it is in the file, as arrays of the same names, so that AnnData reads the file
that is written of it. In addition, the codes get the attributes ``levels`` (the categories, if they
are few) and ``ordered``, and values have their mask as a companion. With ``anndata=labels`` the
arrays X, layers, obsm and varm have the axes obs and var, with labels if there are few; HDF5 and
Zarr would write those as further arrays, which AnnData does not take.
"""

from __future__ import annotations

from raconvert.errors import RaconvertError
from raconvert.metadata.roundtrip import LOCAL
from raconvert.plugin import Array, Axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from raconvert.files.limits import Limits
    from raconvert.plugin import Bundle

ENCODING = "encoding-type"
CATEGORIES, ORDERED, LEVELS = "categories", "ordered", "levels"
SPARSE = ("csr_matrix", "csc_matrix")
NULLABLE = "nullable-"
MOST_NAMED = 5  # sparse matrices that the note names
# Where the axes of an AnnData lie: the group (empty: the array X itself), and its first axes.
ALONG = (("X", ("obs", "var")), ("layers/", ("obs", "var")), ("obsm/", ("obs",)),
         ("varm/", ("var",)))  # fmt: skip


def describe(bundle: Bundle, namespace: str, limits: Limits, *, labels: bool) -> None:
    """Add the facts in AnnData's groups to the metadata of the arrays of a bundle.

    `namespace` is that of the format; `labels`: name and label the axes of X, too. No more than
    `Limits.scale_values` texts are read. An array that cannot be read raises when it is read.
    """
    kinds = {
        path: kind
        for path, group in bundle.groups.items()
        if isinstance(kind := group.get(ENCODING), str)
    }
    pointing = [array for array in bundle.arrays if _points(array)]
    if not kinds and not pointing:
        return
    facts = _Facts(bundle, namespace, limits)
    for path, kind in kinds.items():
        if kind == "categorical":
            facts.categorical(path)
        elif kind.startswith(NULLABLE):
            facts.masked(f"{path}/values", f"{path}/mask")
    for array in pointing:
        facts.pointed(array)
    _note_sparse(bundle, [path for path, kind in kinds.items() if kind in SPARSE])
    if labels:
        for root in _roots(bundle, kinds):
            facts.axes(root)


def _points(array: Array) -> bool:
    return array.described and isinstance(array.meta.attributes.get(CATEGORIES), str)


def _note_sparse(bundle: Bundle, paths: list[str]) -> None:
    if paths:
        more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
        named = ", ".join(f"'{path}'" for path in paths[:MOST_NAMED])
        bundle.notes.append(f"sparse matrices, kept as their parts: {named}{more}")


def _roots(bundle: Bundle, kinds: dict[str, str]) -> list[str]:
    """The groups that are an AnnData, as prefixes of names; empty for the file itself."""
    roots = [f"{path}/" for path, kind in kinds.items() if kind == "anndata"]
    if bundle.attributes.get(ENCODING) == "anndata" or kinds.get("obs") == "dataframe":
        roots.append("")
    return roots


class _Facts:
    """Adds facts to the arrays of a bundle; `left`: the number of texts that it may still read."""

    def __init__(self, bundle: Bundle, namespace: str, limits: Limits) -> None:
        self.bundle = bundle
        self.namespace = namespace
        self.limits = limits
        self.left = limits.scale_values
        self.arrays = {array.name: array for array in bundle.arrays}

    def values(self, array: Array | None) -> list[Any] | None:
        """The few values of an array along one axis; None if they are many or cannot be read."""
        if array is None or array.problem is not None or array.ndim != 1:
            return None
        if array.count > min(self.limits.axis_labels, self.left):
            return None
        self.left -= array.count
        from raconvert.arrays.blocks import as_ndarray

        try:
            values = as_ndarray(array).tolist()
            return [value.decode() if isinstance(value, bytes) else value for value in values]
        except (RaconvertError, UnicodeDecodeError):
            return None  # reading it later reports the error

    def categorical(self, path: str) -> None:
        """Give the codes of a group their levels."""
        ordered = bool(self.bundle.groups[path].get(ORDERED))
        codes = self.arrays.get(f"{path}/codes")
        self._levels(codes, self.arrays.get(f"{path}/{CATEGORIES}"), ordered)

    def pointed(self, codes: Array) -> None:
        """Give a column the levels that its attribute ``categories`` points to."""
        path = codes.meta.attributes[CATEGORIES]
        group = codes.name.rpartition("/")[0]
        for name in (path.lstrip("/"), f"{group}/{path}" if group else path):
            categories = self.arrays.get(name)
            if categories is not None and "__categories" in name.split("/"):
                ordered = bool(categories.meta.attributes.get(ORDERED))
                self._levels(codes, categories, ordered)
                return

    def _levels(self, codes: Array | None, categories: Array | None, ordered: bool) -> None:
        if codes is None or categories is None or codes.element.kind not in ("int", "uint"):
            return
        levels = self.values(categories)
        if levels is not None:
            more = {LEVELS: levels, ORDERED: ordered}
            codes.meta = codes.meta.replace(attributes={**codes.meta.attributes, **more})

    def masked(self, name: str, mask: str) -> None:
        """Make the mask a companion of values, which are incomplete without it."""
        array = self.arrays.get(name)
        if array is not None and mask in self.arrays:
            own = array.meta.formats.get(self.namespace, {})
            fields = {"companions": {mask: "nulls"}, LOCAL: [*own.get(LOCAL, []), "companions"]}
            array.meta = array.meta.with_format(self.namespace, **fields)

    def axes(self, root: str) -> None:
        """Give the arrays of an AnnData the names of its axes, and their labels."""
        axes_of = {name: self._axis(root, name) for name in ("obs", "var")}
        for array, names in self._along(root):
            if array.meta.axes or array.ndim < len(names) or array.index_order != "C":
                continue
            axes = [axes_of[name] for name in names]
            if any(axis is None or axis[1] != length
                   for axis, length in zip(axes, array.shape, strict=False)):  # fmt: skip
                continue
            rest = [Axis()] * (array.ndim - len(names))
            array.meta = array.meta.replace(axes=[axis[0] for axis in axes if axis] + rest)

    def _axis(self, root: str, name: str) -> tuple[Axis, int] | None:
        """An axis along a dataframe, and its length; None if there is no such dataframe."""
        index = self.bundle.groups.get(root + name, {}).get("_index")
        array = self.arrays.get(f"{root}{name}/{index}")
        if array is None or array.ndim != 1:
            return None
        labels = self.values(array)
        texts = labels is not None and all(isinstance(label, str) for label in labels)
        return Axis(name, labels=labels if texts else None), array.count

    def _along(self, root: str) -> Iterator[tuple[Array, tuple[str, ...]]]:
        """Yield the arrays of an AnnData that have axes of its own, with their names."""
        for array in self.bundle.arrays:
            if not array.name.startswith(root) or array.problem is not None:
                continue
            name = array.name[len(root) :]
            for prefix, names in ALONG:
                if prefix.endswith("/"):
                    matches = name.startswith(prefix) and name.count("/") == prefix.count("/")
                else:
                    matches = name == prefix
                if matches:
                    yield array, names
