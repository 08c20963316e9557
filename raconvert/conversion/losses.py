"""Losses of a run besides those that the plugin plans: by ``--meta``, of files and of single items.

Nothing is written before `raconvert.conversion.report.judge` has accepted them.
"""

from __future__ import annotations

from raconvert.arrays.bundle import Bundle
from raconvert.arrays.dtypes import is_float8, type_name
from raconvert.arrays.metadata import trailer_of
from raconvert.catalogue import ROWS
from raconvert.errors import UsageError
from raconvert.metadata.roundtrip import record_of
from raconvert.plugin import EQUIVALENT, REFUSED, equivalent, file_fits, first_of, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.report import Conversion
    from raconvert.plugin import Fit


_DECIDE = ("c", "fortran", "keep-memory")  # values of --axes that fix how the axes are indexed


def rounded(arrays: list[Array]) -> list[Fit]:
    """List the losses of precision while arrays were written, which --allow permits."""
    return [
        refused(
            array.name,
            "precision",
            f"some values were rounded to {type_name(array.element)}",
            "--allow precision",
        )
        for array in arrays
        if getattr(array.source, "rounded", False)
    ]


def all_fits(run: Conversion) -> list[Fit]:
    """Return the changes and losses by the plan of the plugin and by ``--meta``."""
    bundle, row, mode = run.bundle, run.row, run.settings.meta
    fits = [
        *run.plan.fits,
        *left_behind(run.origins, run.bundle.arrays, run.left_behind),
        *_nameless(bundle, row),
    ]
    if mode == "sidecar":
        return [*_kept(fits), *_items_without_a_place(bundle, row)]
    if mode == "trailer" and not row.trailer:
        raise UsageError(
            "`--meta trailer` is for .ra destinations; `--meta sidecar` for all others"
        )
    if mode == "trailer":
        for array in bundle.arrays:
            fits += _replaced_trailer(array)
    if mode in ("drop", "ignore") and row.sidecar != "asked":
        for array in bundle.arrays:
            fits += _dropped(array, mode)
        if bundle.attributes or bundle.groups or bundle.formats or bundle.aliases:
            fits.append(equivalent("", "metadata", "dropped: what the file says of itself"))
    elif row.sidecar == "auto":
        fits += file_fits(bundle, "an .ra")
    return fits


_HELD_BY_COMPANIONS = {
    "nulls": "which of its values are missing",
    "elements": "where an element ends and the next begins",
}


def left_behind(
    origins: list[Array], arrays: list[Array], companions: dict[str, dict[str, str]]
) -> list[Fit]:
    """List the losses of arrays whose companions were not selected with them."""
    if not companions:
        return []
    return [
        refused(
            array.name,
            loss,
            f"'{name}' says {_HELD_BY_COMPANIONS[loss]}, but was not selected: select both with "
            "`--array`",
            f"--allow {loss}",
        )
        for origin, array in zip(origins, arrays, strict=True)
        for name, loss in companions.get(origin.name, {}).items()
    ]


def _nameless(bundle: Bundle, row: Row) -> list[Fit]:
    """List the loss of aliases of arrays and groups, if the container format has none."""
    if not bundle.aliases or not row.many or row.meta == "all":
        return []
    names = [f"'{alias}' of '{real or '/'}'" for alias, real in bundle.aliases.items()]
    reason = f"{row.name} has no place for further names: {first_of(names)}"
    return [equivalent("", "metadata", reason)]


def _kept(fits: list[Fit]) -> list[Fit]:
    """Return the changes and losses that remain if a sidecar keeps metadata and names."""
    remaining = []
    for fit in fits:
        if fit.outcome == REFUSED and fit.flag == "--allow names":
            reason = f"{fit.reason}; the sidecar keeps it"
            remaining.append(equivalent(fit.array, fit.property, reason))
        elif not (fit.property == "metadata" and fit.outcome == EQUIVALENT):
            remaining.append(fit)
    return remaining


