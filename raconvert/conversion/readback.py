"""Write one bundle to one destination: adapt, judge, write, read back, sidecar, rename.

Nothing is written before `fits` has said yes; nothing is renamed before everything is written.
"""

from __future__ import annotations

import os

from raconvert import registry
from raconvert.arrays.bundle import Bundle
from raconvert.errors import Corrupt, WriteFailed
from raconvert.files.source import Source
from raconvert.files.target import Target
from raconvert.metadata.roundtrip import difference, restored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from raconvert.arrays.array import Array
    from raconvert.catalogue import Row
    from raconvert.conversion.run import Conversion
    from raconvert.plugin import Plugin


def read_back(run: Conversion, target: Target) -> None:
    """Read what was written before it takes the destination's place, headers only.

    With ``--verify`` every element is compared, too, of arrays without a loss. How the form of each
    array differs from what is read back goes to `run.forms` (`raconvert.metadata.roundtrip`).
    """
    names, row, run.forms = run.plan.names, run.row, {}
    lossy = {fit.array for fit in run.report.allowed}
    in_opts = run.settings.in_opts if run.report.source_format == row.name else None
    stand_ins = {os.path.realpath(other.path): other.temp for other in target.companions}
    source = Source(target.temp, max_memory=target.max_memory, stand_ins=stand_ins,
                    place=target.place)  # fmt: skip
    with _read_written(run.plugin, row, source, names, in_opts) as written:
        parts = zip(run.origins, run.bundle.arrays, names, strict=True)
        for number, (origin, array, name) in enumerate(parts):
            found = written.get(name) if row.many else written.arrays[number]
            if found is None or len(written.arrays) != len(names):
                raise WriteFailed(
                    "the written file does not read back; this is a bug, nothing was replaced",
                    path=target.path,
                    expected=f"{len(names)} arrays: {', '.join(names[:10])}",
                    got=f"{len(written.arrays)}: {', '.join(written.names[:10])}",
                )
            if isinstance(found.problem, Corrupt):
                raise found.problem
            back = found if row.many else found.replace(name=array.name)
            form = difference(origin, array, back)
            try:
                again = restored(back, form, target.path, array.meta.encoding)
            except Corrupt:  # no way back from this form; the values are there nevertheless
                form, again = {key: form[key] for key in ("name",) if key in form}, None
            run.forms[name] = form
            if run.settings.verify and not lossy & {array.name, ""}:
                if again is None:
                    again = _as_the_source(run.plugin, row, source, in_opts)
                _compare(array, again, target.path)


def _read_written(
    plugin: Plugin, row: Row, source: Source, names: list[str], in_opts: dict[str, Any] | None
) -> Bundle:
    """Read a written file as anybody will; as its source was read only where arrays are missing."""
    written = plugin.read(source)
    if len(written.arrays) != len(names) and in_opts and row.many:
        written.close()
        written = plugin.read(source, **registry.check_options(row, "read", in_opts))
    return written


def _as_the_source(
    plugin: Plugin, row: Row, source: Source, in_opts: dict[str, Any] | None
) -> Array | None:
    """Return the one array of a written file, read as a source of the same format was; or None."""
    if not in_opts or row.many:
        return None
    array: Array = plugin.read(source, **registry.check_options(row, "read", in_opts)).only()
    return array


def _compare(array: Array, back: Array | None, path: str) -> None:
    """Compare every element with what was written."""
    if back is None or _elements_hash(array) != _elements_hash(back):
        raise WriteFailed(
            f"array '{array.name}' does not read back as it was; nothing was replaced",
            path=path,
            remedy="the disk may be failing, or this is a bug",
        )


def _elements_hash(array: Array) -> bytes:
    """Return the SHA-256 of the elements in stored order."""
    from hashlib import sha256

    from raconvert.arrays.blocks import blocks

    state = sha256()
    for block in blocks(array):
        state.update(block.reshape(-1).view("u1").data)
    return state.digest()
