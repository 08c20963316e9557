"""Write one bundle to one destination: adapt, judge, write, read back, sidecar, rename.

Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os

from raconvert.arrays.bundle import Bundle
from raconvert.errors import WriteFailed
from raconvert.files.copy import write_all
from raconvert.files.places import check_target, sync_folder, write_failed
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.metadata import sidecar
from raconvert.metadata.items import items_facts, items_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from raconvert.catalogue import Row
    from raconvert.conversion.run import Conversion


def commit(run: Conversion, target: Target) -> None:
    """Rename all or none: the sidecar, then the file; a left-over sidecar goes last."""
    left = sidecar.left_over(target.path, overwrite=target.overwrite)
    target.companions += _companions(run, target, left)
    target.rename()
    report = run.report
    report.written += [companion.path for companion in target.companions]
    for path in left:
        if path not in report.written:
            _remove_left_over(path)
    if run.settings.sync:
        sync_folder(target.path)


def _remove_left_over(path: str) -> None:
    """Remove metadata that is about the file that was replaced."""
    try:
        os.unlink(path)
    except OSError as error:
        raise WriteFailed(
            f"is left over and cannot be removed: {error.strerror}; the new data is in its place",
            path=path,
            remedy="remove it: it describes the file that was there before",
        ) from error


def _companions(run: Conversion, target: Target, left: list[str]) -> list[Target]:
    """Write the sidecar and the per-item metadata of a finished file, where there is any.

    Those in `left` are of the file that was there, and may be replaced.
    """
    row, settings = run.row, run.settings
    usual = settings.meta == "auto" and row.sidecar == "auto"
    if not usual and (settings.meta != "sidecar" or row.sidecar == "never"):
        return []
    pieces = _pieces(run, target, asked=settings.meta == "sidecar")
    for path in pieces:
        check_target(path, overwrite=target.overwrite or path in left)
    written: list[Target] = []
    for path, lines in pieces.items():
        companion = Target(path, overwrite=target.overwrite or path in left, follow=False)
        written.append(companion)
        try:
            write_all(companion.open(), lines)
            companion.finish(sync=settings.sync)
        except BaseException as error:
            for done in written:
                done.abort()
            if isinstance(error, OSError):
                raise write_failed(path, error) from error
            raise
    return written


def _pieces(run: Conversion, target: Target, *, asked: bool) -> dict[str, Iterable[bytes]]:
    """The metadata files that belong beside a finished file: path and content of each.

    `asked`: the sidecar was asked for (``--meta sidecar``), so that it also says what is usual.
    """
    bundle, row, forms = run.bundle, run.row, run.forms
    described = {
        name: sidecar.fields_of(array, beside_ra=row.sidecar == "auto")
        for name, array in zip(forms, bundle.arrays, strict=True)
    }
    if row.sidecar == "auto":
        fields = next(iter(described.values()))
        if (asked or fields) and bundle.arrays[0].index_order == "C" and bundle.arrays[0].ndim > 1:
            fields = {"index_order": "C", **fields}
    else:
        fields = sidecar_fields(bundle, row, described, forms)
    if not fields:
        return {}
    items = bundle.arrays[0].meta.items
    if fields.get("items") and items is not None:
        fields["items_file"] = items_facts(items())
    facts = sidecar.describe(Source(target.temp), is_ra=row.sidecar == "auto")
    pieces: dict[str, Iterable[bytes]] = {
        sidecar.path_of(target.path): [sidecar.text_of(fields, facts)]
    }
    if items is not None and not row.many:
        pieces[sidecar.items_path_of(target.path)] = items_lines(items())
    return pieces


def sidecar_fields(
    bundle: Bundle,
    row: Row,
    described: dict[str, dict[str, Any]],
    forms: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """Return the fields beside a file that is no .ra: all metadata, and what the arrays were."""
    for name, own in described.items():
        if forms[name]:
            own["was"] = forms[name]
        if row.many:
            own.pop("items", None)  # they lie beside files of one array only
    if not row.many:
        fields = next(iter(described.values()))
    else:
        from raconvert.bundle.manifest import told_of_file

        fields = {**told_of_file(bundle), "arrays": described}
    return {"complete": True, **fields}