def _items_without_a_place(bundle: Bundle, row: Row) -> list[Fit]:
    """List the losses of metadata of single items, which the sidecar of a container lacks."""
    if not row.many or row.sidecar == "never":
        return []
    reason = "metadata of single items has no place in the sidecar of a container"
    return [
        equivalent(array.name, "metadata", reason)
        for array in bundle.arrays
        if array.meta.items is not None
    ]


def unheld_floats(run: Conversion) -> list[Fit]:
    """List the losses of floats of one byte for which the format of the destination has no type."""
    return [
        refused(
            array.name,
            "type",
            f"{run.row.title} has no {array.element.descr} (held by: {_holders(array)}); "
            "float32 holds every value of it",
            "--dtype float32",
        )
        for array in run.bundle.arrays
        if is_float8(array.element) and array.element.descr not in run.row.float8
    ]


def _holders(array: Array) -> str:
    """Return the names of the formats that hold an array of floats of one byte."""
    return ", ".join(row.name for row in ROWS if array.element.descr in row.float8)


def undecided(run: Conversion) -> list[Fit]:
    """List the arrays of a bare .ra whose index order is unknown, and would be assumed."""
    settings = run.settings
    if run.row.index_orders != "F" or settings.axes in _DECIDE:
        return []
    bare = {origin.name for origin in run.origins if origin.index_order is None}
    if run.opened is not None:
        bare = run.opened.bare
    return [
        equivalent(
            array.name,
            "index order",
            f"a bare .ra has none; `--index-order F` takes its axes as listed, {array.shape}, "
            f"`--index-order C` reversed, {array.shape[::-1]}",
        )
        for origin, array in zip(run.origins, run.bundle.arrays, strict=True)
        if origin.name in bare and sum(length > 1 for length in array.shape) > 1
    ]


def too_late(arrays: list[Array], row: Row) -> list[Fit]:
    """List the metadata that is lost because it was complete only after all data had been read."""
    if row.sidecar != "asked":  # beside an .ra a sidecar is written after the data
        return []
    losses = []
    for array in arrays:
        fields = array.meta.to_dict()
        names = [*fields.pop("attributes", {}), *fields.pop("formats", {}), *fields]
        if array.meta.items is not None:
            names.append("what the items have of their own")
        reason = f"known only when all data was read, and left out: {first_of(names)}"
        losses.append(equivalent(array.name, "metadata", reason))
    return losses


def lost_items(origins: list[Array], arrays: list[Array]) -> list[Fit]:
    """List the losses of metadata of single items whose axis is gone or no longer the first."""
    reason = "what the items have of their own is left out, since their axis is gone or moved"
    return [
        equivalent(array.name, "metadata", reason)
        for origin, array in zip(origins, arrays, strict=True)
        if origin.meta.items is not None and array.meta.items is None
    ]


def _replaced_trailer(array: Array) -> list[Fit]:
    """List the losses by ``--meta trailer``: metadata of items, and the trailer of the source."""
    losses = []
    if array.meta.items is not None:
        reason = "metadata of single items has no place in a trailer"
        losses.append(equivalent(array.name, "metadata", reason))
    if trailer_of(array.meta) is not None and record_of(array, beside_ra=True):
        losses.append(equivalent(array.name, "metadata", "the trailer that was there is replaced"))
    return losses


def _dropped(array: Array, mode: str) -> list[Fit]:
    """List the losses of an .ra without its sidecar."""
    fields = record_of(array, beside_ra=True)
    losses = []
    if "dtype" in fields:
        reason = f"without a sidecar the elements are read as V{array.element.nbytes}"
        losses.append(refused(array.name, "type", reason, "--allow dtype"))
    if "index_order" in fields:
        reason = "without a sidecar row-major readers list the axes reversed"
        losses.append(equivalent(array.name, "index order", reason))
    rest = [name for name in fields if name not in ("dtype", "index_order")]
    if mode == "drop" and trailer_of(array.meta) is not None:
        rest.append("trailer")
    if rest:
        losses.append(equivalent(array.name, "metadata", f"dropped: {', '.join(rest)}"))
    return losses
